"""What a jitted function reads of Python objects, and what it does to them."""

import functools
import gc
import subprocess
import sys
import threading
import warnings
import weakref

import numpy as np
import pytest

import weft
from weft import Tensor, jit, nn

SCALE = {"by": 2, "also": [1, 2]}


def factor():
    return SCALE["also"][1]


class Layer:
    kind = 1

    def __init__(self, value):
        self.weight = Tensor([value]).realize()
        self.bias = 0

    @property
    def shifted(self):
        return self.weight + self.bias


class Model:
    def __init__(self):
        self.layers = [Layer(1), Layer(2)]
        self.rate = 10
        self.losses = []

    def inner(self, x):
        for layer in self.layers:
            x = x * layer.shifted * layer.kind
        return x

    @jit
    def step(self, x):
        return self.inner(x) * self.rate


def test_attributes_are_seen_through_methods_lists_and_properties():
    model, x = Model(), Tensor([3]).realize()
    weights = [layer.weight for layer in model.layers]  # kept, so that nothing dies
    assert model.step(x).item() == 3 * 2 * 10
    model.rate = 100
    assert model.step(x).item() == 600
    model.layers[0].weight = Tensor([5]).realize()
    assert model.step(x).item() == 3000
    model.layers[1].bias = 1
    assert model.step(x).item() == 4500
    model.layers.append(Layer(2))
    assert model.step(x).item() == 9000
    model.layers[2].kind = 3  # hides that of the class
    assert model.step(x).item() == 27000
    assert len(weights) == 2


def test_a_state_that_was_seen_before_has_a_trace():
    model, x = Model(), Tensor([1]).realize()
    for rate in (1, 2, 1, 2, 1):
        model.rate = rate
        assert model.step(x).item() == 2 * rate
    assert sum(program.state.holds() for program in Model.step.programs) == 1
    before = Model.step.traces
    model.rate = 2
    model.step(x)
    assert Model.step.traces == before


def test_what_the_function_does_not_name_is_not_watched():
    model, x = Model(), Tensor([1]).realize()
    model.step(x)
    before = Model.step.traces
    for n in range(4):
        model.losses.append(n)
        model.name = str(n)
        model.step(x)
    assert Model.step.traces == before


def test_items_of_globals_are_seen_in_called_functions():
    @jit
    def scaled(x):
        return x * SCALE["by"] * factor()

    x = Tensor([1]).realize()
    assert scaled(x).item() == 4
    try:
        SCALE["by"] = 5
        assert scaled(x).item() == 10
        SCALE["also"][1] = 3
        assert scaled(x).item() == 15
    finally:
        SCALE.update(by=2, also=[1, 2])
    assert scaled(x).item() == 4


def test_an_object_of_the_closure_that_is_replaced():
    layer = Layer(1)
    kept = layer

    @jit
    def weighted(x):
        return x * layer.weight

    assert weighted(Tensor([2])).item() == 2
    layer = Layer(7)
    assert weighted(Tensor([2])).item() == 14
    assert kept is not layer


class Options:
    scale = 2


def test_settings_in_a_class_are_seen():
    scaled = jit(lambda x: x * Options.scale)
    x = Tensor([1]).realize()
    assert scaled(x).item() == 2
    try:
        Options.scale = 3
        assert scaled(x).item() == 3
    finally:
        Options.scale = 2


def test_functions_of_one_code_have_closures_of_their_own():
    def times(by):
        def function(x):
            return x * by["n"]

        return function

    first, second = {"n": 2}, {"n": 3}
    steps = [times(first), times(second)]

    @jit
    def both(x):
        return steps[0](x) + steps[1](x)

    x = Tensor([1]).realize()
    assert both(x).item() == 5
    second["n"] = 10
    assert both(x).item() == 12


def test_partial_functions_and_libraries():
    by = {"n": 2}
    scaled = jit(functools.partial(lambda by, x: x * by["n"] + np.prod([1, 1]), by))
    x = Tensor([1]).realize()
    assert scaled(x).item() == 3
    by["n"] = 4
    assert scaled(x).item() == 5
    state = scaled.programs[-1].state
    assert len(state.guards) < 20  # NumPy has much of its own


