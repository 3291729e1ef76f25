"""Threads along channels leave few groups to a kernel that waits for sums of each channel."""

from weft import Tensor
from weft.ir.build import param, sink, store
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.schedule.schedule import make_schedule
from weft.target.cuda import cuda_target

BF16 = dtypes.bfloat16
HOPPER = cuda_target("sm_90a")


def kernels(rows: int, columns: int, axis: int) -> list[UOp]:
    x = Tensor(param(0, dtypes.float32, (rows, columns)))
    out = (x - x.mean(axis, keepdim=True)).relu()
    root = sink(store(param(1, dtypes.float32, out.shape), out.uop))
    return [call.arg for call in make_schedule(root, HOPPER).kernels.src]


def is_map(kernel: UOp) -> bool:
    return not kernel.ops >> Op.REDUCE & 1


def test_few_channels_of_many_rows_are_summed_before():
    *sums, last = kernels(1 << 18, 64, 0)
    assert len(sums) == 2 and is_map(last)


def test_many_channels_of_few_rows_are_one_kernel():
    assert len(kernels(64, 1 << 18, 0)) == 1


def test_rows_are_one_kernel():
    assert len(kernels(4096, 1024, 1)) == 1


def test_a_product_that_is_repeated_is_in_memory():
    """The gradient of a mean: each of its pixels has the same slope."""
    slope = Tensor(param(0, BF16, (128, 1024)))
    weight = Tensor(param(1, BF16, (1024, 2048)))
    image = Tensor(param(2, BF16, (128, 2048, 49)))
    out = (slope @ weight).unsqueeze(2) * image
    root = sink(store(param(3, BF16, out.shape), out.uop))
    product, last = [call.arg for call in make_schedule(root, HOPPER).kernels.src]
    assert not is_map(product) and is_map(last)


def test_short_maps_are_one_launch():
    """As the counters of all normalizations of a network, which read nothing that others do."""
    counters = [param(slot, dtypes.int64, ()) for slot in range(20)]
    rows = [param(20 + slot, BF16, (1, 64)[slot % 2 :]) for slot in range(4)]
    writes = [store(each, (Tensor(each) + 1).uop) for each in (*counters, *rows)]
    made = make_schedule(sink(*writes), HOPPER).kernels.src
    assert len(made) == 2 + 1  # a kernel writes at most 16
