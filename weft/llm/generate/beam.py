"""Beam search: the likeliest texts, of which some are followed at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from weft.llm.cache import paged
from weft.llm.generate.sampling import Array, log_softmax
from weft.llm.model.batch import Batch
from weft.llm.model.transformer import Model
from weft.support.errors import ArgumentError


class Beam(NamedTuple):
    """Tokens behind a prompt, and the logarithm of their probability."""

    tokens: list[int]
    logprob: float

    def score(self, penalty: float) -> float:
        """The logarithm over a power of the length; with 0, short texts are the likeliest."""
        return float(self.logprob / max(len(self.tokens), 1) ** penalty)


def beam_search(
    model: Model,
    prompt: Sequence[int],
    count: int,
    width: int = 4,
    *,
    ends: Iterable[int] = (),
    penalty: float = 1.0,
) -> list[Beam]:
    """The best `width` texts of at most `count` tokens, best first; one ends with an end token."""
    if not prompt or count < 1 or width < 1:
        raise ArgumentError("beam: expected a prompt, a count and a width of at least 1")
    cache = model.new_cache((len(prompt) + count + paged.PAGE) * 2 * width)
    first = cache.allocate()
    logits = model.forward(Batch.of(cache, [(first, prompt)])).numpy()
    open_ones = [(Beam([], 0.0), first)]
    closed: list[Beam] = []
    stops = frozenset(ends)
    for _ in range(count):
        grown = _grown(open_ones, log_softmax(logits), 2 * width)
        following: list[tuple[Beam, paged.Sequence]] = []
        for beam, parent in grown:
            if beam.tokens[-1] in stops:
                closed.append(beam)
            elif len(following) < width:
                following.append((beam, cache.fork(open_ones[parent][1])))
        for _, sequence in open_ones:
            cache.free(sequence)
        open_ones = following
        if not open_ones or len(open_ones[0][0].tokens) == count:
            break
        work = [(sequence, beam.tokens[-1:]) for beam, sequence in open_ones]
        logits = model.forward(Batch.of(cache, work)).numpy()
    closed += [beam for beam, _ in open_ones]
    return sorted(closed, key=lambda beam: -beam.score(penalty))[:width]


def _grown(
    beams: Sequence[tuple[Beam, paged.Sequence]], logs: Array, most: int
) -> list[tuple[Beam, int]]:
    """The likeliest ways to go on by a token, each with the number of its beam."""
    totals = logs + np.array([beam.logprob for beam, _ in beams])[:, None]
    flat = totals.ravel()
    best = np.argsort(-flat, kind="stable")[:most]
    size = totals.shape[1]
    return [
        (Beam([*beams[index // size][0].tokens, index % size], float(flat[index])), index // size)
        for index in map(int, best)
    ]
