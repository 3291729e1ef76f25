"""Language models on tensors: architectures, weights, a paged cache of keys and values.

    model = load("model.gguf")                     # or a folder of Hugging Face files
    cache = model.new_cache(tokens=4096)           # room for so many tokens of all sequences
    first, second = cache.allocate(), cache.allocate()
    logits = model.forward(Batch.of(cache, [(first, [1, 2, 3]), (second, [4])]))

`load` gives a `Model`: its `config` has the architecture's facts, its `tokenizer_data` what a
tokenizer is built from. `forward` runs a `Batch`, the next tokens of several sequences, writes
their keys and values into the cache, and gives a tensor: the logits (sequences, vocabulary) after
the last token of each, or what `Batch.of(..., wanted=...)` asks for: `"every"` token's logits
(sequences, time, vocabulary), padded at the end, or the `"hidden"` states under the head.

A `PagedCache` gives sequences pages of memory: `allocate`, `extend`, `truncate`, `fork` (shares
the pages of a prefix), `trim` (gives back what no window reaches), `free`, `save`, `load`. A full
cache raises `OutOfMemory` before anything changes.

An `Engine` answers many requests at once over such a cache; `generate` and `stream` are for one
caller. `weft.llm.text.tokenizer_of(model)` is the tokenizer.
"""

from weft.llm.cache.paged import PagedCache, Sequence
from weft.llm.engine.engine import Engine
from weft.llm.engine.generate import generate, stream
from weft.llm.engine.request import Request
from weft.llm.generate.sampling import Sampling
from weft.llm.model.batch import Batch
from weft.llm.model.config import Config
from weft.llm.model.transformer import Model
from weft.llm.weights.load import load

__all__ = [
    "Batch",
    "Config",
    "Engine",
    "Model",
    "PagedCache",
    "Request",
    "Sampling",
    "Sequence",
    "generate",
    "load",
    "stream",
]
