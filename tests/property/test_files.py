"""A sample of `fuzz.files`, and that it finds what it looks for."""

import os
import pickle
from pathlib import Path

import pytest

from fuzz import files
from fuzz.file_samples import samples
from fuzz.files import main, outcome_of


def test_damaged_files_are_read_or_refused(seed, capsys):
    assert main(["--count", "400", "--seed", str(seed)]) == 0
    assert "0 problems" in capsys.readouterr().out


def test_right_files_are_read(tmp_path: Path):
    for name, data in samples(tmp_path).items():
        assert outcome_of(name, data, tmp_path) == "read"


class Caller:
    def __reduce__(self):
        return os.system, ("true",)


@pytest.mark.parametrize(
    ("reader", "text"),
    [
        (lambda path: pickle.loads(pickle.dumps(Caller())), "it ran"),
        (lambda path: [][1], "IndexError"),
        (lambda path: bytearray(1 << 62), "MemoryError"),
    ],
)
def test_what_is_forbidden_is_found(reader, text, tmp_path: Path, monkeypatch):
    monkeypatch.setitem(files.READERS, "npy", reader)
    assert text in outcome_of("npy", b"", tmp_path)


def test_bytecode_of_what_is_imported_is_not_forbidden(tmp_path: Path, monkeypatch):
    """`PYTHONPYCACHEPREFIX` puts it anywhere, under a name that is taken back."""
    bytecode = tmp_path / "cp437.cpython-311.pyc.139718523995312"
    monkeypatch.setitem(files.READERS, "npy", lambda path: bytecode.write_bytes(b""))
    assert outcome_of("npy", b"", tmp_path) == "read"
    text = tmp_path / "cp437.txt"
    monkeypatch.setitem(files.READERS, "npy", lambda path: text.write_bytes(b""))
    assert "it ran" in outcome_of("npy", b"", tmp_path)
