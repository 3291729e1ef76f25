"""Edited model files: an error of Weft's or a result, in a process of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("onnx")


def _run(count: int, seed: int) -> str:
    command = [
        sys.executable,
        "-m",
        "fuzz.onnx_models",
        "--count",
        str(count),
        "--seed",
        str(seed),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=540)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def test_edited_files_are_refused_or_run() -> None:
    """No crash, no hang, no other exception; some files still run."""
    text = _run(300, 1)
    assert "300 files, 0 wrong" in text
    assert "'result'" in text and "'FileFormatError'" in text


@pytest.mark.long
def test_many_edited_files() -> None:
    """The same for two thousand."""
    assert "2000 files, 0 wrong" in _run(2000, 2)
