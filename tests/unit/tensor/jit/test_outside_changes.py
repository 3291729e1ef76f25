"""Whatever a jitted function reads from outside: right, traced anew, warned of or refused."""

import warnings

import numpy as np
import pytest

import weft
from tests.unit.tensor.jit import (
    outside_attributes,
    outside_items,
    outside_modules,
    outside_names,
    outside_objects,
    outside_protocols,
    outside_python,
    outside_warned,
)
from tests.unit.tensor.jit.outside_table import CHANGES, WARNED
from weft import Tensor, jit

FILES = (
    outside_attributes,
    outside_items,
    outside_modules,
    outside_names,
    outside_objects,
    outside_protocols,
    outside_python,
    outside_warned,
)


def value_of(function):
    return function(Tensor([1.5]).realize()).numpy()


def test_the_table_is_large():
    assert len(CHANGES) >= 120 and len(WARNED) >= 10
    assert {way.__module__ for way in (CHANGES | WARNED).values()} == {
        each.__name__ for each in FILES
    }


@pytest.mark.parametrize("way", CHANGES)
def test_a_change_is_seen(way):
    function, change = CHANGES[way]()
    jitted = jit(function)
    assert np.array_equal(value_of(jitted), value_of(function), equal_nan=True)
    before = value_of(function)
    for _ in range(3):
        value_of(jitted)
    assert jitted.traces == 1  # nothing else makes a trace
    change()
    wanted = value_of(function)
    assert not (before.tobytes() == wanted.tobytes() and before.shape == wanted.shape)
    found = value_of(jitted)
    assert found.tobytes() == wanted.tobytes() and found.shape == wanted.shape


@pytest.mark.parametrize("way", WARNED)
def test_what_cannot_be_compared_warns_with_the_line(way):
    function, _ = WARNED[way]()
    with pytest.warns(UserWarning, match=r"jit: .* while it is traced") as caught:
        value_of(jit(function))
    assert all("outside_" in each.filename for each in caught)


@pytest.mark.parametrize("way", WARNED)
def test_strict_refuses_it(way):
    function, _ = WARNED[way]()
    with pytest.raises(weft.NotSupported, match=r"jit: .* while it is traced") as caught:
        value_of(jit(function, strict=True))
    assert "outside_" in str(caught.value)


def test_strict_takes_what_is_compared():
    function, change = CHANGES["attribute"]()
    jitted = jit(strict=True)(function)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first = value_of(jitted)
        change()
        assert value_of(jitted) != first
