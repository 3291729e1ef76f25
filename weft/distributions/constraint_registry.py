"""Transforms from all numbers to a constraint; those of `biject_to` have an inverse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.distributions.constraints import Constraint
from weft.distributions.transform import (
    AffineTransform,
    ComposeTransform,
    ExpTransform,
    SigmoidTransform,
    Transform,
    identity_transform,
)
from weft.distributions.vector_transforms import (
    CorrCholeskyTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    SoftmaxTransform,
    StickBreakingTransform,
)
from weft.support.errors import NotSupported
from weft.tensor.tensor import Tensor

Factory = Callable[[Any], Transform]


def _above(constraint: Any) -> Transform:
    bound = constraint.lower_bound
    if not isinstance(bound, Tensor) and bound == 0:
        return ExpTransform()
    return ComposeTransform([ExpTransform(), AffineTransform(bound, 1)])


def _below(constraint: Any) -> Transform:
    return ComposeTransform([ExpTransform(), AffineTransform(constraint.upper_bound, -1)])


def _between(constraint: Any) -> Transform:
    low, high = constraint.lower_bound, constraint.upper_bound
    if not isinstance(low, Tensor) and not isinstance(high, Tensor) and (low, high) == (0, 1):
        return SigmoidTransform()
    return ComposeTransform([SigmoidTransform(), AffineTransform(low, high - low)])


class Registry:
    """A table of transforms by the name of a constraint; a call makes one."""

    def __init__(self, name: str, **factories: Factory) -> None:
        self._name, self._table = name, dict(factories)

    def register(self, constraint: Constraint, factory: Factory | None = None) -> Any:
        """Enter a function of a constraint; as a decorator where none is given."""
        if factory is None:
            return lambda function: self.register(constraint, function)
        self._table[constraint.name] = factory
        return factory

    def __call__(self, constraint: Constraint) -> Transform:
        """The transform from all numbers to a constraint."""
        factory = self._table.get(constraint.name)
        if factory is None:
            raise NotSupported(
                f"{self._name}: there is no transform to {constraint}",
                rule="there are those to " + ", ".join(self._table),
                fix=f"enter one with {self._name}.register",
            )
        return factory(constraint)


_COMMON: dict[str, Factory] = {
    "real": lambda _: identity_transform,
    "real_vector": lambda _: identity_transform,
    "greater_than": _above,
    "less_than": _below,
    "interval": _between,
    "lower_cholesky": lambda _: LowerCholeskyTransform(),
    "positive_definite": lambda _: PositiveDefiniteTransform(),
    "corr_cholesky": lambda _: CorrCholeskyTransform(),
}
biject_to = Registry("biject_to", simplex=lambda _: StickBreakingTransform(), **_COMMON)
transform_to = Registry("transform_to", simplex=lambda _: SoftmaxTransform(), **_COMMON)
