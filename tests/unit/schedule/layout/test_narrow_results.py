"""A sum that all readers round is in memory as they read it."""

import numpy as np

from weft import Tensor
from weft.ir.build import param, sink, store
from weft.ir.dtypes import DType, dtypes
from weft.ir.text import dump
from weft.ir.uop import UOp
from weft.schedule.schedule import make_schedule
from weft.target.cuda import cuda_target

HOPPER = cuda_target("sm_90a")
F32, BF16 = dtypes.float32, dtypes.bfloat16


def products(batch: int = 4) -> Tensor:
    x = Tensor(param(0, BF16, (batch, 256, 512)))
    y = Tensor(param(1, BF16, (512, 384)))
    return x.matmul(y, dtype=F32)


def kernels(*outs: Tensor) -> list[UOp]:
    writes = [store(param(9 - n, out.dtype, out.shape), out.uop) for n, out in enumerate(outs)]
    return [call.arg for call in make_schedule(sink(*writes), HOPPER).kernels.src]


def written(kernel: UOp) -> DType:
    return kernel.src[0].src[1].dtype


def test_a_sum_for_two_kernels_is_rounded_once():
    z = products().transpose(1, 2).cast(BF16).float()
    first, *_ = kernels(z.max((0, 1)), (z * z).sum((1, 2)))
    assert written(first) is BF16
    assert "float32[4, 256, 384]" not in "".join(map(dump, kernels(z.max((0, 1)), z.sum((1, 2)))))


def test_it_lies_as_it_is_computed():
    z = products().permute(0, 2, 1).cast(BF16).float()
    (first, *_) = kernels(z.max((0, 1)), (z * z).sum((1, 2)))
    assert "bfloat16[4, 256, 384, 1]" in dump(first)


def test_a_sum_that_is_read_in_full_stays_wide():
    z = products()
    rounded = z.cast(BF16).float()
    first, *_ = kernels(z.max((0, 1)), (rounded * rounded).sum((1, 2)))
    assert written(first) is F32


def test_the_values_are_those_of_a_cast():
    draw = np.random.default_rng(0)
    x, y = (Tensor(draw.standard_normal((8, 8)).astype(np.float32)) for _ in range(2))
    z = (x @ y).T.half()
    expected = (x.numpy() @ y.numpy()).T.astype(np.float16)
    np.testing.assert_allclose(z.max(0).numpy(), expected.max(0), rtol=2e-3)
    np.testing.assert_allclose(z.float().sum(1).numpy(), expected.astype(np.float32).sum(1), 1e-2)
