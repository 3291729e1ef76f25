"""The benchmark beside llama.cpp: what it says of tokens, and that it can be skipped."""

import itertools

from bench import llm


def run(*tokens, seconds=0.25):
    ticks = itertools.count()
    return llm.timed(tokens, len(tokens), lambda: next(ticks) * seconds)


def test_rows_count_equal_tokens_and_their_rate():
    row = llm.Row("a prompt", 7, run(1, 2, 3, 4), run(1, 2, 9, 4, seconds=0.125), run(1, 2, 3, 4))
    assert row.agreed(row.peer) == "2 of 4"
    assert row.agreed(row.exact) == "4 of 4"
    assert (row.weft.rate, row.peer.rate) == (4, 8)
    (line,) = (each for each in llm.table([row]).splitlines() if "a prompt" in each)
    assert line == "| a prompt, 7 tokens | 4 of 4 | 2 of 4 | 4.0 | 8.0 | 0.25 s | 0.12 s |"


def test_no_more_tokens_are_taken_than_asked_for():
    assert llm.timed(itertools.count(), 3, lambda: 0.0).tokens == [0, 1, 2]


def test_it_is_skipped_without_the_peer(monkeypatch, capsys):
    monkeypatch.setattr(llm, "is_installed", lambda peer: False)
    assert llm.main([]) == 0
    assert "not installed" in capsys.readouterr().out
