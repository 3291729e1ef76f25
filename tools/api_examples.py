"""Examples of methods whose docstrings have none: calls, whose results the pages compute.

Many of these methods are made from tables in the code, which have no place for an example. The
test of the pages runs every call, on the interpreter, so no result depends on a machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from weft import Context, Tensor

EXAMPLES: Final = """
    Tensor([-2, 3]).abs()
    Tensor([1.0, 0.5]).acos()
    Tensor([1.0, 2.0]).acosh()
    Tensor([0.0, 1.0]).asin()
    Tensor([0.0, 1.0]).asinh()
    Tensor([0.0, 1.0]).atan()
    Tensor([0.0, 0.5]).atanh()
    Tensor([0, 5]).bitwise_not()
    Tensor([1.2, -1.2]).ceil()
    Tensor([3.0, 4.0]).copysign(Tensor([-1.0, 1.0]))
    Tensor([0.0, 3.0]).cos()
    Tensor([0.0, 1.0]).cosh()
    Tensor([0.0, 1.0]).erf()
    Tensor([0.0, 1.0]).exp()
    Tensor([3.0, -1.0]).exp2()
    Tensor([0.0, 1e-6]).expm1()
    Tensor([1.7, -1.2]).floor()
    Tensor([1.75, -1.25]).frac()
    Tensor([1.0, float("inf")]).isfinite()
    Tensor([1.0, float("nan")]).isnan()
    Tensor([1.0, 2.0]).log()
    Tensor([1.0, 1000.0]).log10()
    Tensor([0.0, 1e-6]).log1p()
    Tensor([1.0, 8.0]).log2()
    Tensor([0, 2]).logical_not()
    Tensor([1, -2]).neg()
    Tensor([2.0, -4.0]).reciprocal()
    Tensor([4.0, 0.25]).rsqrt()
    Tensor([-3.0, 0.0, 2.0]).sign()
    Tensor([-0.0, 2.0]).signbit()
    Tensor([0.0, 1.0]).sin()
    Tensor([0.0, 1.0]).sinh()
    Tensor([4.0, 2.0]).sqrt()
    Tensor([3, -2]).square()
    Tensor([0.0, 1.0]).tan()
    Tensor([0.0, 1.0]).tanh()
    Tensor([1.7, -1.7]).trunc()
    Tensor([6, 3]).bitwise_and(5)
    Tensor([6, 3]).bitwise_or(5)
    Tensor([6, 3]).bitwise_xor(5)
    Tensor([1, 2]).eq(2)
    Tensor([7, -7]).floor_divide(2)
    Tensor([7, -7]).fmod(3)
    Tensor([1, 2, 3]).greater(2)
    Tensor([1, 2, 3]).greater_equal(2)
    Tensor([1, 2, 3]).less(2)
    Tensor([1, 2, 3]).less_equal(2)
    Tensor([1, 3]).lshift(2)
    Tensor([1, 5]).maximum(3)
    Tensor([1, 5]).minimum(3)
    Tensor([7, -7]).mod(3)
    Tensor([1, 2]).mul(Tensor([10, 20]))
    Tensor([1, 2]).ne(2)
    Tensor([4, 12]).rshift(2)
    Tensor([[True, False], [True, True]]).all(axis=1)
    Tensor([[True, False], [False, False]]).any(axis=1)
    Tensor([[1, 5, 2], [7, 0, 7]]).argmax(axis=1)
    Tensor([[1, 5, 2], [7, 0, 7]]).argmin(axis=1)
    Tensor([0.0, 0.0]).log_softmax()
    Tensor([0.0, 0.0]).logsumexp()
    Tensor([[1, 5], [7, 0]]).min(axis=0)
    Tensor([[1, 2], [3, 4]]).prod(axis=1)
    Tensor([1.0, 1.0]).softmin()
    Tensor([1.0, 2.0, 3.0]).std()
    Tensor([1.0, 2.0, 3.0]).std_mean()
    Tensor([1.0, 2.0, 3.0]).var()
    Tensor([1.0, 2.0, 3.0]).var_mean()
    Tensor([-1.0, 2.0]).celu()
    Tensor([-1.0, 2.0]).elu()
    Tensor([-1.0, 2.0]).gelu()
    Tensor([-4.0, 0.0, 4.0]).hardsigmoid()
    Tensor([-4.0, 0.0, 4.0]).hardswish()
    Tensor([-4.0, 0.5, 4.0]).hardtanh()
    Tensor([1.0, 2.0]).isclose(Tensor([1.0, 2.5]))
    Tensor([-2.0, 2.0]).leaky_relu(0.5)
    Tensor([0.0, 10.0]).lerp(Tensor([4.0, 20.0]), 0.25)
    Tensor([0.0]).logaddexp(Tensor([0.0]))
    Tensor([0.0]).logsigmoid()
    Tensor([1, 2, 3]).masked_fill(Tensor([True, False, True]), 0)
    Tensor([-1.0, 2.0]).mish()
    Tensor([-1.0, 2.0]).quick_gelu()
    Tensor([-1.0, 3.0, 9.0]).relu6()
    Tensor([-1.0, 2.0]).selu()
    Tensor([-1.0, 2.0]).silu()
    Tensor([0.0]).softplus()
    Tensor([-1.0, 3.0]).softsign()
    Tensor.empty(2, 3).shape
    Tensor([1, 2]).empty_like().shape
    Tensor([1, 2]).full_like(7)
    Tensor.ones(2, 2)
    Tensor([1, 2]).ones_like()
    Tensor([1, 2]).zeros_like()
    Tensor(1).atleast_1d()
    Tensor([1, 2]).atleast_2d()
    Tensor([1, 2]).atleast_3d()
    Tensor([1.0]).requires_grad_().requires_grad
    Tensor([1.0]).bfloat16().dtype
    Tensor([0.0, 2.0]).bool()
    Tensor([1, 2]).clone()
    Tensor([[1, 2], [3, 4]]).T.contiguous()
    Tensor([1.0]).detach().requires_grad
    Tensor([1]).double().dtype
    Tensor([1.0]).element_size()
    Tensor([1]).float().dtype
    Tensor([1.0]).half().dtype
    Tensor([1.7, -1.7]).int()
    Tensor([1.0]).is_floating_point()
    Tensor([1]).long().dtype
    Tensor([1.0, 2.0]).nbytes()
    Tensor([[1, 2], [3, 4]]).numel()
    Tensor([1]).short().dtype
    Tensor([[1, 2, 3]]).size(1)
    Tensor([1]).to_("NULL").device
    (Tensor([1, 2]) + 1).tolist()
    Tensor([1, 2]).broadcast_to(2, 2)
    Tensor([[1, 2], [3, 4]]).flatten()
    Tensor([[1, 2]]).squeeze(0)
    Tensor([[1, 2], [3, 4]]).transpose()
    Tensor([1, 2, 3]).chunk(2)
    Tensor([1, 2]).meshgrid(Tensor([3, 4]))
    Tensor([[1, 2], [3, 4]]).triu()
    Tensor.ones(1, 1, 1, 2).conv_transpose2d(Tensor.ones(1, 1, 1, 2))
    Tensor([1.0, 2.0]).linear(Tensor([[1.0, 0.0], [0.0, 1.0]]), Tensor([10.0, 20.0]))
    Tensor([[1, 2]]).matmul(Tensor([[3], [4]]))
    Tensor([[1.0]]).scaled_dot_product_attention(Tensor([[1.0]]), Tensor([[5.0]]))
    Tensor.glorot_uniform(2, 3).shape
    Tensor.kaiming_normal(2, 3).shape
    Tensor.kaiming_uniform(2, 3).shape
    Tensor.normal(2, 3, mean=1.0).shape
    Tensor([1.0]).rand_like().shape
    Tensor.randn(2, 3).shape
    Tensor([1.0]).randn_like().shape
    Tensor.scaled_uniform(2, 3).shape
    Tensor.uniform(2, 3, low=-1.0).shape
    Tensor.ones(2, 2, 2).ifft2().shape
    Tensor.ones(2, 2, 2).irfft2().shape
    Tensor.ones(2, 2).rfft2().shape
