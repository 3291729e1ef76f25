"""Which kernels of a list read early what another one writes: those have to wait before that.

A kernel that starts while those before it run may read some arguments at once (`Program.early`).
That is right if none of the kernels of the list writes them; earlier lists are done before this
one starts. Memory is compared by address, since arguments may be parts of one block.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from weft.runtime.cuda.launch import CudaExecutable

# Bytes of memory of which nobody knows the size: all behind its address.
_UNKNOWN: Final = 1 << 62


class EarlyReads:
    """The early reads and the writes of a list; `starts` are the first words of each kernel."""

    def __init__(self, kernels: Sequence[CudaExecutable], starts: Sequence[int]) -> None:
        reads: list[tuple[int, int, int]] = []
        writes: list[tuple[int, int]] = []
        for number, (kernel, start) in enumerate(zip(kernels, starts, strict=True)):
            for position, parameter in enumerate(kernel.parameters, start):
                size = parameter.size or _UNKNOWN
                if parameter.is_written:
                    writes.append((position, size))
                if parameter.slot in kernel.early:
                    reads.append((number, position, size))
        self.numbers = sorted({number for number, _, _ in reads})
        self._numbers, self._reads, self._read_sizes = np.array(reads, np.int64).reshape(-1, 3).T
        self._writes, self._written_sizes = np.array(writes, np.int64).reshape(-1, 2).T

    def of_what_is_written(self, words: np.ndarray[tuple[int], np.dtype[np.int64]]) -> set[int]:
        """The numbers of kernels that read early what is written; the words are the arguments."""
        if not self._reads.size or not self._writes.size:
            return set()
        first = words[self._writes]
        order = np.argsort(first)
        first = first[order]
        # The greatest end of all writes that begin no later.
        ends = np.maximum.accumulate(first + self._written_sizes[order])
        read = words[self._reads]
        before = np.searchsorted(first, read + self._read_sizes)  # writes that do not begin later
        is_written = (before > 0) & (ends[np.maximum(before - 1, 0)] > read)
        found: set[int] = set(self._numbers[is_written].tolist())
        return found
