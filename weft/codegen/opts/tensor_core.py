"""The opt TensorCore: a product of matrices in tiles that matrix units of a group compute.

The reduction becomes a CONTRACT, the element of a tile at the position of a thread. The ranges of
the result are split and bound as the tile lies in the registers of the threads, so what is done
with the sum is ordinary code. `lower/fragments.py` and `linear/pipeline.py` make instructions
of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from weft.codegen.analysis.loops import (
    GRID,
    LOOP,
    THREAD,
    UNROLL,
    VECTOR,
    extent_of,
    kinds_of,
    nodes_of,
    own_ranges,
    ranges_of,
    replace_ranges,
    with_loops,
)
from weft.codegen.analysis.tensor_factors import (
    SUMS,
    Axis,
    Extents,
    Product,
    axes_of,
    faults_of_axes,
    product_of,
    step_extents,
    step_ranges,
    tensor_of,
)
from weft.codegen.opts import legality
from weft.codegen.opts.opt import Opt
from weft.codegen.opts.split_range import split_range
from weft.codegen.opts.stage_value import reduction_over
from weft.ir.build import index, range_
from weft.ir.dtypes import by_name, dtypes
from weft.ir.ops import Op
from weft.ir.reduction.contract import (
    BLOCK_COLUMNS,
    ROW_BYTES,
    THREAD_COLUMNS,
    WARP_ROWS,
    WARPGROUP_ROWS,
    ContractParts,
    contract,
)
from weft.ir.uop import UOp, make
from weft.ir.walk import substitute
from weft.rules.simplify import simplify

MOST_ROWS: Final = 256
MOST_COLUMNS: Final = 256
MOST_DEPTH: Final = 4 * ROW_BYTES
MOST_STAGES: Final = 16
# Elements of these dtypes can be rounded before they leave the registers of the sum.
ROUNDED: Final = frozenset((dtypes.bfloat16, dtypes.float16))


@dataclass(frozen=True)
class TensorCore(Opt):
    """Compute a product of matrices in tiles, by instructions that multiply tiles.

    `tile` is the rows and columns of the result that a group computes, and the bytes of the sum in
    a step; `stages` is how many steps are in local memory at once. Groups are bound to the grid.
    The rows of a tile may lie along several ranges, as pixels do, its columns, as heads do, and
    those of the sum too: then `row`, `column` or `step` lists them with how many iterations of each
    are in a tile, or in 128 bytes of the sum, the fastest first.

    opt: TensorCore(0, 1, 2, (64, 64, 128), 2)
    before:
        p0 = param 0: float16[64, 64]
        p1 = param 1: float16[64, 64]
        p2 = param 2: float16[64, 64]
        r0 < 64
        r1 < 64
        r2 < 64
        kernel "k" r0 loop, r1 loop, r2 loop:
          v0 = reduce ADD over r2: float32(load p1[r0, r2]) * float32(load p2[r1, r2])
          store p0[r0, r1] = float16(v0) for r0, r1
    after:
        p0 = param 0: float16[64, 64]
        p1 = param 1: float16[64, 64]
        p2 = param 2: float16[64, 64]
        r0 < 1
        r1 < 1
        r3 < 4
        r4 < 2
        r5 < 8
        r6 < 8
        r7 < 2
        r8 < 4
        v0 = CONTRACT[float16](p1, p2, 0, 0, 0, 0, r3, r4, r5, r7, r8, r6; ((64, 64, 64), 2, (1,), ("float16", 0, (64, 64), (1, 64), ((1, 64),), ((0, 64),), ((64,), (0,)), (1, 1)), ("float16", 0, (64, 64), (1, 64), ((1, 64),), ((0, 64),), ((64,), (0,)), (1, 1)), "float16"))
        kernel "k" r0 grid, r1 grid, r3 thread, r5 thread, r8 thread, r7 unroll, r4 unroll, r6 "vector":
          store p0[r3 * 16 + r4 * 8 + r5, r6 + r7 * 32 + r8 * 8] = v0 for r0, r3, r4, r5, r1, r7, r8, r6
    """  # noqa: E501

    row: int | Extents
    column: int | Extents
    step: int | Extents
    tile: tuple[int, int, int]
    stages: int

    @property
    def rows(self) -> Extents:
        """The ranges of the rows with their parts of a tile."""
        return self.row if isinstance(self.row, tuple) else ((self.row, self.tile[0]),)

    @property
    def columns(self) -> Extents:
        """The ranges of the columns with their parts of a tile."""
        return self.column if isinstance(self.column, tuple) else ((self.column, self.tile[1]),)

    def steps(self, itemsize: int) -> Extents:
        """The ranges of the sum that a tile lies along, with their parts of 128 bytes."""
        return self.step if isinstance(self.step, tuple) else ((self.step, ROW_BYTES // itemsize),)

    @property
    def parts(self) -> int:
        """How many rows of 128 bytes a step of the sum takes."""
        return self.tile[2] // ROW_BYTES

    def reasons(self, kernel: UOp) -> Iterable[str]:
        numbers = [number for number, _ in (*self.rows, *self.columns, *self.steps(1))]
        for number in numbers:
            yield from legality.known_range(kernel, number)
        if len(set(numbers)) != len(numbers):
            yield "a range is listed twice"
        yield from _faults_of_tile(self)
        if set(kinds_of(kernel).values()) != {LOOP}:
            yield "a loop is bound already"
            return
        found = _found(kernel, self)
        if isinstance(found, str):
            yield found
            return
        ranges = ranges_of(kernel)
        if isinstance(self.column, tuple) and any(
            (extent_of(ranges[number]) or 1) % size for number, size in self.column
        ):
            yield "a tile along several ranges of columns is not whole"
        steps = self.steps(found.product.loads[0].dtype.itemsize)
        for load, axes, rows in zip(
            found.product.loads, found.axes, (self.rows, self.columns), strict=True
        ):
            yield from faults_of_axes(axes, rows, steps, self.parts, ranges, load)

    def rewritten(self, kernel: UOp) -> UOp:
        found = _found(kernel, self)
        assert isinstance(found, _Found)
        return _Tiling(kernel, self, found).result


class _Found(NamedTuple):
    """A product, the loads in the order of rows and columns, with the axes of each."""

    product: Product
    axes: tuple[list[Axis], list[Axis]]


def _faults_of_tile(opt: TensorCore) -> Iterator[str]:
    (rows, columns, depth), stages = opt.tile, opt.stages
    for what, ranges, count in (("rows", opt.rows, rows), ("columns", opt.columns, columns)):
        extents = [extent for _, extent in ranges]
        if math.prod(extents) != count or any(extent & (extent - 1) for extent in extents[:-1]):
            yield f"{extents} are not {count} {what}, with powers of two but for the last"
    if rows % WARPGROUP_ROWS or not 0 < rows <= MOST_ROWS:
        yield f"{rows} rows are not {WARPGROUP_ROWS} for each group of four warps"
    if columns % WARPGROUP_ROWS or not 0 < columns <= MOST_COLUMNS:
        yield f"{columns} columns are not a multiple of {WARPGROUP_ROWS} up to {MOST_COLUMNS}"
    if depth % ROW_BYTES or not 0 < depth <= MOST_DEPTH:
        yield f"{depth} bytes of the sum are not a multiple of {ROW_BYTES} up to {MOST_DEPTH}"
    if not 2 <= stages <= MOST_STAGES:
        yield f"{stages} stages are not 2 to {MOST_STAGES}"


def _found(kernel: UOp, opt: TensorCore) -> _Found | str:
    """What an opt multiplies, or why it cannot."""
    steps = [number for number, _ in opt.steps(1)]
    reduction = reduction_over(kernel, steps[0])
    others = [n for n in nodes_of(kernel) if n.op in (Op.REDUCE, Op.STAGE, Op.SCAN)]
    own = {r.arg for r in own_ranges(reduction)} if reduction is not None else set()
    if reduction is None or others != [reduction] or not own.issuperset(steps):
        return f"range {opt.step} is not that of the only reduction"
    written = {node.src[0].src[0] for node in kernel.src}
    for node in kernel.src:
        own = {r.arg for r in own_ranges(node)}
        if not own.issuperset((*dict(opt.rows), *dict(opt.columns))) or reduction.ranges & ~sum(
            1 << n for n in own
        ):
            return "a store is not inside of all loops of the result"
    if any(extent_of(r) is None for r in ranges_of(kernel).values()):
        return "an extent is symbolic"
    product = product_of(reduction)
    if isinstance(product, str):
        return product
    loads = product.loads
    rows, columns = list(dict(opt.rows)), list(dict(opt.columns))
    if loads[1].ranges >> rows[0] & 1:
        loads = loads[::-1]
    lefts = any(loads[1].ranges >> number & 1 for number in rows)
    rights = any(loads[0].ranges >> number & 1 for number in columns)
    if lefts or rights or not loads[1].ranges >> columns[0] & 1:
        return "rows and columns are not those of different factors"
    if any(load.src[0].src[0] in written for load in loads):
        return "the kernel writes a factor"
    axes = [axes_of(load) for load in loads]
    left, right = axes
    if isinstance(left, str) or isinstance(right, str):
        return next(each for each in axes if isinstance(each, str))
    return _Found(Product(reduction, loads), (left, right))


class _Tiling:
    """The kernel on its way: ranges are split first, then the reduction is replaced."""

    def __init__(self, kernel: UOp, opt: TensorCore, found: _Found) -> None:
        self.kernel = kernel
        columns = opt.tile[1]
        own = {r.arg for r in found.product.reduction.src[1:]}
        grid = [number for number in kinds_of(kernel) if number not in own]
        lanes = self.lanes(kernel, opt.columns[0][0])
        warp = self.merged([self.split(*each) for each in opt.rows if each[1] > 1])
        half = self.split(warp, WARP_ROWS)
        lane = self.split(half, WARP_ROWS // 2)
        if isinstance(opt.column, int):
            pair = self.split(opt.column, THREAD_COLUMNS)
            block = self.split(opt.column, columns // THREAD_COLUMNS)
        else:
            block = self.merged([self.split(*each) for each in opt.columns if each[1] > 1])
            pair = self.split(block, THREAD_COLUMNS)
        quad = self.split(block, BLOCK_COLUMNS // THREAD_COLUMNS)
        part = self.split(pair, lanes) if 1 < lanes < THREAD_COLUMNS else pair
        unrolled = [block, half, *([pair] if part != pair or lanes == 1 else [])]
        vectors = [part] if lanes > 1 else []
        self.replace(opt, found, (warp, half, lane, block, quad, pair, part))
        kinds = {
            **dict.fromkeys(grid, GRID),
            **dict.fromkeys([warp, lane, quad], THREAD),
            **dict.fromkeys(unrolled, UNROLL),
            **dict.fromkeys(vectors, VECTOR),
        }
        self.result = with_loops(self.kernel, kinds.items())

    def lanes(self, kernel: UOp, column: int) -> int:
        """How many columns a thread stores at once: aligned in each row, 16 bytes at most."""
        extent = extent_of(ranges_of(kernel)[column]) or 1
        widest = max(node.src[0].dtype.itemsize for node in kernel.src if node.op == Op.STORE)
        lanes = THREAD_COLUMNS
        while lanes > 1 and (extent % lanes or lanes * widest > 2 * THREAD_COLUMNS):
            lanes //= 2
        return lanes

    def split(self, number: int, factor: int) -> int:
        """The number of the inner range of a split; what is past the end is masked."""
        inner = 1 + max(kinds_of(self.kernel))
        self.kernel = split_range(self.kernel, number, factor, "mask")
        return inner

    def merged(self, numbers: list[int]) -> int:
        """The number of one range over the rows of a tile; those that there were are parts."""
        if len(numbers) == 1:
            return numbers[0]
        ranges = ranges_of(self.kernel)
        old = [ranges[number] for number in numbers]
        rows = range_(numbers[0], math.prod(extent_of(each) or 1 for each in old))
        values: dict[UOp, UOp] = {}
        rest: UOp = rows
        for each in old[:-1]:
            values[each] = simplify(rest % each.src[0])
            rest = simplify(rest // each.src[0])
        values[old[-1]] = rest
        closed = {old[0]: (rows,), **dict.fromkeys(old[1:], ())}
        loops = [(n, kind) for n, kind in kinds_of(self.kernel).items() if n not in numbers[1:]]
        self.kernel = replace_ranges(self.kernel, values, closed, loops)
        return numbers[0]

    def replace(self, opt: TensorCore, found: _Found, inner: tuple[int, ...]) -> None:
        """Put the element of a tile where the reduction was."""
        product, sizes, count = found.product, opt.tile, opt.parts
        steps = opt.steps(product.loads[0].dtype.itemsize)
        reduction = reduction_over(self.kernel, steps[0][0])
        assert reduction is not None
        ranges = ranges_of(self.kernel)
        *most, pair, part = [ranges[number] for number in inner]
        within = pair if part is pair else simplify(pair * (extent_of(part) or 1) + part)
        order = step_ranges(product.reduction, steps)
        sides = tuple(zip(product.loads, found.axes, (opt.rows, opt.columns), strict=True))
        left, right = (
            tensor_of(load, axes, rows, steps, count, order) for load, axes, rows in sides
        )
        first, second = (self.starts(axes, dict(rows), order) for _, axes, rows in sides)
        parts = ContractParts(
            memories=(product.loads[0].src[0].src[0], product.loads[1].src[0].src[0]),
            starts=(first, second),
            positions=(*most, within),
            tile=(*sizes[:2], sizes[2] // product.loads[0].dtype.itemsize),
            stages=opt.stages,
            steps=step_extents(product.reduction, steps, count, order),
            element=SUMS[product.loads[0].dtype].name,
            factors=(left, right),
        )
        uses = [node for node in nodes_of(self.kernel) if reduction in node.src]
        kinds = {node.dtype for node in uses if node.op == Op.CAST}
        if len(kinds) == 1 and len(uses) == 1 and kinds <= ROUNDED:  # rounded once, and for all
            (use,) = uses
            rounded = contract(parts._replace(element=use.dtype.name), use.dtype)
            self.kernel = substitute(self.kernel, {use: rounded})
        else:
            element = contract(parts, by_name(parts.element))
            if element.dtype is not reduction.dtype:
                element = make(Op.CAST, reduction.dtype, (element,))
            self.kernel = substitute(self.kernel, {reduction: element})

    def starts(
        self, axes: list[Axis], rows: Mapping[int, int], steps: tuple[int, ...]
    ) -> tuple[UOp, ...]:
        """The coordinates of a tile in the first step."""
        ranges = ranges_of(self.kernel)
        found: list[UOp] = []
        for axis in axes:
            at = index(axis.start)
            for number, step in axis.terms:
                if number not in steps:
                    at = at + ranges[number] * (rows.get(number, 1) * step)
            found.append(simplify(at))
        return tuple(found)
