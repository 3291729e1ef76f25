"""Orthogonal polynomials of a degree that may differ for each element, by their recurrences."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from weft.tensor.methods.examples import with_example
from weft.tensor.methods.unary import as_float
from weft.tensor.small_floats import rounded_once

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

# The next polynomial, of x, its degree, and the two before.
Next = Callable[["Tensor", int, "Tensor", "Tensor"], "Tensor"]


def _recurrence(x: Any, n: Any, first: Callable[[Tensor], Tensor], step: Next) -> Tensor:
    """p₀ = 1, p₁ = first(x), and so on; 0 for degrees below 0."""
    like = x if not isinstance(x, (int, float)) else n
    x = as_float(like.__class__(float(x), device=like.device) if like is not x else x)
    if isinstance(n, (int, float)):
        before, now = x.ones_like(), first(x)
        if n < 1:
            return x.zeros_like() if n < 0 else before  # type: ignore[no-any-return]
        for k in range(1, int(n)):
            before, now = now, step(x, k, now, before)
        return now
    degree = n.trunc() if n.is_floating_point() else n
    shape = (x + degree).shape
    x = x.expand(shape)
    most = int(degree.max().item()) if degree.numel() else 0
    before, now = x.ones_like(), first(x)
    found = (degree < 0).where(0.0, before)
    for k in range(1, most + 1):
        found = (degree == k).where(now, found)
        before, now = now, step(x, k, now, before)
    return found.cast(as_float(n).dtype if like is n else x.dtype)  # type: ignore[no-any-return]


def _twice(x: Tensor, k: int, now: Tensor, before: Tensor) -> Tensor:
    return 2 * x * now - before


def _chebyshev(first: Callable[[Tensor], Tensor], shift: bool) -> Callable[..., Tensor]:
    def function(self: Any, n: Any) -> Tensor:
        x = self * 2 - 1 if shift else self
        return _recurrence(x, n, first, _twice)

    return function


def _of_kinds(shift: bool) -> list[Callable[..., Tensor]]:
    starts: list[Callable[[Any], Any]] = [
        lambda x: x,
        lambda x: 2 * x,
        lambda x: 2 * x - 1,
        lambda x: 2 * x + 1,
    ]
    return [_chebyshev(each, shift) for each in starts]


(
    chebyshev_polynomial_t,
    chebyshev_polynomial_u,
    chebyshev_polynomial_v,
    chebyshev_polynomial_w,
) = _of_kinds(False)
(
    shifted_chebyshev_polynomial_t,
    shifted_chebyshev_polynomial_u,
    shifted_chebyshev_polynomial_v,
    shifted_chebyshev_polynomial_w,
) = _of_kinds(True)


def _documented() -> None:
    for name, function in list(globals().items()):
        if "chebyshev_polynomial_" in name:
            function.__name__ = function.__qualname__ = name
            moved = ", moved to 0 … 1" if name.startswith("shifted") else ""
            summary = f"Return Chebyshev's polynomial of degree n{moved}. PyTorch: special.{name}."
            shown = {"t": "[1.0]", "u": "[2.0]", "v": "[1.0]", "w": "[3.0]"}[name[-1]]
            function.__doc__ = with_example(summary, f"Tensor([1.0]).{name}(1).tolist()", shown)


_documented()


@rounded_once
def hermite_polynomial_h(self: Any, n: Any) -> Tensor:
    """Return the physicist's Hermite polynomial of degree n. PyTorch: special.

    >>> from weft.tensor import Tensor
    >>> Tensor([2.0]).hermite_polynomial_h(2).tolist()
    [14.0]
    """
    return _recurrence(self, n, lambda x: 2 * x, lambda x, k, p, q: 2 * x * p - 2 * k * q)


@rounded_once
def hermite_polynomial_he(self: Any, n: Any) -> Tensor:
    """Return the probabilist's Hermite polynomial of degree n. PyTorch: special.

    >>> from weft.tensor import Tensor
    >>> Tensor([2.0]).hermite_polynomial_he(2).tolist()
    [3.0]
    """
    return _recurrence(self, n, lambda x: x, lambda x, k, p, q: x * p - k * q)


@rounded_once
def laguerre_polynomial_l(self: Any, n: Any) -> Tensor:
    """Return Laguerre's polynomial of degree n. PyTorch: special.laguerre_polynomial_l.

    >>> from weft.tensor import Tensor
    >>> Tensor([2.0]).laguerre_polynomial_l(1).tolist()
    [-1.0]
    """
    return _recurrence(
        self, n, lambda x: 1 - x, lambda x, k, p, q: ((2 * k + 1 - x) * p - k * q) / (k + 1)
    )


@rounded_once
def legendre_polynomial_p(self: Any, n: Any) -> Tensor:
    """Return Legendre's polynomial of degree n. PyTorch: special.legendre_polynomial_p.

    >>> from weft.tensor import Tensor
    >>> Tensor([2.0]).legendre_polynomial_p(2).tolist()
    [5.5]
    """
    return _recurrence(
        self, n, lambda x: x, lambda x, k, p, q: ((2 * k + 1) * x * p - k * q) / (k + 1)
    )
