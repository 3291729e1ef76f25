"""What a tensor looks like: a line for programs, a table for notebooks.

A value that is in memory is shown with its numbers, the first and last of long axes. A lazy one
says so; looking at it computes nothing.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

import numpy as np

from weft.engine.devices import device, is_file
from weft.tensor.trace.state import tracing

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

# Longer tensors show their first and last elements along each axis.
THRESHOLD: Final = 100
EDGE: Final = 3
# More than these are not copied from another device to be looked at.
MOST_COPIED: Final = 1 << 20


def has_numbers(self: Tensor) -> bool:
    """Whether the numbers can be shown without computing anything."""
    if tracing.trace is not None or tracing.depth or not self._storage.is_realized:
        return False
    if not isinstance(self.device, str) or is_file(self.device):
        return False
    if not all(isinstance(size, int) for size in self.shape):
        return False
    own = device(self.device)
    if own.stores_nothing:
        return False
    return own.host_memory is not None or self.numel() <= MOST_COPIED


def numbers_text(self: Tensor, indent: int) -> str:
    """The numbers in brackets, as NumPy writes them."""
    return np.array2string(
        self.numpy(),
        separator=", ",
        threshold=THRESHOLD,
        edgeitems=EDGE,
        precision=4,
        suppress_small=True,
        prefix=" " * indent,
        max_line_width=99,
    )


def described(self: Tensor) -> str:
    """The line for `repr`."""
    state = "realized" if self._storage.is_realized else "lazy"
    facts = f"{self.shape} {self.dtype.name} {self.device} {state}"
    if not has_numbers(self) or not self.numel():
        return f"<Tensor {facts}>"
    return f"<Tensor {facts}\n  {numbers_text(self, 2)}>"


def as_html(self: Tensor) -> str:
    """A small table for notebooks: what `repr` says, and rows of numbers."""
    facts = f"{self.shape} {self.dtype.name} {self.device}"
    rows = [f"<b>Tensor</b> {escape(facts)}"]
    if has_numbers(self) and self.numel():
        rows.append(f"<pre>{escape(numbers_text(self, 0))}</pre>")
    else:
        rows.append("<i>lazy: not computed yet</i>" if not self._storage.is_realized else "")
    return "<div>" + "".join(rows) + "</div>"
