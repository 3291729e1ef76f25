"""Averages of a model's weights over training, with the names of torch.optim.swa_utils."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from weft import nn
from weft.optim.lr_scheduler import LRScheduler
from weft.support.errors import ArgumentError
from weft.tensor.autodiff.modes import no_grad
from weft.tensor.tensor import Tensor

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]

Average = Callable[[Tensor, Tensor, Any], Tensor]


def _require_decay(decay: float) -> None:
    if not 0 <= decay <= 1:
        raise ArgumentError(f"the decay is {decay}", rule="it is from 0 to 1")


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """An exponential average: decay of the old, and the rest of the new."""
    _require_decay(decay)
    return lambda old, new, count: old * decay + new * (1 - decay)


def get_swa_avg_fn() -> Average:
    """The plain average of all values so far."""
    return lambda old, new, count: old + (new - old) / (count + 1)


def _on_all(average: Average) -> Callable[[Any, Any, Any], None]:
    def update(old: Any, new: Any, count: Any) -> None:
        for mine, theirs in zip(old, new, strict=True):
            mine.assign(average(mine.detach(), theirs, count).cast(mine.dtype))

    return update


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[[Any, Any, Any], None]:
    """`get_ema_avg_fn`, for lists of tensors that it writes to."""
    return _on_all(get_ema_avg_fn(decay))


def get_swa_multi_avg_fn() -> Callable[[Any, Any, Any], None]:
    """`get_swa_avg_fn`, for lists of tensors that it writes to."""
    return _on_all(get_swa_avg_fn())


class AveragedModel(nn.Module):
    """A copy of a model whose weights are averages of those it is shown.

    The first `update_parameters` copies; each later one averages with `avg_fn`, which takes the
    average, the new value and how many came before, or with `multi_avg_fn`, which writes lists of
    them. Buffers are averaged with `use_buffers`, and copied without.

    >>> model = nn.Linear(2, 1, bias=False)
    >>> averaged = AveragedModel(model)
    >>> for value in (1.0, 3.0):
    ...     _ = model.weight.assign(model.weight.full_like(value))
    ...     averaged.update_parameters(model)
    >>> averaged.module.weight.tolist()
    [[2.0, 2.0]]
    """

    def __init__(
        self,
        model: Any,
        device: Any = None,
        avg_fn: Average | None = None,
        multi_avg_fn: Callable[[Any, Any, Any], None] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise ArgumentError("AveragedModel: both avg_fn and multi_avg_fn", rule="one of them")
        from copy import deepcopy

        self.module = deepcopy(model)
        if device is not None:
            self.module.to(device)
        self.register_buffer("n_averaged", Tensor(0, dtype="int64", device=device).realize())
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the averaged copy."""
        return self.module(*args, **kwargs)

    def _pairs(self, model: Any) -> tuple[list[Tensor], list[Tensor]]:
        """What is averaged, here and in a model."""
        found = []
        for each in (self.module, model):
            tensors = list(each.parameters())
            tensors += list(each.buffers()) if self.use_buffers else []
            found.append(tensors)
        own, given = found
        return own, [new.detach().to(old.device) for old, new in zip(own, given, strict=True)]

    def update_parameters(self, model: Any) -> None:
        """Take the weights of a model into the average."""
        own, given = self._pairs(model)
        with no_grad():
            if int(self.n_averaged.item()) == 0:
                for old, new in zip(own, given, strict=True):
                    old.assign(new)
            elif self.multi_avg_fn is not None:
                self.multi_avg_fn(own, given, self.n_averaged)
            else:
                _on_all(self.avg_fn or get_swa_avg_fn())(own, given, self.n_averaged)
            if not self.use_buffers:
                pairs = zip(self.module.buffers(), model.buffers(), strict=True)
                for old, new in pairs:
                    old.assign(new.detach().to(old.device))
            self.n_averaged.assign(self.n_averaged + 1)


def _inputs(loader: Iterable[Any], device: Any) -> Iterator[Any]:
    for batch in loader:
        first = batch[0] if isinstance(batch, (list, tuple)) else batch
        yield first if device is None else first.to(device)


def update_bn(loader: Iterable[Any], model: Any, device: Any = None) -> None:
    """Set the running statistics of batch norms to plain averages over the batches of a loader."""
    norms = [each for each in model.modules() if isinstance(each, nn.BatchNorm)]
    norms = [each for each in norms if each.track_running_stats]
    if not norms:
        return
    was_training, momenta = model.training, [each.momentum for each in norms]
    for each in norms:
        each.running_mean.assign(each.running_mean.zeros_like())
        each.running_var.assign(each.running_var.ones_like())
        each.num_batches_tracked.assign(each.num_batches_tracked.zeros_like())
        each.momentum = None
    model.train()
    with no_grad():
        for x in _inputs(loader, device):
            model(x)
            for each in norms:
                each.running_mean.realize(each.running_var, each.num_batches_tracked)
    for each, momentum in zip(norms, momenta, strict=True):
        each.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """Anneal the rate of each group to `swa_lr` within some epochs, and keep it there."""

    def __init__(
        self,
        optimizer: Any,
        swa_lr: Any,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        groups = optimizer.param_groups
        rates = list(swa_lr) if isinstance(swa_lr, (list, tuple)) else [swa_lr] * len(groups)
        if len(rates) != len(groups):
            raise ArgumentError(f"SWALR: {len(rates)} rates for {len(groups)} groups")
        if anneal_strategy not in ("cos", "linear"):
            raise ArgumentError(
                f"SWALR: anneal_strategy {anneal_strategy!r}", rule="cos or linear"
            )
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ArgumentError(
                f"SWALR: anneal_epochs is {anneal_epochs}", rule="an int from 0 on"
            )
        self.swa_lrs, self.anneal_epochs = rates, anneal_epochs
        self.anneal_strategy = anneal_strategy
        for group, rate in zip(groups, rates, strict=True):
            group["swa_lr"] = rate
        super().__init__(optimizer, last_epoch)

    def _share(self, step: int) -> float:
        """How much of the last rate a step has."""
        done = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return (1 - math.cos(math.pi * done)) / 2 if self.anneal_strategy == "cos" else done

    def get_lr(self) -> list[float]:
        """The rates of now, from those that the groups have: another schedule may run before."""
        step = max(1, self.last_epoch) if not self.anneal_epochs else self.last_epoch
        before, now = self._share(step - 1), self._share(step)
        rates = []
        for group in self.optimizer.param_groups:
            last, rate = float(group["swa_lr"]), float(group["lr"])
            start = last if before == 1 else (rate - before * last) / (1 - before)
            rates.append(last * now + start * (1 - now))
        return rates
