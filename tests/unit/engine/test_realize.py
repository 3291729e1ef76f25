"""The engine: what is realized, cached, counted and freed."""

import os
import subprocess
import sys

import numpy as np
import pytest

import weft
from weft.engine.buffers import buffer_of
from weft.engine.compile import CompileStatistics
from weft.engine.counters import GlobalCounters
from weft.engine.watch.show import share_of_peak
from weft.engine.work import _PREPARED
from weft.ir.build import call, param
from weft.ir.dtypes import dtypes
from weft.ir.program import Estimate
from weft.ir.uop import live_nodes
from weft.support.settings import Context
from weft.target.target import Peaks
from weft.tensor import storage
from weft.tensor.tensor import Tensor
from weft.tensor.trace.function import function


def random(*shape):
    values = np.random.default_rng(sum(shape)).standard_normal(shape)
    return Tensor(values.astype(np.float32)).realize()


def test_memory_is_freed_with_the_last_tensor():
    before = GlobalCounters.mem_used
    x = random(100, 100)
    y = (x + 1).realize()
    assert GlobalCounters.mem_used == before + 2 * 40_000
    del x
    assert GlobalCounters.mem_used == before + 40_000
    del y
    assert GlobalCounters.mem_used == before


def test_a_second_step_of_the_same_structure_is_not_scheduled_again():
    w = random(16, 16)

    def step():
        w.assign(w * 0.5 + 1)
        return w.realize()

    step()
    prepared, generated = len(_PREPARED), CompileStatistics.generated
    for _ in range(5):
        step()
    assert len(_PREPARED) == prepared
    assert CompileStatistics.generated == generated


def test_many_steps_do_not_grow():
    w, m, x = random(8, 8), random(8, 8), random(4, 8)

    def step():
        g = (x @ w).relu().sum()
        m.assign(m * 0.9 + w * g * 1e-6)
        w.assign(w - m * 1e-3)
        w.realize(m)

    for _ in range(3):
        step()
    nodes, memory, prepared = live_nodes(), GlobalCounters.mem_used, len(_PREPARED)
    owners = len(storage._OWNERS)
    for _ in range(300):
        step()
    assert len(storage._OWNERS) == owners
    assert live_nodes() <= nodes + 50
    assert GlobalCounters.mem_used == memory
    assert len(_PREPARED) == prepared


SCRIPT = """
import numpy as np
from weft.tensor.tensor import Tensor
from weft.engine.compile import CompileStatistics
x = Tensor(np.arange(12, dtype=np.float32).reshape(3, 4)).realize()
print(((x @ x.T).relu() + x.sum(1)).softmax().numpy().round(3).tolist())
print(CompileStatistics.generated, CompileStatistics.from_disk)
"""


def test_a_second_process_compiles_nothing(tmp_path):
    environment = {**os.environ, "WEFT_CACHE_DIR": str(tmp_path), "PYTHONPATH": os.getcwd()}
    runs = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True
        )
        for _ in range(2)
    ]
    assert not runs[0].returncode, runs[0].stderr
    first, second = (run.stdout.splitlines() for run in runs)
    assert first[0] == second[0]
    generated, _ = map(int, first[1].split())
    assert generated > 0
    assert second[1] == f"0 {generated}"


def test_pending_reads_of_overwritten_memory_keep_what_they_saw():
    x = random(6)
    before = x.numpy().copy()
    old = x + 1
    x.assign(x * 0)
    x.realize()
    assert np.array_equal(old.numpy(), before + 1)


def test_a_pending_read_of_overwritten_memory_is_computed_where_that_moves_less():
    x, other = random(64, 64), random(64)
    expected = (x * x).sum().item()
    total = (x * x).sum()
    x.assign(x + other).realize()
    GlobalCounters.reset()
    assert total.item() == expected
    assert GlobalCounters.kernel_count == 0


def test_a_large_pending_read_of_overwritten_memory_copies_the_memory():
    x = random(8)
    before = x.numpy().copy()
    spread = x.reshape(8, 1).expand(8, 100) * 2
    x.assign(x + 1).realize()
    GlobalCounters.reset()
    assert np.array_equal(spread.numpy(), np.tile(before[:, None] * 2, (1, 100)))
    assert GlobalCounters.kernel_count == 1


