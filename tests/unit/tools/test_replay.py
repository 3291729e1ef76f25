"""`tools/replay`: what it reports of two records, and a tiny corpus from one end to the other."""

import subprocess
from pathlib import Path

import pytest

from tools import replay
from tools.replay_corpus import PROGRAMS

CORPUS = """
from weft import Tensor


def x(*shape):
    return Tensor.empty(*shape).realize()


PROGRAMS = {
    "add": lambda: (x(64) + x(64)).realize(),
    "two": lambda: x(32, 8).sum(1).realize((x(5) * 2.0).realize()),
    "broken": lambda: x(3).no_such_method(),
}
"""


def kernel(text: str, program: str = "source", size: int = 8) -> dict[str, object]:
    return {"name": text, "kernel": text, "program": program, "bytes": size, "operations": 1}


def of(**programs: list[dict[str, object]]) -> replay.Record:
    return {name: {"kernels": each, "seconds": 0.5} for name, each in programs.items()}


def changes(before: replay.Record, after: replay.Record) -> list[tuple[str, int, str]]:
    return [(each.program, each.position, each.what) for each in replay.compare(before, after)]


def test_what_stays_the_same_is_no_change():
    record = of(p=[kernel("a"), kernel("b")])
    assert changes(record, record) == []
    assert "0 added, 0 removed, 0 changed as kernels" in replay.report(record, record)[0]


def test_a_kernel_in_the_middle_moves_no_others():
    before, after = of(p=[kernel("a"), kernel("b")]), of(p=[kernel("a"), kernel("c"), kernel("b")])
    assert changes(before, after) == [("p", 1, "added")]
    assert changes(after, before) == [("p", 1, "removed")]


def test_text_of_kernels_and_of_programs():
    before = of(p=[kernel("a"), kernel("b", "one\ntwo")])
    after = of(p=[kernel("c", size=16), kernel("b", "one\nthree")])
    assert changes(before, after) == [("p", 0, "kernel"), ("p", 1, "program")]
    lines = replay.report(before, after, with_diff=True)
    assert lines[0] == "p 0 c: the kernel is another, bytes 8 -> 16"
    assert {"    -two", "    +three"} <= set(lines)
    assert "bytes moved: 16 -> 24 (+50.00%)" in lines
    assert lines[-1] == "compiling: 0.50 s -> 0.50 s"


def test_programs_that_only_one_has():
    assert changes(of(), of(p=[kernel("a")])) == [("p", 0, "added")]
    assert changes(of(p=[kernel("a")]), of()) == [("p", 0, "removed")]


def is_checkout() -> bool:
    command = ["git", "-C", str(replay.ROOT), "rev-parse", "--verify", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@pytest.mark.skipif(not is_checkout(), reason="there are no commits to compare")
def test_a_tiny_corpus(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    corpus = tmp_path / "corpus.py"
    corpus.write_text(CORPUS)
    assert replay.main(["HEAD", "HEAD", "--corpus", str(corpus), "--same"]) == 1  # for "broken"
    out = capsys.readouterr().out
    assert "3 programs, 3 kernels: 0 added" in out
    assert "broken: " in out
    assert "operations: " in out


def test_a_change_of_weft_is_seen(tmp_path: Path):
    """The same corpus without opts: the kernels are the same, their programs are not."""
    corpus = tmp_path / "corpus.py"
    corpus.write_text(CORPUS)
    before = replay.record(replay.ROOT, corpus, "NULL", "add")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NOOPT", "1")
        after = replay.record(replay.ROOT, corpus, "NULL", "add")
    assert changes(before, after) == [("add", 0, "program")]


def test_the_corpus_has_some_thirty_programs():
    assert len(PROGRAMS) >= 30
