"""An engine: every stream is that of a run alone, whatever runs beside it."""

import threading

import numpy as np
import pytest

from tests.unit.llm.tiny_model import write_tiny
from weft import ArgumentError, Busy
from weft.llm import Batch, load
from weft.llm.cache.paged import PAGE
from weft.llm.engine.engine import Engine
from weft.llm.engine.generate import generate, stream
from weft.llm.engine.request import Request
from weft.llm.engine.speculate import NgramProposer
from weft.llm.generate.constraint import Masks, Vocabulary
from weft.llm.generate.gbnf import parse_grammar
from weft.llm.generate.sampling import Sampling

NOBODY = frozenset[int]()


def prompt_of(seed: int, length: int) -> tuple[int, ...]:
    return tuple(np.random.default_rng(seed).integers(0, 250, length).tolist())


def by_hand(model, prompt, count: int) -> list[int]:
    """Greedy tokens, the whole text read again for each, by nothing but the model."""
    tokens = list(prompt)
    for _ in range(count):
        cache = model.new_cache(256)
        logits = model.forward(Batch.of(cache, [(cache.allocate(), tokens)])).numpy()
        tokens.append(int(logits[0].argmax()))
    return tokens[len(prompt) :]


def requests() -> list[Request]:
    """Greedy ones and drawn ones, of all lengths; two begin alike."""
    shared = prompt_of(99, 70)
    made = [
        Request(prompt_of(n, 1 + 13 * n), 12, Sampling(), ends=NOBODY, client=str(n % 3))
        for n in range(4)
    ]
    for n in range(4):
        sampling = Sampling(temperature=1.0, top_p=0.9, seed=n, repetition_penalty=1.1)
        prompt = shared + prompt_of(n, 5)
        made.append(Request(prompt, 12, sampling, ends=NOBODY, client=str(n % 3)))
    return made


@pytest.fixture(scope="module")
def alone(tiny_model):
    return [list(generate_tokens(tiny_model, request)) for request in requests()]


ENGINES: dict[int, Engine] = {}


def generate_tokens(model, request: Request) -> list[int]:
    """The tokens of a request alone, with nothing that was read before."""
    engine = ENGINES.get(id(model)) or ENGINES.setdefault(id(model), Engine(model, streams=1))
    answer = engine.submit(request)
    list(answer)
    engine.forget()
    return answer.tokens


def free_pages(engine: Engine) -> list[int]:
    return [pool.free for pool in engine.cache.pools]


def test_greedy_tokens_are_those_of_the_model(tiny_model):
    prompt = prompt_of(5, 40)
    assert generate(tiny_model, prompt, most=5).tokens == by_hand(tiny_model, prompt, 5)


def test_streams_at_once_are_those_of_runs_alone(tiny_model, alone):
    engine = Engine(tiny_model, streams=4)
    answers = [engine.submit(request) for request in requests()]
    for answer in answers:
        list(answer)
    assert [answer.tokens for answer in answers] == alone
    assert {answer.ending for answer in answers} == {"length"}
    assert engine.statistics.reused > 0 and engine.statistics.steps < 8 * 12
    engine.close()
    assert free_pages(engine) == [pool.count for pool in engine.cache.pools]


def test_streams_on_a_thread_with_callers_on_others(tiny_model, alone):
    found: dict[int, list[int]] = {}
    with Engine(tiny_model, streams=4) as engine:

        def ask(number: int, request: Request) -> None:
            answer = engine.submit(request)
            list(answer)
            found[number] = answer.tokens

        threads = [threading.Thread(target=ask, args=each) for each in enumerate(requests())]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [found[n] for n in range(len(alone))] == alone


def test_a_full_cache_makes_the_last_one_wait(tiny_model, alone):
    engine = Engine(tiny_model, streams=4, tokens=4 * PAGE)
    answers = [engine.submit(request) for request in requests()]
    for answer in answers:
        list(answer)
    assert engine.statistics.preempted > 0
    assert [answer.tokens for answer in answers] == alone


def test_an_answer_that_outgrows_the_cache_ends(tiny_model):
    engine = Engine(tiny_model, streams=1, tokens=PAGE)
    answer = engine.submit(Request(prompt_of(1, 20), ends=NOBODY))
    assert len(list(answer)) == PAGE - 20 and answer.ending == "length"


def test_a_prompt_that_was_read_is_not_read_again(tiny_model):
    engine = Engine(tiny_model, streams=2)
    first = engine.submit(Request(prompt_of(3, 50), 4, ends=NOBODY))
    list(first)
    longer = (*prompt_of(3, 50), *first.tokens, *prompt_of(4, 6))
    second = engine.submit(Request(longer, 4, ends=NOBODY))
    list(second)
    assert second.reused_tokens == 53  # but the last token, which was never read
    assert second.tokens == generate_tokens(tiny_model, Request(longer, 4, ends=NOBODY))
    other = engine.submit(Request(prompt_of(3, 50), 4, ends=NOBODY))
    list(other)
    assert (other.reused_tokens, other.tokens) == (PAGE, first.tokens)


