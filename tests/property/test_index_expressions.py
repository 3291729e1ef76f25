"""A sample of `fuzz.index_expressions`, with a seed of its own, and proof that it can fail."""

import pytest

from fuzz import index_expressions
from fuzz.index_expressions import Generator, check, main, value
from weft.ir.build import range_
from weft.ir.dtypes import dtypes
from weft.ir.uop import const


@pytest.mark.parametrize("dtype", ["index", "int8", "uint8", "int32"])
def test_random_expressions_keep_their_values(dtype, seed, capsys):
    assert main(["--count", "1500", "--seed", str(seed), "--dtype", dtype]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"seed {seed}\n")
    assert "0 differences" in printed


def test_a_wrong_simplifier_is_found(monkeypatch):
    monkeypatch.setattr(index_expressions, "simplify", lambda node: node + 1)
    assert "became" in check(Generator(1), range_(0, 4) * 2)


def test_wrong_bounds_are_found(monkeypatch):
    monkeypatch.setattr(index_expressions, "bounds", lambda node: (0, 1))
    generator = Generator(1)
    monkeypatch.setattr(generator, "environments", lambda node, count: [{range_(0, 9): 7}])
    assert "outside of bounds" in check(generator, range_(0, 9) + 2)


def test_values_follow_the_op_table():
    i = range_(0, 8)
    assert value((i * -3) // 2, {i: 3}) == -5
    assert value(i.cast(dtypes.int8) * 100, {i: 2}) == -56
    assert value(const(dtypes.float32, 0.1) + 0.2, {}) == const(dtypes.float32, 0.30000001).arg
