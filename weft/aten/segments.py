"""Reductions of segments that lie one behind the other along an axis."""

from __future__ import annotations

from weft.support.errors import ArgumentError
from weft.tensor.checks import known
from weft.tensor.tensor import Tensor

_EMPTY = {"sum": 0.0, "mean": float("nan"), "prod": 1.0, "min": float("inf"), "max": -float("inf")}


def segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> Tensor:
    """Reduce segments that follow each other along the last axis of `lengths`.

    `reduce` is sum, mean, max, min or prod; `offsets` has the beginnings and the end. A segment
    without elements is `initial`, or what nothing reduces to. PyTorch: segment_reduce.

    >>> segment_reduce(Tensor([1.0, 2.0, 4.0]), "sum", lengths=Tensor([2, 1])).tolist()
    [3.0, 4.0]
    """
    if reduce not in _EMPTY:
        raise ArgumentError(
            f"segment_reduce: unknown reduce {reduce!r}", rule="it is " + ", ".join(_EMPTY)
        )
    if (lengths is None) == (offsets is None):
        raise ArgumentError("segment_reduce: expected lengths or offsets")
    if offsets is not None:
        starts, ends = offsets[..., :-1], offsets[..., 1:]
    else:
        assert lengths is not None
        ends = lengths.cumsum(-1)
        starts = ends - lengths
    lead = axis % data.ndim
    size = known(data.shape[lead])
    positions = Tensor.arange(size, device=data.device)
    inside = (positions >= starts.unsqueeze(-1)) & (positions < ends.unsqueeze(-1))
    tail = data.ndim - lead - 1
    inside = inside.reshape(*inside.shape, *[1] * tail)  # (…, segments, size, 1…)
    values = data.unsqueeze(lead)
    along = lead + 1
    first = _EMPTY[reduce] if initial is None else float(initial)
    counts = inside.sum(along)
    if reduce in ("sum", "mean"):
        total = inside.where(values, 0.0).sum(along)
        total = total if initial is None else total + first
        if reduce == "sum":
            return total
        return (counts > 0).where(total / counts.clamp(min_=1).cast(data.dtype), first)
    if reduce == "prod":
        found = inside.where(values, 1.0).prod(along)
        return found if initial is None else found * first
    edge = float("inf") if reduce == "min" else -float("inf")
    kept = inside.where(values, edge)
    found = kept.amin(along) if reduce == "min" else kept.amax(along)
    if initial is None:
        return found
    return found.minimum(first) if reduce == "min" else found.maximum(first)
