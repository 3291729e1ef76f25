"""The error classes: their builtin bases, their table, pickling, and the location in them."""

import copy
import pickle
import traceback

import pytest

from weft.support import errors
from weft.support.error_table import ERROR_TABLE, ErrorRow, explain
from weft.support.errors import InternalError, ShapeError, UnknownName, UsageError
from weft.support.source_line import NOWHERE, FixedLine

CLASSES = [getattr(errors, name) for name in errors.__all__]
BUILTIN_BASES = {
    "UsageError": (),
    "ShapeError": (ValueError,),
    "DTypeError": (TypeError,),
    "AxisError": (IndexError, ValueError),
    "IndexOutOfRange": (IndexError,),
    "ArgumentError": (ValueError,),
    "ArgumentTypeError": (TypeError,),
    "UnknownName": (ValueError,),
    "UnknownAttribute": (AttributeError,),
    "OptRefused": (ValueError,),
    "DeviceError": (RuntimeError,),
    "OutOfMemory": (MemoryError,),
    "NotSupported": (NotImplementedError,),
    "MissingFile": (RuntimeError, FileNotFoundError),
    "NotFinite": (FloatingPointError,),
    "Busy": (RuntimeError,),
    "LinAlgError": (RuntimeError, ValueError),
    "GradcheckError": (RuntimeError,),
    "FileFormatError": (ValueError,),
    "TextError": (ValueError,),
    "InternalError": (),
}


def subclasses(root: type) -> set[type]:
    return {root}.union(*(subclasses(child) for child in root.__subclasses__()))


def test_every_class_is_in_the_table_once():
    assert [row.error for row in ERROR_TABLE] == [getattr(errors, name) for name in BUILTIN_BASES]
    assert subclasses(UsageError) | {InternalError} == set(CLASSES)


def test_codes_are_unique_and_sorted():
    codes = [row.code for row in ERROR_TABLE]
    assert codes == sorted(set(codes))
    assert all(code[0] == "W" and code[1:].isdecimal() and len(code) == 4 for code in codes)


@pytest.mark.parametrize("row", ERROR_TABLE, ids=lambda row: row.code)
def test_every_row_explains_in_one_paragraph(row: ErrorRow):
    assert row.explanation.endswith(".")
    assert "\n" not in row.explanation and "  " not in row.explanation
    assert 100 < len(row.explanation) < 600
    assert explain(row.code) is explain(row.name.lower()) is row
    assert repr(row) == f"<ErrorRow {row.code} {row.name}>"


def test_explain_knows_the_nearest_name():
    with pytest.raises(UnknownName, match="the nearest one is ShapeError"):
        explain("ShapError")
    with pytest.raises(UnknownName) as failure:
        explain("nonsense")
    assert failure.value.fix == ""


@pytest.mark.parametrize("error", CLASSES, ids=lambda error: error.__name__)
def test_builtin_bases(error: type[Exception]):
    for base in BUILTIN_BASES[error.__name__]:
        assert issubclass(error, base)
    assert issubclass(error, UsageError) == (error is not InternalError)


@pytest.mark.parametrize("error", CLASSES, ids=lambda error: error.__name__)
def test_a_traceback_shows_the_public_name(error: type[Exception]):
    (line, *_) = traceback.format_exception_only(error("what: why", where=NOWHERE))
    assert line.splitlines()[0] == f"weft.{error.__name__}: what: why"


@pytest.mark.parametrize("error", CLASSES, ids=lambda error: error.__name__)
@pytest.mark.parametrize("duplicate", [lambda x: pickle.loads(pickle.dumps(x)), copy.copy])
def test_pickle_and_copy_keep_the_message(error: type[Exception], duplicate):
    first = error("what", facts=[("left", (3, 4))])
    first.add_note("seen in batch 3")
    text = str(first)
    second = duplicate(first)
    assert type(second) is error
    assert str(second) == text
    assert second.__notes__ == ["seen in batch 3"]


def test_parts_are_kept():
    location = FixedLine("a.py", 1)
    error = ShapeError("what", facts=[["left", (3, 4)]], rule="rule", fix="fix", where=location)
    assert (error.what, error.facts) == ("what", (("left", "(3, 4)"),))
    assert (error.rule, error.fix, error.where) == ("rule", "fix", location)
    assert (error.code, error.args) == ("W101", ("what",))


def test_the_users_line_is_captured():
    error = ShapeError("what")
    assert error.where.text == 'error = ShapeError("what")'
    assert error.where.function == "test_the_users_line_is_captured"
    assert InternalError("what").where.function == "test_the_users_line_is_captured"


def test_python_adds_no_guess_of_its_own():
    # Python offers names for an AttributeError that knows its object; ours has said it already.
    with pytest.raises(AttributeError) as failure:
        errors.explain  # noqa: B018
    assert failure.value.obj is errors
    assert errors.UnknownAttribute("what", where=NOWHERE).obj is None


def test_what_the_system_refuses_keeps_its_reason_and_its_kind():
    missing = errors.file_error("x cannot be read", FileNotFoundError(2, "No such file", "x"))
    assert type(missing) is errors.MissingFile
    assert (missing.what, missing.errno, missing.filename) == (
        "x cannot be read: No such file",
        2,
        "x",
    )
    other = errors.file_error("x cannot be read", PermissionError(13, "Permission denied"))
    assert type(other) is errors.DeviceError and other.what.endswith(": Permission denied")
