"""Traces: what VIZ=1 writes, and the page that is made of it."""

import json
import re

import numpy as np
import pytest

from weft import Tensor
from weft.rewrite import record
from weft.support.errors import FileFormatError
from weft.support.settings import Context
from weft.viz.__main__ import main
from weft.viz.page import read_trace, render_page


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """The trace of a softmax. A process schedules a graph once, so there is one for all tests."""
    path = tmp_path_factory.mktemp("trace") / "trace.jsonl"
    x = Tensor(np.arange(77, dtype=np.float32).reshape(7, 11), device="CPU")
    with pytest.MonkeyPatch.context() as patch, Context(VIZ=True, CACHE=False):
        patch.setattr(record, "trace_file", lambda: str(path))
        (x.softmax() * 3.25).realize()
    return path


def test_every_phase_is_recorded(trace):
    runs = [json.loads(line) for line in trace.read_text().splitlines()]
    assert [run["phase"] for run in runs] == ["schedule", "codegen"]
    schedule, codegen = runs
    assert schedule["passes"][0]["name"] == "normalize"
    changed = [step for step in codegen["passes"] if step["text"] is not None]
    assert changed[-1]["name"] == "linearize"
    assert "linear" in changed[-1]["text"]
    assert any(step["rules"] for run in runs for step in run["passes"])
    assert codegen["given"].startswith("kernel ")


def test_the_page_holds_all_that_it_shows(trace, tmp_path, capsys):
    page = tmp_path / "page.html"
    assert main([str(trace), str(page)]) == 0
    assert capsys.readouterr().out.strip() == str(page)
    text = page.read_text()
    for run in read_trace(trace.read_text().splitlines(), "trace"):
        assert run["title"] in text
        assert all(step["name"] in text for step in run["passes"])
    assert "<ins>" in text
    assert not re.search(r"https?://|src=|@import|url\(", text)


def test_text_is_escaped():
    run = {"phase": "a<b", "title": "<script>", "given": "x & y", "passes": []}
    text = render_page([run])
    assert "<script>alert" not in text
    assert "&lt;script&gt;" in text
    assert "x &amp; y" in text


def test_what_is_no_trace_is_refused():
    with pytest.raises(FileFormatError, match="line 1 is no phase"):
        read_trace(["{}"], "file")
    with pytest.raises(FileFormatError, match="line 1 is no phase"):
        read_trace(["hello"], "file")
    assert main([]) == 2
