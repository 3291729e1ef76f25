"""Lists of kernels as CUDA graphs: one launch, and only what changed is patched."""

from types import SimpleNamespace

import numpy as np
import pytest

from tests.unit.runtime.fake_cuda import FakeDevice, FakeDriver
from weft import Context, Tensor, Variable, jit
from weft.engine.counters import GlobalCounters
from weft.ir.dtypes import dtypes
from weft.ir.program import Parameter
from weft.runtime.cuda.early_reads import EarlyReads


def chain(x: Tensor, y: Tensor) -> Tensor:
    """Three kernels, each behind the one before."""
    first = (x + 1).contiguous()
    second = (first.sum(0, keepdim=True) + first).contiguous()
    return second * y


def test_a_jitted_call_is_one_launch_of_a_graph(device: FakeDevice, api: FakeDriver):
    jitted = jit(chain)
    inputs = [[Tensor(np.full((3, 2), i + k, np.float32)) for k in (0, 1)] for i in range(4)]
    outputs = [jitted(*pair) for pair in inputs]
    api.calls.clear()
    for pair in inputs:
        outputs.append(jitted(*pair))
    for (x, y), out in zip(inputs * 2, outputs, strict=True):
        a, b = x.numpy() + 1, y.numpy()
        assert (out.numpy() == (a.sum(0, keepdims=True) + a) * b).all()
    assert api.calls["cuGraphLaunch"] == 4 and api.calls["cuLaunchKernel"] == 0
    assert api.calls["cuGraphInstantiateWithFlags"] == 0


def test_only_kernels_with_other_arguments_are_patched(device: FakeDevice, api: FakeDriver):
    kernels = 20

    @jit
    def step(x: Tensor) -> Tensor:
        for _ in range(kernels):
            x = (x + x.sum()).contiguous()
        return x

    x, y = (Tensor(np.ones(4, np.float32)).realize() for _ in range(2))
    kept = [step(x)]
    api.calls.clear()
    kept.append(step(y))
    patched = api.calls["cuGraphExecKernelNodeSetParams_v2"]
    assert 0 < patched <= 4  # the first reads y, the last writes the result
    assert api.calls["cuGraphLaunch"] == 1


def test_values_and_grids_of_symbolic_sizes_are_patched(device: FakeDevice, api: FakeDriver):
    jitted = jit(lambda x: ((x * 2).contiguous() + 1).contiguous().sum(1))
    x = Tensor(np.arange(40, dtype=np.float32).reshape(8, 5)).realize()
    for rows in (3, 8, 1, 5):
        n = Variable("n", 1, 8).bind(rows)
        assert jitted(x[:n]).tolist() == (x.numpy()[:rows] * 2 + 1).sum(1).tolist()
    assert api.calls["cuGraphInstantiateWithFlags"] == 1


def test_a_kernel_with_an_empty_grid_is_switched_off(device: FakeDevice, api: FakeDriver):
    jitted = jit(lambda x: (((x + 1).contiguous() * 2).contiguous() - 1).contiguous())
    x = Tensor(np.arange(8, dtype=np.float32)).realize()
    for size in (3, 0, 2):
        n = Variable("n", 0, 8).bind(size)
        assert jitted(x[:n]).tolist() == (x.numpy()[:size] * 2 + 1).tolist()


def started_early(api: FakeDriver) -> list[bool]:
    """Which of all nodes of graphs start while the one before them runs."""
    return [node["early"] for node in api.objects if isinstance(node, dict) and "early" in node]


def test_kernels_that_wait_by_themselves_start_early(device: FakeDevice, api: FakeDriver):
    jitted = jit(chain)
    x, y = (Tensor(np.ones((3, 2), np.float32)).realize() for _ in range(2))
    for _ in range(2):
        assert jitted(x, y).tolist() == [[8.0, 8.0]] * 3
    assert started_early(api) == [False, True, True]


