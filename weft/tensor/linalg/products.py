"""Products and measures of vectors and matrices, as formulas of sums and products."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from weft.ir.dtypes import DType, Scalar, promote
from weft.support.errors import ArgumentError, ShapeError
from weft.tensor.autocast import lowered
from weft.tensor.checks import axes_of, axis_of, broadcast_shape, known
from weft.tensor.host.convert import dtype_of
from weft.tensor.linalg.checks import identity, require_matrix, require_square
from weft.tensor.linalg.spectral import nuclear_norm, spectral_norm
from weft.tensor.methods.matmul import contract
from weft.tensor.methods.unary import as_float
from weft.tensor.small_floats import rounded_once, widened

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

DTypeLike = DType | str | None
AxesLike = int | Sequence[int] | None


def _require_axes(name: str, tensor: Tensor, count: int, what: str) -> None:
    if tensor.ndim != count:
        raise ShapeError(
            f"{name}: {what} has {tensor.ndim} axes, not {count}",
            facts=[(what, tensor.shape)],
            rule=f"{name} takes {what} with {count} axes",
            fix="matmul multiplies vectors, matrices and batches of them",
        )


def bmm(self: Tensor, mat2: Tensor) -> Tensor:
    """Multiply two batches of matrices, (b, n, m) @ (b, m, p).

    >>> from weft.tensor import Tensor
    >>> Tensor([[[1, 2]]]).bmm(Tensor([[[3], [4]]])).tolist()
    [[[11]]]
    """
    _require_axes("bmm", self, 3, "the left batch")
    _require_axes("bmm", mat2, 3, "the right batch")
    if self.shape[0] != mat2.shape[0]:
        raise ShapeError(
            f"bmm: there are {self.shape[0]} and {mat2.shape[0]} matrices",
            facts=[("left", self.shape), ("right", mat2.shape)],
            rule="bmm multiplies matrices one by one, and broadcasts nothing",
        )
    return self.dot(mat2)


def mv(self: Tensor, vec: Tensor) -> Tensor:
    """Multiply a matrix (n, m) by a vector (m,).

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 2], [3, 4]]).mv(Tensor([1, 1])).tolist()
    [3, 7]
    """
    _require_axes("mv", self, 2, "the matrix")
    _require_axes("mv", vec, 1, "the vector")
    return self.dot(vec)


def _added(self: Tensor, product: Tensor, beta: Scalar, alpha: Scalar) -> Tensor:
    """beta * self + alpha * product; a beta of 0 leaves out NaN and infinities too."""
    (self,) = lowered(self)
    scaled = product if alpha == 1 else product * alpha
    if beta == 0:
        broadcast_shape("addmm", self.shape, product.shape)
        return scaled
    return (self if beta == 1 else self * beta) + scaled


@rounded_once
def addmm(
    self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1
) -> Tensor:
    """Return beta * self + alpha * (mat1 @ mat2).

    >>> from weft.tensor import Tensor
    >>> Tensor([[10]]).addmm(Tensor([[1, 2]]), Tensor([[3], [4]]), alpha=2).tolist()
    [[32]]
    """
    _require_axes("addmm", mat1, 2, "mat1")
    _require_axes("addmm", mat2, 2, "mat2")
    return _added(self, mat1.dot(mat2), beta, alpha)


@rounded_once
def baddbmm(
    self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1
) -> Tensor:
    """Return beta * self + alpha * batch1.bmm(batch2).

    >>> from weft.tensor import Tensor
    >>> Tensor([[[10]]]).baddbmm(Tensor([[[1, 2]]]), Tensor([[[3], [4]]]), beta=0).tolist()
    [[[11]]]
    """
    return _added(self, batch1.bmm(batch2), beta, alpha)


def outer(self: Tensor, vec2: Tensor) -> Tensor:
    """Multiply each element of a vector (n,) by each of another (m,), as (n, m).

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 2]).outer(Tensor([3, 4])).tolist()
    [[3, 4], [6, 8]]
    """
    _require_axes("outer", self, 1, "the left vector")
    _require_axes("outer", vec2, 1, "the right vector")
    return self.unsqueeze(1) * vec2.unsqueeze(0)


def tensordot(self: Tensor, other: Tensor, dims: Any = 2) -> Tensor:
    """Sum products over axes: the last `dims` of self and the first of other, or two lists.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 2], [3, 4]]).tensordot(Tensor([[1, 0], [0, 1]])).item()
    5
    """
    if isinstance(dims, int):
        if not 0 <= dims <= min(self.ndim, other.ndim):
            raise ArgumentError(
                f"tensordot: dims is {dims}",
                facts=[("left", self.shape), ("right", other.shape)],
                rule="dims is a number of axes that both have, or two lists of axes",
            )
        dims = (range(self.ndim - dims, self.ndim), range(dims))
    pair = [each if isinstance(each, (range, list, tuple)) else (each,) for each in dims]
    left = [axis_of("tensordot", axis, self.ndim) for axis in pair[0]]
    right = [axis_of("tensordot", axis, other.ndim) for axis in pair[1]]
    sizes = [self.shape[i] for i in left], [other.shape[i] for i in right]
    if sizes[0] != sizes[1] and all(
        1 in pair for pair in zip(*sizes, strict=True) if pair[0] != pair[1]
    ):
        # An axis of size 1 broadcasts, as in PyTorch: what it meets is summed.
        a, b = self, other
        for i, j in zip(left, right, strict=True):
            a = a.sum(i, keepdim=True) if b.shape[j] == 1 else a
            b = b.sum(j, keepdim=True) if a.shape[i] == 1 else b
        return tensordot(a, b, (left, right))
    if sizes[0] != sizes[1]:
        raise ShapeError(
            f"tensordot: the axes have sizes {sizes[0]} and {sizes[1]}",
            facts=[("left", self.shape), ("right", other.shape)],
            rule="axes that are summed together have equal sizes",
        )
    kept = [i for i in range(self.ndim) if i not in left]
    free = [i for i in range(other.ndim) if i not in right]
    shape = [*[self.shape[i] for i in kept], *[other.shape[i] for i in free]]
    rows = math.prod(known(self.shape[i]) for i in kept)
    inner = math.prod(map(known, sizes[0]))
    columns = math.prod(known(other.shape[i]) for i in free)
    matrix = self.permute(*kept, *left).reshape(rows, inner) if self.ndim else self.reshape(1, 1)
    vectors = other.permute(*right, *free) if other.ndim else other
    return matrix.dot(vectors.reshape(inner, columns)).reshape(shape)


def kron(self: Tensor, other: Tensor) -> Tensor:
    """Replace each element of this tensor by `other` times that element.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 10]).kron(Tensor([1, 2])).tolist()
    [1, 2, 10, 20]
    """
    rank = max(self.ndim, other.ndim)
    left = (1,) * (rank - self.ndim) + self.shape
    right = (1,) * (rank - other.ndim) + other.shape
    rows = self.reshape([size for pair in zip(left, (1,) * rank, strict=True) for size in pair])
    inner = other.reshape([size for pair in zip((1,) * rank, right, strict=True) for size in pair])
    sizes = [known(a) * known(b) for a, b in zip(left, right, strict=True)]
    return (rows * inner).reshape(sizes)


@rounded_once
def cross(self: Tensor, other: Tensor, dim: int = -1) -> Tensor:
    """Return the vector product of vectors of 3 along an axis; the other axes broadcast.

    The axis is the last unless it is named, as in `torch.linalg.cross` and `numpy.cross`.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 0, 0]).cross(Tensor([0, 1, 0])).tolist()
    [0, 0, 1]
    """
    shape = broadcast_shape("cross", self.shape, other.shape)
    axis = axis_of("cross", dim, len(shape))
    a, b = self.expand(shape), other.expand(shape)
    if shape[axis] != 3:
        raise ShapeError(
            f"cross: axis {dim} has size {shape[axis]}",
            facts=[("left", self.shape), ("right", other.shape)],
            rule="the vector product is one of vectors of 3",
        )
    return a.roll(-1, axis) * b.roll(-2, axis) - a.roll(-2, axis) * b.roll(-1, axis)


def trace(self: Tensor) -> Tensor:
    """Add up the diagonal of a matrix (n, m).

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 2], [3, 4]]).trace().item()
    5
    """
    _require_axes("trace", self, 2, "the matrix")
    return self.diagonal().sum()


def matrix_power(self: Tensor, n: int) -> Tensor:
    """Multiply a square matrix (…, m, m) n times by itself; inverses for n < 0, 1 for n = 0.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 1], [0, 1]]).matrix_power(5).tolist()
    [[1, 5], [0, 1]]
    """
    size = require_square("matrix_power", self)
    if n < 0:
        return self.inv().matrix_power(-n)
    if n == 0:
        return identity(self, size).expand(self.shape)._same()
    result: Tensor | None = None
    power = self
    while n:
        if n & 1:
            result = power if result is None else result.dot(power)
        n >>= 1
        power = power.dot(power) if n else power
    assert result is not None
    return result._same()


def _root(total: Tensor, p: float) -> Tensor:
    """The p-th root, whose gradient at 0 is 0."""
    is_zero = total == 0
    inner = is_zero.where(1.0, total)
    root = inner.sqrt() if p == 2 else inner ** (1 / p)
    return is_zero.where(0.0, root)


def length_along(x: Tensor, p: float, axes: tuple[int, ...], keepdim: bool) -> Tensor:
    """The p-norm of float vectors along axes, as torch.linalg.vector_norm defines it."""
    if not axes:
        return (x != 0).cast(x.dtype) if p == 0 else x.abs()
    if p == 0:
        return (x != 0).cast(x.dtype).sum(axes, keepdim)
    if math.isinf(p):
        size = x.abs()
        if p > 0 and any(x.shape[axis] == 0 for axis in axes):
            return size.sum(axes, keepdim)
        return size.max(axes, keepdim) if p > 0 else size.min(axes, keepdim)
    if p == 1:
        return x.abs().sum(axes, keepdim)
    powers = x * x if p == 2 else _power(x.abs(), p)
    return _root(powers.sum(axes, keepdim), p)


def _power(size: Tensor, p: float) -> Tensor:
    """size ** p, with a gradient of 0 at 0; a negative p has an infinite value there."""
    is_zero = size == 0
    return is_zero.where(math.inf if p < 0 else 0.0, is_zero.where(1.0, size) ** p)


def norm(
    self: Tensor,
    p: float | str | None = "fro",
    dim: AxesLike = None,
    keepdim: bool = False,
    dtype: DTypeLike = None,
) -> Tensor:
    """Return (Σ |x| ** p) ** (1 / p) along axes, of all elements where no axis is named.

    "fro" or None is p = 2, inf and -inf are the greatest and the least size, 0 counts what is not
    0. "nuc" is the sum of the singular values of a matrix; a matrix of axes has no other name
    here. The gradient at 0 is 0, as in `torch.linalg.vector_norm`.

    >>> from weft.tensor import Tensor
    >>> Tensor([3.0, 4.0]).norm().item()
    5.0
    """
    x = as_float(self if dtype is None else self.cast(dtype))
    if x.dtype.is_complex and p != "nuc":
        return norm(x.abs(), p, dim, keepdim)
    target = dtype_of(dtype, x.dtype)
    wide = widened(x)
    if p == "nuc":
        axes = axes_of("norm", dim, x.ndim)
        if len(axes) != 2:
            raise ArgumentError("norm: 'nuc' needs two axes", facts=[("axes", axes)])
        rest = [axis for axis in range(x.ndim) if axis not in axes]
        found = nuclear_norm(wide.permute(*rest, *axes))
        shape = [1 if axis in axes else size for axis, size in enumerate(x.shape)]
        return (found.reshape(shape) if keepdim else found).cast(target)
    if isinstance(p, str) and p != "fro":
        raise ArgumentError(
            f"norm: unknown p {p!r}", rule='p is a number, "fro" or "nuc"; None is "fro"'
        )
    power = 2.0 if p is None or isinstance(p, str) else float(p)
    return length_along(wide, power, axes_of("norm", dim, x.ndim), keepdim).cast(target)


def matrix_norm(self: Tensor, ord: float | str = "fro", keepdim: bool = False) -> Tensor:
    """Return a norm of matrices (…, m, n): "fro", "nuc", 2, -2, 1, -1, inf or -inf.

    2 and -2 are the greatest and the least singular value, 1 and -1 the greatest and the least sum
    of a column, inf and -inf of a row. The name in PyTorch is `torch.linalg.matrix_norm`.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1.0, -2.0], [3.0, 4.0]]).matrix_norm(1).item()
    6.0
    """
    require_matrix("matrix_norm", self)
    x = widened(as_float(self))
    if x.dtype.is_complex and ord not in ("nuc", 2, -2):
        return matrix_norm(x.abs(), ord, keepdim)
    if ord == "fro":
        found = length_along(x, 2.0, (x.ndim - 2, x.ndim - 1), False)
    elif ord == "nuc":
        found = nuclear_norm(x)
    elif ord in (2, -2):
        found = spectral_norm(x, ord == 2)
    elif ord in (1, -1, math.inf, -math.inf):
        sums = x.abs().sum(-2 if ord in (1, -1) else -1)
        found = sums.max(-1) if ord in (1, math.inf) else sums.min(-1)
    else:
        raise ArgumentError(
            f"matrix_norm: unknown ord {ord!r}",
            rule='ord is "fro", "nuc", 2, -2, 1, -1, inf or -inf',
        )
    return (found[..., None, None] if keepdim else found).cast(as_float(self).dtype)


@rounded_once
def cdist(self: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str | None = None) -> Tensor:
    """Return the p-norms of the differences of all rows: (…, n, d) and (…, m, d) give (…, n, m).

    Differences are formed, not expanded into products, so near points keep their distance.

    >>> from weft.tensor import Tensor
    >>> Tensor([[0.0, 0.0]]).cdist(Tensor([[3.0, 4.0], [0.0, 1.0]])).tolist()
    [[5.0, 1.0]]
    """
    require_matrix("cdist", self)
    require_matrix("cdist", x2)
    if self.shape[-1] != x2.shape[-1]:
        raise ShapeError(
            f"cdist: rows have {self.shape[-1]} and {x2.shape[-1]} elements",
            facts=[("left", self.shape), ("right", x2.shape)],
            rule="distances are between rows of one length",
        )
    difference = widened(as_float(self)).unsqueeze(-2) - widened(as_float(x2)).unsqueeze(-3)
    found = length_along(difference, float(p), (difference.ndim - 1,), False)
    return found.cast(promote(as_float(self).dtype, as_float(x2).dtype))


def vecdot(self: Tensor, x2: Tensor, dim: int = -1) -> Tensor:
    """Sum the products of the conjugate of a tensor with another along an axis; others broadcast.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 2], [3, 4]]).vecdot(Tensor([1, 1])).tolist()
    [3, 7]
    """
    shape = broadcast_shape("vecdot", self.shape, x2.shape)
    axis = axis_of("vecdot", dim, len(shape))
    return contract(self.conj().expand(shape), x2.expand(shape), (axis,), None)
