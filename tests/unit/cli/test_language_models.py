"""The commands of language models, on a tiny one."""

import argparse
import json

import pytest

from tests.unit.llm.tiny_model import write_tiny
from weft.cli.chat import Conversation, read_message
from weft.cli.main import main

pytest.importorskip("tokenizers", reason="needs the extra `llm`")
pytest.importorskip("jinja2", reason="needs the extra `llm`")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return str(write_tiny(tmp_path_factory.mktemp("cli") / "tiny.gguf", context=256))


@pytest.fixture(scope="module")
def engine(path):
    from weft.llm import Engine, load
    from weft.llm.text import tokenizer_of

    model = load(path)
    return Engine(model, tokenizer_of(model), streams=1)


@pytest.fixture
def conversation(engine):
    written = []
    options = argparse.Namespace(system="", temperature=0.0, seed=1, most=6)
    found = Conversation(engine, options, written.append)
    found.written = written
    return found


def lines_of(*lines):
    """Input that ends, as at Ctrl-D; an exception is what a key does."""
    rest = list(lines)

    def read(prompt):
        if not rest:
            raise EOFError
        line = rest.pop(0)
        if isinstance(line, type):
            raise line
        return line

    return read


def test_a_conversation_goes_on_and_knows_what_it_read(conversation):
    conversation.talk(lines_of("Hello", KeyboardInterrupt, "and?", "/nothing"))
    roles = [message["role"] for message in conversation.messages]
    assert roles == ["user", "assistant"] * 2
    text = "".join(conversation.written)
    assert "per second]" in text and "Ctrl-D" in text and "no command /nothing" in text


def test_retry_and_undo(conversation):
    conversation.talk(lines_of("Hello"))
    first = list(conversation.messages)
    conversation.talk(lines_of("/retry"))
    assert conversation.messages == first
    conversation.talk(lines_of("/undo"))
    assert conversation.messages == []


def test_ctrl_c_stops_the_answer_alone(conversation, monkeypatch):
    count = 0
    write = conversation.write

    def stop(text):
        nonlocal count
        count += 1
        if count == 2:
            raise KeyboardInterrupt
        write(text)

    conversation.write = stop
    conversation.options.most = 100
    conversation.take("Hello")
    assert "(stopped)" in "".join(conversation.written)
    assert conversation.engine.active == 0
    conversation.options.most = 2
    conversation.take("again")
    assert len(conversation.messages) == 4


def test_commands_change_how_it_answers(conversation, tmp_path):
    file = tmp_path / "talk.json"
    conversation.talk(
        lines_of("/temperature 0.5", "/most 3", "/system Be brief.", "Hi", f"/save {file}")
    )
    saved = json.loads(file.read_text())
    conversation.talk(lines_of("/reset", "/most x", f"/load {file}", "/help"))
    assert conversation.messages == saved and len(saved) == 2
    assert "invalid literal" in "".join(conversation.written)


def test_messages_of_several_lines():
    assert read_message(lines_of('"""one', 'two"""')) == "one\ntwo"
    assert read_message(lines_of("one\\", "two")) == "one\ntwo"


def test_embed(path, capsys):
    assert main(["embed", path, "one", "two"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(rows) == 2 and sum(x * x for x in rows[0]) == pytest.approx(1, abs=1e-4)


def test_perplexity_is_that_of_the_logits(path, engine, tmp_path, capsys):
    import numpy as np

    from weft.llm import Batch
    from weft.llm.generate.sampling import log_softmax

    text = "some text that is long enough for two pieces of it, and then a few words more"
    (tmp_path / "text").write_text(text)
    assert main(["perplexity", path, str(tmp_path / "text"), "--piece", "32"]) == 0
    lines = capsys.readouterr().out.splitlines()
    tokens = engine.tokenizer.encode(text)
    surprises = []
    for begin in range(0, len(tokens) // 32 * 32, 32):
        piece, cache = tokens[begin : begin + 32], engine.model.new_cache(64)
        work = [(cache.allocate(), piece)]
        logs = log_softmax(engine.model.forward(Batch.of(cache, work, "every")).numpy()[0])
        surprises += [-logs[n, piece[n + 1]] for n in range(16, 31)]
    assert len(lines) == len(tokens) // 32
    assert float(lines[-1].split()[2]) == pytest.approx(np.exp(np.mean(surprises)), rel=1e-3)


def test_a_file_that_is_not_there(path, capsys):
    assert main(["perplexity", path, "nothing.txt"]) == 1
    assert "there is no file" in capsys.readouterr().err


def test_convert_and_bench(path, tmp_path, capsys):
    target = str(tmp_path / "small.gguf")
    assert main(["convert", path, target, "--type", "q4_0"]) == 0
    assert main(["bench-llm", target, "--prompt", "8", "--count", "3", "--repeat", "1"]) == 0
    assert "tokens/s" in capsys.readouterr().out
