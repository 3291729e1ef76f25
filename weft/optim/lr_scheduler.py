"""Learning rates that change with time, as torch.optim.lr_scheduler has them.

Rates are numbers of the host, in `optimizer.param_groups`. In a jitted step the schedules of
`weft.nn.optim` change a tensor instead, and trace nothing anew.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from weft.support.errors import ArgumentError


class LRScheduler:
    """A schedule: `rate(base, step)` in a class, for each group of an optimizer."""

    def __init__(self, optimizer: Any, last_epoch: int = -1) -> None:
        self.optimizer, self.last_epoch = optimizer, last_epoch
        for group in optimizer.param_groups:
            group.setdefault("initial_lr", group["lr"])
        self.base_lrs = [float(group["initial_lr"]) for group in optimizer.param_groups]
        self._last_lr = [float(group["lr"]) for group in optimizer.param_groups]
        self.step()

    def get_lr(self) -> list[float]:
        """The rates of now, one for each group."""
        return [
            self.rate(base, self.last_epoch, number) for number, base in enumerate(self.base_lrs)
        ]

    def rate(self, base: float, step: int, group: int) -> float:
        """The rate of a group at a step."""
        raise NotImplementedError

    def get_last_lr(self) -> list[float]:
        """The rates that were written last."""
        return list(self._last_lr)

    def step(self, epoch: int | None = None) -> None:
        """Go on to the next rate, or to that of an epoch."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else int(epoch)
        self._write(self.get_lr())

    def _write(self, rates: Sequence[float]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
        self._last_lr = list(rates)

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer and functions."""
        return {
            key: value
            for key, value in self.__dict__.items()
            if key != "optimizer" and not callable(value) and not key.endswith("_functions")
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on where a state was taken."""
        self.__dict__.update(state_dict)


_LRScheduler = LRScheduler


class LambdaLR(LRScheduler):
    """The first rate times a function of the step, or one for each group."""

    def __init__(self, optimizer: Any, lr_lambda: Any, last_epoch: int = -1) -> None:
        count = len(optimizer.param_groups)
        self._functions: list[Callable[[int], float]] = (
            list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * count
        )
        if len(self._functions) != count:
            raise ArgumentError(f"LambdaLR: {len(self._functions)} functions for {count} groups")
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int, group: int) -> float:
        return base * self._functions[group](step)


class MultiplicativeLR(LambdaLR):
    """The rate before times a function of the step."""

    def rate(self, base: float, step: int, group: int) -> float:
        if step <= 0:
            return base
        return self._last_lr[group] * self._functions[group](step)


