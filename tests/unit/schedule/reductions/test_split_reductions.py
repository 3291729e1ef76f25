"""Long reductions with few results are two kernels; short ones, or with many results, one."""

import numpy as np
import pytest

from tests.unit.machines import machine
from weft import GlobalCounters, Tensor
from weft.ir.build import param, reduce_axes, sink, store
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.uop import make
from weft.schedule.reductions.split_reductions import wanted_parts
from weft.schedule.schedule import make_schedule
from weft.target.cuda import cuda_target
from weft.target.target import Target


def kernels(shape: tuple[int, ...], axes: tuple[int, ...], target: Target) -> int:
    x = param(1, dtypes.float32, shape)
    reduced = reduce_axes(x, Op.ADD, axes)
    left = tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    graph = sink(store(param(0, dtypes.float32, left), reduced))
    return len(make_schedule(graph, target).kernels.src)


def test_one_result_of_many_elements_takes_two_kernels() -> None:
    assert kernels((1 << 20,), (0,), machine(units=2)) == 2
    assert kernels((1024, 1024), (0, 1), machine(units=2)) == 2


def test_one_thread_short_reductions_and_many_results_take_one() -> None:
    assert kernels((1 << 20,), (0,), machine()) == 1
    assert kernels((1 << 12,), (0,), machine(units=2)) == 1
    assert kernels((1024, 1024), (1,), machine(units=2)) == 1


def test_a_size_without_divisors_stays_whole() -> None:
    assert kernels((1048583,), (0,), machine(units=2)) == 1


def test_a_gpu_wants_more_parts() -> None:
    assert wanted_parts(machine(group_threads=256, units=132)) > wanted_parts(machine(units=8))
    assert kernels((256, 4096), (1,), machine(group_threads=256, units=132)) == 2


@pytest.mark.parametrize("name", ["sum", "max", "min", "mean"])
def test_the_result_is_the_same(name: str) -> None:
    x = np.random.default_rng(0).standard_normal((3, 1 << 17)).astype(np.float32)
    got = getattr(Tensor(x), name)().numpy()
    np.testing.assert_allclose(got, getattr(x.astype(np.float64), name)(), rtol=1e-4, atol=1e-4)


def test_what_is_kept_and_stored_is_computed_once() -> None:
    x = Tensor(np.arange(12, dtype=np.float32).reshape(3, 4)).realize()
    GlobalCounters.reset()
    transposed = x.T.contiguous().realize()
    assert GlobalCounters.kernel_count == 1
    np.testing.assert_array_equal(transposed.numpy(), x.numpy().T)


def test_what_others_read_too_is_kept() -> None:
    x, both = param(1, dtypes.float32, (4, 4)), param(2, dtypes.float32, (4, 4))
    kept = make(Op.STAGE, x.dtype, (x * 2,), ("global", ()))
    stores = (store(param(0, x.dtype, (4, 4)), kept), store(both, kept + 1))
    assert len(make_schedule(sink(*stores), machine()).kernels.src) >= 2


def test_narrow_columns_are_split_by_rows() -> None:
    narrow = machine(units=2, vector_bits=256, vector_registers=16)
    assert kernels((1 << 14, 100), (0,), narrow) == 2
    assert kernels((1 << 14, 200), (0,), narrow) == 1
    assert kernels((32, 1 << 10, 100), (1,), narrow) == 1
    assert kernels((1 << 14, 100), (0,), machine(units=2)) == 1


@pytest.mark.parametrize(("rows", "count"), [(128, 2), (512, 1)])
def test_rows_that_almost_fill_a_gpu_take_one(rows: int, count: int) -> None:
    assert kernels((rows, 4096), (1,), cuda_target("sm_90a")) == count


def test_a_gpu_splits_shorter_reductions() -> None:
    assert kernels((1 << 17,), (0,), cuda_target("sm_90a")) == 2
