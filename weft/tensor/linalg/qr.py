"""The QR decomposition by Householder reflections, one column at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from weft.support.errors import ArgumentError
from weft.tensor.autodiff.tangent import Tensors, with_tangent
from weft.tensor.checks import known
from weft.tensor.linalg.checks import (
    adjoint,
    batched,
    identity,
    product,
    require_matrix,
    scale_of,
    transposed,
)
from weft.tensor.linalg.repeat import State, repeated
from weft.tensor.linalg.triangular import lower_inverse
from weft.tensor.methods.unary import as_float

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


class QR(NamedTuple):
    """A matrix with orthonormal columns and an upper triangular one."""

    Q: Tensor
    R: Tensor


def _reflect(work: Tensor, active: Tensor) -> State:
    """Reflect the first column to its first active row; then it becomes the last column.

    `work` is (batch, m, n + m): the matrix, and beside it what collects the reflections. `active`
    is (m, 1), 1 for the rows that are not done.
    """
    rows = known(work.shape[1])
    columns = known(work.shape[2]) - rows
    below = active.pad((0, 0, 1, 0))[:rows]  # active, without its first row
    first = active - below
    x = work[:, :, :1]
    head = (x * first).sum(1, keepdim=True)  # (batch, 1, 1)
    tail = (x * x * below).sum(1, keepdim=True)
    length = (head * head + tail).sqrt()
    is_needed = tail != 0
    mirror = x * active + first * (head < 0).where(-length, length)
    scale = is_needed.where(length * (length + head.abs()), 1.0)
    weights = (mirror * work).sum(1, keepdim=True) / scale  # (batch, 1, n + m)
    done = is_needed.where(work - mirror * weights, work)
    rotated = done[:, :, 1:columns].cat(done[:, :, :1], done[:, :, columns:], dim=2)
    return rotated, below


def _reflect_complex(work: Tensor, active: Tensor) -> State:
    """As `_reflect`, to a real number: the reflection is I - τ v vᴴ with a complex τ."""
    rows = known(work.shape[1])
    columns = known(work.shape[2]) - rows
    below = active.pad((0, 0, 1, 0))[:rows]
    first = active - below
    x = work[:, :, :1]
    head = (x * first).sum(1, keepdim=True)
    tail = (x * x.conj() * below).sum(1, keepdim=True).real
    length = (head.real.square() + head.imag.square() + tail).sqrt()
    is_needed = (tail != 0) | (head.imag != 0)
    goal = (head.real < 0).where(length, -length)
    mirror = first + below * x / is_needed.where(head - goal, 1.0)
    scale = (goal - head) / is_needed.where(goal, 1.0)
    weights = (mirror.conj() * work).sum(1, keepdim=True) * scale.conj()
    done = is_needed.where(work - mirror * weights, work)
    rotated = done[:, :, 1:columns].cat(done[:, :, :1], done[:, :, columns:], dim=2)
    return rotated, below


def householder(x: Tensor) -> QR:
    """The complete decomposition of (batch, m, n), as constants: Q is m by m."""
    count, rows, columns = map(known, x.shape)
    scale = scale_of(x)
    fixed = x.detach() / scale
    one = identity(x, rows)
    work = fixed.cat(one.expand(count, rows, rows), dim=2)
    steps = min(rows, columns)
    active = one.ones_like()[:, :1]
    reflect = _reflect_complex if x.dtype.is_complex else _reflect
    work, _ = repeated(reflect, steps, work, active)
    upper = work[:, :, :columns].roll(steps, 2).triu() * scale
    return QR(adjoint(work[:, :, columns:]), upper)


def _tangent(factors: Tensors, inputs: Tensors, changes: Tensors) -> Tensors:
    """C = upper(B + Bᴴ), B = Qᴴ dA R⁻¹: dQ = dA R⁻¹ - Q C, dR = C R; upper halves the diagonal

    Those are the first k columns of dA and R. Further ones are dR = dQᴴ A + Qᴴ dA.
    """
    (q, r), (at,), (change,) = factors, inputs, changes
    least = known(q.shape[2])
    left = r[:, :, :least]
    inverse = transposed(lower_inverse(transposed(left)))
    inverse = inverse.isfinite().where(inverse, 0.0)  # where columns depend on each other
    moved = product(change[:, :, :least], inverse)
    inner = product(adjoint(q), moved)
    both = inner + adjoint(inner)
    middle = (both.triu() + both.triu(1)) * 0.5
    of_q, of_r = moved - product(q, middle), product(middle, left)
    if least == known(r.shape[2]):
        return of_q, of_r
    rest = product(adjoint(of_q), at[:, :, least:])
    return of_q, of_r.cat(rest + product(adjoint(q), change[:, :, least:]), dim=2)


def qr(self: Tensor, mode: str = "reduced") -> QR:
    """Return Q with orthonormal columns and upper triangular R, with Q @ R = self.

    For (…, m, n) and k = min(m, n), Q is (…, m, k) and R is (…, k, n); in mode "complete" they
    are (…, m, m) and (…, m, n), and in mode "r" Q is empty. Signs are those of LAPACK, so they
    are those of `torch.linalg.qr` and `numpy.linalg.qr`. Gradients need linearly independent
    first k columns; in mode "complete" with m > n there are none.

    >>> from weft.tensor import Tensor
    >>> q, r = Tensor([[3.0, 1.0], [4.0, 2.0]]).qr()
    >>> (q @ r).round().tolist()
    [[3.0, 1.0], [4.0, 2.0]]
    """
    rows, columns = require_matrix("qr", self)
    if mode not in ("reduced", "complete", "r"):
        raise ArgumentError(
            f"qr: unknown mode {mode!r}", rule='mode is "reduced", "complete" or "r"'
        )
    x = batched(self, is_complex_too=True)
    q, r = householder(x)
    least = min(rows, columns)
    if mode != "complete" or rows <= columns:
        q, r = q[:, :, :least], r[:, :least]
        q, r = with_tangent((q, r), (x,), _tangent) if least else (q, r)
    batch, dtype = self.shape[:-2], as_float(self).dtype
    q = q[:, :, :0].reshape((0,)) if mode == "r" else q.reshape((*batch, *q.shape[1:]))
    return QR(q.cast(dtype), r.reshape((*batch, *r.shape[1:])).cast(dtype))