@pytest.mark.parametrize("is_written", [False, True])
def test_weights_are_read_early_unless_they_are_written(
    device: FakeDevice, api: FakeDriver, is_written: bool
):
    """The kernel that multiplies stands behind one that may write the matrix."""
    w = Tensor(np.ones((16, 1024), np.float32)).realize()

    @jit
    def step(x: Tensor) -> Tensor:
        if is_written:
            w.assign(w * 2)
        return (w @ (x + 1).contiguous()).contiguous()

    x = Tensor(np.arange(1024, dtype=np.float32) % 2).realize()
    for number in range(3):
        assert step(x).tolist() == [1536.0 * 2 ** (is_written * (number + 1))] * 16
    (product,) = [p for p in api.programs.values() if p.early]
    nodes = [node for node in api.objects if isinstance(node, dict) and "early" in node]
    multiply = [n for n in nodes if api.objects[n["function"]][0] == product.name]
    assert multiply and all(node["early"] for node in multiply)
    assert all(node["waits_first"] == is_written for node in multiply)


def test_a_list_finds_early_reads_of_what_it_writes():
    def kernel(*parameters: Parameter, early: tuple[int, ...] = ()) -> SimpleNamespace:
        return SimpleNamespace(parameters=parameters, early=early, count=len(parameters))

    def argument(slot: int, size: int, is_written: bool = False) -> Parameter:
        return Parameter(slot, dtypes.uint8, is_written, not is_written, size)

    kernels = [
        kernel(argument(0, 100, True), argument(1, 50)),
        kernel(argument(0, 10, True), argument(1, 64), argument(2, 8), early=(1,)),
    ]
    found = EarlyReads(kernels, [0, 2])
    for weights, expected in (
        (1000, True),
        (1099, True),
        (1100, False),
        (936, False),
        (937, True),
    ):
        words = np.array([1000, 500, 2000, weights, 700], np.int64)
        assert found.of_what_is_written(words) == ({1} if expected else set())
    unknown = EarlyReads([kernel(argument(0, 0, True)), kernels[1]], [0, 1])
    assert unknown.of_what_is_written(np.array([10, 5000, 900, 7000], np.int64)) == {1}
    assert EarlyReads([kernels[0]], [0]).of_what_is_written(np.array([1, 2], np.int64)) == set()


def test_an_older_driver_starts_each_kernel_behind_the_one_before(
    device: FakeDevice, api: FakeDriver
):
    api.cuGraphAddDependencies_v2 = None
    jitted = jit(chain)
    x, y = (Tensor(np.ones((3, 2), np.float32)).realize() for _ in range(2))
    for _ in range(2):
        assert jitted(x, y).tolist() == [[8.0, 8.0]] * 3
    assert not any(started_early(api))


def test_what_may_be_switched_off_starts_nothing_early(device: FakeDevice, api: FakeDriver):
    jitted = jit(lambda x: (((x + 1).contiguous() * 2).contiguous() - 1).contiguous())
    x = Tensor(np.arange(8, dtype=np.float32)).realize()
    for size in (3, 2, 0, 2, 0):
        n = Variable("n", 0, 8).bind(size)
        assert jitted(x[:n]).tolist() == (x.numpy()[:size] * 2 + 1).tolist()
    early = started_early(api)
    assert any(early) and not any(early[len(early) // 2 :])
    assert api.calls["cuGraphInstantiateWithFlags"] == 2
    assert api.calls["cuGraphExecDestroy"] == api.calls["cuGraphDestroy"] == 1


def test_a_list_is_counted(device: FakeDevice):
    jitted = jit(chain)
    x, y = (Tensor(np.ones((3, 2), np.float32)).realize() for _ in range(2))
    jitted(x, y)
    before = GlobalCounters.kernel_count
    jitted(x, y)
    assert GlobalCounters.kernel_count - before == 3


def test_a_list_is_checked_between_redzones(device: FakeDevice):
    with Context(CHECK="memory"):
        jitted = jit(chain)
        x, y = (Tensor(np.ones((3, 2), np.float32)).realize() for _ in range(2))
        for _ in range(2):
            assert jitted(x, y).tolist() == [[8.0, 8.0]] * 3


def test_the_graph_of_nothing(device: FakeDevice, api: FakeDriver):
    device.run_list([])()
    assert api.calls["cuGraphLaunch"] == 0