def test_windows_do_not_change_what_is_reused(tmp_path):
    model = load(write_tiny(tmp_path / "w.gguf", window=PAGE))
    engine = Engine(model, streams=2)
    prompts = [prompt_of(7, 150), prompt_of(7, 150)[:100], prompt_of(7, 40)]
    for prompt in prompts:
        request = Request(prompt, 6, ends=NOBODY)
        answer = engine.submit(request)
        list(answer)
        assert answer.tokens == generate_tokens(model, request)


def test_a_cancelled_answer_frees_its_slot(tiny_model):
    engine = Engine(tiny_model, streams=1)
    first = engine.submit(Request(prompt_of(1, 8), 100, ends=NOBODY))
    second = engine.submit(Request(prompt_of(2, 8), 3, ends=NOBODY))
    third = engine.submit(Request(prompt_of(2, 8), 3, ends=NOBODY))
    assert next(iter(first)).token >= 0
    first.cancel()
    third.cancel()
    assert len(list(second)) == 3
    assert (first.ending, second.ending, third.ending) == ("cancelled", "length", "cancelled")
    assert engine.active == engine.queued == 0


def test_a_closed_iterator_cancels(tiny_model):
    engine = Engine(tiny_model, streams=1)
    pieces = stream(engine, prompt_of(1, 8), ends=NOBODY)
    next(pieces)
    pieces.close()
    engine.step()
    assert engine.active == 0 and engine.statistics.ended["cancelled"] == 1


def test_what_is_refused(tiny_model):
    engine = Engine(tiny_model, streams=1, waiting=1, tokens=PAGE)
    for wrong in (Request(()), Request(prompt_of(1, PAGE)), Request((10**6,)), Request((1,), -1)):
        with pytest.raises(ArgumentError, match="engine:"):
            engine.submit(wrong)
    for _ in range(2):
        engine.submit(Request((1,), 4))
    with pytest.raises(Busy, match="2 requests wait"):
        engine.submit(Request((1,), 4))
    engine.close()
    with pytest.raises(ArgumentError, match="closed"):
        engine.submit(Request((1,), 4))


def test_clients_take_turns(tiny_model):
    engine = Engine(tiny_model, streams=1)
    ended: list[str] = []
    for client in ("many", "many", "many", "one"):
        answer = engine.submit(Request((1, 2), 2, ends=NOBODY, client=client))
        answer.listen(lambda a=answer, c=client: ended.append(c) if a.ending else None)
    while engine.step():
        pass
    assert ended == ["many", "one", "many", "many"]


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(temperature=0.3, seed=3)])
def test_proposals_change_no_token(tiny_model, sampling):
    prompt = prompt_of(6, 10) * 3
    request = Request(prompt, 40, sampling, ends=NOBODY)
    engine = Engine(tiny_model, streams=2, proposer=NgramProposer(count=3))
    answers = [engine.submit(request) for _ in range(2)]
    for answer in answers:
        list(answer)
    wanted = generate_tokens(tiny_model, request)
    assert [answer.tokens for answer in answers] == [wanted, wanted]
    assert engine.statistics.proposed > 0


def test_a_failing_step_ends_the_answers_that_run(tiny_model, monkeypatch):
    engine = Engine(tiny_model, streams=2)
    monkeypatch.setattr(engine.model, "forward", lambda batch: 1 / 0)
    answer = engine.submit(Request((1, 2, 3), 4))
    with pytest.raises(ZeroDivisionError):
        list(answer)
    monkeypatch.undo()
    assert len(list(engine.submit(Request((1, 2, 3), 4, ends=NOBODY)))) == 4


def test_text_stops_and_grammars(tiny_model, tiny_tokenizer):
    grammar = Masks(parse_grammar('root ::= "yes" | "no"'), Vocabulary.of(tiny_tokenizer))
    engine = Engine(tiny_model, tiny_tokenizer, streams=2)
    found = generate(engine, "is it?", masks=grammar)
    assert found.text in ("yes", "no") and found.ending == "stop"
    whole = generate(engine, "abc", Sampling(logprobs=2), most=12, ends=NOBODY)
    assert all(piece.logprob <= 0 and len(piece.top) == 2 for piece in whole.pieces[:12])
    stop = whole.text[3:5]
    cut = generate(engine, "abc", most=12, ends=NOBODY, stops=(stop,))
    assert cut.text == whole.text[: whole.text.index(stop)] and cut.ending == "stop"
