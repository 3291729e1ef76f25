"""Methods that follow the gradient with momentum: SGD, LARS and Muon."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
    require_nonnegative,
)
from weft.support.errors import ArgumentError
from weft.tensor.checks import known
from weft.tensor.tensor import Tensor

Coefficients = Sequence[float]


@remembered
def sgd(
    lr: float = 0.001,
    momentum: float = 0.0,
    weight_decay: float = 0.0,
    nesterov: bool = False,
    classic: bool = False,
    mask: Mask = None,
    device: str | None = None,
) -> Method:
    """Stochastic gradient descent, as `torch.optim.SGD`.

    b ← momentum · b + g; w ← w - lr · b. With `classic` the learning rate is put inside:
    b ← momentum · b + lr · g; w ← w - b.
    """
    return _descent(Common(lr, weight_decay, mask, device), momentum, nesterov, classic)


@remembered
def muon(
    lr: float = 0.001,
    momentum: float = 0.95,
    weight_decay: float = 0.1,
    ns_steps: int = 5,
    ns_coefficients: Coefficients = (3.4445, -4.775, 2.0315),
    nesterov: bool = True,
    mask: Mask = None,
    device: str | None = None,
) -> Method:
    """Momentum whose matrix is made nearly orthogonal by Newton and Schulz's iteration.

    w ← w - lr · (orthogonal(b) + weight_decay · w). It is meant for matrices: use another method
    for biases, norms and embeddings (`OptimizerGroup`).
    """
    common = Common(lr, weight_decay, mask, device)
    orthogonalize = _orthogonal(ns_steps, ns_coefficients)
    return _descent(common, momentum, nesterov, pre_wd=False, orthogonalize=orthogonalize)


@remembered
def lars(
    lr: float = 0.001,
    momentum: float = 0.9,
    weight_decay: float = 1e-4,
    ns_steps: int = 0,
    ns_coefficients: Coefficients | None = None,
    nesterov: bool = False,
    classic: bool = True,
    pre_wd: bool = True,
    tcoef: float = 0.001,
    mask: Mask = None,
    device: str | None = None,
) -> Method:
    """Descent whose rate is scaled for each parameter by tcoef · |w| / (|g| + decay · |w|).

    The ratio is 1 where a norm is 0, or `tcoef` is. Weight decay is part of the gradient with
    `pre_wd`, and a step of its own otherwise.
    """
    common = Common(lr, weight_decay, mask, device)
    orthogonalize = _orthogonal(ns_steps, ns_coefficients) if ns_coefficients else None
    return _descent(common, momentum, nesterov, classic, pre_wd, tcoef, orthogonalize)


def _descent(
    common: Common,
    momentum: float,
    nesterov: bool,
    classic: bool = False,
    pre_wd: bool = True,
    tcoef: float = 0.0,
    orthogonalize: Callable[[Tensor], Tensor] | None = None,
) -> Method:
    """All of them: momentum, a rate by norms where `tcoef` is given, and an orthogonal step."""
    require_nonnegative(momentum=momentum, tcoef=tcoef)

    def rule(p: Tensor, g: Tensor, slots: Held, now: Now) -> Result:
        rate = now.lr * _trust(p, g, tcoef, now.decay) if tcoef else now.lr
        g = now.decayed(g, p) if pre_wd else g
        g = g * rate if classic else g
        if momentum:
            slots = {"b": momentum * slots["b"] + g}
            g = g + momentum * slots["b"] if nesterov else slots["b"]
        g = orthogonalize(g) if orthogonalize else g
        new = p - (g if classic else g * rate)
        return (new if pre_wd or not now.decay else new - now.decay * now.lr * p), slots

    return per_parameter(rule, like_parameter(*["b"] * bool(momentum)), common)


def _trust(p: Tensor, g: Tensor, tcoef: float, decay: float) -> Tensor:
    weight, slope = norm(p), norm(g)
    ratio = tcoef * weight / (slope + decay * weight)
    return ((weight > 0) & (slope > 0)).where(ratio, 1.0)


def _orthogonal(steps: int, coefficients: Coefficients) -> Callable[[Tensor], Tensor]:
    return lambda g: orthogonal(g, steps, coefficients)


def orthogonal(g: Tensor, steps: int, coefficients: Coefficients) -> Tensor:
    """A matrix near the orthogonal one closest to g, by an odd polynomial of its singular values.

    x ← a x + (b x xᵀ + c (x xᵀ)²) x, from g scaled to norm 1. All axes but the first count as one.
    """
    if g.ndim < 2:
        raise ArgumentError(
            f"Muon: a parameter of shape {g.shape}",
            rule="Muon steps along matrices: parameters have two axes or more",
            fix="give biases and norms to another optimizer, and join both by OptimizerGroup",
        )
    a, b, c = coefficients
    x = g.reshape((g.shape[0], -1))
    is_tall = known(x.shape[0]) > known(x.shape[1])
    x = x.transpose() if is_tall else x
    x = x / (norm(x) + 1e-7)
    for _ in range(steps):
        square = x @ x.transpose()
        x = a * x + (b * square + c * (square @ square)) @ x
    return (x.transpose() if is_tall else x).reshape(g.shape)
