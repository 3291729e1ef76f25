"""Losses of classes, and steps of optimizers from the training domain."""

from __future__ import annotations

from typing import Any

from weft.ir.dtypes import dtypes
from weft.onnx.table import TRAINING, op
from weft.tensor.tensor import Tensor


def _nll(call: Any, scores: Tensor, target: Tensor, weight: Tensor | None) -> Tensor:
    """The negative score of each target's class: (batch, classes, …) and (batch, …)."""
    ignored = call.get("ignore_index")
    classes = scores.shape[1]
    shape = [1] * scores.ndim
    shape[1] = classes
    numbers = Tensor.arange(classes, dtype=dtypes.int64, device=scores.device).reshape(shape)
    hot = target.cast(dtypes.int64).unsqueeze(1) == numbers
    loss = -hot.where(scores, 0).sum(1)
    if weight is None:
        share = Tensor.ones(*target.shape, dtype=scores.dtype, device=scores.device)
    else:
        share = hot.where(weight.reshape(shape), 0).sum(1)
    if ignored is not None:
        share = (target == ignored).where(0, share)
    share = share.cast(scores.dtype)
    how = call.get("reduction", "mean")
    if how not in ("none", "sum", "mean"):
        raise call.error(f"reduction {how!r}", "reductions are none, sum and mean")
    weighed = (share == 0).where(0, loss * share).cast(scores.dtype)
    if how == "none":
        return weighed
    total = weighed.sum()
    if how == "sum":
        return total
    if weight is None and ignored is None:
        return weighed.mean()
    return total / share.sum()


@op("NegativeLogLikelihoodLoss")
def negative_log_likelihood(
    call: Any, scores: Tensor, target: Tensor, weight: Tensor | None = None
) -> Tensor:
    return _nll(call, scores, target, weight)


@op("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy(
    call: Any, scores: Tensor, target: Tensor, weight: Tensor | None = None
) -> Any:
    logs = scores.log_softmax(1)
    return _nll(call, logs, target, weight), logs


@op("Gradient", domain=TRAINING)
def gradient(call: Any, *values: Tensor) -> Any:
    """The slopes of a value of the graph with respect to others."""
    names = call.get("xs")
    roots = [call.run.tensor(call.scope[name]) for name in names]
    return tuple(call.run.tensor(call.scope[call.get("y")]).sum().gradient(*roots))


def _groups(values: tuple[Tensor, ...], kinds: int) -> list[tuple[Tensor, ...]]:
    """(x1, x2, …, g1, g2, …) as (x1, g1, …), (x2, g2, …)."""
    count = len(values) // kinds
    return [tuple(values[kind * count + n] for kind in range(kinds)) for n in range(count)]


def _joined(results: list[tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
    return tuple(each for kind in zip(*results, strict=True) for each in kind)


@op("Adagrad", domain=TRAINING)
def adagrad(call: Any, rate: Tensor, step: Tensor, *values: Tensor) -> Any:
    decay, norm = call.get("decay_factor", 0.0), call.get("norm_coefficient", 0.0)
    now = rate / (1 + step.cast(rate.dtype) * decay)
    results = []
    for x, gradient, square in _groups(values, 3):
        slope = gradient + norm * x
        total = square + slope * slope
        results.append((x - now * slope / (total.sqrt() + call.get("epsilon", 1e-6)), total))
    return _joined(results)


@op("Momentum", domain=TRAINING)
def momentum(call: Any, rate: Tensor, step: Tensor, *values: Tensor) -> Any:
    alpha, beta = call.get("alpha"), call.get("beta")
    results = []
    for x, gradient, speed in _groups(values, 3):
        slope = gradient + call.get("norm_coefficient") * x
        first = (step > 0).where(beta, 1.0).cast(x.dtype)
        new = alpha * speed + first * slope
        move = slope + alpha * new if call.get("mode") == "nesterov" else new
        results.append((x - rate * move, new))
    return _joined(results)


@op("Adam", domain=TRAINING)
def adam(call: Any, rate: Tensor, step: Tensor, *values: Tensor) -> Any:
    alpha, beta = call.get("alpha", 0.9), call.get("beta", 0.999)
    norm, after = call.get("norm_coefficient", 0.0), call.get("norm_coefficient_post", 0.0)
    time = step.cast(rate.dtype)
    bias = (1 - Tensor.full((), beta, dtype=rate.dtype, device=rate.device).pow(time)).sqrt()
    bias = bias / (1 - Tensor.full((), alpha, dtype=rate.dtype, device=rate.device).pow(time))
    now = (step > 0).where(rate * bias, rate)
    results = []
    for x, gradient, mean, square in _groups(values, 4):
        slope = gradient + norm * x
        first, second = alpha * mean + (1 - alpha) * slope, beta * square + (1 - beta) * slope**2
        new = x - now * first / (second.sqrt() + call.get("epsilon", 0.0))
        results.append(((1 - after) * new, first, second))
    return _joined(results)
