"""Losses: how far predictions are from targets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.support.errors import ArgumentError, ShapeError
from weft.tensor.autocast import in_float32
from weft.tensor.checks import broadcast_shape, known
from weft.tensor.indexing.inside import require_labels
from weft.tensor.methods.joining import hot
from weft.tensor.methods.unary import float_pair

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


def _reduced(loss: Tensor, reduction: str) -> Tensor:
    if reduction not in ("mean", "sum", "none"):
        raise ArgumentError(
            f"unknown reduction {reduction!r}", rule='reduction is "mean", "sum" or "none"'
        )
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss


@in_float32
def mse_loss(self: Tensor, Y: Tensor, reduction: str = "mean") -> Tensor:
    """Return (x - y)²: its mean, its sum or each. PyTorch: nn.functional.mse_loss.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0, 2.0]).mse_loss(Tensor([1.0, 4.0])).item()
    2.0
    """
    return _reduced((self - Y).square(), reduction)


@in_float32
def l1_loss(self: Tensor, Y: Tensor, reduction: str = "mean") -> Tensor:
    """Return |x - y|: its mean, its sum or each. PyTorch: nn.functional.l1_loss.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0, 2.0]).l1_loss(Tensor([1.0, 4.0])).item()
    1.0
    """
    return _reduced((self - Y).abs(), reduction)


@in_float32
def huber_loss(self: Tensor, Y: Tensor, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    """Return d² / 2 up to a distance of delta, and delta (d - delta / 2) beyond; d = |x - y|.

    PyTorch: nn.functional.huber_loss.

    >>> from weft.tensor import Tensor
    >>> Tensor([0.0, 0.0]).huber_loss(Tensor([1.0, 3.0]), reduction="none").tolist()
    [0.5, 2.5]
    """
    if not delta > 0:
        raise ArgumentError(f"huber_loss: delta is {delta}", rule="delta is above 0")
    away = (self - Y).abs()
    near = away.clamp(max_=delta)  # one formula for both parts, so that slopes meet
    return _reduced(near * (away - near * 0.5), reduction)


@in_float32
def smooth_l1_loss(self: Tensor, Y: Tensor, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """Return d² / (2 beta) up to a distance of beta, and d - beta / 2 beyond; d = |x - y|.

    PyTorch: nn.functional.smooth_l1_loss. It is l1_loss for a beta of 0.

    >>> from weft.tensor import Tensor
    >>> Tensor([0.0, 0.0]).smooth_l1_loss(Tensor([1.0, 3.0]), reduction="none").tolist()
    [0.5, 2.5]
    """
    if beta < 0:
        raise ArgumentError(f"smooth_l1_loss: beta is {beta}", rule="beta is at least 0")
    if beta == 0:
        return self.l1_loss(Y, reduction)
    away = (self - Y).abs()
    near = away.clamp(max_=beta)
    return _reduced(near * (away - near * 0.5) / beta, reduction)


@in_float32
def kl_div(self: Tensor, Y: Tensor, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """Return y (log y - x), where x holds logarithms of probabilities, and y may.

    The reduction "batchmean" divides the sum by the first size, which is the divergence of
    Kullback and Leibler. PyTorch: nn.functional.kl_div.

    >>> from weft.tensor import Tensor
    >>> p = Tensor([[0.5, 0.5]])
    >>> p.log().kl_div(p, reduction="batchmean").item()
    0.0
    """
    loss = Y.exp() * (Y - self) if log_target else Y.xlogy(Y) - Y * self
    if reduction == "batchmean":
        return loss.sum() / known(self.shape[0])
    return _reduced(loss, reduction)


@in_float32
def cosine_similarity(self: Tensor, x: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Return the cosine of the angle between vectors along an axis; lengths are at least eps.

    PyTorch: nn.functional.cosine_similarity.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1.0, 0.0], [0.0, 2.0]]).cosine_similarity(Tensor([[2.0, 0.0]])).tolist()
    [1.0, 0.0]
    """
    one, other = (each / each.norm(dim=dim, keepdim=True).clamp(min_=eps) for each in (self, x))
    return (one * other).sum(dim)


@in_float32
def binary_crossentropy(self: Tensor, Y: Tensor, reduction: str = "mean") -> Tensor:
    """Return -(y log p + (1 - y) log(1 - p)); logarithms are at least -100, as in PyTorch.

    The name there is nn.functional.binary_cross_entropy.

    >>> from weft.tensor import Tensor
    >>> round(Tensor([0.5]).binary_crossentropy(Tensor([1.0])).item(), 4)
    0.6931
    """
    from weft.tensor.autodiff.custom_gradient import with_body

    p, y = float_pair(self, Y, "binary_crossentropy")
    shape = broadcast_shape("binary_crossentropy", p.shape, y.shape)
    p, y = p.expand(shape), y.expand(shape)
    loss = -(y * _log(p) + (1 - y) * _log(1 - p))
    return _reduced(with_body(loss, [p, y], "binary cross entropy", _slopes), reduction)


def _log(p: Tensor) -> Tensor:
    """log p, at least -100."""
    return p.log().clamp(min_=-100)


def _slopes(inputs: Any, _: Any, g: Any) -> tuple[Tensor, Tensor]:
    """(p - y) / (p (1 - p)), whose divisor is at least 1e-12 as in PyTorch, and that of y.

    The sum of the slopes of two logarithms would be infinite where p is 0 or 1, and NaN with what
    follows. A p that rounds to 1 has no slope: that of a sigmoid is above 0 there, and the product
    would be large for no reason.
    """
    p, y = inputs
    slope = (p - y) / (p * (1 - p)).clamp(min_=1e-12)
    return g * (p >= 1).where(0.0, slope), g * (_log(1 - p) - _log(p))