class StepLR(LRScheduler):
    """Times `gamma` after every `step_size` steps."""

    def __init__(
        self, optimizer: Any, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int, group: int) -> float:
        return float(base * self.gamma ** (step // self.step_size))


class MultiStepLR(LRScheduler):
    """Times `gamma` at each milestone."""

    def __init__(
        self, optimizer: Any, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int, group: int) -> float:
        passed = bisect_right(sorted(self.milestones.elements()), step)
        return float(base * self.gamma**passed)


class ConstantLR(LRScheduler):
    """Times `factor` for `total_iters` steps."""

    def __init__(
        self, optimizer: Any, factor: float = 1 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int, group: int) -> float:
        return base * (self.factor if step < self.total_iters else 1.0)


class LinearLR(LRScheduler):
    """From `start_factor` to `end_factor` times the first rate, in a straight line."""

    def __init__(
        self,
        optimizer: Any,
        start_factor: float = 1 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        self.start_factor, self.end_factor = start_factor, end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int, group: int) -> float:
        share = min(step, self.total_iters) / self.total_iters
        return base * (self.start_factor + (self.end_factor - self.start_factor) * share)


class ExponentialLR(LRScheduler):
    """Times `gamma` after every step."""

    def __init__(self, optimizer: Any, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int, group: int) -> float:
        return float(base * self.gamma**step)


class PolynomialLR(LRScheduler):
    """A power of what is left of `total_iters` steps."""

    def __init__(
        self, optimizer: Any, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int, group: int) -> float:
        left = 1 - min(step, self.total_iters) / self.total_iters
        return float(base * left**self.power)


class CosineAnnealingLR(LRScheduler):
    """Along a cosine to `eta_min` in `T_max` steps, and back again after them."""

    def __init__(
        self, optimizer: Any, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int, group: int) -> float:
        return (
            self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * step / self.T_max)) / 2
        )


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half cosines to `eta_min`, each `T_mult` times as long as the one before."""

    def __init__(
        self,
        optimizer: Any,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        if T_0 < 1 or T_mult < 1:
            raise ArgumentError(f"CosineAnnealingWarmRestarts: T_0 {T_0}, T_mult {T_mult}")
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        self.at = 0.0
        super().__init__(optimizer, last_epoch)

    def step(self, epoch: float | None = None) -> None:
        """Go on; `epoch` may be a fraction."""
        self.at = self.last_epoch + 1.0 if epoch is None else float(epoch)
        self.last_epoch = math.floor(self.at)
        self._write(self.get_lr())

    def rate(self, base: float, step: int, group: int) -> float:
        at, length = self.at, float(self.T_0)
        while at >= length:
            at, length = at - length, length * self.T_mult
        return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * at / length)) / 2


class CyclicLR(LRScheduler):
    """Up and down between two rates, in straight lines."""

    def __init__(
        self,
        optimizer: Any,
        base_lr: float,
        max_lr: float,
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float = 0.8,
        max_momentum: float = 0.9,
        last_epoch: int = -1,
    ) -> None:
        if mode not in ("triangular", "triangular2", "exp_range"):
            raise ArgumentError(f"CyclicLR: unknown mode {mode!r}")
        self.low, self.high = float(base_lr), float(max_lr)
        self.up, self.down = step_size_up, step_size_down or step_size_up
        self.mode, self.gamma = mode, gamma
        self._functions, self.scale_mode = scale_fn, scale_mode
        for group in optimizer.param_groups:
            group["initial_lr"] = group["lr"] = self.low
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int, group: int) -> float:
        total = self.up + self.down
        cycle = math.floor(1 + step / total)
        at = 1 + step / total - cycle
        peak = self.up / total
        height = at / peak if at <= peak else (at - 1) / (peak - 1)
        if self._functions is not None:
            scale = self._functions(cycle if self.scale_mode == "cycle" else step)
        elif self.mode == "exp_range":
            scale = self.gamma**step
        else:
            scale = 1.0 if self.mode == "triangular" else 1 / 2.0 ** (cycle - 1)
        return self.low + (self.high - self.low) * height * scale


class OneCycleLR(LRScheduler):
    """Rise to `max_lr`, then fall far below the start."""

    def __init__(
        self,
        optimizer: Any,
        max_lr: Any,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float = 0.85,
        max_momentum: float = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ArgumentError(
                    "OneCycleLR: neither total_steps nor epochs and steps_per_epoch",
                    rule="the number of steps is known at the start",
                )
            total_steps = epochs * steps_per_epoch
        if anneal_strategy not in ("cos", "linear"):
            raise ArgumentError(f"OneCycleLR: anneal_strategy is {anneal_strategy!r}")
        self.total_steps, self.strategy = total_steps, anneal_strategy
        count = len(optimizer.param_groups)
        highs = list(max_lr) if isinstance(max_lr, (list, tuple)) else [max_lr] * count
        self.highs = [float(each) for each in highs]
        self.div, self.final = div_factor, final_div_factor
        peak = pct_start * total_steps - 1
        self.ends = (
            [peak, 2 * peak, total_steps - 1.0] if three_phase else [peak, total_steps - 1.0]
        )
        for group, high in zip(optimizer.param_groups, self.highs, strict=True):
            group["initial_lr"] = high / div_factor
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int, group: int) -> float:
        if step > self.total_steps:
            raise ArgumentError(
                f"OneCycleLR: step {step} of {self.total_steps}", rule="a cycle has an end"
            )
        high = self.highs[group]
        first, last = high / self.div, high / self.div / self.final
        points = [first, high, first, last] if len(self.ends) == 3 else [first, high, last]
        begin = 0.0
        for number, end in enumerate(self.ends):
            if step <= end or number == len(self.ends) - 1:
                share = (step - begin) / (end - begin)
                return self._between(points[number], points[number + 1], share)
            begin = end
        return last

    def _between(self, start: float, end: float, share: float) -> float:
        if self.strategy == "linear":
            return (end - start) * share + start
        return end + (start - end) / 2 * (1 + math.cos(math.pi * share))


class SequentialLR(LRScheduler):
    """Schedules one after another, each from a milestone on."""

    def __init__(
        self,
        optimizer: Any,
        schedulers: Sequence[LRScheduler],
        milestones: Sequence[int],
        last_epoch: int = -1,
    ) -> None:
        if len(milestones) != len(schedulers) - 1:
            raise ArgumentError(
                f"SequentialLR: {len(milestones)} milestones for {len(schedulers)} schedules",
                rule="there is one milestone less than schedules",
            )
        self._schedulers, self._milestones = list(schedulers), list(milestones)
        self.optimizer, self.last_epoch = optimizer, last_epoch + 1
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        for each in self._schedulers:
            each.last_epoch -= 1
        self._schedulers[0].step()
        self._last_lr = self._schedulers[0].get_last_lr()

    def step(self, epoch: int | None = None) -> None:
        """Go on with the schedule of now."""
        self.last_epoch += 1
        number = bisect_right(self._milestones, self.last_epoch)
        chosen = self._schedulers[number]
        is_first = number > 0 and self._milestones[number - 1] == self.last_epoch
        chosen.step(0) if is_first else chosen.step()
        self._last_lr = chosen.get_last_lr()

    def state_dict(self) -> dict[str, Any]:
        """The states of all schedules."""
        return {
            "last_epoch": self.last_epoch,
            "_milestones": self._milestones,
            "_schedulers": [each.state_dict() for each in self._schedulers],
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on where a state was taken."""
        self.last_epoch = state_dict["last_epoch"]
        self._milestones = list(state_dict["_milestones"])
        for each, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            each.load_state_dict(state)


