"""Texts as vectors: the mean of the hidden states of their tokens, of length 1."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft.llm.engine.engine import Engine
from weft.llm.generate.sampling import Array
from weft.llm.model.batch import Batch
from weft.support.errors import ArgumentError

PIECE = 128


def embed(engine: Engine, texts: Sequence[Sequence[int]], size: int = 0) -> Array:
    """A row for each list of tokens, of `size` elements or the model's width.

    Between two texts the engine decodes what it has to.
    """
    limit = min(engine.model.config.context, engine.room)
    wrong = [len(tokens) for tokens in texts if not 0 < len(tokens) <= limit]
    if wrong:
        raise ArgumentError(
            f"embed: a text of {wrong[0]} tokens", rule=f"a text has 1 to {limit} tokens"
        )
    rows = [engine.call(lambda tokens=tokens: _mean(engine, tokens)) for tokens in texts]  # type: ignore[misc]
    found = np.array([row[: size or None] for row in rows], np.float32)
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    result: Array = (found / np.maximum(lengths, 1e-12)).astype(np.float32)
    return result


def _mean(engine: Engine, tokens: Sequence[int]) -> Array:
    """The mean of the hidden states, on the thread that owns the cache."""
    cache = engine.cache
    engine.make_room(len(tokens))
    sequence = cache.allocate()
    total: Array = np.zeros(engine.model.config.width)
    try:
        for begin in range(0, len(tokens), PIECE):
            piece = tokens[begin : begin + PIECE]
            batch = Batch.of(cache, [(sequence, piece)], "hidden")
            total += engine.model.forward(batch).numpy()[0].sum(0, dtype=np.float64)
    finally:
        cache.free(sequence)
    mean: Array = total / len(tokens)
    return mean