@in_float32
def binary_crossentropy_logits(
    self: Tensor, Y: Tensor, reduction: str = "mean", pos_weight: Tensor | None = None
) -> Tensor:
    """Return binary_crossentropy of sigmoid(self), without overflow.

    `pos_weight` multiplies the part of ones. PyTorch:
    nn.functional.binary_cross_entropy_with_logits.

    >>> from weft.tensor import Tensor
    >>> Tensor([100.0, -1000.0]).binary_crossentropy_logits(Tensor([1.0, 1.0])).item()
    500.0
    """
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
            rule=f"the classes have the shape {wanted} here, or are probabilities of the scores' "
            "shape",
        )


@in_float32
def cross_entropy(
    self: Tensor,
    Y: Tensor,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
    weight: Tensor | None = None,
    ignore_index: int = -100,
) -> Tensor:
    """Return -log softmax of the right class; Y holds classes, or probabilities of all classes.

    Scores are (classes,) or (batch, classes, …). `weight` (classes,) scales the loss of each
    class, and targets of class `ignore_index` count nothing. A mean is one of what counts, by
    weight. PyTorch: nn.functional.cross_entropy.

    >>> from weft.tensor import Tensor
    >>> loss = Tensor([[0.0, 0.0]]).cross_entropy(Tensor([1]))
    >>> round(loss.item(), 4)
    0.6931
    """
    axis, count = _class_axis(self), known(self.shape[_class_axis(self)] if self.ndim else 0)
    scale = None if weight is None else weight.reshape([-1] + [1] * (self.ndim - axis - 1))
    if Y.shape == self.shape and Y.is_floating_point():
        loss = -(self.log_softmax(axis) * _smooth(Y, label_smoothing, count, scale)).sum(axis)
        return _reduced(loss, reduction)
    _require_classes("cross_entropy", self, Y)
    require_labels("cross_entropy", Y, count, ignore_index)
    logs, counted = self.log_softmax(axis), Y.ne(ignore_index)
    logs = logs if scale is None else logs * scale
    loss = counted.where(_class_loss(logs, Y, axis, label_smoothing), 0.0)
    if reduction != "mean":
        return _reduced(loss, reduction)
    if scale is None:
        return loss.sum() / counted.sum()
    return loss.sum() / counted.where(_at_class(scale.expand(self.shape), Y, axis), 0.0).sum()


def _at_class(values: Tensor, Y: Tensor, axis: int) -> Tensor:
    """The values of the right classes, chosen and not multiplied: others may be infinite."""
    is_right = hot(Y, known(values.shape[axis])).movedim(-1, axis)
    return is_right.where(values, 0.0).sum(axis)


def _class_loss(logs: Tensor, Y: Tensor, axis: int, smoothing: float) -> Tensor:
    """Minus the logarithms at the right classes, with a share of those of all classes."""
    loss = -_at_class(logs, Y, axis)
    return (1 - smoothing) * loss - smoothing * logs.mean(axis) if smoothing else loss


def _smooth(target: Tensor, share: float, count: int, scale: Tensor | None) -> Tensor:
    """Probabilities of which a share is spread over all classes, times the weights."""
    mixed = (1 - share) * target + share / count if share else target
    return mixed if scale is None else mixed * scale


@in_float32
def sparse_categorical_crossentropy(
    self: Tensor,
    Y: Tensor,
    ignore_index: int = -1,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
) -> Tensor:
    """Return -log softmax over the last axis at the classes Y; one class value counts nothing.

    For scores (…, classes) the classes are (…); the mean is one of those that count. PyTorch has
    cross_entropy, with the classes on axis 1.

    >>> from weft.tensor import Tensor
    >>> scores = Tensor([[0.0, 0.0], [5.0, 1.0]])
    >>> round(scores.sparse_categorical_crossentropy(Tensor([1, -1])).item(), 4)
    0.6931
    """
    require_labels("sparse_categorical_crossentropy", Y, self.shape[-1], ignore_index)
    counted = Y.ne(ignore_index)
    loss = _class_loss(self.log_softmax(), Y, self.ndim - 1, label_smoothing)
    loss = counted.where(loss, 0.0)
    if reduction == "mean":
        return loss.sum() / counted.sum()
    return _reduced(loss, reduction)


@in_float32
def nll_loss(
    self: Tensor,
    Y: Tensor,
    weight: Tensor | None = None,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return minus the log probability of the right class, weighted by class.

    Log probabilities are (classes,) or (batch, classes, …). PyTorch: nn.functional.nll_loss, which
    leaves out class -100 unless told otherwise.

    >>> from weft.tensor import Tensor
    >>> Tensor([[-1.0, -2.0], [-3.0, -4.0]]).nll_loss(Tensor([0, 1])).item()
    2.5
    """
    _require_classes("nll_loss", self, Y)
    axis = _class_axis(self)
    require_labels("nll_loss", Y, self.shape[axis], ignore_index)
    counted = Y.ones_like(dtype="bool") if ignore_index is None else Y.ne(ignore_index)
    classes = counted.where(Y, 0)
    picked = self.gather(axis, classes.unsqueeze(axis)).squeeze(axis)
    scale = picked.ones_like() if weight is None else weight[classes]
    loss = counted.where(-picked * scale, 0.0)
    if reduction == "mean":
        return loss.sum() / counted.where(scale, 0.0).sum()
    return _reduced(loss, reduction)
