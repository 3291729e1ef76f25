"""Losses of classes: cross entropy and the margin family, and of sequences of classes (CTC)."""

from __future__ import annotations

import math
from typing import Any

from weft.nn.functional.common import reduced, reduction_of
from weft.nn.functional.losses import Flag
from weft.support.errors import ArgumentError
from weft.tensor.autocast import in_float32
from weft.tensor.tensor import Tensor
from weft.tensor.trace.user_scans import scan


@in_float32
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Flag = None,
    ignore_index: int = -100,
    reduce: Flag = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """-log softmax of the right class; the target holds classes, or probabilities."""
    kind = reduction_of(reduction, size_average, reduce)
    if target.is_floating_point():
        loss = input.cross_entropy(target, "none", label_smoothing, weight)
        if kind != "mean":
            return reduced(loss, kind)
        classes = int(input.shape[0 if input.ndim == 1 else 1])
        return loss.sum() / (int(input.numel()) / max(classes, 1))
    return input.cross_entropy(target, kind, label_smoothing, weight, ignore_index)


@in_float32
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Flag = None,
    ignore_index: int = -100,
    reduce: Flag = None,
    reduction: str = "mean",
) -> Tensor:
    """Minus the log probability of the right class."""
    kind = reduction_of(reduction, size_average, reduce)
    return input.nll_loss(target, weight, ignore_index, kind)


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """The cross entropy of the scores x Wᵀ + b, for a weight (classes, …, in).

    Further axes of the weight are axes of the scores. `options` say how PyTorch cuts the product
    into pieces; the scheduler decides that here.
    """
    scores = input.tensordot(linear_weight, dims=([-1], [-1]))
    scores = scores if linear_bias is None else scores + linear_bias
    ignored = -100 if ignore_index is None else ignore_index
    return cross_entropy(scores, target, weight, None, ignored, None, reduction, label_smoothing)


@in_float32
def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over classes of the binary cross entropy of sigmoid(x)."""
    loss = input.binary_crossentropy_logits(target, "none")
    loss = loss if weight is None else loss * weight
    return reduced(loss.mean(-1), reduction_of(reduction, size_average, reduce))


@in_float32
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over the wrong classes of max(0, margin - x[y] + x[i]) ** p."""
    if p not in (1, 2):
        raise ArgumentError(f"multi_margin_loss: p is {p}", rule="p is 1 or 2")
    scores = input.reshape((1, -1)) if input.ndim < 2 else input  # (batch, classes)
    classes = target.reshape((-1, 1))
    right = scores.gather(1, classes)
    terms = (margin - right + scores).relu() ** p
    terms = terms if weight is None else terms * weight[classes]
    numbers = Tensor.arange(int(scores.shape[1]), device=scores.device)
    loss = (numbers == classes).where(0.0, terms).sum(1) / int(scores.shape[1])
    loss = loss.reshape(target.shape) if input.ndim < 2 else loss
    return reduced(loss, reduction_of(reduction, size_average, reduce))


