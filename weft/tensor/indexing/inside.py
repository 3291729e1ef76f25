"""Whether the numbers of an index or of labels are inside of what they number.

A kernel cannot raise: an index outside of its axis reads 0 and writes nothing. Numbers that the
host has anyway, in the memory of a CPU, are looked at when they are used, as long as they are few.
`CHECK=index` computes and looks at all others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weft.engine.devices import device
from weft.ir.ops import Op
from weft.support.errors import IndexOutOfRange
from weft.support.settings import settings
from weft.tensor.trace.state import tracing

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

# More numbers than these would take longer to look at than a small kernel takes to run.
FEW: Final = 1 << 14


def require_inside(name: str, index: Tensor, size: Any, ignored: int | None = None) -> None:
    """Refuse numbers below -size or from size on, where they are known."""
    _require(name, index, size, ignored, is_label=False)


def require_labels(name: str, labels: Tensor, count: Any, ignored: int | None = None) -> None:
    """Refuse classes below 0 or from their count on, where they are known."""
    _require(name, labels, count, ignored, is_label=True)


def _require(name: str, index: Tensor, size: Any, ignored: int | None, is_label: bool) -> None:
    if not isinstance(size, int) or not _is_seen(index):
        return
    numbers = index.numpy()
    if ignored is not None:
        numbers = numbers[numbers != ignored]
    if not numbers.size:
        return
    low, high = int(np.min(numbers)), int(np.max(numbers))
    if high < size and low >= (0 if is_label else -size):
        return
    bad = high if high >= size else low
    what = "class" if is_label else "index"
    raise IndexOutOfRange(
        f"{name}: {what} {bad} is out of range for {size} {'classes' if is_label else 'elements'}",
        facts=[("least", low), ("greatest", high)],
        rule=f"a {what} is from 0 to {size - 1}"
        if is_label
        else f"an index is from {-size} to {size - 1}",
    )


def _is_seen(index: Tensor) -> bool:
    if tracing.trace is not None or tracing.depth or index._storage.is_gone:
        return False
    if index.uop.ops >> Op.PARAM & 1:
        return False
    if settings.CHECK == "index":
        return True
    if not index._storage.is_realized or not isinstance(index.device, str):
        return False
    own = device(index.device)
    if own.host_memory is None or own.stores_nothing:
        return False
    sizes = index.shape
    return all(isinstance(each, int) for each in sizes) and index.numel() <= FEW
