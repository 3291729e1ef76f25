"""Weft runs where threads share one lock, and says so where they do not."""

import subprocess
import sys

import pytest

import weft
from weft.support.interpreter import require_lock


def test_an_interpreter_without_its_lock_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    with pytest.raises(weft.NotSupported, match="without the global interpreter lock") as caught:
        require_lock()
    assert "PYTHON_GIL=1" in str(caught.value)


def test_a_free_threaded_build_with_its_lock_is_fine(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: True, raising=False)
    require_lock()


def test_the_import_itself_refuses():
    program = "import sys; sys._is_gil_enabled = lambda: False; import weft"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode != 0
    assert "NotSupported: weft: this interpreter runs without" in done.stderr
