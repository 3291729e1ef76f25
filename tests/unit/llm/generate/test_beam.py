"""Beam search beside one that reads every text again."""

import numpy as np
import pytest

from weft import ArgumentError
from weft.llm import Batch, generate
from weft.llm.generate.beam import beam_search
from weft.llm.generate.sampling import log_softmax

PROMPT = [5, 80, 33, 7]


@pytest.fixture(scope="module")
def logs_after(tiny_model):
    cache = tiny_model.new_cache(64)

    def logs(tokens):
        sequence = cache.allocate()
        found = tiny_model.forward(Batch.of(cache, [(sequence, tokens)])).numpy()[0]
        cache.free(sequence)
        return log_softmax(found)

    return logs


def by_hand(logs_after, count, width):
    beams = [([], 0.0)]
    for _ in range(count):
        ways = [
            ([*tokens, token], total + log)
            for tokens, total in beams
            for token, log in enumerate(logs_after(PROMPT + tokens))
        ]
        beams = sorted(ways, key=lambda way: -way[1])[:width]
    return beams


def test_beams_are_those_of_texts_read_again(tiny_model, logs_after):
    found = beam_search(tiny_model, PROMPT, 3, 3)
    wanted = by_hand(logs_after, 3, 3)
    assert [beam.tokens for beam in found] == [tokens for tokens, _ in wanted]
    np.testing.assert_allclose([b.logprob for b in found], [t for _, t in wanted], atol=1e-4)


def test_one_beam_is_the_greedy_text(tiny_model):
    (beam,) = beam_search(tiny_model, PROMPT, 5, 1)
    assert beam.tokens == generate(tiny_model, PROMPT, most=5, ends=frozenset()).tokens


def test_an_end_ends_a_beam(tiny_model):
    whole = beam_search(tiny_model, PROMPT, 3, 1)[0].tokens
    found = beam_search(tiny_model, PROMPT, 3, 3, ends=whole[:1], penalty=0)
    assert found[0].tokens == whole[:1]  # the likeliest token, and nothing behind it


def test_what_is_no_search(tiny_model):
    with pytest.raises(ArgumentError, match="beam:"):
        beam_search(tiny_model, [], 3)
