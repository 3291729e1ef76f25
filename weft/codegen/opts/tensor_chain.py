"""The opt TensorChain: two products of matrices, of which the first stays in registers.

Scores are a CONTRACT for each block of keys. What is computed of them, each thread computes of its
own elements, and what is reduced along the keys, four neighbors reduce together. Weights are a
STAGE of registers, which a second CONTRACT multiplies with the values. `lower/fragments.py` and
`linear/stream.py` make instructions of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from weft.codegen.analysis.loops import (
    GRID,
    LOOP,
    THREAD,
    UNROLL,
    VECTOR,
    extent_of,
    kinds_of,
    loops_of,
    nodes_of,
    own_ranges,
    ranges_of,
    rebuilt,
    replace_ranges,
    with_loops,
)
from weft.codegen.analysis.tensor_chains import (
    SPAN,
    Chain,
    Score,
    Values,
    chain_of,
    reductions_in_order,
    weighed,
)
from weft.codegen.analysis.tensor_factors import Axis, tensor_of
from weft.codegen.lower.trim_loops import trim_loops
from weft.codegen.opts import legality
from weft.codegen.opts.join import JoinPlan, join_reductions, plan_join
from weft.codegen.opts.opt import Opt
from weft.codegen.opts.scaled_maxima import scale_exponents
from weft.codegen.opts.score_steps import ScoreSteps
from weft.codegen.opts.split_range import split_range
from weft.ir.bounds import bounds
from weft.ir.build import index, range_, reduce_ranges
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.reduction.contract import (
    PAIR,
    UNIT_COLUMNS,
    WARP_ROWS,
    WARPGROUP_ROWS,
    ContractParts,
    Factor,
    contract,
)
from weft.ir.stage import stage
from weft.ir.uop import UOp
from weft.ir.walk import map_graph, substitute, topological
from weft.rules.simplify import simplify

MOST_ROWS: Final = 256
MOST_KEYS: Final = 256
MOST_COLUMNS: Final = 256
MOST_STAGES: Final = 16


@dataclass(frozen=True)
class TensorChain(Opt):
    """Compute two products in tiles, the weights of the second one in registers.

    `tile` is the rows that a group computes, and the keys of a block; `stages` is how many blocks
    are in local memory at once. A group has all columns of its rows, of each result where several
    are computed of the same scores. Other loops are the grid.

    opt: TensorChain(0, 1, (64, 64), 2)
    before:
        p0 = param 0: float32[64, 64]
        p1 = param 1: float16[64, 64]
        p2 = param 2: float16[128, 64]
        p3 = param 3: float16[128, 64]
        r0 < 64
        r1 < 64
        r2 < 128
        r3 < 64
        kernel "k" r0 loop, r1 loop, r2 loop, r3 loop:
          v0 = reduce ADD over r3: float32(load p1[r0, r3]) * float32(load p2[r2, r3])
          v1 = float32(float16(max(v0, 0.0))) * float32(load p3[r2, r1])
          v2 = reduce ADD over r2: v1
          store p0[r0, r1] = v2 for r0, r1
    after:
        p0 = param 0: float32[64, 64]
        p1 = param 1: float16[64, 64]
        p2 = param 2: float16[128, 64]
        p3 = param 3: float16[128, 64]
        r0 < 1
        r1 < 8
        r2 < 2
        r4 < 8
        r5 < 4
        r6 < 2
        r7 < 4
        r8 < 2
        r9 < 8
        r10 < 4
        r11 < 2
        r12 < 4
        r13 < 2
        r14 < 8
        kernel "k" r0 grid, r2 loop, r7 thread, r12 thread, r9 thread, r14 thread, r10 thread, r5 thread, r8 unroll, r13 unroll, r1 unroll, r11 "vector", r4 unroll, r6 unroll:
          v0 = CONTRACT[float32](p1, p2, 0, 0, 0, r2 * 64, r12, r13, r14, r4, r5, r6; ((64, 64, 64), 2, (1,), ("float16", 0, (64, 64), (1, 64), ((1, 64),), ((0, 64),), ((64,), (0,)), (1, 1)), ("float16", 0, (64, 128), (1, 64), ((1, 64),), ((0, 64),), ((64,), (0,)), (1, 1)), "float32", "pairs"))
          v1 = stage register[r12 * 16 + r13 * 8 + r14 of 64, r4 * 8 + r5 * 2 + r6 of 64] = max(v0, 0.0) for r12, r13, r14, r4, r5, r6
          v2 = CONTRACT[float32](v1, p3, 0, 0, 0, r2 * 64, r7, r8, r9, r1, r10, r11; ((64, 64, 64), 2, (1,), ("float16", 0, (64, 64), (1, 64), ((1, 64),), ((0, 64),), ((0,), (0,)), (1, 1)), ("float16", 0, (64, 128), (1, 64), ((0, 64),), ((1, 64),), ((0,), (64,)), (1, 1)), "float32", "pairs"))
          v3 = reduce ADD over r2: v2
          store p0[r7 * 16 + r8 * 8 + r9, r1 * 8 + r10 * 2 + r11] = v3 for r0, r7, r8, r9, r1, r10, r11
    """  # noqa: E501

    row: int
    column: int
    tile: tuple[int, int]
    stages: int

    def reasons(self, kernel: UOp) -> Iterable[str]:
        for number in (self.row, self.column):
            yield from legality.known_range(kernel, number)
        yield from _faults_of_tile(self.tile, self.stages)
        if set(kinds_of(kernel).values()) != {LOOP}:
            yield "a loop is bound already"
            return
        kernel = scale_exponents(kernel)
        found = chain_of(kernel, self.row, self.column, self.tile[1])
        if isinstance(found, str):
            yield found
            return
        yield from _faults_of_chain(kernel, found, self)

    def local_bytes(self, kernel: UOp) -> int:
        """The local memory that tiles take: queries, and the stages of keys and values."""
        found = chain_of(kernel, self.row, self.column)
        assert isinstance(found, Chain)
        rows, keys = self.tile
        columns = _whole(found.extents[self.column])
        depths = _distinct_scores(found)
        kept = {loads[0]: depth for loads, depth in depths.items()}
        streamed = {loads[1]: depth for loads, depth in depths.items()}
        stage = sum(streamed.values()) + columns * len(found.results)
        return 2 * (rows * sum(kept.values()) + self.stages * keys * stage)

    def registers(self, kernel: UOp) -> int:
        """Registers of a thread for sums, scores of a block, and weights, two in each.

        And for what is read for each key of a block, as that is loaded before it is needed.
        """
        found = chain_of(kernel, self.row, self.column)
        assert isinstance(found, Chain)
        scores = len(_distinct_scores(found)) * self.tile[1]
        sums = len(found.results) * found.extents[self.column]
        weights = len(found.results) + len(_read_for_keys(found, kernel, self.row))
        return (sums + scores) // 2 + weights * self.tile[1] // 4

    def rewritten(self, kernel: UOp) -> UOp:
        kernel = scale_exponents(kernel)
        found = chain_of(kernel, self.row, self.column)
        assert isinstance(found, Chain)
        return _Tiling(kernel, self, found).result


def _whole(size: int) -> int:
    """A size in whole rows of 128 bytes, as copies bring it."""
    return -(-size // SPAN) * SPAN


def _distinct_scores(chain: Chain) -> dict[tuple[UOp, UOp], int]:
    """The factors of products for each row and key, however often these are read: their sums."""
    return {
        (each.loads[0], _without(each.loads[1], chain.keys)): _whole(chain.extents[each.depth])
        for each in chain.scores
    }


def _is_first_longest(kernel: UOp, block: int, row: int) -> bool:
    """Whether the loop over blocks is longer for the first tile than for the last one."""
    loop = ranges_of(kernel)[row]
    extent = ranges_of(trim_loops(kernel))[block].src[0]
    if not extent.ranges >> row & 1:
        return False
    ends = [simplify(substitute(extent, {loop: at})) for at in (index(0), loop.src[0] - 1)]
    first, last = (bounds(end)[1] for end in ends)
    return first > last


def _read_for_keys(chain: Chain, kernel: UOp, row: int) -> set[UOp]:
    """What is read for each key, whatever the row: sums of rows, where rows are keys."""
    factors = {load for each in chain.scores for load in each.loads}
    factors |= {each.load for each in chain.results}
    loads = [node for node in nodes_of(kernel) if node.op == Op.LOAD and node not in factors]
    own = sum(1 << number for number in chain.keys)
    return {
        _without(load, chain.keys)
        for load in loads
        if load.ranges & own and not load.ranges >> row & 1
    }


def _without(load: UOp, keys: Iterable[int]) -> UOp:
    """A load wherever it stands along the keys: the same memory, however often it is read."""
    ranges = {r: index(0) for r in topological(load) if r.op == Op.RANGE and r.arg in keys}
    return substitute(load, ranges)


def _faults_of_tile(tile: tuple[int, int], stages: int) -> Iterator[str]:
    rows, keys = tile
    if rows % WARPGROUP_ROWS or not 0 < rows <= MOST_ROWS:
        yield f"{rows} rows are not {WARPGROUP_ROWS} for each group of four warps"
    if keys % SPAN or not 0 < keys <= MOST_KEYS:
        yield f"{keys} keys are not a multiple of {SPAN} up to {MOST_KEYS}"
    if not 2 <= stages <= MOST_STAGES:
        yield f"{stages} stages are not 2 to {MOST_STAGES}"


def _faults_of_chain(kernel: UOp, chain: Chain, opt: TensorChain) -> Iterator[str]:
    keys = extent_of(ranges_of(kernel)[chain.key]) or 0
    columns = extent_of(ranges_of(kernel)[opt.column]) or 0
    if keys <= opt.tile[1]:
        yield f"{keys} keys are one block"
        return
    if columns % UNIT_COLUMNS or columns > MOST_COLUMNS:
        yield f"{columns} columns are not a multiple of {UNIT_COLUMNS} up to {MOST_COLUMNS}"
    depths = [extent_of(ranges_of(kernel)[each.depth]) or 0 for each in chain.scores]
    if max(depths) > MOST_COLUMNS:
        yield f"scores are sums of more than {MOST_COLUMNS} products"
    if chain.rows:
        plan = plan_join(_blocked(kernel, chain, opt.tile[1]), chain.keys)
        if not isinstance(plan, JoinPlan):
            yield plan


def _blocked(kernel: UOp, chain: Chain, size: int) -> UOp:
    """The kernel with all ranges along the keys cut into blocks."""
    for number in chain.keys:
        kernel = split_range(kernel, number, size, "mask")
    return kernel


class _Tiling:
    """The kernel on its way: blocks are joined, ranges split, and the products replaced."""

    def __init__(self, kernel: UOp, opt: TensorChain, chain: Chain) -> None:
        self.opt, self.chain = opt, chain
        inner: dict[int, int] = {}
        self.kernel = kernel
        for number in chain.keys:
            inner[number] = self.split(number, opt.tile[1])
        if chain.rows:
            self.kernel = join_reductions(self.kernel, chain.keys)
        (self.block,) = [number for number in chain.keys if number in kinds_of(self.kernel)]
        # The three parts of a key of a block, and of a column: block, quad and pair.
        self.parts = {number: self.columns(inner[number]) for number in chain.keys}
        warp = self.split(opt.row, opt.tile[0])
        half = self.split(warp, WARP_ROWS)
        lane = self.split(half, WARP_ROWS // 2)
        self.rows = (warp, half, lane)
        self.own = self.columns(opt.column)
        first = 1 + max(kinds_of(self.kernel))
        self.fresh = tuple(range(first, first + len(self.rows)))  # of rows of weights
        self.replace()
        self.turn()
        self.bind()
        self.result = self.kernel

    def split(self, number: int, factor: int) -> int:
        """The number of the inner range of a split; what is past the end is masked."""
        inner = 1 + max(kinds_of(self.kernel))
        self.kernel = split_range(self.kernel, number, factor, "mask")
        return inner

    def columns(self, number: int) -> tuple[int, int, int]:
        """The ranges of columns as matrix units leave them."""
        quad = self.split(number, UNIT_COLUMNS)
        return number, quad, self.split(quad, PAIR)

    # ---- the products

    def replace(self) -> None:
        """Put the elements of tiles where the products were."""
        ranges = ranges_of(self.kernel)
        depths = {each.depth: each for each in self.chain.scores}
        own = self.parts[self.chain.key][0]  # sums over blocks are around those of a block
        last = [
            node
            for node in reductions_in_order(self.kernel)
            if own in [r.arg for r in own_ranges(node)]
        ]
        results = dict(zip(last, self.chain.results, strict=True))

        def tiled(node: UOp, made: Mapping[UOp, UOp]) -> UOp:
            closed = {r.arg for r in own_ranges(node)} if node.op == Op.REDUCE else set()
            if closed & depths.keys():
                return self.score(node, self.chain.scores_over(closed), ranges)
            new = rebuilt(node, made, {})
            return self.second(new, results[node], ranges) if node in results else new

        steps = ScoreSteps()
        self.kernel = map_graph(map_graph(self.kernel, tiled), steps.fewer)
        self.kernel = map_graph(self.kernel, steps.marked)

    def score(self, node: UOp, scores: Iterable[Score], ranges: Mapping[int, UOp]) -> UOp:
        """The element of a tile of scores in the place of a reduction."""
        numbers = {n: key for key, parts in self.parts.items() for n in parts}
        keys = {numbers[n] for n in numbers if node.ranges >> n & 1}
        (score,) = [each for each in scores if {each.key} == keys]
        rows, size = self.opt.tile
        depth = _whole(self.chain.extents[score.depth])
        left, right = score.loads
        parts = ContractParts(
            memories=(left.src[0].src[0], right.src[0].src[0]),
            starts=(
                self.starts(score.axes[0], score, ranges),
                self.starts(score.axes[1], score, ranges),
            ),
            positions=self.positions(self.parts[score.key], ranges),
            tile=(rows, size, depth),
            stages=self.opt.stages,
            steps=(1,),
            factors=(
                self.factor(left, score.axes[0], (self.opt.row, rows), (score.depth, depth)),
                self.factor(right, score.axes[1], (score.key, size), (score.depth, depth)),
            ),
            element="float32",
            is_in_pairs=True,
        )
        return contract(parts, dtypes.float32)

    def second(self, node: UOp, of: Values, ranges: Mapping[int, UOp]) -> UOp:
        """The product of weights and values: of a block, or of all blocks, which are summed."""
        found = weighed(node)
        assert found is not None
        weights, values = found
        rows, size = self.opt.tile
        columns = _whole(self.chain.extents[self.opt.column])
        axes, name = of.axes, values.dtype.name
        inside = ((1, rows),), ((0, SPAN),), ((0,), (0,)), (1, 1)
        tile = Factor(name, 0, (size, rows), (1, size), *inside)
        right = self.factor(values, axes, (self.opt.column, columns), (self.chain.key, size))
        parts = ContractParts(
            memories=(self.staged(weights, ranges), values.src[0].src[0]),
            starts=((index(0), index(0)), self.starts(axes, None, ranges)),
            positions=self.positions(self.own, ranges),
            tile=(rows, self.chain.extents[self.opt.column], size),
            stages=self.opt.stages,
            steps=(1,),
            factors=(tile, right),
            element="float32",
            is_in_pairs=True,
        )
        product = contract(parts, dtypes.float32)
        outer = [r for r in own_ranges(node) if r.arg == self.block]
        return reduce_ranges(product, Op.ADD, outer) if outer else product

    def factor(
        self, load: UOp, axes: list[Axis], rows: tuple[int, int], depth: tuple[int, int]
    ) -> Factor:
        """A factor whose tile has all of the sum that a block has."""
        number, size = depth
        return tensor_of(load, axes, (rows,), ((number, SPAN),), size // SPAN, (number,))

    def staged(self, weights: UOp, ranges: Mapping[int, UOp]) -> UOp:
        """The weights of a block for all rows of a group, in the registers of its threads."""
        size = self.opt.tile[1]
        known = {
            ranges[old]: range_(new, ranges[old].src[0])
            for old, new in zip(self.rows, self.fresh, strict=True)
        }

        def moved(node: UOp, made: Mapping[UOp, UOp]) -> UOp:
            return rebuilt(node, made, {})

        value = map_graph(weights, moved, known=known)
        warp, half, lane = known.values()
        keys = [ranges[number] for number in self.parts[self.chain.key]]
        row = warp * WARP_ROWS + half * (WARP_ROWS // 2) + lane
        column = keys[0] * UNIT_COLUMNS + keys[1] * PAIR + keys[2]
        indices = [simplify(row), simplify(column)]
        own = [*known.values(), *keys]
        return stage("register", value, indices, [self.opt.tile[0], size], own)

    def positions(
        self, columns: tuple[int, int, int], ranges: Mapping[int, UOp]
    ) -> tuple[UOp, ...]:
        return tuple([ranges[number] for number in (*self.rows, *columns)])

    def starts(
        self, axes: Iterable[Axis], score: Score | None, ranges: Mapping[int, UOp]
    ) -> tuple[UOp, ...]:
        """The coordinates of a tile: of rows of the group, or of a block of keys."""
        rows, size = self.opt.tile
        key, inside = (score.key, score.depth) if score else (self.chain.key, self.opt.column)
        found: list[UOp] = []
        for axis in axes:
            at = index(axis.start)
            for number, step in axis.terms:
                if number == key:
                    at = at + ranges[self.block] * (size * step)
                elif number != inside:
                    weight = rows if number == self.opt.row else 1
                    at = at + ranges[number] * (weight * step)
            found.append(simplify(at))
        return tuple(found)

    # ---- the loops

    def turn(self) -> None:
        """Number tiles of rows from the last one on: where a mask ends rows, that is the longest.

        A long tile that begins last would be waited for alone. Where a mask lets rows begin late,
        as queries of a key, the first tile is the longest as it is.
        """
        if _is_first_longest(self.kernel, self.block, self.opt.row):
            return
        row = ranges_of(self.kernel)[self.opt.row]
        turned = simplify(row.src[0] - 1 - row)
        self.kernel = replace_ranges(
            self.kernel, {row: turned}, {row: (row,)}, loops_of(self.kernel)
        )

    def bind(self) -> None:
        """Bind rows and columns as they lie in registers; all other loops are the grid."""
        warp, half, lane = self.rows
        warps, halves, lanes = self.fresh
        columns = [self.own, *self.parts.values()]
        present = ranges_of(self.kernel)
        inside = [each for parts in columns for each in parts]
        inside = [warp, warps, lane, lanes, half, halves, *inside]
        outer = [n for n in kinds_of(self.kernel) if n not in inside and n != self.block]
        kinds = {
            **dict.fromkeys(outer, GRID),
            self.block: LOOP,
            **dict.fromkeys((warp, warps, lane, lanes), THREAD),
            **dict.fromkeys((parts[1] for parts in columns), THREAD),
            **dict.fromkeys((half, halves), UNROLL),
        }
        for parts in columns:
            kinds |= {parts[0]: UNROLL, parts[2]: VECTOR if parts is self.own else UNROLL}
        self.kernel = with_loops(
            self.kernel, [(n, kind) for n, kind in kinds.items() if n in present]
        )
