"""How well a model predicts a text: the exponential of the mean surprise of its tokens.

The text is cut into pieces of a context, each read from its beginning. Tokens of the second half
of a piece are counted, as llama.cpp does: those before them are what they are predicted from.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from weft.llm.cache.paged import PagedCache
from weft.llm.generate.sampling import Array, log_softmax
from weft.llm.model.batch import Batch
from weft.llm.model.transformer import Model
from weft.support.errors import ArgumentError

PIECE = 128


class Perplexity(NamedTuple):
    """The perplexity of what was read so far, its standard error, and the number of tokens."""

    value: float
    error: float
    tokens: int


def perplexity(
    model: Model, tokens: Sequence[int], context: int = 512, begin: int | None = None
) -> Iterator[Perplexity]:
    """What is known after each piece of a text; `begin` is put in place of its first token."""
    context = min(context, model.config.context)
    pieces = len(tokens) // context
    if not pieces or context < 4:
        raise ArgumentError(
            f"perplexity: a text of {len(tokens)} tokens",
            rule=f"it has at least one piece of {context} tokens",
        )
    cache = model.new_cache(context)
    surprises: list[float] = []
    for number in range(pieces):
        piece = list(tokens[number * context : (number + 1) * context])
        if begin is not None:
            piece[0] = begin
        surprises += _surprises(model, cache, piece, context // 2)
        mean, count = math.fsum(surprises) / len(surprises), len(surprises)
        spread = float(np.std(surprises)) / math.sqrt(count)
        yield Perplexity(math.exp(mean), math.exp(mean) * spread, count)


def _surprises(model: Model, cache: PagedCache, tokens: list[int], first: int) -> list[float]:
    """The negative logarithm of the probability of each token behind the `first`."""
    sequence, found = cache.allocate(), []
    for begin in range(0, len(tokens), PIECE):
        part = tokens[begin : begin + PIECE]
        logits = model.forward(Batch.of(cache, [(sequence, part)], "every"))
        counted = [n for n in range(len(part)) if first <= begin + n < len(tokens) - 1]
        if counted:
            logs: Array = log_softmax(logits.numpy()[0, counted])
            nexts = [tokens[begin + n + 1] for n in counted]
            found += (-logs[range(len(counted)), nexts]).tolist()
    cache.free(sequence)
    return found
