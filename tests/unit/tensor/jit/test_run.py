"""How traces run: settings, checks, devices, memory, threads, many calls."""

import gc
import threading
import warnings

import numpy as np
import pytest

import weft
from weft import Context, GlobalCounters, Tensor, dtypes, jit
from weft.ir.uop import live_nodes


def test_settings():
    calls = []

    @jit
    def step(x):
        calls.append(1)
        return x + 1

    with Context(JIT=0):
        assert [step(Tensor([n])).item() for n in range(2)] == [1, 2]
    assert (len(calls), step.traces) == (2, 0)
    with Context(CHECK="jit"):
        assert [step(Tensor([n])).item() for n in range(2)] == [1, 2]
    assert (len(calls), step.traces) == (5, 1)
    with Context(CHECK="levels"):
        assert step(Tensor([7])).item() == 8


def test_check_finds_what_the_trace_cannot_see():
    class Counter:
        steps = 0

    @jit
    def step(x, counter):
        counter.steps += 1
        return x + counter.steps

    with (
        Context(CHECK="jit"),
        pytest.warns(UserWarning, match="changes 'steps' while it is traced"),
        pytest.raises(weft.NotSupported, match="CHECK=jit: result 0 differs"),
    ):
        step(Tensor([0]), Counter())


def test_check_of_donated_arguments_and_gradients():
    weight = Tensor([1.0, 2.0], requires_grad=True)

    @jit(donate=[0])
    def step(x):
        weight.grad = None
        (weight * x).sum().backward()
        weight.assign(weight.detach() - weight.grad)
        return x * 2

    with Context(CHECK="jit"):
        assert step(Tensor([1.0, 3.0])).tolist() == [2.0, 6.0]
        assert step(Tensor([1.0, 3.0])).tolist() == [2.0, 6.0]
    assert weight.tolist() == [-1.0, -4.0]


def test_check_compares_what_is_written():
    state = Tensor([0])

    class Counter:
        steps = 0

    @jit
    def step(counter):
        counter.steps += 1
        state.assign(state + counter.steps)

    with (
        Context(CHECK="jit"),
        pytest.warns(UserWarning, match="changes 'steps' while it is traced"),
        pytest.raises(weft.NotSupported, match="from outside"),
    ):
        step(Counter())


@pytest.mark.parametrize("name", ["PYTHON", "CPU"])
def test_devices(name):
    with Context(DEVICE=name):
        state = Tensor([1, 2, 3])

        @jit
        def step(x):
            state.assign(state + x)
            return state.sum(), x.to("PYTHON").to(name) * 2

        got = [[part.tolist() for part in step(Tensor([n, 0, 0]))] for n in range(3)]
        assert got == [[6, [0, 0, 0]], [7, [2, 0, 0]], [9, [4, 0, 0]]]


def test_growing_traces_warn_with_what_changes():
    @jit
    def scaled(x, rate):
        return x * rate

    with pytest.warns(UserWarning, match=r"scaled has been traced 16 times; the argument rate"):
        for n in range(17):
            scaled(Tensor([1.0]), n / 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in range(17):
            scaled(Tensor([1.0]), n / 2)


def test_many_calls_grow_nothing():
    state = Tensor([1.0, 2.0])

    @jit
    def step(x):
        state.assign(state * 0.5 + x)
        return state.sum(), Tensor.rand(2)

    def run(count):
        for n in range(count):
            step(Tensor([1.0, float(n)]))
        gc.collect()
        return live_nodes(), GlobalCounters.mem_used, len(gc.get_objects())

    nodes, memory, objects = run(50)
    assert step.traces == 1
    after = run(10_000)
    assert after[:2] == (nodes, memory)
    assert after[2] <= objects + 100


def test_temporaries_are_made_once():
    @jit
    def step(x):
        return (x.sum(0, keepdim=True).contiguous() + x).sum(1)

    x = Tensor(np.ones((64, 64), np.float32)).realize()
    step(x)
    before = dict(GlobalCounters.peak_memory), GlobalCounters.mem_used
    GlobalCounters.reset()
    result = step(x)
    assert GlobalCounters.kernel_count >= 2
    assert GlobalCounters.mem_used == before[1] + 64 * 4
    assert result.tolist() == [64.0 * 65] * 64


def test_threads_share_a_function():
    @jit
    def step(x):
        return (x.sum(0, keepdim=True).contiguous() + x).sum(1)

    step(Tensor(np.ones((8, 8), np.float32)))
    wrong = []

    def work(value):
        x = Tensor(np.full((8, 8), value, np.float32)).realize()
        for _ in range(100):
            if step(x).tolist() != [value * 72.0] * 8:
                wrong.append(value)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_dtypes_and_empty_tensors():
    @jit
    def step(x):
        return x * 2

    assert step(Tensor.zeros(0, 3)).tolist() == []
    assert step(Tensor([1.5], dtype=dtypes.bfloat16)).tolist() == [3.0]
    assert step(Tensor(2)).item() == 4
