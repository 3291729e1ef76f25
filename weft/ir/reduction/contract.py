"""The parts of a CONTRACT, in one place: who makes one and who takes it apart agree here.

`CONTRACT(x, y, starts…, positions…; (tile, stages, steps, factor, factor, dtype))` is a tile of a
product of matrices. A group of threads computes `tile` rows and columns of the result, and in each
step `tile` depth of the sum. Every factor is memory seen as a tensor of up to five axes, the
contiguous one first; `starts` are the coordinates of its tile in the first step, an index for each
axis of both tensors. What lies outside of a tensor is 0.

The rest of the sources say where an element of the tile is. In a kernel they are six: the row is
`16 warp + 8 half + lane` and the column `32 block + 8 quad + pair`. Once threads are known, only
`warp`, `lane` and `quad` are left, and the value is a vector of all elements that the thread has,
element `16 block + 8 half + pair`.

Such an element has eight columns side by side with each thread, once neighbors have exchanged
theirs. What goes on in registers stays as matrix units leave it: the seventh of the arg is "pairs"
then, the column `8 block + 2 quad + pair`, and element `4 block + 2 half + pair` of a thread. The
left factor may be a tile that the threads compute, each its own elements of such pairs: a STAGE of
rows and depth, which becomes register memory.

Sums are those of `sum_dtype`; an element is a sum rounded to the dtype of the arg. The node has
that dtype too, or unsigned integers of the same size where a target has only their bits.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from weft.ir.dtypes import FLOAT, DType, by_name, dtypes
from weft.ir.ops import Op
from weft.ir.uop import UOp, make
from weft.ir.views import behind

# The bytes of a row of a tile in local memory: its 16-byte parts are exchanged in eight rows.
ROW_BYTES: Final = 128
PART_BYTES: Final = 16
# Rows of the result that four warps have together, and the threads of those.
WARPGROUP_ROWS: Final = 64
WARPGROUP_THREADS: Final = 128
# Of a tile: rows of a warp, and columns that a thread has of each block of 32.
WARP_ROWS: Final = 16
BLOCK_COLUMNS: Final = 32
THREAD_COLUMNS: Final = 8
# Columns of a block as matrix units leave it, and how many of them a thread has.
UNIT_COLUMNS: Final = 8
PAIR: Final = 2
PAIRS: Final = "pairs"
MOST_AXES: Final = 5


class Factor(NamedTuple):
    """One factor as a tensor: sizes and strides in elements, the first stride is 1.

    `rows` are the axes that the rows of a tile (columns, of the right factor) lie along, with how
    many lie along each, the fastest first; `depth` are the axes of the sum, with the elements of a
    row of local memory; further ones lie along the last of them. A tile takes each element of an
    axis, or every second, third … as `traversal` says. A step of each counter moves by `moves`
    along each axis.
    """

    dtype: str
    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    rows: tuple[tuple[int, int], ...]
    depth: tuple[tuple[int, int], ...]
    moves: tuple[tuple[int, ...], ...]
    traversal: tuple[int, ...]

    @property
    def row_elements(self) -> int:
        """Elements of a row of 128 bytes in local memory."""
        return ROW_BYTES // self.of.itemsize

    @property
    def of(self) -> DType:
        return by_name(self.dtype)

    @property
    def is_along_depth(self) -> bool:
        """Whether the sum runs along memory; else rows do."""
        return self.depth[0][0] == 0

    @property
    def height(self) -> int:
        """The rows of a tile."""
        count = 1
        for _, extent in self.rows:
            count *= extent
        return count

    @property
    def box(self) -> tuple[int, ...]:
        """What one copy brings: rows of 128 bytes, of all rows of the tile or of a panel."""
        box = [1] * len(self.sizes)
        box[0] = self.row_elements
        if self.is_along_depth:
            for axis, extent in self.rows:
                box[axis] = extent
        else:
            for axis, extent in self.depth:
                box[axis] = extent
        return tuple(box)

    @property
    def panels(self) -> int:
        """How many copies bring all rows of the tile."""
        return 1 if self.is_along_depth else self.height // self.row_elements

    def corner(self, part: int, panel: int) -> list[int]:
        """The coordinates of a copy, from the start of a tile: a part of the sum, and a panel."""
        at = self.position(panel * self.row_elements, 0)
        last, extent = self.depth[-1]
        at[last] += part * extent * self.traversal[last]
        return at

    def position(self, row: int, along: int) -> list[int]:
        """The coordinates of an element of a tile, from its start."""
        at = [0] * len(self.sizes)
        for axis, extent in self.depth[:-1]:
            along, at[axis] = divmod(along, extent)
        at[self.depth[-1][0]] = along
        for axis, extent in self.rows:
            row, at[axis] = divmod(row, extent)
        return [each * step for each, step in zip(at, self.traversal, strict=True)]


class ContractParts(NamedTuple):
    """What a CONTRACT is made of."""

    memories: tuple[UOp, UOp]
    starts: tuple[tuple[UOp, ...], tuple[UOp, ...]]
    positions: tuple[UOp, ...]
    tile: tuple[int, int, int]  # rows, columns, depth
    stages: int
    steps: tuple[int, ...]
    factors: tuple[Factor, Factor]
    element: str  # the dtype of an element of the result
    is_in_pairs: bool = False  # as matrix units leave it, not exchanged among neighbors

    @property
    def is_computed(self) -> bool:
        """Whether the left factor is a tile that threads compute, and not memory."""
        return behind(self.memories[0]).op in (Op.STAGE, Op.MEMORY)

    @property
    def elements(self) -> int:
        """The elements of the tile that each thread has."""
        rows, columns, _ = self.tile
        return rows * columns // threads_of(rows)

    @property
    def warps(self) -> int:
        return self.tile[0] // WARP_ROWS

    @property
    def parts(self) -> int:
        """How often a row of 128 bytes goes into the depth of a tile."""
        return self.tile[2] // self.factors[0].row_elements

    @property
    def stage_bytes(self) -> int:
        """Local memory of a step: tiles of both factors."""
        return self.parts * ROW_BYTES * sum(factor.height for factor in self.factors)

    @property
    def step_count(self) -> int:
        count = 1
        for extent in self.steps:
            count *= extent
        return count


def sum_dtype(factor: Factor) -> DType:
    """The dtype in which products of a factor are summed."""
    return dtypes.float32 if factor.of.kind == FLOAT else dtypes.int32


def threads_of(rows: int) -> int:
    """The threads of a group that computes so many rows."""
    return rows // WARPGROUP_ROWS * WARPGROUP_THREADS


def contract(parts: ContractParts, dtype: DType) -> UOp:
    """The CONTRACT of these parts: a scalar, or the vector of all elements of a thread."""
    tile, stages, steps = parts.tile, parts.stages, parts.steps
    arg = (tile, stages, steps, *(tuple(factor) for factor in parts.factors), parts.element)
    arg = (*arg, PAIRS) if parts.is_in_pairs else arg
    left, right = parts.starts
    return make(Op.CONTRACT, dtype, (*parts.memories, *left, *right, *parts.positions), arg)


def contract_parts(node: UOp) -> ContractParts:
    """The parts of a CONTRACT, which has as many sources as its arg says."""
    tile, stages, steps, first, second, element, *layout = node.arg
    left, right = Factor(*first), Factor(*second)
    x, y, *rest = node.src
    middle, end = len(left.sizes), len(left.sizes) + len(right.sizes)
    return ContractParts(
        (x, y),
        (tuple(rest[:middle]), tuple(rest[middle:end])),
        tuple(rest[end:]),
        *(tile, stages, steps, (left, right), element, bool(layout)),
    )


def swizzled(byte: int) -> int:
    """Where a byte of rows of 128 bytes is: parts of 16 are exchanged, otherwise in each row.

    Memory starts at a multiple of 1024 bytes. Eight rows of the same part are at eight positions
    of a line, so that neither rows nor columns meet in a bank.

    >>> [swizzled(128 * row) - 128 * row for row in range(9)]
    [0, 16, 32, 48, 64, 80, 96, 112, 0]
    """
    return byte ^ (byte // ROW_BYTES % 8 * PART_BYTES)


def tile_byte(start: int, row: int, along: int, size: int, panel: int) -> int:
    """Where an element of a tile is that starts at a byte, before it is swizzled.

    Without panels a row of the tile is a row of memory. Else each row of memory has one position
    along the sum for as many rows of the tile as it has room for; panels are so many bytes apart.
    """
    if not panel:
        return start + row * ROW_BYTES + along * size
    across = ROW_BYTES // size
    return start + row // across * panel + along * ROW_BYTES + row % across * size


def element_position(
    warp: int, half: int, lane: int, block: int, quad: int, pair: int, *, is_in_pairs: bool = False
) -> tuple[int, int]:
    """The row and column of a tile that the six positions of an element say."""
    row = WARP_ROWS * warp + WARP_ROWS // 2 * half + lane
    if is_in_pairs:
        return row, UNIT_COLUMNS * block + PAIR * quad + pair
    return row, BLOCK_COLUMNS * block + THREAD_COLUMNS * quad + pair


def thread_position(
    warp: int, lane: int, quad: int, element: int, is_in_pairs: bool = False
) -> tuple[int, int]:
    """The row and column of an element of a thread: neighbors have exchanged theirs, or not."""
    columns = PAIR if is_in_pairs else THREAD_COLUMNS
    block, rest = divmod(element, 2 * columns)
    half, pair = divmod(rest, columns)
    return element_position(warp, half, lane, block, quad, pair, is_in_pairs=is_in_pairs)


def sum_position(thread: int, element: int) -> tuple[int, int]:
    """The row and column of a sum that a thread of a warpgroup has, as matrix units leave it."""
    row = thread // 32 * WARP_ROWS + thread % 32 // 4 + element // 2 % 2 * 8
    return row, element // 4 * 8 + thread % 4 * 2 + element % 2
