"""Training in small floats with PyTorch's names: `autocast`, and a `GradScaler` for float16.

bfloat16 has the range of float32 and needs no scaler. In a jitted step the scaler of
`weft.nn.optim.MixedPrecision` serves, which never looks at a number from Python.
"""

from __future__ import annotations

from typing import Any

from weft.nn.optim.optimizer import Optimizer as PlainOptimizer
from weft.optim.optimizer import Optimizer
from weft.support.errors import ArgumentError
from weft.support.module_names import missing_name
from weft.tensor.autocast import autocast, get_autocast_dtype, is_autocast_enabled
from weft.tensor.tensor import Tensor

__all__ = ["GradScaler", "autocast", "get_autocast_dtype", "is_autocast_enabled"]


class GradScaler:
    """Scale a loss: small gradients do not vanish in float16. Steps that overflow are skipped.

    >>> from weft import Tensor, nn, optim
    >>> from weft.amp import GradScaler, autocast
    >>> layer = nn.Linear(2, 1)
    >>> optimizer = optim.SGD(layer.parameters(), lr=0.1)
    >>> scaler = GradScaler(init_scale=1024.0)
    >>> with autocast("cpu", "float16"):
    ...     loss = layer(Tensor.full((4, 2), 0.1)).square().mean()
    >>> _ = scaler.scale(loss).backward()
    >>> _ = scaler.step(optimizer)
    >>> scaler.update()
    >>> scaler.get_scale()
    1024.0
    """

    def __init__(
        self,
        device: str = "cpu",
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        if not growth_factor > 1.0 > backoff_factor > 0.0:
            raise ArgumentError(
                f"GradScaler: growth_factor {growth_factor} and backoff_factor {backoff_factor}",
                rule="the scale grows by more than 1 and is cut by less than 1",
            )
        self._scale, self._good_steps = init_scale, 0
        self._growth_factor, self._backoff_factor = growth_factor, backoff_factor
        self._growth_interval, self._enabled = growth_interval, enabled
        # Whether gradients that were divided by the scale are finite, by the id of the optimizer.
        self._finite: dict[int, bool] = {}

    def scale(self, outputs: Any) -> Any:
        """The loss, or each of several, times the scale."""
        if isinstance(outputs, (list, tuple)):
            return type(outputs)(self.scale(each) for each in outputs)
        return outputs * self._scale if self._enabled else outputs

    def unscale_(self, optimizer: Optimizer | PlainOptimizer) -> None:
        """Divide the gradients of an optimizer by the scale, as clipping needs them."""
        if not self._enabled:
            return
        if id(optimizer) in self._finite:
            raise ArgumentError(
                "GradScaler: unscale_ was called twice since the last update()",
                rule="gradients are divided by the scale once in a step",
            )
        bad: list[Tensor] = []
        for each in _parameters(optimizer):
            if (slope := each.grad) is not None:
                each.grad = slope = slope.mul(1.0 / self._scale)
                bad.append(slope.isfinite().logical_not().any())
        self._finite[id(optimizer)] = not (bad and Tensor.stack(*bad).any().item())

    def step(self, optimizer: Optimizer | PlainOptimizer, *args: Any, **kwargs: Any) -> Any:
        """`optimizer.step()`, unless a gradient is infinite or NaN."""
        if self._enabled and id(optimizer) not in self._finite:
            self.unscale_(optimizer)
        is_good = not self._enabled or self._finite[id(optimizer)]
        return optimizer.step(*args, **kwargs) if is_good else None

    def update(self, new_scale: float | None = None) -> None:
        """Cut the scale after a step that overflowed; let it grow after many that did not."""
        steps, self._finite = self._finite, {}
        if new_scale is not None:
            self._scale = float(new_scale)
        elif not all(steps.values()):
            self._scale, self._good_steps = self._scale * self._backoff_factor, 0
        elif steps:
            self._good_steps += 1
            if self._good_steps == self._growth_interval:
                self._scale, self._good_steps = self._scale * self._growth_factor, 0

    def get_scale(self) -> float:
        """The present scale; 1 where the scaler is not enabled."""
        return self._scale if self._enabled else 1.0

    def is_enabled(self) -> bool:
        """Whether losses are scaled."""
        return self._enabled

    def state_dict(self) -> dict[str, float | int]:
        """The scale, its options and the good steps since it last changed, with PyTorch's keys."""
        if not self._enabled:
            return {}
        return {
            "scale": self._scale,
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._good_steps,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a state that `state_dict` gave."""
        if not self._enabled:
            return
        self._scale, self._good_steps = float(state["scale"]), int(state["_growth_tracker"])
        self._growth_factor = float(state["growth_factor"])
        self._backoff_factor = float(state["backoff_factor"])
        self._growth_interval = int(state["growth_interval"])


def _parameters(optimizer: Optimizer | PlainOptimizer) -> list[Tensor]:
    if isinstance(optimizer, PlainOptimizer):
        return optimizer.params
    return [each for group in optimizer.param_groups for each in group["params"]]


__getattr__ = missing_name(__name__)
