"""Averages over time: of parameters (EMA), and of gradients (Accumulation)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from weft.nn.optim.method import require_fraction
from weft.nn.optim.optimizer import Optimizer
from weft.support.errors import ArgumentError
from weft.tensor.tensor import Tensor


class EMA:
    """An exponential moving average of parameters: a ← decay · a + (1 - decay) · w.

    >>> weight = Tensor([1.0])
    >>> average = EMA([weight], decay=0.5)
    >>> _ = weight.assign([3.0])
    >>> average.update()
    >>> with average.applied():
    ...     weight.tolist()
    [2.0]
    >>> weight.tolist()
    [3.0]
    """

    def __init__(self, params: Iterable[Tensor], decay: float = 0.999) -> None:
        require_fraction(decay=decay)
        self.params, self.decay = list(params), decay
        self.averages = [each.detach().clone() for each in self.params]
        self._realize()

    def _realize(self) -> None:
        if self.averages:
            self.averages[0].realize(*self.averages[1:])

    def update(self) -> None:
        """Take the parameters of now into the averages; call it after each step."""
        for average, p in zip(self.averages, self.params, strict=True):
            average.assign(self.decay * average + (1 - self.decay) * p.detach())
        self._realize()

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Give the parameters their averages in a scope, for example to evaluate a model."""
        before = [each.detach().clone() for each in self.params]
        for p, average in zip(self.params, self.averages, strict=True):
            p.assign(average)
        try:
            yield
        finally:
            for p, value in zip(self.params, before, strict=True):
                p.assign(value)


class Accumulation:
    """Steps an optimizer once for every so many backward passes, by the mean of their gradients.

    `step` counts in Python, so it stays outside of a jitted function.

    >>> weight = Tensor([1.0])
    >>> accumulation = Accumulation(Optimizer([weight], lr=1.0), every=2)
    >>> for scale in (1.0, 3.0):
    ...     _ = (weight * scale).sum().backward()
    ...     accumulation.step()
    False
    True
    >>> weight.tolist()
    [-1.0]
    """

    def __init__(self, optimizer: Optimizer, every: int) -> None:
        if every < 1:
            raise ArgumentError(f"Accumulation: every is {every}", rule="every is 1 or more")
        self.optimizer, self.every, self.count = optimizer, every, 0

    def step(self) -> bool:
        """Count a backward pass; True if the optimizer made a step, and gradients are gone."""
        self.count += 1
        held = [p for p in self.optimizer.params if p.grad is not None]
        if self.count % self.every:
            sums = [p.grad for p in held if p.grad is not None]
            if sums:
                sums[0].realize(*sums[1:])
            return False
        for p in held:
            assert p.grad is not None
            p.grad = p.grad / self.every
        self.optimizer.step()
        self.optimizer.zero_grad()
        return True
