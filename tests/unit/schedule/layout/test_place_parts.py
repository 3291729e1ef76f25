"""Gradients of queries, keys and values that are cut from one product are stored side by side."""

import pytest

from weft import Tensor
from weft.gradient.reverse import gradients
from weft.ir.build import param, sink, store
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.schedule.schedule import make_schedule
from weft.target.cpu import cpu_target
from weft.target.cuda import cuda_target

CUDA = cuda_target("sm_90a")
BF16 = dtypes.bfloat16
SHAPE = (2, 256, 3 * 128)


def gradient_graph(cut=lambda x: x.chunk(3, -1)) -> UOp:
    """The gradient of what queries, keys and values are cut from, multiplied once more."""
    whole = Tensor(param(0, BF16, SHAPE))
    slopes = Tensor(param(1, BF16, (2, 256, 128)))
    q, k, v = (each.reshape(2, 256, 2, 64).transpose(1, 2) for each in cut(whole))
    out = q.scaled_dot_product_attention(k, v, is_causal=True)
    out = out.transpose(1, 2).reshape(2, 256, 128)
    (found,) = gradients(out.uop, [whole.uop], slopes.uop)
    assert found is not None
    factor = Tensor(param(2, BF16, (64, SHAPE[-1])))
    product = Tensor(found) @ factor.T
    memory = param(3, BF16, tuple(map(int, product.shape)))
    return sink(store(memory, product.uop))


def kernels(cut, target=CUDA) -> list[UOp]:
    return [call.arg for call in make_schedule(gradient_graph(cut), target).kernels.src]


def stored_wholes(found: list[UOp]) -> list[int]:
    """For each kernel that stores in memory of all parts, how often it does."""
    counts = []
    for kernel in found:
        stores = [node for node in topological(kernel) if node.op == Op.STORE]
        counts.append(sum(shape_of(each.src[0].src[0]) == SHAPE for each in stores))
    return [count for count in counts if count]


def test_results_are_stored_where_the_sum_has_them():
    assert sorted(stored_wholes(kernels(lambda x: x.chunk(3, -1)))) == [1, 2]


@pytest.mark.parametrize(
    "cut",
    [
        lambda x: (x[..., :128], x[..., 128:256], x[..., 128:256]),  # the last part has no slope
        lambda x: (x[..., :128] * 2.0, x[..., 128:256], x[..., 256:]),  # computed once more
    ],
)
def test_other_sums_are_computed(cut):
    assert stored_wholes(kernels(cut)) in ([], [1])


def test_cores_compute_the_sum():
    target = cpu_target("x86_64", ("avx512f",), threads=2)
    assert stored_wholes(kernels(lambda x: x.chunk(3, -1), target)) in ([], [1])