"""
# Methods that need what is not always there.
WITHOUT_EXAMPLE: Final = {"to_torch": "PyTorch may be missing"}


def example(name: str) -> Iterator[str]:
    """The call of a method and what it gives, as a session; nothing where there is no call."""
    call = _CALLS.get(name)
    if call is None:
        return
    with Context(DEVICE="PYTHON"):
        shown, result = _shown(call, eval(call, {"Tensor": Tensor}))
    yield from ("", "```pycon", f">>> {shown}", repr(result), "```")


def _shown(call: str, result: Any) -> tuple[str, Any]:
    """The call with the reading of its value, and that value."""
    if isinstance(result, Tensor):
        return f"{call}.tolist()", result.tolist()
    if isinstance(result, tuple | list) and result and isinstance(result[0], Tensor):
        return f"[each.tolist() for each in {call}]", [each.tolist() for each in result]
    return call, result


def _method(call: str) -> str:
    """The method that a call shows: the last one, before any attribute.

    >>> _method('Tensor([[0.0]]).log_softmax().nll_loss(Tensor([1]))'), _method("(a + 1).tolist()")
    ('nll_loss', 'tolist')
    """
    depth, start = 0, len(call)
    names = []
    for at, letter in enumerate(call):
        if letter == "." and depth == 0:
            start = at + 1
        elif letter == "(" and depth == 0:
            names.append(call[start:at])
        depth += (letter in "([") - (letter in ")]")
    return names[-1]


_CALLS: Final = {_method(line.strip()): line.strip() for line in EXAMPLES.strip().splitlines()}
