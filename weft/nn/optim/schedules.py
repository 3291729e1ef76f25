"""Learning rates that change with time.

A schedule is a function from the number of a step, a tensor, to the learning rate, a tensor; so it
can run inside a jitted step. A `Scheduler` counts steps and writes the rate of an optimizer. The
classes with PyTorch's names start from the rate that the optimizer has when they are made.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from weft.ir.dtypes import dtypes
from weft.nn.initial import in_memory
from weft.nn.optim.optimizer import Optimizer
from weft.support.errors import ArgumentError
from weft.tensor.tensor import Tensor

Schedule = Callable[[Tensor], Tensor]


def constant(lr: float) -> Schedule:
    """The same rate at all times."""
    return lambda step: step.full_like(lr)


def step_decay(lr: float, step_size: int, gamma: float = 0.1) -> Schedule:
    """Multiply by `gamma` after every `step_size` steps."""
    return lambda step: lr * gamma ** (step / step_size).floor()


def multi_step(lr: float, milestones: Sequence[int], gamma: float = 0.1) -> Schedule:
    """Multiply by `gamma` at each milestone."""

    def schedule(step: Tensor) -> Tensor:
        passed = [(step >= each).float() for each in milestones]
        return lr * gamma ** sum(passed[1:], passed[0]) if passed else step.full_like(lr)

    return schedule


def exponential(lr: float, gamma: float) -> Schedule:
    """Multiply by `gamma` after every step."""
    return lambda step: lr * gamma**step


def linear(start: float, end: float, steps: int) -> Schedule:
    """From one rate to another in a straight line, then stay."""
    return lambda step: start + (end - start) * (step / steps).minimum(1.0)


def cosine(lr: float, steps: int, minimum: float = 0.0) -> Schedule:
    """From `lr` to `minimum` along half a cosine, then stay."""
    return lambda step: _half_cosine(lr, minimum, (step / steps).minimum(1.0))


def warmup_cosine(
    lr: float, warmup_steps: int, total_steps: int, minimum: float = 0.0
) -> Schedule:
    """Rise from 0 to `lr` in a straight line, then fall to `minimum` along half a cosine.

    >>> rate = warmup_cosine(1.0, 10, 110)
    >>> [round(rate(Tensor(float(step))).item(), 3) for step in (0, 5, 10, 60, 110)]
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """
    if not 0 <= warmup_steps < total_steps:
        raise ArgumentError(
            f"warmup_cosine: {warmup_steps} of {total_steps} steps are warmup",
            rule="warmup_steps is from 0 to below total_steps",
        )
    fall = cosine(lr, total_steps - warmup_steps, minimum)
    rise = lr / max(warmup_steps, 1)
    return lambda step: (step < warmup_steps).where(
        step * rise, fall((step - warmup_steps).maximum(0.0))
    )


def one_cycle(
    max_lr: float,
    total_steps: int,
    pct_start: float = 0.3,
    div_factor: float = 25.0,
    final_div_factor: float = 1e4,
) -> Schedule:
    """Rise from max_lr / div_factor to `max_lr`, then fall far below the start, along cosines."""
    first = max_lr / div_factor
    last = first / final_div_factor
    peak = pct_start * total_steps - 1
    rest = total_steps - 1 - peak
    if peak <= 0 or rest <= 0:
        raise ArgumentError(
            f"one_cycle: {total_steps} steps are too few for both phases",
            rule="both pct_start and 1 - pct_start of the steps are more than one step",
        )

    def schedule(step: Tensor) -> Tensor:
        up = _half_cosine(first, max_lr, (step / peak).minimum(1.0))
        down = _half_cosine(max_lr, last, ((step - peak) / rest).clamp(0.0, 1.0))
        return (step <= peak).where(up, down)

    return schedule


def _half_cosine(start: float, end: float, part: Tensor) -> Tensor:
    return end + (start - end) * 0.5 * (1 + (part * math.pi).cos())


class Scheduler:
    """Counts steps, and writes the rate of a schedule to an optimizer.

    The rate of step 0 is written at once; call `step` after each `optimizer.step()`.

    >>> from weft.nn.optim import SGD
    >>> optimizer = SGD([Tensor([1.0])], lr=0.1)
    >>> scheduler = Scheduler(optimizer, linear(1.0, 0.0, 4))
    >>> scheduler.step()
    >>> optimizer.lr.item()
    0.75
    """

    def __init__(self, optimizer: Optimizer, schedule: Schedule) -> None:
        self.optimizer, self.schedule = optimizer, schedule
        self.count = in_memory(0.0, (), dtypes.float32, optimizer.lr.device)
        optimizer.lr.assign(schedule(self.count))

    def step(self) -> None:
        """Go on to the next rate. Nothing runs: the next step of the optimizer computes it."""
        self.count.assign(self.count + 1)
        self.optimizer.lr.assign(self.schedule(self.count))

    def get_lr(self) -> Tensor:
        """Return the rate of now."""
        return self.schedule(self.count)


def _base(optimizer: Optimizer) -> float:
    return float(optimizer.lr.item())


class LambdaLR(Scheduler):
    """The first rate times a function of the step, a tensor."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Schedule) -> None:
        base = _base(optimizer)
        super().__init__(optimizer, lambda step: base * lr_lambda(step))


