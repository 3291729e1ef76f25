"""The before/after examples in the docstrings of structural rules are true."""

import re

import pytest

from weft.ir.build import range_, variable
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.uop import const, make
from weft.rules.simplify import SIMPLIFY, simplify

EXAMPLE = re.compile(r"before: (.+)\n\s*after: +(.+)")

NAMES = {
    "i": range_(0, 16),
    "j": range_(1, 32),
    "three": range_(2, 4),
    "n": variable("n", 1, 64),
    "u8": make(Op.PARAM, dtypes.uint8, (), (0, ())),
    "flag": make(Op.PARAM, dtypes.bool, (), (1, ())),
    "const": lambda value: const(dtypes.index, value),
    "true": const(dtypes.bool, True),
    "false": const(dtypes.bool, False),
    "range_": range_,
    "variable": variable,
    "dtypes": dtypes,
    "make": make,
    "Op": Op,
}


def structural_rules():
    functions = {item.function: item for item in SIMPLIFY.all_rules if item.function is not None}
    return [pytest.param(item, id=item.name) for item in functions.values()]


@pytest.mark.parametrize("item", structural_rules())
def test_examples_are_true(item):
    examples = EXAMPLE.findall(item.function.__doc__ or "")
    assert examples, "a structural rule shows at least one example, before: and after:"
    for before, after in examples:
        built = eval(before, dict(NAMES))
        assert simplify(built) is not built, f"{before} is in normal form already"
        assert simplify(built) is simplify(eval(after, dict(NAMES))), f"{before} -> {after}"
