"""Sets of numbers that parameters and values are in, with the names of torch.distributions.

`constraint.check(x)` says for each element, or each event, whether it is in the set. The
transforms of `transforms.py` lead from all numbers to a set: `biject_to(positive)`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.tensor.tensor import Tensor


class Constraint:
    """A set, with the number of axes that one of its elements has."""

    is_discrete = False

    def __init__(
        self, name: str, check: Callable[[Tensor], Tensor], event_dim: int = 0, **limits: Any
    ) -> None:
        self.name, self.event_dim, self._check = name, event_dim, check
        self.__dict__.update(limits)

    def check(self, value: Tensor) -> Tensor:
        """Whether values are in the set, a bool for each event."""
        return self._check(value)

    def __repr__(self) -> str:
        return self.name


def _all(x: Tensor, axes: int) -> Tensor:
    return x.all(tuple(range(-axes, 0)))


def _is_lower(x: Tensor) -> Tensor:
    return _all(x == x.tril(), 2)


def _has_lengths(x: Tensor) -> Tensor:
    lengths = x.square().sum(-1).sqrt()
    return ((lengths - 1).abs() < 1e-4).all(-1)


def _is_positive_definite(x: Tensor) -> Tensor:
    is_symmetric = _all((x - x.mT).abs() < 1e-6, 2)
    return is_symmetric & (x.eigh().eigenvalues > 0).all(-1)


def greater_than(lower_bound: Any) -> Constraint:
    """Numbers above a bound."""
    return Constraint("greater_than", lambda x: x > lower_bound, lower_bound=lower_bound)


def greater_than_eq(lower_bound: Any) -> Constraint:
    """Numbers from a bound on."""
    return Constraint("greater_than", lambda x: x >= lower_bound, lower_bound=lower_bound)


def less_than(upper_bound: Any) -> Constraint:
    """Numbers below a bound."""
    return Constraint("less_than", lambda x: x < upper_bound, upper_bound=upper_bound)


def interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """Numbers from one bound to another."""

    def check(x: Tensor) -> Tensor:
        return (x >= lower_bound) & (x <= upper_bound)  # type: ignore[no-any-return]

    limits = {"lower_bound": lower_bound, "upper_bound": upper_bound}
    return Constraint("interval", check, **limits)


half_open_interval = interval

real = Constraint("real", lambda x: (x == x) & (x.abs() < float("inf")))
real_vector = Constraint("real_vector", lambda x: (x == x).all(-1), 1)
positive = greater_than(0.0)
nonnegative = greater_than_eq(0.0)
unit_interval = interval(0.0, 1.0)
boolean = Constraint("boolean", lambda x: (x == 0) | (x == 1))
nonnegative_integer = Constraint("nonnegative_integer", lambda x: (x >= 0) & (x % 1 == 0))
positive_integer = Constraint("positive_integer", lambda x: (x >= 1) & (x % 1 == 0))
simplex = Constraint("simplex", lambda x: (x >= 0).all(-1) & ((x.sum(-1) - 1).abs() < 1e-6), 1)
lower_triangular = Constraint("lower_triangular", _is_lower, 2)
lower_cholesky = Constraint(
    "lower_cholesky",
    lambda x: _is_lower(x) & (x.diagonal(dim1=-2, dim2=-1) > 0).all(-1),
    2,
)
corr_cholesky = Constraint("corr_cholesky", lambda x: lower_cholesky.check(x) & _has_lengths(x), 2)
positive_definite = Constraint("positive_definite", _is_positive_definite, 2)