def test_layers_of_nn_are_watched():
    linear = nn.Linear(2, 2)
    x = Tensor([[1.0, 2.0]]).realize()
    forward = jit(lambda x: linear(x))
    first, old = forward(x).numpy(), linear.weight
    linear.weight = (old * 2).realize()
    np.testing.assert_allclose(forward(x).numpy(), linear(x).numpy())
    assert not np.allclose(forward(x).numpy(), first)


def test_a_counter_warns_and_names_the_line():
    counts = {"n": 0}

    class Counter:
        steps = 0

    counter = Counter()

    @jit
    def counting(x):
        counts["n"] += 1
        counter.steps += 1
        return x + 1

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert [counting(Tensor([n])).item() for n in range(3)] == [1, 2, 3]
    texts = [str(each.message) for each in caught]
    assert len(texts) == 2 and counting.traces == 1
    assert any("counting changes 'n' while it is traced" in text for text in texts)
    assert any("counting changes 'steps' while it is traced" in text for text in texts)
    lines = sorted(each.lineno for each in caught)
    assert all(each.filename.endswith("test_state.py") for each in caught)
    assert lines[1] == lines[0] + 1


def test_a_list_that_a_trace_fills_is_left_out():
    calls = []

    @jit
    def noted(x):
        calls.append(len(calls))
        return x + 1

    with pytest.warns(UserWarning, match="noted changes 'calls' while it is traced"):
        for _ in range(2):
            for shape in ((1,), (2,)):
                noted(Tensor.zeros(*shape))
    assert calls == [0, 1]


def test_traces_do_not_keep_objects_alive():
    model = Model()
    model.step(Tensor([1]))
    watch = weakref.ref(model.layers[0])
    del model
    gc.collect()
    assert watch() is None


def change_list(values):
    values.append(values[0] + 1)
    return values[0]


def change_item(values):
    values[1] = values[0] + 1
    return values[0]


@pytest.mark.parametrize(
    ("function", "what"),
    [(change_list, "a list, dict or dataclass"), (change_item, r"changes values\[1\]")],
)
def test_arguments_that_are_changed(function, what):
    values = [Tensor([1]), Tensor([2])]
    with pytest.raises(weft.NotSupported, match=what):
        jit(function)(values)
    assert len(values) == 2


def test_writes_to_tensors_in_containers_are_fine():
    @jit
    def add(values):
        values["x"] += 1
        values["x"][:1] = 5

    values = {"x": Tensor([1, 1])}
    add(values)
    assert values["x"].tolist() == [5, 2]


def test_arrays_are_not_returned():
    with pytest.raises(weft.NotSupported, match="returns an array of NumPy"):
        jit(lambda x: {"x": x, "y": [np.arange(3)]})(Tensor([1]))


@pytest.mark.parametrize(
    "read",
    [
        lambda x: f"{x.sum():.2f}",
        lambda x: float(x.sum()),
        lambda x: x[x > 1],
        lambda x: range(x.sum().int()),
        lambda x: x if x.sum() > 0 else -x,
        lambda x: 1 in x,
        lambda x: x.tolist(),
    ],
)
def test_reads_raise_with_the_line_and_the_argument(read):
    with pytest.raises(weft.NotSupported) as caught:
        jit(read)(Tensor([1.0, 2.0]))
    text = str(caught.value)
    assert "is being traced, so this value is not known yet" in text
    assert "test_state.py" in text and "lambda x:" in text and "depends on  x" in text


def test_attributes_in_slots_are_seen():
    class Options:
        __slots__ = ("scale",)

    options = Options()
    options.scale = 2.0
    scaled = jit(lambda x: x * options.scale)
    assert scaled(Tensor([1.0])).item() == scaled(Tensor([1.0])).item() == 2.0
    options.scale = 3.0
    assert scaled(Tensor([1.0])).item() == 3.0
    assert scaled.traces == 2
    options = Options()
    options.scale = 5.0
    assert scaled(Tensor([1.0])).item() == 5.0


FIRST_IN_A_PROCESS = """
from weft import Tensor, jit
rates = [2.0]
scaled = jit(lambda x: x * rates[0])
first = scaled(Tensor([1.0])).item()
rates[0] = 3.0
assert (first, scaled(Tensor([1.0])).item()) == (2.0, 3.0)
"""


