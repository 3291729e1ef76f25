"""Mistakes in a text are pointed at: line, column and what was expected."""

import pytest

from weft.ir.build import (
    range_,
)
from weft.ir.dtypes import dtypes
from weft.ir.text import parse
from weft.ir.uop import const
from weft.support.errors import TextError

f32, i32, index, void = dtypes.float32, dtypes.int32, dtypes.index, dtypes.void

MISTAKES = {
    "return 1 +": (1, 10, "expected an expression"),
    "return )": (1, 7, "expected an expression, found )"),
    "r0 < 4\nreturn r0 + r1": (2, 12, "unknown name 'r1'"),
    "r0 < 4\nreturn r0 r0": (2, 10, "expected the end of the line, found r0"),
    "return 2.5": (1, 7, "expected a dtype for 2.5"),
    "return float32(2)": (1, 15, "expected a literal of float32, found 2"),
    "return int32(true)": (1, 13, "expected a literal of int32, found true"),
    "r0 < 4\nr0 + 1": (2, 0, "expected 'name =', 'return' or a block, found r0"),
    "r0 < 4\nr0 = r0 + 1": (2, 0, "r0 is already defined"),
    "max = 3": (1, 0, "expected a name, and max has a meaning of its own"),
    "return 1\nreturn 2": (2, 0, "expected the end, for the result stands above"),
    "x = iota: int32[4]\nreturn x.rehsape(2, 2)": (2, 9, "unknown method 'rehsape'"),
    "return sqrt(1, 2)": (1, 16, "SQRT cannot take 2 sources"),
    "return ITEM[float32](1": (1, 22, "expected ,"),
    "return tuple(1).item(3)": (1, 22, "expected ITEM[dtype](…), for its dtype does not follow"),
    "return RANGE[index](1)": (1, 7, "RANGE cannot have this arg"),
    "return CONST[index](; 1)": (1, 7, "expected a literal"),
    "return call f0(1)": (1, 12, "unknown function 'f0'"),
    "return param 0: flaot32[4]": (1, 16, "expected a dtype, found flaot32"),
    "return buffer 0 CPU: int8[4]": (1, 16, "expected a string, found CPU"),
    'return variable "n" 1..x': (1, 23, "expected an integer, found x"),
    "return iota: int8[2.5]": (1, 18, "expected a size, found 2.5"),
    "r0 < 4\nreturn reduce PLUS over r0: r0": (2, 14, "expected the name of an op, found PLUS"),
    "linear:\n  for n < 4:": (2, 6, "expected a range such as r0 < 16"),
    'kernel "k" x loop:': (1, 11, "expected a range such as r0"),
    'kernel "k":\n': (2, 0, "KERNEL cannot take 0 sources"),
    "def f:\n  x = 3": (2, 2, "expected 'return' with the result before this line"),
    "": (1, 0, "expected 'return' with the result before this line"),
    "x = 1\ndef f:\n  return 2": (2, 0, "expected functions before everything else"),
    "def f:\n  return 2\ndef f:": (3, 4, "the function f is already defined"),
    "return 1 < 2 < 3": (1, 13, "expected the end of the line, found <"),
    "return read 1": (1, 12, "expected a stage at its indices after read"),
    "return COPY[index](1; what)": (1, 22, "expected an arg, found what"),
    "return " + "(" * 50_000: (1, 0, "the expression is nested too deeply"),
}


@pytest.mark.parametrize("text", MISTAKES, ids=lambda text: text[:40])
def test_mistakes_are_pointed_at(text: str):
    line, column, what = MISTAKES[text]
    with pytest.raises(TextError) as caught:
        parse(text)
    shown = caught.value.where.text.split("\n")[-1]
    assert (caught.value.what, shown) == (f"line {line}: {what}", " " * column + "^")


def test_a_mistake_reads_well():
    with pytest.raises(TextError) as caught:
        parse("i = iota: int32[4]\nreturn mx(i, 0)", file="program.weft")
    assert str(caught.value) == (
        "line 2: unknown name 'mx'\n\n"
        "  at program.weft:2\n"
        "    return mx(i, 0)\n"
        "           ^\n\n"
        "  fix: the nearest one is max"
    )


def test_hand_written_text():
    text = """
    # Comments and empty lines are free.

    r0 < 4   # as here
    return ((r0) + (2 * 3,)) """
    with pytest.raises(TextError):
        parse(text)
    assert parse(text.replace(",", "")) is range_(0, 4) + const(index, 2) * 3
    assert parse("return 2 < 3") is (const(index, 2) < const(index, 3))
