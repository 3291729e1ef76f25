"""Numbers that scale scores are moved behind maxima, and the values are the same."""

import math

import pytest

from weft import Tensor, dtypes
from weft.codegen.generate import before_opts
from weft.codegen.opts.scaled_maxima import scale_exponents
from weft.ir.build import param, sink, store
from weft.ir.ops import Op
from weft.ir.text import dump
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.schedule.schedule import make_schedule
from weft.support.settings import Context
from weft.target.cuda import cuda_target


def softmax_of(factor: float, guarded: bool = False) -> UOp:
    """The kernel of weights times values, with scores that a number scales."""
    q, k, v = (Tensor(param(n, dtypes.bfloat16, (128, 64))) for n in range(1, 4))
    scores = q.dot(k.T, dtype=dtypes.float32) * factor
    i = Tensor.arange(128)
    if guarded:
        mask = Tensor(param(4, dtypes.bool, (128, 128)))
        out = q.scaled_dot_product_attention(k, v, attn_mask=mask)
    else:
        scores = (i.reshape(1, -1) <= i.reshape(-1, 1)).where(scores, -math.inf)
        out = scores.softmax(-1).cast(v.dtype) @ v
    with Context(FUSE_PRODUCTS="always"):
        made = make_schedule(
            sink(store(param(0, out.dtype, out.shape), out.uop)), cuda_target("sm_90a")
        )
    (call,) = made.kernels.src
    return before_opts(call.arg, cuda_target("sm_90a"))


def scaled(node: UOp) -> bool:
    """Whether a maximum is one of values that are multiplied."""
    return any(
        each.op == Op.MUL and each.src[1].op == Op.CONST
        for each in topological(node.src[0], enter=lambda x: x.op != Op.REDUCE)
    )


def maxima(kernel: UOp) -> list[UOp]:
    return [n for n in topological(kernel) if n.op == Op.REDUCE and n.arg[0] == Op.MAX]


@pytest.mark.parametrize("guarded", [False, True])
def test_scores_are_scaled_in_the_exponent(guarded: bool):
    kernel = softmax_of(0.125, guarded)
    assert all(map(scaled, maxima(kernel)))
    moved = scale_exponents(kernel)
    assert maxima(moved) and not any(map(scaled, maxima(moved)))
    powers = [n.src[0] for n in topological(moved) if n.op == Op.EXP]
    assert powers and all(n.op == Op.MUL and n.src[1].arg == 0.125 for n in powers)


def test_a_number_below_0_turns_the_order_and_stays():
    kernel = softmax_of(-0.125)
    assert dump(scale_exponents(kernel)) == dump(kernel)
