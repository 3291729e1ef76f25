"""The next token from logits: penalties, then limits, then a draw.

`Sampling` says how, as data. A `Sampler` draws for one sequence: its random numbers come from its
own seed, so what it draws does not depend on what runs beside it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np

from weft.support.errors import ArgumentError

Array = np.ndarray[Any, np.dtype[Any]]

_MOST_TOKENS: Final = 1 << 31
_FIRST: Final = 128  # tokens that are looked at first, where limits keep few
# The values that each number may have: least, most, and whether the least itself is one.
_LIMITS: Final[dict[str, tuple[float, float, bool]]] = {
    "temperature": (0, 100, True),
    "top_k": (0, math.inf, True),
    "top_p": (0, 1, False),
    "min_p": (0, 1, True),
    "typical_p": (0, 1, False),
    "repetition_penalty": (0, 100, False),
    "presence_penalty": (-100, 100, True),
    "frequency_penalty": (-100, 100, True),
    "penalty_window": (0, math.inf, True),
    "logprobs": (-1, 1000, True),
}


@dataclass(frozen=True)
class Sampling:
    """How tokens are drawn; a temperature of 0 takes the likeliest.

    >>> Sampling(temperature=0.7, top_p=0.9).is_greedy
    False
    """

    temperature: float = 0.0
    top_k: int = 0  # the so many likeliest; 0 is all
    top_p: float = 1.0  # the likeliest that have this probability together
    min_p: float = 0.0  # those at least so likely, of the likeliest one's probability
    typical_p: float = 1.0  # those whose surprise is nearest to the expected one
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    penalty_window: int = 0  # the so many last tokens are penalized; 0 is all
    seed: int | None = None
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    logprobs: int = -1  # how many of the likeliest are reported; -1 is not even the drawn one

    def __post_init__(self) -> None:
        self._require_whole()
        for name, (least, most, may_equal) in _LIMITS.items():
            value = getattr(self, name)
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not is_number or not (least <= value <= most) or (value == least and not may_equal):
                above = "at least" if may_equal else "above"
                raise ArgumentError(
                    f"sampling: {name} is {value!r}",
                    rule=f"{name} is {above} {least:g} and at most {most:g}",
                )

    def _require_whole(self) -> None:
        """Counts, the seed and biased tokens are whole numbers, and a bias is a number."""
        for name in ("top_k", "penalty_window", "logprobs", "seed"):
            value = getattr(self, name)
            if type(value) is not int and not (name == "seed" and value is None):
                raise ArgumentError(
                    f"sampling: {name} is {value!r}", rule=f"{name} is a whole number"
                )
        if self.seed is not None and self.seed < 0:
            raise ArgumentError(
                f"sampling: the seed is {self.seed}", rule="a seed is a number from 0 on"
            )
        for token, bias in self.logit_bias.items():
            if type(token) is not int or not 0 <= token < _MOST_TOKENS or math.isnan(bias):
                raise ArgumentError(
                    f"sampling: a bias of {bias!r} for the token {token!r}",
                    rule="tokens are numbers from 0 on, each with what is added to its logit",
                )

    @property
    def is_greedy(self) -> bool:
        return self.temperature == 0

    @property
    def has_penalties(self) -> bool:
        return (self.repetition_penalty, self.presence_penalty, self.frequency_penalty) != (
            *(1.0, 0.0, 0.0),
        )


class Drawn(NamedTuple):
    """A token, the logarithm of its probability, and the likeliest ones with theirs."""

    token: int
    logprob: float
    top: list[tuple[int, float]]


class Sampler:
    """Draws tokens of one sequence."""

    def __init__(self, sampling: Sampling, prompt: Sequence[int] = ()) -> None:
        self.sampling = sampling
        self._history = list(prompt)
        self._random = np.random.default_rng(sampling.seed)
        self._biased = np.array([*sampling.logit_bias], np.int64)
        self._bias = np.array([*sampling.logit_bias.values()], np.float32)
        # The likeliest of the logits as they are, which is the fast case.
        self._is_plain = sampling.is_greedy and not sampling.has_penalties and not len(self._bias)

    def draw(self, logits: Array, allowed: Array | None = None) -> Drawn:
        """The next token; `allowed` is a mask of the tokens that may follow."""
        token = int(logits.argmax()) if self._is_plain else -1
        if token < 0 or allowed is not None or math.isnan(logits[token]):
            scores = self.adjusted(logits, allowed)
            is_greedy = self.sampling.is_greedy
            token = int(scores.argmax()) if is_greedy else self._drawn(scores)
        self._history.append(token)
        return self._reported(logits, token)

    def probabilities(self, logits: Array, allowed: Array | None = None) -> Array:
        """How likely each token is to be drawn next."""
        scores = self.adjusted(logits, allowed)
        found = np.zeros(len(scores))
        if self.sampling.is_greedy:
            found[int(scores.argmax())] = 1.0
            return found
        kept, chances = _limited(scores, self.sampling)
        found[kept] = chances
        return found

    def adjusted(self, logits: Array, allowed: Array | None = None) -> Array:
        """Logits with bias and penalties; -inf where a token may not follow."""
        scores = np.array(logits, np.float32)
        inside = self._biased < len(scores)
        scores[self._biased[inside]] += self._bias[inside]
        if self.sampling.has_penalties:
            self._penalize(scores)
        if allowed is not None:
            scores[~allowed] = -np.inf
        scores[np.isnan(scores)] = -np.inf
        return scores

    def _penalize(self, scores: Array) -> None:
        s = self.sampling
        counts = Counter(self._history[-s.penalty_window :])
        tokens = np.array([token for token in counts if token < len(scores)], np.int64)
        if not len(tokens):
            return
        times = np.array([counts[int(token)] for token in tokens], np.float32)
        old = scores[tokens]
        repeated = np.where(old > 0, old / s.repetition_penalty, old * s.repetition_penalty)
        scores[tokens] = repeated - s.presence_penalty - s.frequency_penalty * times

    def _drawn(self, scores: Array) -> int:
        kept, chances = _limited(scores, self.sampling)
        edges = np.cumsum(chances)
        index = int(np.searchsorted(edges, self._random.random() * edges[-1], side="right"))
        return int(kept[min(index, len(kept) - 1)])

    def _reported(self, logits: Array, token: int) -> Drawn:
        """Probabilities are those of the model, before penalties and limits."""
        count = self.sampling.logprobs
        if count < 0:
            return Drawn(token, math.nan, [])
        if count == 0:
            return Drawn(token, logprob_of(logits, token), [])
        logs = log_softmax(logits)
        best = likeliest(logs, count)[:count]
        return Drawn(token, float(logs[token]), [(int(each), float(logs[each])) for each in best])


def log_softmax(logits: Array) -> Array:
    """Logarithms of probabilities, in float64."""
    wide = logits.astype(np.float64)
    wide -= wide.max(-1, keepdims=True)
    result: Array = wide - np.log(np.exp(wide).sum(-1, keepdims=True))
    return result


def logprob_of(logits: Array, token: int) -> float:
    most = float(logits.max())
    return float(logits[token]) - most - math.log(float(np.exp(logits - most).sum()))


def _limited(scores: Array, sampling: Sampling) -> tuple[Array, Array]:
    """The tokens that may be drawn, and their probabilities; in order where there are limits."""
    s = sampling
    if s.top_k:
        kept = likeliest(scores, s.top_k)[: s.top_k]
    elif s.typical_p < 1:
        kept = likeliest(scores, len(scores))
    elif s.top_p < 1 or s.min_p > 0:
        kept = _head(scores, s)
    else:
        kept = np.flatnonzero(scores > -np.inf)
    if not len(kept):
        raise ArgumentError("sampling: no token may follow", rule="a grammar allows some token")
    chances = _powers(scores[kept], scores)
    # Those that top-k leaves out are not likely at all; other limits begin with all tokens.
    chances /= chances.sum() if s.top_k else _powers(scores, scores).sum()
    if s.typical_p < 1:
        kept, chances = _typical(kept, chances, s.typical_p)
    if s.top_p < 1:
        before = np.cumsum(chances) - chances
        count = max(1, int((before < s.top_p).sum()))
        kept, chances = kept[:count], chances[:count]
    if s.min_p > 0:
        enough = chances >= s.min_p * chances[0]
        kept, chances = kept[enough], chances[enough]
    return kept, _softmax(scores[kept] / s.temperature)


def likeliest(scores: Array, count: int) -> Array:
    """At least so many of the likeliest tokens in order, with all that are as likely as the last.

    >>> likeliest(np.array([1.0, 3.0, -np.inf, 3.0, 2.0]), 3)
    array([1, 3, 4])
    """
    kept = np.flatnonzero(scores > -np.inf)
    if count < len(kept):  # a vocabulary is long, and sorting all of it is felt
        least = np.partition(scores, len(scores) - count)[len(scores) - count]
        kept = np.flatnonzero(scores >= least)
    result: Array = kept[np.argsort(-scores[kept], kind="stable")]
    return result


def _head(scores: Array, sampling: Sampling) -> Array:
    """The likeliest tokens, at least as many as top-p and min-p keep."""
    powers = _powers(scores, scores)
    wanted, count = sampling.top_p * powers.sum(), _FIRST
    while True:
        kept = likeliest(scores, count)
        found = powers[kept]
        is_enough = sampling.top_p < 1 and found.sum() > wanted
        is_rest_rare = len(found) and found[-1] < sampling.min_p
        if is_enough or is_rest_rare or count >= len(scores):
            return kept
        count *= 16


def _powers(scores: Array, among: Array) -> Array:
    """Exponentials in float64, that of the likeliest one of all being 1."""
    result: Array = np.exp((scores - among.max()).astype(np.float64))
    return result


def _softmax(scores: Array) -> Array:
    powers = np.exp((scores - scores.max()).astype(np.float64))
    result: Array = powers / powers.sum()
    return result


def _typical(kept: Array, chances: Array, share: float) -> tuple[Array, Array]:
    """The tokens nearest to the expected surprise that have this probability together."""
    surprise = -np.log(np.maximum(chances, 1e-300))
    distance = np.abs(surprise - (chances * surprise).sum())
    order = np.argsort(distance, kind="stable")
    before = np.cumsum(chances[order]) - chances[order]
    chosen = np.sort(order[: max(1, int((before < share).sum()))])
    part = chances[chosen]
    return kept[chosen], part / part.sum()
