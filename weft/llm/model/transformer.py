"""A model: its weights, the facts of its architecture, and a step for each cache it is run on.

`Model.forward` is the whole interface.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from weft.ir.dtypes import DType, dtypes
from weft.llm.cache.paged import PagedCache
from weft.llm.model.batch import Batch
from weft.llm.model.config import Config
from weft.llm.model.step import Step
from weft.llm.weights.layer import LayerWeights, Weight
from weft.tensor.tensor import Tensor


class Model:
    """Weights and the facts of their architecture; `tokenizer_data` is a file's word on text."""

    def __init__(
        self,
        config: Config,
        weights: Mapping[str, Weight],
        tokenizer_data: Mapping[str, Any] | None = None,
    ) -> None:
        self.config = config
        self.weights = LayerWeights(dict(weights))
        self.tokenizer_data = dict(tokenizer_data or {})
        self.vocabulary = int(self.weights["token_embd.weight"].shape[0])
        self._steps: WeakKeyDictionary[PagedCache, Step] = WeakKeyDictionary()

    def new_cache(self, tokens: int | None = None, dtype: DType = dtypes.float32) -> PagedCache:
        """A cache with room for so many tokens of all sequences: by default one whole context."""
        return PagedCache(self.config, tokens or self.config.context, dtype)

    def forward(self, batch: Batch) -> Tensor:
        """Run a batch: its keys and values go to its cache, the result is what it wants.

        `"last"` gives logits (sequences, vocabulary), `"every"` (sequences, time, vocabulary) and
        `"hidden"` (sequences, time, width), where `time` is that of the longest.
        """
        step = self._steps.get(batch.cache)
        if step is None:
            step = self._steps[batch.cache] = Step(self.config, self.weights, batch.cache)
        found = step.run(batch)
        rows, time = len(batch.counts), max(batch.counts)
        return found[:rows] if batch.wanted == "last" else found[:rows, :time]
