"""Further methods, as torch.optim defines them: Adadelta, Adamax, NAdam, RAdam, Rprop, ASGD.

Also SGD with dampening and Adam with amsgrad. The names of their state are PyTorch's.
"""

from __future__ import annotations

import math
from typing import Any

from weft.nn.optim.method import (
    Common,
    Held,
    Method,
    Now,
    Result,
    like_parameter,
    per_parameter,
    remembered,
    require_fraction,
    require_nonnegative,
)
from weft.tensor.tensor import Tensor


def _common(lr: float, weight_decay: float, device: str | None) -> Common:
    return Common(lr, weight_decay, None, device)


@remembered
def damped_sgd(
    lr: float = 1e-3,
    momentum: float = 0.0,
    dampening: float = 0.0,
    weight_decay: float = 0.0,
    nesterov: bool = False,
    device: str | None = None,
) -> Method:
    """b ← momentum · b + (1 - dampening) g, the first b being g; w ← w - lr · b."""
    require_nonnegative(momentum=momentum)

    def rule(p: Tensor, g: Tensor, slots: Held, now: Now) -> Result:
        g = now.decayed(g, p)
        if not momentum:
            return p - now.lr * g, {}
        moved = momentum * slots["momentum_buffer"] + (1 - dampening) * g
        buffer = (now.step == 1).where(g, moved) if dampening else moved
        up = g + momentum * buffer if nesterov else buffer
        return p - now.lr * up, {"momentum_buffer": buffer}

    slots = like_parameter("momentum_buffer") if momentum else like_parameter()
    return per_parameter(rule, slots, _common(lr, weight_decay, device), bool(dampening))


@remembered
def adam_of_torch(
    lr: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 0.0,
    amsgrad: bool = False,
    decoupled: bool = False,
    device: str | None = None,
) -> Method:
    """Adam; with `amsgrad` the greatest average of squares so far counts."""
    b1, b2 = betas
    require_fraction(b1=b1, b2=b2)
    require_nonnegative(eps=eps)

    def rule(p: Tensor, g: Tensor, slots: Held, now: Now) -> Result:
        if decoupled:
            p = p - now.lr * now.decay * p if now.decay else p
        else:
            g = now.decayed(g, p)
        m = b1 * slots["exp_avg"] + (1 - b1) * g
        v = b2 * slots["exp_avg_sq"] + (1 - b2) * g * g
        kept = {"exp_avg": m, "exp_avg_sq": v}
        greatest = v
        if amsgrad:
            greatest = kept["max_exp_avg_sq"] = slots["max_exp_avg_sq"].maximum(v)
        root = (greatest / _less_power(b2, now.step)).sqrt() + eps
        return p - now.lr * (m / _less_power(b1, now.step)) / root, kept

    names = ("exp_avg", "exp_avg_sq", *(("max_exp_avg_sq",) if amsgrad else ()))
    return per_parameter(rule, like_parameter(*names), _common(lr, weight_decay, device), True)


def _less_power(beta: float, step: Tensor) -> Any:
    """1 - betaᵗ."""
    return -(step * math.log(beta)).expm1() if beta else 1.0


@remembered
def adadelta(
    lr: float = 1.0,
    rho: float = 0.9,
    eps: float = 1e-6,
    weight_decay: float = 0.0,
    device: str | None = None,
) -> Method:
    """Steps by the ratio of the running squares of steps and of gradients."""
    require_nonnegative(eps=eps)

    def rule(p: Tensor, g: Tensor, slots: Held, now: Now) -> Result:
        g = now.decayed(g, p)
        squares = rho * slots["square_avg"] + (1 - rho) * g * g
        delta = (slots["acc_delta"] + eps).sqrt() / (squares + eps).sqrt() * g
        steps = rho * slots["acc_delta"] + (1 - rho) * delta * delta
        return p - now.lr * delta, {"square_avg": squares, "acc_delta": steps}

    slots = like_parameter("square_avg", "acc_delta")
    return per_parameter(rule, slots, _common(lr, weight_decay, device))


@remembered
def adamax(
    lr: float = 2e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 0.0,
    device: str | None = None,
) -> Method:
    """Adam by the greatest size of gradients, which fades."""
    b1, b2 = betas
    require_fraction(b1=b1, b2=b2)

    def rule(p: Tensor, g: Tensor, slots: Held, now: Now) -> Result:
        g = now.decayed(g, p)
        m = b1 * slots["exp_avg"] + (1 - b1) * g
        size = (b2 * slots["exp_inf"]).maximum(g.abs() + eps)
        rate = now.lr / _less_power(b1, now.step)
        return p - rate * m / size, {"exp_avg": m, "exp_inf": size}

    slots = like_parameter("exp_avg", "exp_inf")
    return per_parameter(rule, slots, _common(lr, weight_decay, device), True)