class ConstantLR(Scheduler):
    """The first rate times `factor` for `total_iters` steps."""

    def __init__(self, optimizer: Optimizer, factor: float = 1 / 3, total_iters: int = 5) -> None:
        base = _base(optimizer)
        super().__init__(optimizer, lambda t: (t < total_iters).where(base * factor, base).float())


class LinearLR(Scheduler):
    """From start_factor to end_factor times the first rate, in a straight line."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
    ) -> None:
        base = _base(optimizer)
        super().__init__(optimizer, linear(base * start_factor, base * end_factor, total_iters))


class StepLR(Scheduler):
    """`step_decay` from the first rate."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1) -> None:
        super().__init__(optimizer, step_decay(_base(optimizer), step_size, gamma))


class MultiStepLR(Scheduler):
    """`multi_step` from the first rate."""

    def __init__(
        self, optimizer: Optimizer, milestones: Sequence[int], gamma: float = 0.1
    ) -> None:
        super().__init__(optimizer, multi_step(_base(optimizer), milestones, gamma))


class ExponentialLR(Scheduler):
    """`exponential` from the first rate."""

    def __init__(self, optimizer: Optimizer, gamma: float) -> None:
        super().__init__(optimizer, exponential(_base(optimizer), gamma))


class CosineAnnealingLR(Scheduler):
    """Along a cosine from the first rate to `eta_min` in `T_max` steps, and back in as many more.

    As in PyTorch the rate rises again; `cosine` is the schedule that stays.
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0) -> None:
        first = _base(optimizer)
        super().__init__(optimizer, lambda step: _half_cosine(first, eta_min, step / T_max))


class OneCycleLR(Scheduler):
    """`one_cycle`."""

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float,
        total_steps: int,
        pct_start: float = 0.3,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
    ) -> None:
        schedule = one_cycle(max_lr, total_steps, pct_start, div_factor, final_div_factor)
        super().__init__(optimizer, schedule)


class ReduceLROnPlateau:
    """Multiply the rate by `factor` when a number has not become better for `patience` steps.

    `step` takes the number, as a Python float: what to do next depends on it, so this is not
    a schedule and stays outside of a jitted step.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        cooldown: int = 0,
        min_lr: float = 0.0,
    ) -> None:
        if mode not in ("min", "max"):
            raise ArgumentError(
                f"ReduceLROnPlateau: mode is {mode!r}", rule='mode is "min" or "max"'
            )
        if not 0 <= factor < 1:
            raise ArgumentError(
                f"ReduceLROnPlateau: factor is {factor}", rule="factor is from 0 to below 1"
            )
        self.optimizer, self.mode, self.factor = optimizer, mode, factor
        self.patience, self.threshold = patience, threshold
        self.cooldown, self.min_lr = cooldown, min_lr
        self.best = math.inf if mode == "min" else -math.inf
        self.bad_steps = self.cooling = 0

    def step(self, metrics: float | Tensor) -> None:
        """Take the number of this epoch, and reduce the rate if it is time."""
        value = float(metrics)
        if self._is_better(value):
            self.best, self.bad_steps = value, 0
        else:
            self.bad_steps += 1
        if self.cooling:
            self.cooling -= 1
            self.bad_steps = 0
        if self.bad_steps > self.patience:
            lr = max(_base(self.optimizer) * self.factor, self.min_lr)
            self.optimizer.lr.assign(lr)
            self.cooling, self.bad_steps = self.cooldown, 0

    def _is_better(self, value: float) -> bool:
        if self.mode == "min":
            return value < self.best * (1 - self.threshold) if self.best < math.inf else True
        return value > self.best * (1 + self.threshold) if self.best > -math.inf else True
