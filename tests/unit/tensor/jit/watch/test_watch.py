"""Which frames of Python are of a function that is traced."""

import gc
import weakref

import pytest

from weft import NotSupported, Tensor, jit


class Registry:
    """Forgets objects when they die, as caches of other libraries do."""

    def __init__(self):
        self.values, self.refs = {}, {}

    def add(self, thing):
        key = id(thing)
        self.values[key] = 0
        self.refs[key] = weakref.ref(thing, lambda _: self.forget(key))

    def forget(self, key):
        self.values.pop(key)
        self.refs.pop(key)


def test_what_the_collector_calls_is_not_of_the_function():
    registry = Registry()
    cycle = type("Cycle", (), {})()
    cycle.itself = cycle
    registry.add(cycle)

    @jit
    def function(x):
        gc.collect()  # as Python does by itself, at any moment
        return x + 1

    x = Tensor([0.0]).realize()
    gc.disable()
    try:
        del cycle
        assert function(x).item() == 1
    finally:
        gc.enable()
    assert not registry.values  # it ran, and nothing warned


class Lazy:
    """Makes what it needs when it is first called."""

    def __init__(self):
        self.total = self.mask = self.first = None
        self.named = {}

    @jit
    def sum_so_far(self, x):
        if self.total is None:
            self.total = Tensor.zeros(1)
        self.total.assign(self.total + x)
        return self.total * 1

    @jit
    def sum_by_name(self, x):
        if "total" not in self.named:
            self.named["total"] = Tensor.zeros(1)
        self.named["total"] += x
        return self.named["total"] * 1

    @jit
    def masked(self, x):
        if self.mask is None:
            self.mask = Tensor.ones(3, 3).tril()
        return (x * self.mask).sum()

    @jit
    def plus_one(self, x):
        if self.first is None:
            self.first = x * 2
        return x + 1


@pytest.mark.parametrize("name", ["sum_so_far", "sum_by_name"])
def test_state_that_is_made_inside_is_not_made_again_in_each_call(name: str):
    step, x = getattr(Lazy(), name), Tensor([1.0]).realize()
    assert step(x).item() == 1
    with pytest.raises(NotSupported, match="was made while"):
        step(x)


def test_what_is_made_inside_may_be_constant_or_unread():
    lazy = Lazy()
    x = [Tensor([float(n)] * 3).realize() for n in range(4)]
    assert [lazy.masked(each).item() for each in x] == [0, 6, 12, 18]
    assert [lazy.plus_one(each).tolist()[0] for each in x] == [1, 2, 3, 4]
