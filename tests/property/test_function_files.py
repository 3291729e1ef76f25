"""A sample of `fuzz.function_files`, and that it finds what it looks for."""

import random
import re
import signal
import sys
from pathlib import Path

import pytest

from fuzz import function_files
from fuzz.function_files import Worker, edited_header, edited_text, main, outcome_of, write_edited
from fuzz.function_samples import samples
from weft.export.container import write_container


def test_edited_functions_are_refused_or_compute(capsys):
    assert main(["--count", "80", "--seed", "1"]) == 0
    told = capsys.readouterr().out
    assert "0 problems" in told
    refused, computed = (int(re.search(rf"(\d+) {word}", told)[1]) for word in ("ref", "comp"))
    assert refused > 20 and computed > 5


def test_right_functions_compute(tmp_path: Path):
    for header, text, contents in samples(tmp_path).values():
        write_container(tmp_path / "f", header, [text.encode(), *contents])
        assert outcome_of(tmp_path / "f", True) == "computed"


def test_edits_change_files(tmp_path: Path):
    (parts, *_) = samples(tmp_path).values()
    edits = [random.Random(number) for number in range(40)]
    assert sum(edited_text(parts.text, source) != parts.text for source in edits) > 30
    assert sum(edited_header(parts.header, source) != parts.header for source in edits) > 30
    for source in edits:
        write_edited(parts, tmp_path / "f", source)


@pytest.mark.parametrize(
    ("load", "outcome"),
    [
        (lambda path, device: {}[0], "KeyError: 0"),
        (lambda path, device: bytearray(1 << 62), "MemoryError"),
    ],
)
def test_raw_errors_are_found(load, outcome, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(function_files, "load_function", load)
    assert outcome_of(tmp_path / "f", False).startswith(outcome)


def test_other_results_are_found(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(function_files, "_results", lambda path, device: [device])
    assert "another result" in outcome_of(tmp_path / "f", True)


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", f"{-signal.SIGSEGV}"),
        ("import time; time.sleep(60)", "it hangs"),
        ("pass", ""),
    ],
)
def test_crashes_and_hangs_are_found(program, reason, monkeypatch):
    monkeypatch.setattr(function_files, "SECONDS", 2)
    monkeypatch.setattr(Worker, "command", lambda *_: [sys.executable, "-c", program])
    worker = Worker(0, None)
    assert worker.line() is None
    assert reason in worker.end() if reason else worker.end() == ""