class ChainedScheduler:
    """Schedules that act together: each multiplies the rate that the one before left."""

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Any = None) -> None:
        self._schedulers = list(schedulers)
        self.optimizer = optimizer or self._schedulers[0].optimizer
        self._write()

    def _write(self) -> None:
        groups = self.optimizer.param_groups
        for number, group in enumerate(groups):
            base = self._schedulers[0].base_lrs[number]
            rate = base
            for each in self._schedulers:
                rate *= each.rate(base, each.last_epoch, number) / base if base else 1.0
            group["lr"] = rate
        self._last_lr = [float(group["lr"]) for group in groups]

    def step(self) -> None:
        """Go on with all schedules."""
        for each in self._schedulers:
            each.last_epoch += 1
        self._write()

    def get_last_lr(self) -> list[float]:
        """The rates that were written last."""
        return list(self._last_lr)


class ReduceLROnPlateau:
    """Times `factor` when a number has not become better for `patience` steps."""

    def __init__(
        self,
        optimizer: Any,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: Any = 0,
        eps: float = 1e-8,
    ) -> None:
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ArgumentError(f"ReduceLROnPlateau: mode {mode!r}, {threshold_mode!r}")
        self.optimizer, self.mode, self.factor, self.patience = optimizer, mode, factor, patience
        self.threshold, self.threshold_mode = threshold, threshold_mode
        self.cooldown, self.eps, self.last_epoch = cooldown, eps, 0
        count = len(optimizer.param_groups)
        self.min_lrs = list(min_lr) if isinstance(min_lr, (list, tuple)) else [min_lr] * count
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = 0

    def step(self, metrics: Any, epoch: int | None = None) -> None:
        """Take the number of this epoch, and reduce the rates if it is time."""
        value = float(metrics)
        self.last_epoch += 1
        is_better = self.is_better(value)
        self.best = value if is_better else self.best
        self.num_bad_epochs = 0 if is_better else self.num_bad_epochs + 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            for group, least in zip(self.optimizer.param_groups, self.min_lrs, strict=True):
                new = max(float(group["lr"]) * self.factor, least)
                if float(group["lr"]) - new > self.eps:
                    group["lr"] = new
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0

    def is_better(self, value: float) -> bool:
        """Whether a number is better than the best by more than the threshold."""
        share = self.threshold if self.threshold_mode == "rel" else 0.0
        away = self.threshold if self.threshold_mode == "abs" else 0.0
        if self.mode == "min":
            return value < self.best * (1 - share) - away
        return value > self.best * (1 + share) + away

    def get_last_lr(self) -> list[float]:
        """The rates of now."""
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on where a state was taken."""
        self.__dict__.update(state_dict)
