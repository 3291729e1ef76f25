"""A jitted function does what the function does: signatures, trees, methods, random numbers."""

import dataclasses
import gc
from typing import NamedTuple

import pytest

from weft import GlobalCounters, Tensor, TinyJit, function, jit


def test_the_first_call_and_all_others_run_the_trace():
    calls = []

    @jit
    def double(x):
        calls.append(1)
        return x * 2

    assert [double(Tensor([n, 1])).tolist() for n in range(4)] == [[2 * n, 2] for n in range(4)]
    assert len(calls) == double.traces == 1


def test_both_names_and_both_forms():
    assert TinyJit is jit
    assert jit(lambda x: x + 1)(Tensor([1])).tolist() == [2]
    assert jit(donate=())(lambda x: x + 1)(Tensor([1])).tolist() == [2]


def test_a_new_signature_is_a_new_trace():
    @jit
    def plus(x, n=1):
        return x + n

    assert plus(Tensor([1])).tolist() == [2]
    assert plus(Tensor([1, 2])).tolist() == [2, 3]
    assert plus(Tensor([1.0])).tolist() == [2.0]
    assert plus(Tensor([1]), 2).tolist() == [3]
    assert plus(Tensor([1]), n=2).tolist() == [3]
    assert plus(Tensor([1]), True).tolist() == [2]
    assert plus.traces == 6
    assert plus(Tensor([5])).tolist() == [6]
    assert plus.traces == 6


def test_numbers_in_closure_and_globals_are_part_of_the_signature():
    scale = 2

    @jit
    def scaled(x):
        return x * scale

    assert scaled(Tensor([3])).tolist() == [6]
    scale = 5
    assert scaled(Tensor([3])).tolist() == [15]
    scale = 2
    assert scaled(Tensor([4])).tolist() == [8]
    assert scaled.traces == 2


def test_a_tensor_of_the_closure_that_is_replaced_is_seen():
    weight = Tensor([1, 2])

    @jit
    def weighted(x):
        return x * weight

    assert weighted(Tensor([3, 3])).tolist() == [3, 6]
    weight = Tensor([10, 20])
    assert weighted(Tensor([3, 3])).tolist() == [30, 60]


def test_training_is_part_of_the_signature():
    @jit
    def dropped(x):
        return x.dropout(1.0)

    try:
        assert dropped(Tensor([1.0])).tolist() == [1.0]
        Tensor.training = True
        assert dropped(Tensor([1.0])).tolist() == [0.0]
    finally:
        Tensor.training = False
    assert dropped(Tensor([2.0])).tolist() == [2.0]


class Point(NamedTuple):
    x: Tensor
    y: Tensor


@dataclasses.dataclass
class State:
    weight: Tensor
    count: int


def test_arguments_and_results_are_trees():
    @jit
    def move(points, options, state):
        first, second = points
        moved = Point(first.x + options["by"], second.y * state.weight)
        return {"moved": [moved], "state": State(state.weight + 1, state.count + 1)}

    for n in range(3):
        points = (Point(Tensor([n]), Tensor([0])), Point(Tensor([0]), Tensor([2])))
        result = move(points, {"by": 10}, State(Tensor([3]), 7))
        (moved,) = result["moved"]
        assert isinstance(moved, Point) and isinstance(result["state"], State)
        assert (moved.x.tolist(), moved.y.tolist()) == ([n + 10], [6])
        assert (result["state"].weight.tolist(), result["state"].count) == ([4], 8)
    assert move.traces == 1


def test_methods_are_traced_per_object_and_traces_end_with_it():
    class Layer:
        def __init__(self, weight):
            self.weight = Tensor(weight)

        @jit
        def __call__(self, x):
            return x * self.weight

        @jit
        def forward(self, x):
            return x + self.weight

    one, two = Layer([2]), Layer([3])
    assert [one.forward(Tensor([n])).item() for n in range(3)] == [2, 3, 4]
    assert two.forward(Tensor([1])).item() == 4 and one.forward(Tensor([1])).item() == 3
    assert one(Tensor([5])).item() == 10
    assert Layer.forward.traces == 2
    before = GlobalCounters.mem_used
    del one
    gc.collect()
    assert Layer.forward.traces == 1
    assert GlobalCounters.mem_used < before


def test_objects_that_can_be_called():
    class Adder:
        def __init__(self):
            self.amount = Tensor([10])

        def __call__(self, x):
            return x + self.amount

    add = jit(Adder())
    assert [add(Tensor([n])).item() for n in range(3)] == [10, 11, 12]
    assert add.traces == 1


def test_random_numbers_are_those_of_the_function():
    def draw(n):
        return Tensor.rand(3) + Tensor.randn(3), Tensor.randint(n)

    Tensor.manual_seed(5)
    wanted = [[part.tolist() for part in draw(4)] for _ in range(4)]
    drawn = jit(draw)
    for _ in range(2):
        Tensor.manual_seed(5)
        assert [[part.tolist() for part in f(4)] for f in (drawn, draw, drawn, drawn)] == wanted


@pytest.mark.parametrize("is_first", [True, False])
def test_a_seed_inside_counts_in_every_call(is_first, monkeypatch):
    if is_first:  # nobody has drawn yet
        monkeypatch.setattr("weft.tensor.create.random_state._STATES", {})
    else:
        Tensor.rand(1).realize()

    @jit
    def draw():
        Tensor.manual_seed(3)
        return Tensor.rand(2)

    first = draw().tolist()
    Tensor.rand(5).realize()
    assert draw().tolist() == first


def test_nested_functions_are_part_of_the_outer_one():
    count = Tensor([0])

    @jit
    def inner(x):
        nonlocal count
        count += 1
        return x + count

    @function
    def doubled(x):
        return inner(x) * 2

    @jit
    def outer(x):
        return inner(x) + doubled(x)

    assert outer(Tensor([10])).item() == 11 + 24
    assert outer(Tensor([20])).item() == 23 + 48
    assert inner(Tensor([0])).item() == 5
    assert (count.item(), inner.traces) == (5, 1)


def test_realize_inside_is_no_read():
    @jit
    def step(x):
        y = (x + 1).realize()
        return (y * 2).realize()

    assert [step(Tensor([n])).item() for n in range(3)] == [2, 4, 6]


def test_constants_can_be_read():
    @jit
    def step(x):
        steps = Tensor([1, 2, 3]).sum().item()
        return x * steps

    assert step(Tensor([2])).tolist() == [12]