@in_float32
def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: Flag = None,
    reduce: Flag = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean of max(0, 1 - x[right] + x[wrong]) over pairs; -1 ends a list of right classes."""
    scores = input.reshape((-1, int(input.shape[-1]) if input.ndim else 1))
    labels = target.reshape(scores.shape)
    count = int(scores.shape[1])
    is_listed = (labels < 0).cast("int32").cumsum(1) == 0  # (batch, position)
    numbers = Tensor.arange(count, device=scores.device)
    # (batch, position, class)
    is_label = (labels.unsqueeze(2) == numbers) & is_listed.unsqueeze(2)
    is_right = is_label.any(1)
    right = scores.gather(1, labels.clamp(min_=0))
    terms = (1 - right.unsqueeze(2) + scores.unsqueeze(1)).relu()
    counts = is_listed.unsqueeze(2) & ~is_right.unsqueeze(1)
    loss = counts.where(terms, 0.0).sum((1, 2)) / count
    loss = loss.reshape(input.shape[:-1]) if input.ndim else loss.reshape(())
    return reduced(loss, reduction_of(reduction, size_average, reduce))


@in_float32
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Minus the log probability that frames (time, batch, classes) spell the targets.

    The forward variable runs over the targets with blanks between them, one step for each frame.
    """
    is_single = log_probs.ndim == 2
    logs = log_probs.unsqueeze(1) if is_single else log_probs
    frames, batch = int(logs.shape[0]), int(logs.shape[1])
    lengths = [int(n) for n in _numbers(target_lengths)]
    steps = [int(n) for n in _numbers(input_lengths)]
    rows = _rows(targets, lengths, batch)
    width = 2 * max(lengths, default=0) + 1
    labels = [[blank] * width for _ in range(batch)]
    for row, classes in enumerate(rows):
        labels[row][1 : 2 * len(classes) : 2] = classes
    ids = Tensor(labels, device=logs.device)  # (batch, width)
    skips = [
        [s >= 2 and s % 2 == 1 and row[s] != row[s - 2] for s in range(width)] for row in labels
    ]
    may_skip = Tensor(skips, device=logs.device)
    least = -1e30
    first = Tensor.arange(width, device=logs.device) < 2
    alpha = (first & _inside(lengths, width, logs)).where(logs[0].gather(1, ids), least)
    kept = alpha.unsqueeze(0)
    if frames > 1:
        # (time, batch, width): what each frame says of the labels.
        said = logs.gather(2, ids.unsqueeze(0).expand((frames, batch, width)))

        def step(state: Tensor, frame: Tensor) -> tuple[Tensor, Tensor]:
            one = state.pad((1, 0), value=least)[:, :width]
            two = may_skip.where(state.pad((2, 0), value=least)[:, :width], least)
            new = (state.stack(one, two, dim=0).logsumexp(0) + frame).clamp(min_=least)
            return new, new

        _, rest = scan(step, alpha, said[1:])
        kept = kept.cat(rest, dim=0)
    ends = []
    for row, (count, length) in enumerate(zip(steps, lengths, strict=True)):
        last = kept[max(count, 1) - 1, row]
        choices = last[2 * length] if not length else last[2 * length - 1 : 2 * length + 1]
        total = -(choices.logsumexp() if length else choices)
        ends.append((total > 1e29).where(0.0 if zero_infinity else math.inf, total))
    loss = ends[0].stack(*ends[1:])
    loss = loss + _slope_of_scores(logs, steps, loss)
    if reduction == "mean":
        return (loss / Tensor([float(max(n, 1)) for n in lengths], device=logs.device)).mean()
    return reduced(loss.squeeze(0) if is_single and reduction == "none" else loss, reduction)


def _slope_of_scores(logs: Tensor, steps: list[int], loss: Tensor) -> Tensor:
    """Zeros with the slope of Σ exp(logs), which is 0 behind a log_softmax.

    PyTorch's gradient is that of the scores in front of the log_softmax, and this is what differs.
    """
    frames = int(logs.shape[0])
    inside = Tensor([[t < n for n in steps] for t in range(frames)], device=logs.device)
    total = inside.unsqueeze(2).where(logs.exp(), 0.0).sum((0, 2))
    return (loss < math.inf).where(total - total.detach(), 0.0)


def _numbers(lengths: Any) -> list[int]:
    values = lengths.tolist() if isinstance(lengths, Tensor) else lengths
    return [values] if isinstance(values, int) else list(values)


def _rows(targets: Tensor, lengths: list[int], batch: int) -> list[list[int]]:
    """The classes of each example: rows of a matrix, or pieces of one list."""
    values = targets.tolist()
    if targets.ndim == 2:
        return [row[:length] for row, length in zip(values, lengths, strict=True)]
    starts = [sum(lengths[:row]) for row in range(batch)]
    return [values[start : start + n] for start, n in zip(starts, lengths, strict=True)]


def _inside(lengths: list[int], width: int, like: Tensor) -> Tensor:
    return Tensor([[s <= 2 * n for s in range(width)] for n in lengths], device=like.device)
