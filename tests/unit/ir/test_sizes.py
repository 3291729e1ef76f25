"""Sizes: one normal form for what is equal, and the values that variables are bound to."""

import itertools
import random

import pytest

from weft.ir.bounds import bounds
from weft.ir.build import Size, bind, index, variable
from weft.ir.sizes import (
    at_least,
    at_most,
    floor_quotient,
    least,
    minus,
    most,
    normal_size,
    plus,
    shape_value,
    size_value,
    times,
    try_quotient,
)
from weft.ir.uop import UOp
from weft.rules.simplify import simplify
from weft.support.errors import ArgumentError, ArgumentTypeError

n, m, k = (variable(name, 1, 8) for name in "nmk")


def test_equal_sizes_are_the_same_node():
    assert normal_size(1 + n) is normal_size(n + 1)
    assert normal_size(n + m * 2 - m) is normal_size(m + n)
    assert times(plus(n, 1), plus(m, 1)) is normal_size(1 + n + m + m * n)
    assert minus(plus(n, 2), 2) is n
    assert minus(plus(n, 1), n) == 1
    assert normal_size((n * 6 + 12) // 3) is plus(times(n, 2), 4)
    assert normal_size((n + 1 + m) // 2) is normal_size((m + n + 1) // 2)
    assert times() == 1
    assert times(n, 0) == 0


def test_random_expressions_have_one_form(seed: int):
    generator = random.Random(seed)

    def expression(depth: int) -> Size:
        if not depth:
            return generator.choice([n, m, k, 1, 2, 3])
        a, b = expression(depth - 1), expression(depth - 1)
        return generator.choice([lambda: a + b, lambda: a * b, lambda: a - b])()

    points = [
        dict(zip("nmk", values, strict=True)) for values in itertools.product((1, 3, 7), repeat=3)
    ]
    for _ in range(100):
        size = expression(3)
        normal = normal_size(size)
        assert simplify(index(normal)) is index(normal)
        assert normal_size(normal) is normal or normal_size(normal) == normal
        assert [size_value(size, each) for each in points] == [
            size_value(normal, each) for each in points
        ]
        if isinstance(size, UOp):
            doubled = plus(size, size)
            assert doubled is times(2, normal) or doubled == times(2, normal)


def test_the_form_does_not_depend_on_the_bound_values():
    def shape(*values: int) -> str:
        a, b, c = (bind(each, value) for each, value in zip((n, m, k), values, strict=True))
        size = times(plus(a, b), plus(c, a))
        assert isinstance(size, UOp)
        text = repr(size)
        for name, value in zip("nmk", values, strict=True):
            text = text.replace(f"bind({name}, {value})", name)
        return text

    assert {shape(*values) for values in itertools.product((1, 2, 5, 8), repeat=3)} == {
        repr(times(plus(n, m), plus(k, n)))
    }


def test_quotients():
    assert try_quotient(times(n, 6), 3) is times(n, 2)
    assert try_quotient(times(n, m, 6), times(m, 2)) is times(n, 3)
    assert try_quotient(plus(n, 1), plus(1, n)) == 1
    assert try_quotient(plus(n, 1), 2) is None
    assert try_quotient(n, m) is None
    assert try_quotient(0, n) == 0
    assert try_quotient(12, 4) == 3
    windows = plus(floor_quotient(n, 3), -1)
    assert try_quotient(times(windows, 48), times(windows, 3)) == 16
    assert try_quotient(times(plus(n, 1), plus(n, m)), plus(m, n)) is plus(n, 1)
    assert try_quotient(plus(times(n, n), -1), plus(n, 1)) is plus(n, -1)
    assert try_quotient(plus(times(n, n), 1), plus(n, 1)) is None
    assert try_quotient(n, plus(n, 1)) is None and try_quotient(n, 0) is None


def test_the_lesser_and_the_greater_of_a_size_and_a_number():
    """Differences with the size itself are never below 0, which cuts of an axis need."""
    cut, rest = at_most(n, 3), at_least(plus(n, -3), 0)
    assert least(minus(n, cut)) == 0 and most(cut) == 3 and most(minus(cut, n)) == 0
    assert least(minus(n, rest)) >= 1 and most(minus(rest, n)) <= -1
    assert at_most(n, 9) is n and at_most(n, 1) == 1 and at_most(5, 3) == 3
    assert [size_value(cut, {"n": each}) for each in (1, 3, 8)] == [1, 3, 3]


def test_what_is_proven_holds_for_the_whole_range():
    bound = bind(n, 3)
    assert bounds(bound) == (1, 8)
    assert (least(bound), most(plus(bound, 1))) == (1, 9)
    assert (least(4), most(4)) == (4, 4)


def test_values():
    assert int(bind(n, 3) * 2 + 1) == 7
    assert shape_value((4, bind(n, 3), n), {"n": 5}) == (4, 3, 5)
    with pytest.raises(ArgumentError, match="Variable 'n' has no value"):
        int(n + 1)


def test_binding():
    assert n.bind(3) is bind(n, 3)
    for wrong in (0, 9):
        with pytest.raises(ArgumentError, match="out of its range"):
            n.bind(wrong)
    with pytest.raises(ArgumentTypeError, match="not float"):
        n.bind(2.5)  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match="expected a Variable"):
        n.bind(2).bind(2)
