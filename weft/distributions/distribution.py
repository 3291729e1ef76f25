"""What all distributions share: shapes, samples without gradient, and what is derived."""

from __future__ import annotations

from typing import Any, ClassVar

from weft.ir.dtypes import dtypes
from weft.support.errors import ArgumentError, NotSupported, ShapeError
from weft.tensor.tensor import Tensor

Shape = tuple[int, ...]


class Distribution:
    """The base of distributions: `rsample` and `log_prob` are what a class defines."""

    has_rsample: ClassVar[bool] = False

    def __init__(
        self,
        batch_shape: Any = (),
        event_shape: Any = (),
        validate_args: bool | None = None,
    ) -> None:
        self.batch_shape: Shape = tuple(batch_shape)
        self.event_shape: Shape = tuple(event_shape)
        self._is_checked = bool(validate_args)

    def _shape(self, sample_shape: Any) -> Shape:
        given = (sample_shape,) if isinstance(sample_shape, int) else tuple(sample_shape)
        return (*given, *self.batch_shape, *self.event_shape)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draw values, without a gradient."""
        return self.rsample(sample_shape).detach()

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draw values that the gradient of the parameters goes through."""
        raise NotSupported(
            f"{type(self).__name__}: rsample has no gradient",
            rule="a draw is differentiated where it is a smooth function of noise",
            fix="write sample(), and use log_prob for the gradient",
        )

    def sample_n(self, n: int) -> Tensor:
        """Draw n values."""
        return self.sample((n,))

    def log_prob(self, value: Any) -> Tensor:
        """The logarithm of the density, or of the probability, of values."""
        raise NotSupported(f"{type(self).__name__}: there is no log_prob")

    def entropy(self) -> Tensor:
        """The entropy of each distribution of the batch, in nats."""
        raise NotSupported(f"{type(self).__name__}: there is no entropy")

    def cdf(self, value: Any) -> Tensor:
        """The probability of at most a value."""
        raise NotSupported(f"{type(self).__name__}: there is no cdf")

    def icdf(self, value: Any) -> Tensor:
        """The value that is not passed with a probability."""
        raise NotSupported(f"{type(self).__name__}: there is no icdf")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values, along a new first axis."""
        raise NotSupported(f"{type(self).__name__}: the values cannot be listed")

    def expand(self, batch_shape: Any, _instance: Any = None) -> Distribution:
        """The same distribution in a larger batch."""
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        shape = tuple(batch_shape)
        for name, value in self.__dict__.items():
            if isinstance(value, Tensor):
                tail = value.shape[len(self.batch_shape) :]
                made.__dict__[name] = value.expand((*shape, *tail))
        made.batch_shape = shape
        return made

    @property
    def mean(self) -> Tensor:
        """The mean of each distribution."""
        raise NotSupported(f"{type(self).__name__}: there is no mean")

    @property
    def mode(self) -> Tensor:
        """The likeliest value."""
        raise NotSupported(f"{type(self).__name__}: there is no mode")

    @property
    def variance(self) -> Tensor:
        """The variance of each distribution."""
        raise NotSupported(f"{type(self).__name__}: there is no variance")

    @property
    def stddev(self) -> Tensor:
        """The square root of the variance."""
        return self.variance.sqrt()

    def perplexity(self) -> Tensor:
        """e to the entropy."""
        return self.entropy().exp()

    def _value(self, value: Any) -> Tensor:
        """A value of the right shape, as a tensor."""
        made = value if isinstance(value, Tensor) else Tensor(value)
        tail = made.shape[made.ndim - len(self.event_shape) :]
        if self.event_shape and tuple(tail) != self.event_shape:
            raise ShapeError(
                f"{type(self).__name__}: a value of shape {made.shape}",
                rule=f"it ends in the shape of an event, {self.event_shape}",
            )
        return made

    def __repr__(self) -> str:
        shown = [
            f"{name}: {tuple(value.shape)}"
            for name, value in self.__dict__.items()
            if isinstance(value, Tensor) and not name.startswith("_")
        ]
        return f"{type(self).__name__}({', '.join(shown)})"


def together(*values: Any) -> list[Tensor]:
    """Parameters as tensors of one float dtype and one shape."""
    tensors = [each for each in values if isinstance(each, Tensor)]
    device = tensors[0].device if tensors else None
    dtype = next((each.dtype for each in tensors if each.is_floating_point()), None)
    made = [
        each if isinstance(each, Tensor) else Tensor(each, dtype=dtype, device=device)
        for each in values
    ]
    made = [each if each.is_floating_point() else each.cast(dtypes.default_float) for each in made]
    total = made[0]
    for each in made[1:]:
        total = total + each
    return [each.expand(total.shape) for each in made]


def require_above_zero(name: str, checked: bool | None, **values: Any) -> None:
    """Raise if a number is not above 0; of tensors only where they are to be checked."""
    for key, value in values.items():
        if isinstance(value, Tensor):
            if not checked or bool((value > 0).all().item()):
                continue
        elif not isinstance(value, (int, float)) or value > 0:
            continue
        raise ArgumentError(f"{name}: {key} is not above 0", rule=f"{key} is above 0")


class _FamilyType(type):
    """isinstance asks whether a class is one of the exponential family."""

    def __instancecheck__(cls, instance: Any) -> bool:
        names = {each.__name__ for each in type(instance).__mro__}
        return bool(names & _FAMILY) or cls in type(instance).__mro__


_FAMILY = frozenset(
    [
        "Bernoulli", "Beta", "Binomial", "Categorical", "ContinuousBernoulli", "Dirichlet",
        "Exponential", "Gamma", "Geometric", "MultivariateNormal", "Normal", "Poisson",
        "VonMises", "Wishart",
    ]
)  # fmt: skip


class ExponentialFamily(Distribution, metaclass=_FamilyType):
    """A base for distributions whose density is e to the power of products of two functions."""
