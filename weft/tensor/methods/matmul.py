"""Products of matrices: matmul, linear, einsum, attention.

A product is a multiplication of expanded operands and a sum over the inner axis; the compiler
finds the contraction. Halves are multiplied and summed in float32 and rounded once, integers in
their own dtype, as in PyTorch.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from weft.ir import movement
from weft.ir.build import Size, reduce_axes
from weft.ir.dtypes import FLOAT, DType, dtypes, promote
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp, make
from weft.support.errors import ArgumentError, ShapeError
from weft.support.source_line import user_line
from weft.tensor.autocast import lowered
from weft.tensor.checks import broadcast_shape, known, require_one_device, symbolic_fix
from weft.tensor.host.convert import dtype_of
from weft.tensor.linalg.checks import require_matrix
from weft.tensor.methods.elementwise import lift
from weft.tensor.methods.reduce import reduction
from weft.tensor.small_floats import widened

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

DTypeLike = DType | str | None


def contract(
    left: Tensor, right: Tensor, axes: tuple[int, ...], dtype: DTypeLike = None
) -> Tensor:
    """The sum over axes of a product of operands that broadcast; the axes go."""
    result = dtype_of(dtype, promote(left.dtype, right.dtype))
    wide = promote(left.dtype, right.dtype) if dtype is None else result
    product = widened(left.cast(wide)) * widened(right.cast(wide))
    return reduction(product, Op.ADD, axes, False, "matmul").cast(result)


def dot(self: Tensor, w: Tensor, dtype: DTypeLike = None) -> Tensor:
    """Multiply matrices, or vectors where there is one axis; leading axes broadcast.

    >>> from weft.tensor import Tensor
    >>> (Tensor([[1, 2], [3, 4]]) @ Tensor([1, 1])).tolist()
    [3, 7]
    """
    right = lift(self, w, "matmul")
    if dtype is None:
        self, right = lowered(self, right)
    require_one_device("matmul", self, right)
    if not self.ndim or not right.ndim:
        raise ShapeError(
            "matmul: expected at least one axis, got a scalar operand",
            facts=[("left", self.shape), ("right", right.shape)],
            rule="matmul multiplies vectors and matrices",
            fix="use * to scale",
        )
    inner = -1 if right.ndim == 1 else -2
    if self.shape[-1] != right.shape[inner]:
        same_ends = right.ndim > 1 and self.shape[-1] == right.shape[-1]
        raise ShapeError(
            f"matmul: inner sizes differ ({self.shape[-1]} and {right.shape[inner]})",
            facts=[
                ("left", self.shape, f"axis -1 is {self.shape[-1]}"),
                ("right", right.shape, f"axis {inner} is {right.shape[inner]}"),
            ],
            rule=f"left @ right needs left.shape[-1] == right.shape[{inner}]",
            fix="the last axes agree, so transpose the right operand: "
            + ("left @ right.T" if right.ndim == 2 else "left @ right.transpose(-1, -2)")
            if same_ends
            else symbolic_fix(self.shape[-1], right.shape[inner]),
        )
    if right.ndim == 1:
        return contract(self, right, (-1,), dtype)
    if self.ndim == 1:  # (K,) with (…, K, N)
        return contract(self, right.transpose(-1, -2), (-1,), dtype)
    if dtype is None and self.device.__class__ is str and _is_exact(self.uop, right.uop):
        return self._new(_product(self.uop, right.uop))
    rows = self.unsqueeze(-2)  # (…, M, 1, K)
    columns = right.transpose(-1, -2).unsqueeze(-3)  # (…, 1, N, K)
    return contract(rows, columns, (-1,), dtype)


def _is_exact(left: UOp, right: UOp) -> bool:
    """Whether operands are summed in the dtype that they have: no cast is needed."""
    dtype = left.dtype
    return dtype is right.dtype and dtype.kind == FLOAT and dtype.bits >= 32


def _product(left: UOp, right: UOp) -> UOp:
    """The nodes of a product of matrices, as the methods would make them, without the tensors."""
    *batch, rows, inner = shape_of(left)
    *others, _, columns = shape_of(right)
    wide = movement.reshape(left, (*batch, rows, 1, inner))
    order = [*range(len(others)), len(others) + 1, len(others)]
    permuted = movement.reshape(movement.permute(right, order), (*others, 1, columns, inner))
    shape = broadcast_shape("mul", shape_of(wide), shape_of(permuted))
    pair = (movement.broadcast(wide, shape), movement.broadcast(permuted, shape))
    product = make(Op.MUL, left.dtype, pair)
    total = reduce_axes(product, Op.ADD, (len(shape) - 1,))
    product.known_shape, total.known_shape = shape, (*shape[:-1], 1)
    product.line = total.line = product.line or total.line or user_line()
    return movement.reshape(total, shape[:-1])


def matmul(self: Tensor, x: Tensor, reverse: bool = False, dtype: DTypeLike = None) -> Tensor:
    """Multiply matrices: `self @ x`.

    (…, n, k) @ (…, k, m) is (…, n, m); batches broadcast, and vectors are rows or columns. PyTorch
    and NumPy: matmul.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 2]]).matmul(Tensor([[3], [4]])).tolist()
    [[11]]
    """
    return lift(self, x, "matmul").dot(self, dtype) if reverse else self.dot(x, dtype)


def at(self: Tensor, other: Any) -> Tensor:
    return self.dot(other)


def reflected_at(self: Tensor, other: Any) -> Tensor:
    return lift(self, other, "matmul").dot(self)


def in_place_at(self: Tensor, other: Any) -> Tensor:
    return self._update(self.dot(other), "matmul")


def linear(
    self: Tensor, weight: Tensor, bias: Tensor | None = None, dtype: DTypeLike = None
) -> Tensor:
    """Return self @ weight + bias, or self * weight + bias for a weight with one axis.

    For (…, in) and a weight (in, out) the result is (…, out); PyTorch's weight is (out, in).
    PyTorch: nn.functional.linear.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0, 2.0]).linear(Tensor([[1.0, 0.0], [0.0, 1.0]]), Tensor([10.0, 20.0])).tolist()
    [11.0, 22.0]
    """
    if dtype is None:
        self, weight, bias = lowered(self, weight, bias)
    else:
        self, weight = self.cast(dtype), weight.cast(dtype)
        bias = None if bias is None else bias.cast(dtype)
    if weight.ndim == 1:
        return self * weight if bias is None else self * weight + bias
    return self.dot(weight) if bias is None else biased(self, weight, bias)


def biased(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """x @ weight + bias. Halves are added before the sum is rounded, as in PyTorch."""
    result = promote(promote(x.dtype, weight.dtype), bias.dtype)
    if result.kind != FLOAT or result.bits >= 32:
        return x.dot(weight) + bias
    return (x.dot(weight, dtype=dtypes.float32) + bias).cast(result)


def einsum(cls: type[Tensor], formula: str, *operands: Any, dtype: DTypeLike = None) -> Tensor:
    """Multiply and sum by a formula of axis letters; `...` is all leading axes.

    >>> from weft.tensor import Tensor
    >>> a, b = Tensor([[1, 2], [3, 4]]), Tensor([[1, 0], [0, 1]])
    >>> Tensor.einsum("ij,jk->ik", a, b).tolist()
    [[1, 2], [3, 4]]
    """
    given = operands[0] if operands and isinstance(operands[0], (tuple, list)) else operands
    tensors: list[Tensor] = list(given if dtype else lowered(*given))
    inputs, output = _formula(formula, tensors)
    sizes = _sizes(formula, inputs, tensors)
    letters = output + "".join(sorted(set("".join(inputs)) - set(output)))
    require_one_device("einsum", *tensors)
    result = dtype_of(dtype, promote(*(each.dtype for each in tensors)))
    product: Tensor | None = None
    for names, tensor in zip(inputs, tensors, strict=True):
        aligned = widened(_aligned(tensor.cast(result), names, letters, sizes))
        product = aligned if product is None else product * aligned
    assert product is not None
    product = product.expand([sizes[letter] for letter in letters]) if letters else product
    summed = tuple(range(len(output), len(letters)))
    return (reduction(product, Op.ADD, summed, False, "einsum") if summed else product).cast(
        result
    )


# Letters that stand for the axes under an ellipsis, counted from the last.
_ELLIPSIS = "ΑΒΓΔΕΖΗΘΙΚΛΜ"


def _formula(formula: str, tensors: list[Tensor]) -> tuple[list[str], str]:
    """The letters of each operand and of the result, ellipses written out."""
    left, arrow, right = formula.replace(" ", "").partition("->")
    inputs = left.split(",")
    if len(inputs) != len(tensors):
        raise ArgumentError(
            f"einsum: {len(inputs)} terms for {len(tensors)} operands",
            facts=[("formula", formula)],
            rule="the formula has a term for each operand",
        )
    rank = max(
        (t.ndim - len(term) + 3 for term, t in zip(inputs, tensors, strict=True) if "..." in term),
        default=0,
    )
    written = []
    for term, tensor in zip(inputs, tensors, strict=True):
        own = max(tensor.ndim - len(term) + 3, 0)
        written.append(term.replace("...", _ELLIPSIS[:own][::-1]))
    if arrow:
        return written, right.replace("...", _ELLIPSIS[:rank][::-1])
    every = "".join(written)
    once = "".join(sorted(c for c in set(every) if every.count(c) == 1 and c not in _ELLIPSIS))
    return written, _ELLIPSIS[:rank][::-1] + once


def _sizes(formula: str, inputs: list[str], tensors: list[Tensor]) -> dict[str, Size]:
    sizes: dict[str, Size] = {}
    for number, (names, tensor) in enumerate(zip(inputs, tensors, strict=True)):
        if len(names) != tensor.ndim:
            raise ShapeError(
                f"einsum: operand {number} has {tensor.ndim} axes and its term {len(names)}",
                facts=[("formula", formula), (f"operand {number}", tensor.shape)],
                rule="a term has a letter for each axis",
            )
        for letter, extent in zip(names, tensor.shape, strict=True):
            before = sizes.get(letter, 1)
            if before != 1 and extent not in (1, before):
                raise ShapeError(
                    f"einsum: axis {letter!r} has size {before} and size {extent}",
                    facts=[("formula", formula), (f"operand {number}", tensor.shape)],
                    rule="one letter has one size",
                )
            sizes[letter] = extent if before == 1 else before
    return sizes


def _aligned(tensor: Tensor, names: str, letters: str, sizes: dict[str, Size]) -> Tensor:
    """An operand with its axes in the order of the letters, and 1 for those it lacks."""
    while len(set(names)) < len(names):
        letter = next(c for c in names if names.count(c) > 1)
        first = names.index(letter)
        second = names.index(letter, first + 1)
        tensor = tensor.diagonal(0, first, second)
        names = names[:first] + names[first + 1 : second] + names[second + 1 :] + letter
    order = [names.index(letter) for letter in letters if letter in names]
    shape = iter([tensor.shape[i] for i in order])
    return tensor.permute(order).reshape(
        [next(shape) if letter in names else 1 for letter in letters]
    )


def scaled_dot_product_attention(
    self: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    enable_gqa: bool = False,
) -> Tensor:
    """Return softmax(q kᵀ / √size + mask) v, where this tensor holds the queries.

    A bool mask holds where attention is allowed; another one is added to the scores. A row that
    may attend to nothing gives zeros, as in PyTorch.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1.0]]).scaled_dot_product_attention(Tensor([[1.0]]), Tensor([[5.0]])).tolist()
    [[5.0]]
    """
    if is_causal and attn_mask is not None:
        raise ArgumentError(
            "scaled_dot_product_attention: attn_mask and is_causal are both given",
            rule="a causal mask is made here",
            fix="leave one of them out",
        )
    self, key, value = lowered(self, key, value)
    if enable_gqa:
        groups = known(self.shape[-3]) // known(key.shape[-3])
        key, value = key.repeat_interleave(groups, -3), value.repeat_interleave(groups, -3)
    scores = self.dot(key.transpose(-2, -1), dtype=promote(self.dtype, dtypes.float32))
    scores = _with_slopes_in(scores, promote(self.dtype, key.dtype))
    scores = scores * (1.0 / math.sqrt(known(self.shape[-1])))  # (…, queries, keys)
    if is_causal:
        allowed = scores.ones_like(dtype=dtypes.bool).tril()
        scores = allowed.where(scores, -math.inf)
    elif attn_mask is not None and attn_mask.dtype is dtypes.bool:
        scores = attn_mask.where(scores, -math.inf)
    elif attn_mask is not None:
        scores = scores + attn_mask
    weights = scores.softmax(-1) if attn_mask is None else _masked_softmax(scores)
    return weights.cast(self.dtype).dropout(dropout_p).dot(value)


def _with_slopes_in(scores: Tensor, dtype: DType) -> Tensor:
    """Scores in float32, whose gradient is rounded to the dtype of what was multiplied.

    The gradients of queries and keys are products of two halves then, as the scores are. PyTorch's
    kernels of attention round it too.
    """
    from weft.tensor.autodiff.custom_gradient import with_body

    if dtype.bits >= scores.dtype.bits:
        return scores
    key = ("rounded slopes", dtype.name)
    return with_body(scores, [scores], key, lambda _, __, slopes: slopes.cast(dtype).float())


def _masked_softmax(scores: Tensor) -> Tensor:
    """Softmax along the last axis; zeros where all scores of a row are -inf."""
    top = scores.max(axis=-1, keepdim=True).detach()
    powers = (scores - (top == -math.inf).where(0.0, top)).exp()
    total = powers.sum(axis=-1, keepdim=True)
    return powers * (1.0 / (total == 0.0).where(1.0, total))


def mm(self: Tensor, mat2: Tensor) -> Tensor:
    """Multiply two matrices: (n, k) @ (k, m) is (n, m). PyTorch: mm; NumPy: matmul.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 2]]).mm(Tensor([[3], [4]])).tolist()
    [[11]]
    """
    for each in (self, mat2):
        require_matrix("mm", each)
        if each.ndim != 2:
            raise ShapeError(
                f"mm: expected a matrix, got a tensor with {each.ndim} axes",
                facts=[("shape", each.shape)],
                rule="mm takes (n, k) and (k, m)",
                fix="write a @ b for batches of matrices",
            )
    return self.dot(mat2)
