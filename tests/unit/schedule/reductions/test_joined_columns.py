"""Means and variances of channels: one kernel reads the image for both, in parts."""

import math
from dataclasses import replace

import numpy as np
import pytest

from weft import Tensor
from weft.codegen.generate import generate
from weft.ir.build import param, sink, store
from weft.ir.dtypes import DType, dtypes
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp
from weft.ir.views import behind
from weft.ir.walk import topological
from weft.reference.memory import ElementMemory
from weft.reference.schedule import run_schedule
from weft.schedule.reductions.repeated_values import thin
from weft.schedule.schedule import make_schedule
from weft.support.settings import Context
from weft.target.cuda import cuda_target
from weft.target.target import Target

HOPPER = cuda_target("sm_90a")
SMALL = replace(HOPPER, costs=replace(HOPPER.costs, least_split=1))
F32, BF16 = dtypes.float32, dtypes.bfloat16


def normalized(x: Tensor, axes: tuple[int, ...]) -> Tensor:
    x = x.float()
    left = x - x.mean(axes, keepdim=True)
    return left * ((left * left).mean(axes, keepdim=True) + 1e-5).rsqrt()


def calls(shape: tuple[int, ...], dtype: DType, target: Target = HOPPER, axes=(0, 1)) -> list[UOp]:
    out = normalized(Tensor(param(1, dtype, shape)), axes).cast(dtype)
    return list(make_schedule(sink(store(param(0, dtype, shape), out.uop)), target).kernels.src)


def reads_image(call: UOp) -> bool:
    sizes = [math.prod(shape_of(part)) for part in topological(call.arg) if part.op == Op.PARAM]
    return max(sizes) >= 1 << 20


def test_the_image_is_read_once_for_both():
    made = calls((128, 3136, 256), BF16)
    assert [reads_image(call) for call in made] == [True, False, True]
    with Context(JOIN="never"):
        assert sum(map(reads_image, calls((128, 3136, 256), BF16))) == 3


@pytest.mark.parametrize("channels", [64, 256, 512])
def test_threads_keep_their_part(channels: int):
    first, *_ = calls((128, 3136, channels), BF16)
    loads = [node for node in generate(first.arg, HOPPER).instructions.src if node.op == Op.LOAD]
    large = [n.dtype.lanes for n in loads if math.prod(shape_of(n.src[0].src[0])) > 1 << 20]
    assert sum(large) == 256 * 64 // 256  # rows of a line, for a group of threads


def test_rows_and_few_columns_are_as_they_were():
    assert len(calls((4096, 1024), F32, axes=(1,))) == 1
    assert len(calls((1 << 20, 2), F32, axes=(0,))) > 1


@pytest.mark.parametrize("shape", [(4, 32, 64), (2, 96, 64), (3, 64, 64)])
def test_values(shape: tuple[int, ...]):
    made = make_schedule(
        sink(store(param(0, F32, shape), normalized(Tensor(param(1, F32, shape)), (0, 1)).uop)),
        SMALL,
    )
    x = (100 + np.random.default_rng(0).standard_normal(shape)).astype(np.float32)
    sizes = {
        s.arg[0]: math.prod(shape_of(s)) for c in made.kernels.src for s in map(behind, c.src)
    }
    memory = [ElementMemory(F32, sizes.get(slot, 1)) for slot in range(1 + max(sizes))]
    memory[1] = ElementMemory(F32, x.size, [float(each) for each in x.ravel()])
    run_schedule(made.kernels, {}, arguments=memory)
    wide = x.astype(np.float64)
    expected = (wide - wide.mean((0, 1))) / np.sqrt(wide.var((0, 1)) + 1e-5)
    found = np.array(memory[0].values, np.float32).reshape(shape)
    np.testing.assert_allclose(found, expected, atol=1e-3)


def test_what_is_the_same_along_axes():
    number = Tensor(param(0, F32, (4,)))
    whole = (-number.reshape(1, 4, 1).expand(2, 4, 3)).permute(0, 2, 1).uop
    found = thin(whole, (0, 1))
    assert found is not None and shape_of(found) == (1, 1, 4)
    assert thin(whole, (2,)) is None
