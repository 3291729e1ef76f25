"""Scheduling is linear: twice the program takes about twice the calls of Python functions."""

import sys

import pytest

from weft.ir.build import param, sink, store
from weft.ir.dtypes import dtypes
from weft.ir.uop import UOp
from weft.schedule.schedule import make_schedule
from weft.support.settings import Context
from weft.target.cpu import cpu_target
from weft.tensor.tensor import Tensor

TARGET = cpu_target("x86_64", ("avx2",))


def calls_of(graph: UOp) -> int:
    count = 0

    def note(frame, event, arg) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        make_schedule(graph, TARGET)
    finally:
        sys.setprofile(before)
    return count


def stored(*values: Tensor) -> UOp:
    return sink(*[store(param(500 + i, v.dtype, v.shape), v.uop) for i, v in enumerate(values)])


def inputs(count: int, *shape: int) -> list[Tensor]:
    return [Tensor(param(slot, dtypes.float32, shape)) for slot in range(count)]


def sines(count: int) -> UOp:
    (x,) = inputs(1, 37)
    for _ in range(count):
        x = x.sin()
    return stored(x)


def softmaxes(count: int) -> UOp:
    (x,) = inputs(1, 19, 23)
    for _ in range(count):
        x = x.softmax()
    return stored(x)


def independent(count: int) -> UOp:
    return stored(*[(x * 2.0).relu() for x in inputs(count, 7, 11)])


def layers(count: int) -> UOp:
    first, *weights = inputs(count + 1, 32, 32)
    x = first
    for weight in weights:
        x = (x @ weight).relu()
    return stored(*x.sum().gradient(*weights))


@pytest.mark.parametrize("make", [sines, softmaxes, independent, layers])
def test_twice_the_program_is_twice_the_work(make):
    with Context(SPEC=False):
        calls_of(make(3))
        assert calls_of(make(80)) <= 2.4 * calls_of(make(40))