@remembered
def nadam(
    lr: float = 2e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 0.0,
    momentum_decay: float = 4e-3,
    decoupled: bool = False,
    device: str | None = None,
) -> Method:
    """Adam with Nesterov's momentum, which grows with time."""
    b1, b2 = betas
    require_fraction(b1=b1, b2=b2)

    def share(step: Tensor) -> Tensor:
        return b1 * (1 - 0.5 * (step * (momentum_decay * math.log(0.96))).exp())

    def rule(p: Tensor, g: Tensor, slots: Held, now: Now) -> Result:
        if decoupled:
            p = p - now.lr * now.decay * p if now.decay else p
        else:
            g = now.decayed(g, p)
        mu, following = share(now.step), share(now.step + 1)
        # The product of all shares; it starts as 0, which stands for 1.
        before = slots["mu_product"]
        product = (before == 0).where(1.0, before) * mu
        m = b1 * slots["exp_avg"] + (1 - b1) * g
        v = b2 * slots["exp_avg_sq"] + (1 - b2) * g * g
        root = (v / _less_power(b2, now.step)).sqrt() + eps
        up = g * ((1 - mu) / (1 - product)) + m * (following / (1 - product * following))
        kept = {"mu_product": product, "exp_avg": m, "exp_avg_sq": v}
        return p - now.lr * up / root, kept

    def slots_of(p: Tensor) -> dict[str, tuple[int, ...]]:
        shape = tuple(int(size) for size in p.shape)
        return {"mu_product": (), "exp_avg": shape, "exp_avg_sq": shape}

    return per_parameter(rule, slots_of, _common(lr, weight_decay, device), True)


@remembered
def radam(
    lr: float = 1e-3,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 0.0,
    decoupled: bool = False,
    device: str | None = None,
) -> Method:
    """Adam whose early steps, of uncertain variance, are corrected."""
    b1, b2 = betas
    require_fraction(b1=b1, b2=b2)
    limit = 2 / (1 - b2) - 1

    def rule(p: Tensor, g: Tensor, slots: Held, now: Now) -> Result:
        if decoupled:
            p = p - now.lr * now.decay * p if now.decay else p
        else:
            g = now.decayed(g, p)
        m = b1 * slots["exp_avg"] + (1 - b1) * g
        v = b2 * slots["exp_avg_sq"] + (1 - b2) * g * g
        rest = _less_power(b2, now.step)
        length = limit - 2 * now.step * (1 - rest) / rest
        is_sure = length > 5
        safe = is_sure.where(length, 6.0)
        scale = (
            (safe - 4) * (safe - 2) * limit / ((limit - 4) * (limit - 2) * safe)
        ).sqrt() * rest.sqrt()
        up = is_sure.where(scale / (v.sqrt() + eps), 1.0) * m / _less_power(b1, now.step)
        return p - now.lr * up, {"exp_avg": m, "exp_avg_sq": v}

    slots = like_parameter("exp_avg", "exp_avg_sq")
    return per_parameter(rule, slots, _common(lr, weight_decay, device), True)


@remembered
def rprop(
    lr: float = 1e-2,
    etas: tuple[float, float] = (0.5, 1.2),
    step_sizes: tuple[float, float] = (1e-6, 50.0),
    device: str | None = None,
) -> Method:
    """Steps of their own size for each element, which grow while the sign stays."""
    shrink, grow = etas
    least, most = step_sizes

    def rule(p: Tensor, g: Tensor, slots: Held, now: Now) -> Result:
        same = (g * slots["prev"]).sign()
        size = (now.step == 1).where(now.lr, slots["step_size"])
        factor = (same > 0).where(grow, (same < 0).where(shrink, 1.0))
        size = (size * factor).clamp(least, most)
        g = (same < 0).where(0.0, g)
        return p - g.sign() * size, {"prev": g, "step_size": size}

    return per_parameter(rule, like_parameter("prev", "step_size"), _common(lr, 0.0, device), True)


@remembered
def asgd(
    lr: float = 1e-2,
    lambd: float = 1e-4,
    alpha: float = 0.75,
    t0: float = 1e6,
    weight_decay: float = 0.0,
    device: str | None = None,
) -> Method:
    """Descent with a falling rate, and an average of the parameters beside it."""

    def rule(p: Tensor, g: Tensor, slots: Held, now: Now) -> Result:
        g = now.decayed(g, p)
        rate = now.lr / (1 + lambd * now.lr * (now.step - 1)) ** alpha
        new = p * (1 - lambd * rate) - rate * g
        share = 1 / (now.step - t0).maximum(1.0)
        return new, {"ax": slots["ax"] + (new - slots["ax"]) * share}

    return per_parameter(rule, like_parameter("ax"), _common(lr, weight_decay, device), True)
