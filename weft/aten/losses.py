"""Losses with the arguments of torch itself: a reduction is 0 (none), 1 (mean) or 2 (sum).

The default of those whose C++ default is the mean is none in Python, as there.
"""

from __future__ import annotations

from typing import Any

from weft.nn import functional as F  # noqa: N812 -- as everyone writes it
from weft.support.errors import ArgumentError
from weft.tensor.tensor import Tensor

_REDUCTIONS = ("none", "mean", "sum")


def _name(reduction: int | str) -> str:
    if reduction in _REDUCTIONS:
        return str(reduction)
    if reduction in (0, 1, 2):
        return _REDUCTIONS[int(reduction)]
    raise ArgumentError(
        f"unknown reduction {reduction!r}", rule="it is 0 or none, 1 or mean, 2 or sum"
    )


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: int | str = 1,
    zero_infinity: bool = False,
) -> Tensor:
    """Minus the logarithm of the probability of all alignments. PyTorch: ctc_loss."""
    return F.ctc_loss(
        log_probs, targets, input_lengths, target_lengths, blank, _name(reduction), zero_infinity
    )


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int | str = 0
) -> Tensor:
    """Whether vectors point the same way, or do not, as a loss. PyTorch: cosine_embedding_loss."""
    return F.cosine_embedding_loss(input1, input2, target, margin, reduction=_name(reduction))


def hinge_embedding_loss(
    self: Tensor, target: Tensor, margin: float = 1.0, reduction: int | str = 0
) -> Tensor:
    """Distances of like things, and margins less those of unlike ones."""
    return F.hinge_embedding_loss(self, target, margin, reduction=_name(reduction))


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int | str = 0
) -> Tensor:
    """How far two values are from the wanted order."""
    return F.margin_ranking_loss(input1, input2, target, margin, reduction=_name(reduction))


def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int | str
) -> Tensor:
    """Minus the log-likelihood of counts."""
    return F.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=_name(reduction))


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: int | str = 0,
) -> Tensor:
    """How much nearer the like is than the unlike, less a margin."""
    return F.triplet_margin_loss(
        anchor, positive, negative, margin, p, eps, swap, reduction=_name(reduction)
    )
