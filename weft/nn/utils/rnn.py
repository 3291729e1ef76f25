"""Sequences of several lengths as one tensor: padded, or packed step by step.

A packed sequence has the first steps of all rows, then the second steps, and so on; rows are
sorted by length, the longest first, so that what is left of a batch is always its beginning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from weft.ir.dtypes import dtypes
from weft.support.errors import ArgumentError, ShapeError
from weft.tensor.checks import known
from weft.tensor.tensor import Tensor


class PackedSequence(NamedTuple):
    """Rows of several lengths without padding.

    `data` has the steps, `batch_sizes` how many rows have each step; `sorted_indices` brings the
    rows of a batch into the order of their lengths, and `unsorted_indices` back.
    """

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None = None
    unsorted_indices: Tensor | None = None

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The same with its data elsewhere, or in another dtype."""
        return self._replace(data=self.data.to(*args, **kwargs))


def _lengths(lengths: Any) -> np.ndarray[Any, Any]:
    values = lengths.tolist() if hasattr(lengths, "tolist") else list(lengths)
    return np.asarray(values, np.int64)


def _indices(values: Any) -> Tensor:
    return Tensor(np.asarray(values, np.int64), dtype=dtypes.int64)


def pad_sequence(
    sequences: Any,
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Stack sequences of several lengths, filled up with a value.

    >>> pad_sequence([Tensor([1, 2]), Tensor([3])], batch_first=True).tolist()
    [[1, 2], [3, 0]]
    """
    rows = list(sequences)
    if padding_side not in ("left", "right"):
        raise ArgumentError(
            f"pad_sequence: padding_side is {padding_side!r}", rule='it is "left" or "right"'
        )
    if not rows or any(row.shape[1:] != rows[0].shape[1:] for row in rows):
        raise ShapeError(
            "pad_sequence: sequences that differ in more than their length",
            facts=[("shapes", ", ".join(str(row.shape) for row in rows))],
            rule="there is at least one sequence, and all have the same axes after the first",
        )
    longest = max(known(row.shape[0]) for row in rows)
    padded = []
    for row in rows:
        left = longest - known(row.shape[0])
        around = (left, 0) if padding_side == "left" else (0, left)
        padded.append(row.pad((around, *((0, 0),) * (row.ndim - 1)), value=padding_value))
    return padded[0].stack(*padded[1:], dim=0 if batch_first else 1)  # type: ignore[no-any-return]


def unpad_sequence(
    padded_sequences: Tensor, lengths: Any, batch_first: bool = False
) -> list[Tensor]:
    """The sequences of a padded tensor, each with its length.

    >>> [row.tolist() for row in unpad_sequence(Tensor([[1, 2], [3, 0]]), [2, 1], True)]
    [[1, 2], [3]]
    """
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [rows[number, :length] for number, length in enumerate(_lengths(lengths).tolist())]


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Leave out the padding of rows with these lengths.

    >>> packed = pack_padded_sequence(Tensor([[1, 2], [3, 0]]), [2, 1], batch_first=True)
    >>> packed.data.tolist(), packed.batch_sizes.tolist()
    ([1, 3, 2], [2, 1])
    """
    sizes = _lengths(lengths)
    batch, steps = (0, 1) if batch_first else (1, 0)
    if sizes.shape != (known(input.shape[batch]),) or (sizes < 1).any():
        raise ArgumentError(
            f"pack_padded_sequence: {len(sizes)} lengths for {input.shape[batch]} rows, "
            f"the least {sizes.min(initial=0)}",
            rule="every row has a length, which is 1 or more",
        )
    if sizes.max() > known(input.shape[steps]):
        raise ArgumentError(
            f"pack_padded_sequence: a length of {sizes.max()} in {input.shape[steps]} steps"
        )
    order = np.argsort(-sizes, kind="stable")
    if enforce_sorted:
        if (np.diff(sizes) > 0).any():
            raise ArgumentError(
                "pack_padded_sequence: the lengths are not sorted",
                rule="with enforce_sorted the longest row is the first",
                fix="pass enforce_sorted=False",
            )
        order = np.arange(len(sizes))
    packed = _packed(input if batch_first else input.transpose(0, 1), sizes, order)
    if enforce_sorted:
        return packed
    return packed._replace(
        sorted_indices=_indices(order), unsorted_indices=_indices(np.argsort(order))
    )


def _packed(rows: Tensor, sizes: Any, order: Any) -> PackedSequence:
    """Rows (batch, time, …) taken step by step in an order of the rows."""
    ordered = sizes[order]
    counts = [(ordered > step).sum() for step in range(ordered[0])]
    chosen = np.concatenate([order[:count] for count in counts])
    steps = np.repeat(np.arange(len(counts)), counts)
    return PackedSequence(rows[_indices(chosen), _indices(steps)], _indices(counts))


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack a list of sequences.

    >>> pack_sequence([Tensor([1, 2]), Tensor([3])]).data.tolist()
    [1, 3, 2]
    """
    lengths = [known(row.shape[0]) for row in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, False, enforce_sorted)


def _lengths_of(sequence: PackedSequence) -> tuple[Any, Any]:
    """The length of each row in the order of the batch, and the order of the packed rows."""
    counts = np.asarray(sequence.batch_sizes.tolist())
    lengths = (counts[:, None] > np.arange(counts[0])).sum(0)
    order = np.arange(counts[0])
    if sequence.sorted_indices is not None:
        order = np.asarray(sequence.sorted_indices.tolist())
    unsorted = np.empty_like(lengths)
    unsorted[order] = lengths
    return unsorted, order


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """The rows with padding again, and their lengths.

    >>> padded, lengths = pad_packed_sequence(pack_sequence([Tensor([1, 2]), Tensor([3])]), True)
    >>> padded.tolist(), lengths.tolist()
    ([[1, 2], [3, 0]], [2, 1])
    """
    lengths, order = _lengths_of(sequence)
    counts = np.asarray(sequence.batch_sizes.tolist())
    most = len(counts) if total_length is None else total_length
    if most < len(counts):
        raise ArgumentError(
            f"pad_packed_sequence: total_length is {most}",
            rule=f"the longest row has {len(counts)} steps",
        )
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))  # the index of a row among the packed ones
    steps = np.arange(most)
    is_there = steps[None, :] < lengths[:, None]  # (batch, time)
    first = np.where(steps < len(counts), starts[np.minimum(steps, len(starts) - 1)], 0)
    at = np.where(is_there, first[None, :] + rank[:, None], 0)
    rows = sequence.data[_indices(at)]
    mask = Tensor(is_there, device=rows.device).reshape(*at.shape, *(1,) * (rows.ndim - 2))
    padded = mask.where(rows, padding_value).cast(rows.dtype)
    return padded if batch_first else padded.transpose(0, 1), _indices(lengths)


def pack_padded_like(
    padded: Tensor, sequence: PackedSequence, batch_first: bool
) -> PackedSequence:
    """Pack rows whose lengths and order are those of another sequence."""
    lengths, order = _lengths_of(sequence)
    packed = _packed(padded if batch_first else padded.transpose(0, 1), lengths, order)
    return sequence._replace(data=packed.data)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The rows of a packed sequence as a list."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