def test_the_first_function_that_a_process_traces_is_watched_too():
    # Python 3.12 turns instructions on when a trace begins, if a frame has asked before that.
    done = subprocess.run([sys.executable, "-c", FIRST_IN_A_PROCESS], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


def test_frozen_objects_are_traced_once():
    model, x = Model(), Tensor([3]).realize()
    hidden = [Tensor([2]).realize()]
    step = jit(lambda x: model.inner(x) * hidden[0])
    gc.collect()
    gc.freeze()
    try:
        values = [step(x).item() for _ in range(4)]
        assert values == [12] * 4 and step.traces == 1
        hidden[0] = Tensor([5]).realize()
        assert [step(x).item() for _ in range(3)] == [30] * 3
        assert step.traces == 1  # the other tensor is gone, and its trace
    finally:
        gc.unfreeze()


def test_state_that_is_made_where_it_is_missing_is_seen_afterwards():
    class Lazy:
        rate = None

    lazy, x = Lazy(), Tensor([1.0]).realize()

    @jit
    def scaled(x):
        if lazy.rate is None:
            lazy.rate = 2.0
        return x * lazy.rate

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [scaled(x).item() for _ in range(3)] == [2.0] * 3
        lazy.rate = 5.0
        assert scaled(x).item() == 5.0


def test_what_a_library_does_for_a_message_does_not_warn():
    import logging

    @jit
    def logged(x):
        logging.getLogger("weft.test").debug("traced")
        print("traced")
        return x + 1

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert logged(Tensor([1])).item() == 2


def test_a_tracer_that_was_there_before_is_there_again():
    before = sys.gettrace()

    def tracer(frame, event, arg):
        return None

    sys.settrace(tracer)
    try:
        assert jit(lambda x: x + 1)(Tensor([1])).item() == 2
        assert sys.gettrace() is tracer
    finally:
        sys.settrace(before)


def test_threads_see_their_own_changes():
    options = {"rate": 1.0}
    local = threading.local()
    scaled = jit(lambda x: x * options["rate"] * local.rate)
    x = Tensor([1.0]).realize()
    wrong = []

    def work(rate):
        local.rate = rate
        for _ in range(20):
            if scaled(x).item() != rate:
                wrong.append(rate)

    threads = [threading.Thread(target=work, args=(rate,)) for rate in (1.0, 2.0, 3.0)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert wrong == []


def test_a_call_costs_one_check_more_than_the_run():
    """Counts and not seconds: guards add no call of Python for each of them."""
    layers = [nn.Linear(2, 2) for _ in range(8)]

    @jit
    def forward(x):
        for layer in layers:
            x = layer(x)
        return x

    x = Tensor.ones(1, 2).realize()
    for _ in range(3):
        forward(x)
    calls = []

    def count(frame, event, arg):
        if event == "call":
            calls.append(frame.f_code.co_name)

    state = forward.programs[0].state
    sys.setprofile(count)
    try:
        assert state.holds()
    finally:
        sys.setprofile(None)
    assert len(state.guards) > 16
    assert calls == ["holds", "check", "is_in"]


def test_variables_of_the_call_itself_are_not_outside():
    """A comprehension and a function inside read variables of the running call."""
    factor = 2.0

    @jit
    def f(x):
        for axis in (0, 1):
            shape = [2 if each == axis else 1 for each in range(2)]
            by_axis = lambda y: y * axis  # noqa: E731, B023 -- it runs in this iteration
            x = by_axis(x) + x + sum(shape) * factor
        return x

    assert f(Tensor([1.0])).tolist() == [20.0]
    factor = 3.0
    assert f(Tensor([1.0])).tolist() == [29.0] and f.traces == 2


def test_functions_inside_are_found_without_a_search_of_the_heap(monkeypatch):
    """The frame that made a comprehension has its cells; those from outside are guarded."""
    factors, searched = [1.0, 2.0], []
    search = gc.get_referrers
    monkeypatch.setattr(gc, "get_referrers", lambda *of: searched.append(of) or search(*of))

    @jit
    def f(x):
        size = x.shape[0]
        for _ in range(3):
            x = x + sum([factors[each] * size for each in range(2)])
            x = x * max(factors[each] for each in range(2))
        return x

    assert f(Tensor([1.0])).tolist() == [50.0]
    assert searched == []
    factors = [0.0, 1.0]
    assert f(Tensor([1.0])).tolist() == [4.0] and f.traces == 2
