"""Losses: how far predictions are from targets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.support.errors import ArgumentError, ShapeError
from weft.tensor.checks import known

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


def _reduced(loss: Tensor, reduction: str) -> Tensor:
    if reduction not in ("mean", "sum", "none"):
        raise ArgumentError(
            f"unknown reduction {reduction!r}", law='reduction is "mean", "sum" or "none"'
        )
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss


def binary_crossentropy(self: Tensor, Y: Tensor, reduction: str = "mean") -> Tensor:
    """Return -(y log p + (1 - y) log(1 - p)); logarithms are at least -100, as in PyTorch."""
    near, far = self.log().clamp(min_=-100), (1 - self).log().clamp(min_=-100)
    return _reduced(-(Y * near + (1 - Y) * far), reduction)


def binary_crossentropy_logits(
    self: Tensor, Y: Tensor, reduction: str = "mean", pos_weight: Tensor | None = None
) -> Tensor:
    """Return binary_crossentropy of sigmoid(self), without overflow."""
    positive = Y if pos_weight is None else pos_weight * Y
    return _reduced(-(positive * self.logsigmoid() + (1 - Y) * (-self).logsigmoid()), reduction)


def _class_axis(self: Tensor) -> int:
    return 0 if self.ndim == 1 else 1


def _require_classes(name: str, self: Tensor, Y: Tensor) -> None:
    axis = _class_axis(self)
    wanted = self.shape[:axis] + self.shape[axis + 1 :]
    if not self.ndim or Y.shape != wanted:
        raise ShapeError(
            f"{name}: classes of shape {Y.shape} for scores of shape {self.shape}",
            facts=[("scores", self.shape, f"classes on axis {axis}"), ("classes", Y.shape)],
            law=f"the classes have the shape {wanted} here, or are probabilities of the scores' "
            "shape",
        )


def cross_entropy(
    self: Tensor, Y: Tensor, reduction: str = "mean", label_smoothing: float = 0.0
) -> Tensor:
    """Return -log softmax of the right class; Y holds classes, or probabilities of all classes.

    >>> from weft.tensor import Tensor
    >>> loss = Tensor([[0.0, 0.0]]).cross_entropy(Tensor([1]))
    >>> round(loss.item(), 4)
    0.6931
    """
    axis = _class_axis(self)
    if Y.shape != self.shape or not Y.is_floating_point():
        _require_classes("cross_entropy", self, Y)
        Y = Y.one_hot(known(self.shape[axis])).cast(self.dtype).movedim(-1, axis)
    target = (1 - label_smoothing) * Y + label_smoothing / known(self.shape[axis])
    loss = -(self.log_softmax(axis) * target).sum(axis)
    return _reduced(loss, reduction)


def sparse_categorical_crossentropy(
    self: Tensor,
    Y: Tensor,
    ignore_index: int = -1,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
) -> Tensor:
    """Return -log softmax over the last axis at the classes Y; one class value counts nothing."""
    logs = self.log_softmax()
    counted = Y.ne(ignore_index)
    picked = logs.gather(-1, counted.where(Y, 0).unsqueeze(-1)).squeeze(-1)
    loss = -((1 - label_smoothing) * picked + label_smoothing * logs.mean(-1))
    loss = counted.where(loss, 0.0)
    if reduction == "mean":
        return loss.sum() / counted.sum()
    return _reduced(loss, reduction)


def nll_loss(
    self: Tensor,
    Y: Tensor,
    weight: Tensor | None = None,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return minus the log probability of the right class, weighted by class."""
    _require_classes("nll_loss", self, Y)
    axis = _class_axis(self)
    counted = Y.ones_like(dtype="bool") if ignore_index is None else Y.ne(ignore_index)
    classes = counted.where(Y, 0)
    picked = self.gather(axis, classes.unsqueeze(axis)).squeeze(axis)
    scale = picked.ones_like() if weight is None else weight[classes]
    scale = counted.where(scale, 0.0)
    loss = -picked * scale
    if reduction == "mean":
        return loss.sum() / scale.sum()
    return _reduced(loss, reduction)
