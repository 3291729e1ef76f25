"""Rows of tables: embedding, embedding_bag, one_hot."""

from __future__ import annotations

from weft.support.errors import ArgumentError
from weft.tensor.small_floats import widened
from weft.tensor.tensor import Tensor


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The row of a table for each index; the row `padding_idx` gets no gradient.

    `max_norm` shrinks the rows that are used, in the table itself, as in PyTorch. Gradients are
    dense, so `sparse` changes nothing.
    """
    if max_norm is not None:
        _shrink_rows(weight, input, max_norm, norm_type)
    table = weight
    if padding_idx is not None:
        table = _without_slope(weight, padding_idx % int(weight.shape[0]))
    rows = table[input]
    if scale_grad_by_freq:
        counts = input.flatten().bincount(minlength=int(weight.shape[0]))
        share = 1.0 / counts[input].unsqueeze(-1).cast(weight.dtype)
        rows = rows.detach() + (rows - rows.detach()) * share
    return rows


def _without_slope(weight: Tensor, row: int) -> Tensor:
    """The table, of which one row is a constant."""
    numbers = Tensor.arange(int(weight.shape[0]), device=weight.device).unsqueeze(1)
    return (numbers == row).where(weight.detach(), weight)


def _shrink_rows(weight: Tensor, index: Tensor, max_norm: float, p: float) -> None:
    """Write to the table: rows that are asked for are at most so long."""
    numbers = Tensor.arange(int(weight.shape[0]), device=weight.device)
    used = (index.flatten().unsqueeze(1) == numbers).any(0).unsqueeze(1)
    length = weight.detach().norm(p, -1, keepdim=True)
    scale = (used & (length > max_norm)).where(max_norm / (length + 1e-7), 1.0)
    weight.assign(weight.detach() * scale)


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Sums, means or maxima of rows, a bag of indices each: rows of a matrix, or by offsets."""
    if mode not in ("sum", "mean", "max"):
        raise ArgumentError(f"embedding_bag: unknown mode {mode!r}", rule="sum, mean or max")
    if max_norm is not None:
        _shrink_rows(weight, input, max_norm, norm_type)
    if input.ndim == 2:
        bags, width = int(input.shape[0]), int(input.shape[1])
        bag = Tensor.arange(bags, device=input.device).repeat_interleave(width)
    else:
        if offsets is None:
            raise ArgumentError("embedding_bag: no offsets", rule="a list of indices needs them")
        bags = int(offsets.shape[0]) - int(include_last_offset)
        positions = Tensor.arange(int(input.shape[0]), device=input.device)
        bag = (positions.unsqueeze(1) >= offsets[:bags].unsqueeze(0)).sum(1) - 1
    index = input.flatten()
    rows = widened(embedding(index, weight, padding_idx, None, 2.0, scale_grad_by_freq))
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.flatten().unsqueeze(1)
    belongs = bag.unsqueeze(0) == Tensor.arange(bags, device=input.device).unsqueeze(1)
    if padding_idx is not None:
        belongs = belongs & (index != padding_idx % int(weight.shape[0])).unsqueeze(0)
    inside = belongs.unsqueeze(2)  # (bag, position, 1)
    if mode == "max":
        greatest = inside.where(rows.unsqueeze(0), rows.dtype.min).max(1)
        return belongs.any(1).unsqueeze(1).where(greatest, 0.0).cast(weight.dtype)
    total = inside.where(rows.unsqueeze(0), 0.0).sum(1)
    if mode == "sum":
        return total.cast(weight.dtype)
    mean = total / belongs.sum(1).clamp(min_=1).unsqueeze(1).cast(total.dtype)
    return mean.cast(weight.dtype)


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """A row of zeros and a one for each class; by default as many as the greatest needs."""
    count = int(tensor.max().item()) + 1 if num_classes == -1 else num_classes
    return tensor.one_hot(count).cast("int64")
