"""Matrix units: shapes, dtypes, and which thread has which element of a tile.

A `Fragment` is data. The number of a thread and the number of one of its elements are bits; each
bit that is set moves by some rows and columns of the tile. So a layout is a few pairs of numbers,
reader and writer derive their indices from the same ones, and a test can see that every element
has exactly one position.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from weft.ir.dtypes import DType

Step = tuple[int, int]  # rows and columns
# The sum with which tiles were measured: 4096 elements of 16 bits.
LONG_SUM: Final = 8192
# Rows or columns of a product below which the group of a tile has mostly nothing to do.
LEAST_SIDE: Final = 17


@dataclass(frozen=True)
class Fragment:
    """How a tile of rows and columns lies in the registers of the threads that share it.

    `threads` has the step of each bit of the thread's number, the lowest first, `elements` that of
    each bit of the number of an element in a thread.

    >>> sum_16x8 = Fragment(((0, 2), (0, 4), (1, 0), (2, 0), (4, 0)), ((0, 1), (8, 0)))
    >>> sum_16x8.position(5, 3)
    (9, 3)
    """

    threads: tuple[Step, ...]
    elements: tuple[Step, ...]

    def position(self, thread: int, element: int) -> Step:
        """The row and the column of an element of a thread."""
        steps = [step for bit, step in enumerate(self.threads) if thread >> bit & 1]
        steps += [step for bit, step in enumerate(self.elements) if element >> bit & 1]
        return sum(row for row, _ in steps), sum(column for _, column in steps)

    def positions(self) -> Iterator[Step]:
        """Those of all elements of all threads, thread by thread."""
        for thread in range(1 << len(self.threads)):
            for element in range(1 << len(self.elements)):
                yield self.position(thread, element)


@dataclass(frozen=True)
class Tile:
    """Rows and columns of a product that a group computes, and which share of the rate it has.

    The share is that of a GPU whose multiprocessors are all busy, with a sum of `LONG_SUM` bytes:
    small tiles read each element of the factors more often. Filling the first stages and storing
    takes as long as `overhead` bytes. Of what else follows the sum, other groups hide all but the
    part `after`. Where there are not enough groups to share a multiprocessor, one has a part
    `alone` of the speed that they have together.
    """

    rows: int
    columns: int
    share: float
    overhead: int
    depth: int = 128  # bytes of the sum in a step
    groups: int = 1  # that share a multiprocessor where there are enough of them
    after: float = 1.0
    alone: float = 1.0

    def share_of(self, sum_bytes: int, more: float = 0.0, is_alone: bool = False) -> float:
        """The share with a sum of so many bytes, where what follows takes as long as `more`."""
        long = LONG_SUM / (LONG_SUM + self.overhead)
        share = self.share * self.alone if is_alone else self.share
        return share * sum_bytes / (sum_bytes + self.overhead + self.after * more) / long


@dataclass(frozen=True)
class MatrixUnit:
    """One instruction that adds the product of two tiles to a third.

    `threads` execute it together. `columns` are the widths n that it can have; rows m and the
    depth k are fixed. Operands in registers lie as `left`, `right` and `result` say, the result
    for the narrowest n, which repeats to the right; those without a fragment are read from
    `operands_from`, and a result without one is in `result_in`. `rate` is what the whole machine
    does at most, operations per second, where a multiplication with an addition is two. `tiles`
    are what groups compute by it, where that was measured. Sums keep `digits` bits.
    """

    name: str
    inputs: tuple[tuple[DType, DType], ...]
    accumulator: DType
    rows: int
    columns: tuple[int, ...]
    depth: int
    threads: int
    rate: float
    left: Fragment | None = None
    right: Fragment | None = None
    result: Fragment | None = None
    operands_from: str = "register"
    result_in: str = "register"
    source: str = ""
    tiles: tuple[Tile, ...] = ()
    digits: int = 24
