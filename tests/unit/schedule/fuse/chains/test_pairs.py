"""The gradients of keys and values share weights, and the kernel that computes these."""

import pytest

from weft import Tensor
from weft.gradient.reverse import gradients
from weft.ir.build import param, sink, store
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.schedule.schedule import make_schedule
from weft.target.cpu import cpu_target
from weft.target.cuda import cuda_target

CUDA = cuda_target("sm_90a")
BF16 = dtypes.bfloat16


def kernels(shape: tuple[int, ...], target=CUDA, keys: int | None = None, values: int = 0):
    """The kernels of the gradients of causal attention."""
    heads = (*shape[:1], keys or shape[1], *shape[2:])
    out = (*shape[:-1], values or shape[-1])
    shapes = [shape, heads, (*heads[:-1], out[-1]), out]
    q, k, v, g = (Tensor(param(n, BF16, each)) for n, each in enumerate(shapes))
    o = q.scaled_dot_product_attention(k, v, is_causal=True, enable_gqa=True)
    found = [each for each in gradients(o.uop, [q.uop, k.uop, v.uop], g.uop) if each is not None]
    pairs = zip(shapes, found, strict=False)
    stores = [store(param(4 + n, BF16, each), x) for n, (each, x) in enumerate(pairs)]
    return [call.arg for call in make_schedule(sink(*stores), target).kernels.src]


def products(kernel: UOp) -> int:
    """The sums of products of two factors, each with ranges of its own."""
    nodes = [node for node in topological(kernel) if node.op == Op.REDUCE]
    return sum(node.arg[0] == Op.ADD and node.src[0].op == Op.MUL for node in nodes)


@pytest.mark.parametrize("keys", [4, 2])
def test_one_kernel_has_four_products(keys: int):
    found = [products(kernel) for kernel in kernels((2, 4, 1024, 64), keys=keys)]
    assert sorted(each for each in found if each > 1) == [2, 3, 4]


def test_wide_heads_have_no_room_for_two_results():
    found = [products(kernel) for kernel in kernels((2, 4, 1024, 128))]
    assert sorted(each for each in found if each > 1) == [2, 2, 3, 3]


def test_columns_that_differ_are_not_stored_together():
    found = [products(kernel) for kernel in kernels((2, 4, 1024, 64), values=32)]
    assert sorted(each for each in found if each > 1) == [2, 2, 3, 3]


def test_cores_have_a_kernel_for_each():
    target = cpu_target("x86_64", ("avx512f",), threads=2)
    found = [products(kernel) for kernel in kernels((2, 4, 1024, 64), target)]
    assert max(found) == 3
