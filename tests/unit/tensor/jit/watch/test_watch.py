"""Which frames of Python are of a function that is traced."""

import gc
import weakref

from weft import Tensor, jit


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
