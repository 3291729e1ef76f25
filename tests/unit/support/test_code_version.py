"""The version of the code changes with its files, and keys of compiled programs hold it."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft.support import code_version as module


def test_a_changed_file_is_another_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "codegen").mkdir()
    source = tmp_path / "codegen" / "pass.py"
    source.write_text("x = 1\n")
    monkeypatch.setattr(module, "_ROOT", tmp_path)
    version = module.code_version.__wrapped__
    before = version(("codegen",))
    assert version(("codegen",)) == before
    source.write_text("x = 10\n")
    assert version(("codegen",)) != before


def test_a_moved_file_is_another_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("opts", "lower"):
        (tmp_path / "codegen" / folder).mkdir(parents=True)
    source = tmp_path / "codegen" / "opts" / "pass.py"
    source.write_text("x = 1\n")
    monkeypatch.setattr(module, "_ROOT", tmp_path)
    version = module.code_version.__wrapped__
    before = version(("codegen",))
    source.rename(tmp_path / "codegen" / "lower" / "pass.py")
    assert version(("codegen",)) != before
