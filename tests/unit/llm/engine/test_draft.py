"""A draft model changes how fast an answer comes, and not what it is."""

import pytest

from tests.unit.llm.engine.test_engine import NOBODY, generate_tokens, prompt_of
from tests.unit.llm.tiny_model import write_tiny
from weft import ArgumentError
from weft.llm import Engine, Request, Sampling, load
from weft.llm.engine.draft import DraftProposer


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(temperature=0.8, seed=3)])
@pytest.mark.parametrize("seed", [0, 1])
def test_drafts_change_no_token(tiny_model, tmp_path, seed, sampling):
    draft = load(write_tiny(tmp_path / "draft.gguf", seed=seed))
    engine = Engine(
        tiny_model, streams=2, proposer=DraftProposer(draft, tiny_model, count=3, streams=2)
    )
    requests = [Request(prompt_of(n, 9 + n), 12, sampling, ends=NOBODY) for n in range(2)]
    answers = [engine.submit(request) for request in requests]
    for answer in answers:
        list(answer)
    wanted = [generate_tokens(tiny_model, request) for request in requests]
    assert [answer.tokens for answer in answers] == wanted
    counts = engine.statistics
    if seed == 0 and sampling.is_greedy:  # the draft is the model itself
        assert counts.accepted == counts.proposed > 0 and counts.steps < 12


def test_both_have_the_same_tokens(tiny_model):
    class Other:
        vocabulary = 7

    with pytest.raises(ArgumentError, match="same vocabulary"):
        DraftProposer(Other(), tiny_model)
