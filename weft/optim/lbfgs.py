"""LBFGS: quasi-Newton steps from the last differences of gradients, with a line search.

What to do next depends on values, so a step reads them: it runs on the host, and not in a jitted
function. Vectors are flat tensors in float32 or wider.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from weft.optim.optimizer import Optimizer
from weft.support.errors import ArgumentError
from weft.tensor.tensor import Tensor


class _Point(NamedTuple):
    """A step length, the loss there, its gradient, and the slope along the direction."""

    step: float
    loss: float
    grad: Tensor
    slope: float


class LBFGS(Optimizer):
    """Minimize with few evaluations: `step(closure)` calls it until a tolerance is reached.

    The closure clears the gradients, computes the loss, calls backward() and returns the loss.
    `line_search_fn` is None or "strong_wolfe".

    >>> x = Tensor([3.0], requires_grad=True)
    >>> optimizer = LBFGS([x], lr=1.0)
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = ((x - 1) ** 2).sum()
    ...     loss.backward()
    ...     return loss
    >>> _ = optimizer.step(closure)
    >>> round(x.item(), 3)
    1.0
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        if line_search_fn not in (None, "strong_wolfe"):
            raise ArgumentError(
                f"LBFGS: line_search_fn is {line_search_fn!r}",
                rule='it is None or "strong_wolfe"',
            )
        options = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, options)
        if len(self.param_groups) != 1:
            raise ArgumentError("LBFGS: several groups", rule="LBFGS has one group of parameters")
        self._memory: dict[str, Any] = {"old": [], "scale": 1.0, "count": 0}

    @property
    def _params(self) -> list[Tensor]:
        found: list[Tensor] = self.param_groups[0]["params"]
        return found

    def _gradient(self) -> Tensor:
        flat = [
            (p.zeros_like() if p.grad is None else p.grad).detach().flatten() for p in self._params
        ]
        return (flat[0].cat(*flat[1:]) if len(flat) > 1 else flat[0]).contiguous().realize()

    def _move(self, start: list[Tensor], direction: Tensor, step: float) -> None:
        """Write start + step · direction to the parameters."""
        at = 0
        for p, first in zip(self._params, start, strict=True):
            count = int(p.numel())
            part = direction[at : at + count].reshape(p.shape)
            p.assign((first + part * step).cast(p.dtype))
            at += count
        self._params[0].realize(*self._params[1:])

    def _direction(self, grad: Tensor) -> Tensor:
        """Minus the inverse Hessian times the gradient, by two loops over the memory."""
        old, shares = self._memory["old"], []
        q = -grad
        for change, by, scale in reversed(old):
            share = float((change * q).sum().item()) * scale
            shares.append(share)
            q = q - by * share
        r = q * self._memory["scale"]
        for (change, by, scale), share in zip(old, reversed(shares), strict=True):
            back = float((by * r).sum().item()) * scale
            r = r + change * (share - back)
        return r.contiguous().realize()  # type: ignore[no-any-return]

    def _learn(self, grad: Tensor, before: Tensor, moved: Tensor, size: int) -> None:
        by = (grad - before).contiguous().realize()
        product = float((by * moved).sum().item())
        if product > 1e-10:
            old = self._memory["old"]
            if len(old) == size:
                old.pop(0)
            old.append((moved, by, 1.0 / product))
            self._memory["scale"] = product / float((by * by).sum().item())

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Go on until a tolerance, `max_iter` or `max_eval` is reached; return the first loss."""
        if closure is None:
            raise ArgumentError("LBFGS: step without a closure", rule="LBFGS evaluates the loss")
        group = self.param_groups[0]
        first = closure()
        loss, evaluations = float(first.item()), 1
        grad = self._gradient()
        if float(grad.abs().max().item()) <= group["tolerance_grad"]:
            return first
        before: Tensor | None = self._memory.get("grad")
        moved: Tensor | None = self._memory.get("moved")
        for _ in range(group["max_iter"]):
            self._memory["count"] += 1
            if before is not None and moved is not None:
                self._learn(grad, before, moved, group["history_size"])
            direction = self._direction(grad)
            lr = float(group["lr"])
            if self._memory["count"] == 1:
                lr *= min(1.0, 1.0 / float(grad.abs().sum().item()))
            slope = float((grad * direction).sum().item())
            if slope > -group["tolerance_change"]:
                break
            before, last = grad, loss
            step, loss, grad, used = self._search(closure, direction, lr, loss, grad, slope)
            evaluations += used
            moved = (direction * step).contiguous().realize()
            if self._is_done(grad, moved, loss - last, evaluations, group):
                break
        self._memory.update(grad=before, moved=moved)
        return first

    def _is_done(
        self, grad: Tensor, moved: Tensor, change: float, evaluations: int, group: dict[str, Any]
    ) -> bool:
        return (  # type: ignore[no-any-return]
            evaluations >= group["max_eval"]
            or float(grad.abs().max().item()) <= group["tolerance_grad"]
            or float(moved.abs().max().item()) <= group["tolerance_change"]
            or abs(change) < group["tolerance_change"]
        )

    def _search(
        self,
        closure: Callable[[], Any],
        direction: Tensor,
        lr: float,
        loss: float,
        grad: Tensor,
        slope: float,
    ) -> tuple[float, float, Tensor, int]:
        """The step to take, the loss and the gradient there, and how many evaluations it took."""
        start = [p.detach().clone().realize() for p in self._params]

        def at(step: float) -> _Point:
            self._move(start, direction, step)
            value = float(closure().item())
            found = self._gradient()
            return _Point(step, value, found, float((found * direction).sum().item()))

        if self.param_groups[0]["line_search_fn"] is None:
            point = at(lr)
            return lr, point.loss, point.grad, 1
        chosen, used = _strong_wolfe(at, _Point(0.0, loss, grad, slope), lr)
        self._move(start, direction, chosen.step)
        return chosen.step, chosen.loss, chosen.grad, used


def _strong_wolfe(
    at: Callable[[float], _Point], start: _Point, step: float, c1: float = 1e-4, c2: float = 0.9
) -> tuple[_Point, int]:
    """A point where the loss fell enough and the slope is small; by brackets and cubics."""
    before, now, used = start, at(step), 1
    low, high = start, now
    for number in range(25):
        if now.loss > start.loss + c1 * now.step * start.slope or (
            number and now.loss >= before.loss
        ):
            low, high = before, now
            break
        if abs(now.slope) <= -c2 * start.slope:
            return now, used
        if now.slope >= 0:
            low, high = now, before
            break
        following = _minimum(before, now, now.step * 1.01, now.step * 10)
        before, now, used = now, at(following), used + 1
    else:
        return now, used
    while used < 25:
        if abs(high.step - low.step) * abs(start.slope) < 1e-9:
            break
        between = sorted((low.step, high.step))
        edge = 0.1 * (between[1] - between[0])
        trial = at(_minimum(low, high, between[0] + edge, between[1] - edge))
        used += 1
        if trial.loss > start.loss + c1 * trial.step * start.slope or trial.loss >= low.loss:
            high = trial
            continue
        if abs(trial.slope) <= -c2 * start.slope:
            return trial, used
        if trial.slope * (high.step - low.step) >= 0:
            high = low
        low = trial
    return low, used


def _minimum(a: _Point, b: _Point, least: float, most: float) -> float:
    """The minimum of the cubic through two points and their slopes, between two bounds."""
    if a.step > b.step:
        a, b = b, a
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.step - b.step)
    inside = d1 * d1 - a.slope * b.slope
    if inside < 0:
        return (least + most) / 2
    root = inside**0.5
    found = b.step - (b.step - a.step) * (b.slope + root - d1) / (b.slope - a.slope + 2 * root)
    return min(max(found, least), most)  # type: ignore[no-any-return]
