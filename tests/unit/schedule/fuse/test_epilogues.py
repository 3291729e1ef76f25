"""What follows a product on matrix units: an activation stays there, an optimizer does not."""

import pytest

from weft import Tensor
from weft.ir.build import param, sink, store
from weft.ir.dtypes import DType, dtypes
from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.schedule.schedule import make_schedule
from weft.target.cpu import cpu_target
from weft.target.cuda import cuda_target

CUDA = cuda_target("sm_90a")
BF16, F32 = dtypes.bfloat16, dtypes.float32


def factor(slot: int, *shape: int, dtype: DType = BF16) -> Tensor:
    return Tensor(param(slot, dtype, shape))


def writes(slot: int, value: Tensor) -> UOp:
    return store(param(slot, value.dtype, value.shape), value.uop)


def kernels(*stores: UOp, target=CUDA) -> list[int]:
    """How many values each kernel writes."""
    made = make_schedule(sink(*stores), target).kernels.src
    return [len([s for s in call.arg.src if s.op == Op.STORE]) for call in made]


def adam(rows: int, columns: int, depth: int, keeps_slope: bool) -> list[UOp]:
    """A weight, two averages and the slope, of which each is read and written."""
    slope = (factor(0, depth, rows).T @ factor(1, depth, columns)).float()
    weight, first, second = (factor(slot, rows, columns, dtype=F32) for slot in (2, 3, 4))
    first = first * 0.9 + slope * 0.1
    second = second * 0.99 + slope * slope * 0.01
    weight = weight - first / (second.sqrt() + 1e-8)
    kept = [writes(5, slope)] if keeps_slope else []
    return [writes(2, weight), writes(3, first), writes(4, second), *kept]


@pytest.mark.parametrize("keeps_slope", [False, True])
def test_the_rule_of_an_optimizer_is_a_kernel_behind_the_product(keeps_slope: bool):
    assert kernels(*adam(3072, 768, 8192, keeps_slope)) == [1, 3]


def test_it_stays_where_a_launch_takes_longer():
    assert kernels(*adam(256, 256, 512, True)) == [4]


def test_it_stays_in_the_tiles_of_cores():
    cores = cpu_target("x86_64", ("avx2",))
    assert kernels(*adam(3072, 768, 8192, True), target=cores) == [4]


def test_activations_and_residuals_stay_with_the_product():
    y = factor(0, 8192, 768) @ factor(1, 768, 3072) + factor(2, 3072)
    assert kernels(writes(3, y), writes(4, y.gelu())) == [2]
    rest = factor(4, 8192, 3072, dtype=F32)
    assert kernels(writes(3, y.float() + rest)) == [1]
    assert kernels(writes(3, (y.float() * factor(5, 8192, 1, dtype=F32)).relu())) == [1]