def test_counters_count():
    x = random(64, 64)
    GlobalCounters.reset()
    (x + 1).realize()
    assert GlobalCounters.kernel_count == 1
    assert GlobalCounters.global_ops == 64 * 64
    assert GlobalCounters.global_mem == 2 * 64 * 64 * 4
    assert GlobalCounters.time_sum_s > 0


@pytest.mark.parametrize(
    ("level", "shown"),
    [(1, "1 kernel,"), (2, "GFLOP/s"), (3, "store p0"), (4, "define void"), (5, "linearize")],
)
def test_debug_prints(level, shown, capsys):
    x = random(level + 30)
    with Context(DEBUG=level):
        (x * 3 + level).realize()
    assert shown in capsys.readouterr().out


def test_null_plans_and_counts_but_has_no_values():
    x = Tensor(np.zeros((64, 64), np.float32), device="NULL")
    GlobalCounters.reset()
    y = (x @ x).relu().realize()
    assert GlobalCounters.kernel_count == 1
    assert GlobalCounters.peak_memory["NULL"] >= 2 * 64 * 64 * 4
    with pytest.raises(weft.DeviceError, match="has no value"):
        y.numpy()


def test_freed_memory_is_handed_out_again():
    x = random(70, 70)
    first = (x + 1).realize()
    handle = buffer_of(first.uop).handle
    del first
    assert buffer_of((x + 2).realize().uop).handle is handle


def test_out_of_memory_is_said_with_the_size():
    with pytest.raises(weft.OutOfMemory, match="GB are not to be had"):
        Tensor.zeros(1 << 40, 1 << 10).contiguous().realize()


def test_copies_between_devices():
    x = random(3, 4)
    there = x.to("PYTHON") * 2
    back = there.to("CPU") + 1
    assert np.array_equal(back.numpy(), x.numpy() * 2 + 1)


def test_unknown_devices_are_named():
    with pytest.raises(weft.DeviceError, match="unknown device") as caught:
        Tensor([1.0], device="CPUU")
    assert "CPU" in caught.value.fix


def test_repeated_layers_are_generated_once():
    @function
    def layer(x, w):
        return (x @ w).relu() * 0.5 + x

    x, w = random(8, 24), random(24, 24)
    layer(x, w).realize()
    generated = CompileStatistics.generated
    y = x
    for _ in range(6):
        y = layer(y, w)
    want = x.numpy()
    for _ in range(6):
        want = np.maximum(want @ w.numpy(), 0) * 0.5 + want
    assert np.allclose(y.numpy(), want, rtol=1e-4, atol=1e-5)
    assert CompileStatistics.generated == generated


def test_functions_differentiate_and_return_trees():
    @function
    def parts(x, w):
        return {"y": x @ w, "pair": (x.sum(), w * 2)}

    x, w = random(3, 5), random(5, 2)
    found = parts(x, w)
    (inside,) = (found["y"].sum() + found["pair"][0]).gradient(w)
    (plain,) = ((x @ w).sum() + x.sum()).gradient(w)
    assert np.allclose(inside.numpy(), plain.numpy())
    assert np.array_equal(found["pair"][1].numpy(), w.numpy() * 2)


def test_writes_inside_a_function_happen_outside():
    count = random(4)
    before = count.numpy().copy()

    @function
    def layer(x):
        count.assign(count + x)
        return x * 2

    x = random(4)
    layer(x).realize(count)
    assert np.allclose(count.numpy(), before + x.numpy())


def test_the_share_of_the_peak_names_what_bounds_a_kernel():
    peaks = Peaks(operations=100.0, bytes_moved=10.0)
    assert share_of_peak(Estimate(50, 1, 1), peaks, 1.0) == " 50% flops"
    assert share_of_peak(Estimate(5, 2, 1), peaks, 0.5) == " 60% bytes"
    assert share_of_peak(Estimate(5, 2, 1), Peaks(), 1.0) == ""


def test_functions_nest_deeper_than_the_stack():
    """Python itself would not call so deep, so the graph is built from the inside."""
    body = param(0, dtypes.float32, (3,)) * 2.0
    for _ in range(150):
        body = call(body, param(0, dtypes.float32, (3,))) + 1.0
    x = Tensor([1.0, 2.0, 3.0], device="CPU").realize()
    made = Tensor(call(body, x.uop), device="CPU")
    assert made.tolist() == [152.0, 154.0, 156.0]
