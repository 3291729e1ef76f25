"""The layout of a message, word for word."""

import tempfile
import traceback
from pathlib import Path

import pytest

from weft.support.errors import InternalError, ShapeError, TextError
from weft.support.source_line import FixedLine

SCRIPT = """\
query, key = (3, 4), (3, 4)

def attention(query, key):
    scores = matmul(query, key)

attention(query, key)
"""

# Stands for Weft: code under a file name that begins with <weft is passed over.
WEFT_CODE = """\
def matmul(left, right):
    raise ShapeError(
        "matmul: inner sizes differ (4 and 3)",
        facts=[("left", left, "axis -1 is 4"), ("right", right, "axis -2 is 3")],
        rule="left @ right needs left.shape[-1] == right.shape[-2]",
        fix="the last axes agree, so transpose the right operand: left @ right.T",
    )
"""

USAGE = """\
weft.ShapeError: matmul: inner sizes differ (4 and 3)

  at train.py:4
    scores = matmul(query, key)

  left   (3, 4)   axis -1 is 4
  right  (3, 4)   axis -2 is 3

  left @ right needs left.shape[-1] == right.shape[-2]

  fix: the last axes agree, so transpose the right operand: left @ right.T
"""


def shown(error: BaseException) -> str:
    return "".join(traceback.format_exception_only(error))


def test_usage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(SCRIPT)
    names: dict[str, object] = {"ShapeError": ShapeError}
    exec(compile(WEFT_CODE, "<weft matmul>", "exec"), names)
    with pytest.raises(ShapeError) as failure:
        exec(compile(SCRIPT, str(tmp_path / "train.py"), "exec"), names)
    assert shown(failure.value) == USAGE


TEXT = """\
weft.TextError: text form: ADD takes 2 sources and has 1

  at kernel.ir:12
    %3 = ADD(%1)

  ADD(a, b) is the sum of two values of one dtype
"""


def test_an_error_in_a_file_that_is_not_python():
    error = TextError(
        "text form: ADD takes 2 sources and has 1",
        rule="ADD(a, b) is the sum of two values of one dtype",
        where=FixedLine("kernel.ir", 12, "%3 = ADD(%1)"),
    )
    assert shown(error) == TEXT


INTERNAL = """\
weft.InternalError: program spec: READ outside its STAGE

  at train.py:4
    scores = query @ key

  pass  lower-reductions
  rule  div-cancels-mul
  node  READ   float32

      %0 = RANGE(0, 8)
    > %1 = READ(%0)
      %2 = STORE(%1)

  this is a bug in Weft, not a mistake in your program

  fix: report it and attach REPORT
"""


def test_internal_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    error = InternalError(
        "program spec: READ outside its STAGE",
        pass_name="lower-reductions",
        rewrite_rule="div-cancels-mul",
        ir_text="%0 = RANGE(0, 8)\n%1 = READ(%0)\n%2 = STORE(%1)",
        marked_line=1,
        facts=[("node", "READ", "float32")],
        where=FixedLine("train.py", 4, "scores = query @ key"),
    )
    text = shown(error)
    (report,) = tmp_path.iterdir()
    assert text == INTERNAL.replace("REPORT", str(report))
