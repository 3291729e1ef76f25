"""Methods that scale each element by what its gradients have been: Adam and its kin."""

from __future__ import annotations

import math
from collections.abc import Mapping

from weft.nn.optim.method import (
    Common,
    Held,
    Mask,
    Method,
    Now,
    Result,
    like_parameter,
    norm,
    per_parameter,
    remembered,
    require_fraction,
    require_nonnegative,
)
from weft.tensor.checks import known
from weft.tensor.tensor import Tensor


@remembered
def adam(
    lr: float = 0.001,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
    weight_decay: float = 0.0,
    mask: Mask = None,
    device: str | None = None,
    decoupled: bool = True,
) -> Method:
    """Adam; with `weight_decay` AdamW, whose decay does not pass through the averages.

    m ← b1 m + (1 - b1) g; v ← b2 v + (1 - b2) g²; with m̂ = m / (1 - b1ᵗ) and v̂ = v / (1 - b2ᵗ):
    w ← w - lr (m̂ / (√v̂ + eps) + weight_decay · w). If not `decoupled`, the decay is a part of g.
    """
    common = Common(lr, weight_decay, mask, device)
    return _averages(common, b1, b2, eps, scales=False, decoupled=decoupled)


@remembered
def lamb(
    lr: float = 0.001,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-6,
    weight_decay: float = 0.0,
    adam: bool = False,
    mask: Mask = None,
    device: str | None = None,
) -> Method:
    """Adam whose rate is scaled for each parameter by |w| / |step|; with `adam` it is not."""
    common = Common(lr, weight_decay, mask, device)
    return _averages(common, b1, b2, eps, scales=not adam, decoupled=True)


def _averages(
    common: Common, b1: float, b2: float, eps: float, scales: bool, decoupled: bool
) -> Method:
    require_fraction(b1=b1, b2=b2)
    require_nonnegative(eps=eps)

    def rule(p: Tensor, g: Tensor, slots: Held, now: Now) -> Result:
        g = g if decoupled else now.decayed(g, p)
        m = b1 * slots["m"] + (1 - b1) * g
        v = b2 * slots["v"] + (1 - b2) * (g * g)
        m_hat, v_hat = m / _corrected(b1, now.step), v / _corrected(b2, now.step)
        up = m_hat / (v_hat.sqrt() + eps)
        up = now.decayed(up, p) if decoupled else up
        if scales:
            weight, length = norm(p), norm(up)
            up = up * ((weight > 0) & (length > 0)).where(weight / length, 1.0)
        return p - now.lr * up, {"m": m, "v": v}

    return per_parameter(rule, like_parameter("m", "v"), common, counts=True)


def _corrected(beta: float, step: Tensor) -> Tensor | float:
    """1 - betaᵗ, without the loss of a difference of nearly equal numbers."""
    return -(step * math.log(beta)).expm1() if beta else 1.0


@remembered
def adagrad(
    lr: float = 0.01,
    lr_decay: float = 0.0,
    weight_decay: float = 0.0,
    initial_accumulator_value: float = 0.0,
    eps: float = 1e-10,
    mask: Mask = None,
    device: str | None = None,
) -> Method:
    """s ← s + g²; w ← w - lr / (1 + (t - 1) lr_decay) · g / (√s + eps), as in PyTorch."""
    require_nonnegative(lr_decay=lr_decay, eps=eps, initial=initial_accumulator_value)

    def rule(p: Tensor, g: Tensor, slots: Held, now: Now) -> Result:
        g = now.decayed(g, p)
        total = slots["sum"] + g * g
        rate = now.lr / (1 + (now.step - 1) * lr_decay) if lr_decay else now.lr
        return p - rate * g / (total.sqrt() + eps), {"sum": total}

    common, initial = Common(lr, weight_decay, mask, device), initial_accumulator_value
    return per_parameter(rule, like_parameter("sum"), common, bool(lr_decay), initial)


