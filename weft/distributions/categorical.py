"""One of several classes, as a number or as a row with a single one."""

from __future__ import annotations

from typing import Any

from weft.distributions.distribution import Distribution, Shape
from weft.ir.dtypes import dtypes
from weft.support.errors import ArgumentError, ShapeError
from weft.tensor.checks import known
from weft.tensor.tensor import Tensor


def one_of(name: str, probs: Any, logits: Any) -> None:
    """Raise unless exactly one of the two is given."""
    if (probs is None) == (logits is None):
        given = "neither" if probs is None else "both"
        raise ArgumentError(
            f"{name}: {given} of probs and logits", rule="exactly one of probs and logits is given"
        )


class Categorical(Distribution):
    """A class from 0 on, with probabilities along the last axis of `probs` or `logits`.

    >>> Categorical(logits=Tensor([0.0, -1e9])).sample().item()
    0
    >>> round(Categorical(probs=Tensor([1.0, 3.0])).log_prob(Tensor(1)).exp().item(), 2)
    0.75
    """

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        one_of(type(self).__name__, probs, logits)
        given = probs if logits is None else logits
        given = given if isinstance(given, Tensor) else Tensor(given)
        if given.ndim < 1:
            raise ShapeError(
                f"{type(self).__name__}: one number", rule="the classes are along the last axis"
            )
        if logits is None:
            self.probs = given / given.sum(-1, keepdim=True)
            tiny = 2.0**-23 if given.dtype.bits <= 32 else 2.0**-52
            self.logits = self.probs.clamp(tiny, 1 - tiny).log()
        else:
            self.logits = given.log_softmax(-1)
            self.probs = self.logits.exp()
        self._num_events = int(given.shape[-1])
        if validate_args and not bool((self.probs.isfinite() & (self.probs >= 0)).all().item()):
            raise ArgumentError(
                f"{type(self).__name__}: the probabilities are not from 0 to 1",
                rule="probs are finite and from 0 on, and logits have no NaN",
            )
        super().__init__(given.shape[:-1], (), validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Distribution:
        shape = (*batch_shape, self._num_events)
        return type(self)(logits=self.logits.expand(*shape))

    def _drawn(self, sample_shape: Any) -> Tensor:
        given = (sample_shape,) if isinstance(sample_shape, int) else tuple(sample_shape)
        count = 1
        for size in given:
            count *= size
        rows = self.probs.detach().reshape(-1, self._num_events)
        drawn = rows.multinomial(count, replacement=True)  # (batch, count)
        return drawn.transpose(0, 1).reshape((*given, *self.batch_shape))

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self._drawn(sample_shape)

    def log_prob(self, value: Any) -> Tensor:
        given = value if isinstance(value, Tensor) else Tensor(value)
        index = given.cast(dtypes.int64).unsqueeze(-1)
        shape: Shape = tuple(
            max(known(a), known(b))
            for a, b in zip(
                (1,) * (self.logits.ndim - index.ndim) + tuple(index.shape),
                (1,) * (index.ndim - self.logits.ndim) + tuple(self.logits.shape),
                strict=True,
            )
        )
        logits = self.logits.expand((*shape[:-1], self._num_events))
        return logits.gather(-1, index.expand(*shape[:-1], 1)).squeeze(-1)

    def entropy(self) -> Tensor:
        least = -3.4028234663852886e38
        return -(self.logits.clamp(min_=least) * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = Tensor.arange(self._num_events, dtype=dtypes.int64, device=self.logits.device)
        values = values.reshape(-1, *(1,) * len(self.batch_shape))
        return values.expand(-1, *self.batch_shape) if expand else values

    @property
    def mean(self) -> Tensor:
        return self.probs[..., 0].full_like(float("nan"))

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(-1)

    @property
    def variance(self) -> Tensor:
        return self.mean

    @property
    def param_shape(self) -> Shape:
        """The shape of the probabilities."""
        return tuple(map(known, self.logits.shape))


class OneHotCategorical(Categorical):
    """A class as a row of zeros with a single one."""

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(probs, logits, validate_args)
        self.event_shape = (self._num_events,)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self._drawn(sample_shape).one_hot(self._num_events).cast(self.probs.dtype)

    def log_prob(self, value: Any) -> Tensor:
        return super().log_prob(self._value(value).argmax(-1))

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(-1).one_hot(self._num_events).cast(self.probs.dtype)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)
