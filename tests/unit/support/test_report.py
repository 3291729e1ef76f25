"""The report of an internal error: written once, when it is printed, and never in the way."""

import tempfile
from pathlib import Path

import pytest

from weft.support.errors import InternalError
from weft.support.settings import Context

IR = "\n".join(f"%{i} = CONST({i})" for i in range(30))


@pytest.fixture
def reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def raised(error: InternalError) -> InternalError:
    with pytest.raises(InternalError) as failure:
        raise error
    return failure.value


def test_nothing_is_written_before_the_error_is_printed(reports: Path):
    raised(InternalError("what", ir_text=IR))
    assert list(reports.iterdir()) == []


def test_one_report_with_all_that_is_known(reports: Path):
    error = raised(
        InternalError("what", pass_name="lower-reductions", rewrite_rule="add-zero", ir_text=IR)
    )
    with Context(NOOPT=1):
        assert str(error) == str(error)
    (path,) = reports.iterdir()
    assert str(error).endswith(f"fix: report it and attach {path}")
    text = path.read_text()
    assert text.startswith("== message\nwhat\n")
    for part in ("pass  lower-reductions", "rule  add-zero", "NOOPT=True", "Python 3.", IR[-9:]):
        assert part in text
    assert "in raised" in text and "raise error" in text


@pytest.mark.parametrize("folder", ["/proc/nope", "/dev/null/below"])
def test_no_report_where_none_can_be_written(folder: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tempfile, "tempdir", folder)
    assert str(InternalError("what")).endswith("fix: report it and attach this message")


def test_odd_characters_are_written(reports: Path):
    str(InternalError("what \udc80 \u2192"))
    (path,) = reports.iterdir()
    assert "what \\udc80 \u2192" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("marked", "shown"),
    [(None, range(0, 9)), (0, range(0, 9)), (15, range(11, 20)), (29, range(25, 30))],
)
def test_the_message_shows_the_lines_around_the_mark(reports: Path, marked, shown):
    text = str(InternalError("what", ir_text=IR, marked_line=marked))
    found = [line for line in text.splitlines() if "CONST" in line]
    assert found == [("    > " if i == marked else "      ") + f"%{i} = CONST({i})" for i in shown]
    assert text.count("      ...") == (shown.start > 0) + (shown.stop < 30)
