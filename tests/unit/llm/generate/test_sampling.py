"""Sampling: each limit keeps what its definition says, draws follow their probabilities."""

import numpy as np
import pytest

from weft import ArgumentError
from weft.llm.generate.sampling import Sampler, Sampling, log_softmax

LOGITS = np.log(np.array([0.5, 0.25, 0.125, 0.0625, 0.0625], np.float32))


def kept(**options):
    chances = Sampler(Sampling(temperature=1.0, **options)).probabilities(LOGITS)
    return np.flatnonzero(chances).tolist()


def test_limits_keep_the_likeliest():
    assert kept() == [0, 1, 2, 3, 4]
    assert kept(top_k=2) == [0, 1]
    assert kept(top_p=0.5) == [0]
    assert kept(top_p=0.51) == [0, 1]
    assert kept(min_p=0.2) == [0, 1, 2]
    assert kept(top_k=3, min_p=0.49) == [0, 1]
    # The expected surprise is 1.3 nats: 0.25 (1.39) is nearest, then 0.5 (0.69).
    assert kept(typical_p=0.2) == [1]
    assert kept(typical_p=0.5) == [0, 1]


def by_definition(logits, sampling):
    """The probabilities after limits in their order, over all tokens sorted."""
    order = np.argsort(-logits, kind="stable")
    order = order[logits[order] > -np.inf][: sampling.top_k or None]
    wide = logits[order].astype(np.float64)
    chances = np.exp(wide - wide[0]) / np.exp(wide - wide[0]).sum()
    if sampling.top_p < 1:
        is_kept = np.cumsum(chances) - chances < sampling.top_p
        order, chances = order[is_kept], chances[is_kept]
    order = order[chances >= sampling.min_p * chances[0]]
    wide = logits[order].astype(np.float64) / sampling.temperature
    found = np.zeros(len(logits))
    found[order] = np.exp(wide - wide[0]) / np.exp(wide - wide[0]).sum()
    return found


@pytest.mark.parametrize("size", [5, 400, 5000])
@pytest.mark.parametrize(
    "limits",
    [
        *({}, {"top_k": 40}, {"top_p": 0.3}, {"top_p": 0.999}, {"min_p": 0.05}),
        *({"top_p": 0.9, "min_p": 0.3}, {"top_k": 30, "top_p": 0.8, "min_p": 0.01}),
    ],
)
@pytest.mark.parametrize("spread", [0.1, 2.0])
def test_limits_of_many_tokens(size, limits, spread):
    source = np.random.default_rng(size)
    logits = (source.standard_normal(size) * spread).astype(np.float32)
    logits[source.random(size) < 0.3] = -np.inf
    logits[: size // 2] = np.round(logits[: size // 2], 1)  # many are equally likely
    sampling = Sampling(temperature=0.7, **limits)
    found = Sampler(sampling).probabilities(logits)
    np.testing.assert_allclose(found, by_definition(logits, sampling), rtol=1e-4, atol=1e-9)


def test_draws_follow_the_probabilities():
    sampler = Sampler(Sampling(temperature=1.0, seed=0))
    counts = np.bincount([sampler.draw(LOGITS).token for _ in range(20_000)], minlength=5)
    np.testing.assert_allclose(counts / 20_000, np.exp(LOGITS), atol=0.01)


def test_temperature_sharpens():
    chances = Sampler(Sampling(temperature=0.5)).probabilities(LOGITS)
    expected = np.exp(LOGITS) ** 2
    np.testing.assert_allclose(chances, expected / expected.sum(), rtol=1e-5)


def test_a_seed_repeats_and_greedy_needs_none():
    drawn = [
        [Sampler(Sampling(temperature=1.0, seed=seed)).draw(LOGITS).token for seed in range(50)]
        for _ in range(2)
    ]
    assert drawn[0] == drawn[1] and len(set(drawn[0])) > 2
    assert Sampler(Sampling()).draw(LOGITS).token == 0


def test_penalties_and_bias():
    logits = np.array([2.0, 1.0, -1.0], np.float32)
    once = Sampler(Sampling(repetition_penalty=2.0), [0, 2])
    np.testing.assert_allclose(once.adjusted(logits), [1.0, 1.0, -2.0])
    counted = Sampler(Sampling(presence_penalty=0.5, frequency_penalty=0.25), [0, 0, 1])
    np.testing.assert_allclose(counted.adjusted(logits), [1.0, 0.25, -1.0])
    window = Sampler(Sampling(presence_penalty=0.5, penalty_window=1), [0, 0, 1])
    np.testing.assert_allclose(window.adjusted(logits), [2.0, 0.5, -1.0])
    biased = Sampler(Sampling(logit_bias={2: 10.0, 99: 1.0}))
    assert biased.draw(logits).token == 2
    masked = Sampler(Sampling())
    assert masked.draw(logits, np.array([False, False, True])).token == 2


def test_logprobs_are_those_of_the_model():
    drawn = Sampler(Sampling(logprobs=2, logit_bias={4: 100.0})).draw(LOGITS)
    assert drawn.token == 4 and drawn.logprob == pytest.approx(np.log(0.0625), abs=1e-5)
    assert [token for token, _ in drawn.top] == [0, 1]
    np.testing.assert_allclose(np.exp(log_softmax(LOGITS)).sum(), 1.0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"temperature": -1},
        {"temperature": float("nan")},
        {"top_p": 0},
        {"top_p": 1.5},
        {"min_p": "x"},
        {"top_k": -1},
        {"repetition_penalty": 0},
        {"typical_p": True},
        {"top_k": 0.5},
        {"logprobs": 1.5},
        {"seed": -1},
        {"seed": 1.0},
        {"penalty_window": 2.5},
    ],
)
def test_impossible_values(wrong):
    (name,) = wrong
    with pytest.raises(ArgumentError, match=name):
        Sampling(**wrong)


@pytest.mark.parametrize("bias", [{-1: 1.0}, {1 << 70: 1.0}, {1: float("nan")}, {0.5: 1.0}])
def test_impossible_biases(bias):
    with pytest.raises(ArgumentError, match="a bias of"):
        Sampling(logit_bias=bias)


def test_nothing_may_follow():
    with pytest.raises(ArgumentError, match="no token may follow"):
        Sampler(Sampling(temperature=1.0)).draw(LOGITS, np.zeros(5, bool))
