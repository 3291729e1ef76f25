"""What the functions share: reductions of losses, and writes in place."""

from __future__ import annotations

from weft.support.errors import ArgumentError
from weft.tensor.tensor import Tensor

_REDUCTIONS = ("mean", "sum", "none")


def reduction_of(
    reduction: str, size_average: bool | None = None, reduce: bool | None = None
) -> str:
    """The reduction; `size_average` and `reduce` are how PyTorch named it once."""
    if size_average is not None or reduce is not None:
        averages = size_average is None or size_average
        return "none" if reduce is False else "mean" if averages else "sum"
    if reduction not in _REDUCTIONS:
        raise ArgumentError(
            f"unknown reduction {reduction!r}", rule='reduction is "mean", "sum" or "none"'
        )
    return reduction


def reduced(loss: Tensor, reduction: str) -> Tensor:
    """The mean, the sum or each of some losses."""
    if reduction_of(reduction) == "none":
        return loss
    return loss.mean() if reduction == "mean" else loss.sum()


def written(x: Tensor, result: Tensor, inplace: bool, name: str) -> Tensor:
    """The result, which is the input itself where the function works in place."""
    return x._update(result, name) if inplace else result