@remembered
def rmsprop(
    lr: float = 0.01,
    alpha: float = 0.99,
    eps: float = 1e-8,
    weight_decay: float = 0.0,
    momentum: float = 0.0,
    centered: bool = False,
    mask: Mask = None,
    device: str | None = None,
) -> Method:
    """v ← alpha v + (1 - alpha) g²; w ← w - lr · g / (√v + eps), as in PyTorch.

    With `momentum` the quotient is summed up like a gradient; with `centered` v is a variance.
    """
    require_fraction(alpha=alpha)
    require_nonnegative(eps=eps, momentum=momentum)

    def rule(p: Tensor, g: Tensor, slots: Held, now: Now) -> Result:
        g = now.decayed(g, p)
        new = {"v": alpha * slots["v"] + (1 - alpha) * (g * g)}
        variance = new["v"]
        if centered:
            new["mean"] = alpha * slots["mean"] + (1 - alpha) * g
            variance = variance - new["mean"] * new["mean"]
        up = g / (variance.sqrt() + eps)
        if momentum:
            up = new["b"] = momentum * slots["b"] + up
        return p - now.lr * up, new

    names = ["v", *["mean"] * centered, *["b"] * bool(momentum)]
    return per_parameter(rule, like_parameter(*names), Common(lr, weight_decay, mask, device))


@remembered
def lion(
    lr: float = 1e-4,
    b1: float = 0.9,
    b2: float = 0.99,
    weight_decay: float = 0.0,
    mask: Mask = None,
    device: str | None = None,
) -> Method:
    """w ← w - lr (sign(b1 m + (1 - b1) g) + weight_decay · w); m ← b2 m + (1 - b2) g."""
    require_fraction(b1=b1, b2=b2)

    def rule(p: Tensor, g: Tensor, slots: Held, now: Now) -> Result:
        up = (b1 * slots["m"] + (1 - b1) * g).sign()
        up = now.decayed(up, p)
        return p - now.lr * up, {"m": b2 * slots["m"] + (1 - b2) * g}

    return per_parameter(rule, like_parameter("m"), Common(lr, weight_decay, mask, device))


@remembered
def adafactor(
    lr: float = 0.01,
    beta2_decay: float = -0.8,
    eps: tuple[float | None, float] = (None, 1e-3),
    d: float = 1.0,
    weight_decay: float = 0.0,
    mask: Mask = None,
    device: str | None = None,
) -> Method:
    """Squares of gradients kept as a row and a column for each matrix, as in PyTorch.

    The rate is min(lr, 1/√t) · max(eps[1], rms(w)), and the step is clipped to rms `d`. `eps[0]`
    is the smallest number that added to 1 makes a difference, unless given.
    """

    def rule(p: Tensor, g: Tensor, slots: Held, now: Now) -> Result:
        least = eps[0] if eps[0] is not None else 2.0 ** (-52 if p.dtype.bits == 64 else -23)
        new, variance = _factors(g, slots, now.step**beta2_decay, least)
        up = g * variance.clamp(min_=least * least).rsqrt()
        rate = now.lr.minimum(now.step.rsqrt()) * _rms(p).maximum(eps[1])
        p = p * (1 - now.lr * now.decay) if now.decay else p
        return p - rate / (_rms(up) / d).maximum(1.0) * up, new

    return per_parameter(rule, _factor_slots, Common(lr, weight_decay, mask, device), counts=True)


def _factor_slots(p: Tensor) -> Mapping[str, tuple[int, ...]]:
    shape = tuple(map(known, p.shape))
    if len(shape) < 2:
        return {"v": shape}
    return {"row": (*shape[:-1], 1), "column": (*shape[:-2], 1, shape[-1])}


def _factors(g: Tensor, slots: Held, by: Tensor, least: float) -> tuple[Held, Tensor]:
    """The new slots and the variance that they stand for."""
    square = g * g
    if "v" in slots:
        v = slots["v"] + by * (square - slots["v"])
        return {"v": v}, v
    row = slots["row"] + by * (square.mean(-1, keepdim=True) - slots["row"])
    column = slots["column"] + by * (square.mean(-2, keepdim=True) - slots["column"])
    scale = row.mean(-2, keepdim=True).clamp(min_=least)
    return {"row": row, "column": column}, row * column / scale


def _rms(x: Tensor) -> Tensor:
    return (x * x).mean().sqrt()
