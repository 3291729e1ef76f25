"""A bar is on a terminal alone, after a moment, and goes away."""

import io
from types import SimpleNamespace

import pytest

from weft.support import progress as module
from weft.support.progress import Progress, progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(module, "sys", SimpleNamespace(stderr=stream))  # pytest sets its own
    monkeypatch.setattr(module, "_MOMENT", -1.0)
    monkeypatch.setattr(module, "_PAUSE", 0.0)
    return stream


def test_a_bar_is_drawn_and_goes_away(terminal):
    items = progress(range(3), "epoch 1")
    for i in items:
        items.set_postfix(loss=f"{i}.5")
    text = terminal.getvalue()
    assert "epoch 1" in text and "3/3" in text and "loss=2.5" in text
    assert text.endswith(" \r") and "\n" not in text


def test_nothing_is_said_where_nobody_reads(capsys, monkeypatch):
    monkeypatch.setattr(module, "_MOMENT", -1.0)
    monkeypatch.setattr(module, "_PAUSE", 0.0)
    assert list(progress([1, 2, 3], "steps")) == [1, 2, 3]
    assert capsys.readouterr().err == ""


def test_short_work_shows_nothing(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(module, "sys", SimpleNamespace(stderr=stream))  # pytest sets its own
    monkeypatch.setattr(module, "_MOMENT", 1e6)
    assert list(progress(range(5), "steps")) == list(range(5))
    assert stream.getvalue() == ""


def test_of_bars_inside_each_other_the_innermost_is_shown(terminal):
    with Progress("outer", 2) as outer, Progress("inner", 2) as inner:
        outer.advance()
        inner.advance()
    assert "outer" not in terminal.getvalue() and "inner" in terminal.getvalue()


def test_a_loop_that_is_left_early_leaves_no_bar(terminal):
    for _ in progress(range(100), "steps"):
        break
    assert not module._OPEN


@pytest.mark.parametrize("columns", [20, 40, 80, 200])
@pytest.mark.parametrize("total", [None, 1000])
def test_a_line_fits(columns, total):
    bar = Progress("a title that is rather long", total, "kernels")
    bar.done = 312
    bar.set_postfix(loss="1.25")
    assert len(bar.line(4000.0, columns)) < columns


def test_an_iterable_without_a_length_is_counted(terminal):
    assert list(progress((i for i in range(3)), "steps")) == [0, 1, 2]
    assert "steps 3  0 s" in terminal.getvalue()
