"""A value computed where it is used: its uses become those of its sources.

`Inliner` holds the uses of nodes that the walk has not come to yet. It hands the uses of a value
on to its sources, each at the place and inside the loops that it is then read at, and gives
reductions their ranges.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from weft.ir.ops import ELEMENTWISE, MOVEMENT, Op, name
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp
from weft.schedule import scans
from weft.schedule.fuse.code_size import CodeSize
from weft.schedule.fuse.cost import sums_reused_products
from weft.schedule.fuse.kernel import Kernel, Path
from weft.schedule.fuse.uses import Use, free_ranges
from weft.schedule.indexing import Place, through
from weft.schedule.memory import gather_place
from weft.schedule.scans import is_first, scan_loop

# Values computed one for one with their uses, which pass their place on to their sources.
_POINTWISE: Final = ELEMENTWISE | {Op.DETACH, Op.COPY, Op.STAGE, Op.BIND}
LEAVES: Final = frozenset((Op.CONST, Op.IOTA, Op.VARIABLE))

# The ranges of each reduction at a place of its result in a kernel, and the place in its body.
Reductions = dict[tuple[UOp, Place, Kernel], tuple[UOp, ...]]


class Inliner:
    """The uses of nodes, on their way down."""

    def __init__(self, code: CodeSize) -> None:
        self._code = code
        self.reductions: Reductions = {}
        self._uses: defaultdict[UOp, list[Use]] = defaultdict(list)

    def add(self, node: UOp, use: Use) -> None:
        """Let a value be used."""
        self._uses[node].append(use)

    def add_at(self, node: UOp, kernel: Kernel, place: Place, path: Path) -> None:
        """Let a value be used at a place; a scalar has none, only the gate."""
        at = place if shape_of(node) else Place((), place.gate)
        self._uses[node].append(Use(kernel, at, path))

    def take(self, node: UOp) -> list[Use]:
        """The uses of a node whose users have all been seen, each once."""
        return list(dict.fromkeys(self._uses.pop(node, ())))

    # ---- loops around a value

    def scope(self, node: UOp, use: Use) -> Path:
        """The loops around one evaluation of a node, as it would be placed."""
        place = use.kernel.reachable(use.place, shape_of(node))
        prefix = use.kernel.prefix(use.path, place)
        own = set(use.kernel.order)
        free = free_ranges(place)
        scope = frozenset(loop for loop in prefix if loop.ranges & free)
        if scope <= own and use.kernel.can_pin(scope):
            return tuple(loop for loop in use.kernel.order if loop in scope)
        return prefix

    def is_along(self, node: UOp, use: Use) -> bool:
        """Whether a loop of a kernel passes the elements of a scan one by one."""
        if is_first(node, use.place):
            return True
        found = scan_loop(node, use.kernel, use.place, use.path)
        return found is not None and scans.fits(found, use.kernel)

    # ---- the uses of a value become those of its sources

    def enter(self, node: UOp, uses: list[Use]) -> None:
        """Compute a value at its uses, whatever it is."""
        if node.op in MOVEMENT:
            self.move(node, uses)
        elif node.op not in LEAVES:
            self.inline(node, uses)

    def move(self, node: UOp, uses: list[Use]) -> None:
        """A movement op only moves the place."""
        for use in uses:
            self._code.add(node, use.kernel)
            self.add(node.src[0], Use(use.kernel, through(node, use.place), use.path))

    def inline(self, node: UOp, uses: list[Use]) -> None:
        """Compute a value at each of its uses."""
        for use in uses:
            self._code.add(node, use.kernel)
            if node.op == Op.REDUCE:
                self._enter_reduction(node, use)
            elif node.op == Op.SCAN:
                self._enter_scan(node, use)
            elif node.op == Op.INDEX:
                self._enter_gather(node, use)
            else:
                assert node.op in _POINTWISE, name(node.op)
                for source in node.src:
                    self.add_at(source, use.kernel, use.place, use.path)

    def _enter_reduction(self, node: UOp, use: Use) -> None:
        path = self.scope(node, use)
        kernel = use.kernel
        if set(path) <= set(kernel.order):
            kernel.pin(frozenset(path))
        at = kernel.reachable(use.place, shape_of(node))
        key = (node, at, kernel)
        if key not in self.reductions:
            body = shape_of(node.src[0])
            self.reductions[key] = tuple([kernel.fresh(body[axis]) for axis in node.arg[1]])
        ranges, place = reduction_at(self.reductions, node, at, kernel)
        inside = (*path, *(loop for loop in ranges if loop.op == Op.RANGE))
        kernel.has_contraction |= sums_reused_products(node)
        self.add(node.src[0], Use(kernel, place, inside))

    def _enter_scan(self, node: UOp, use: Use) -> None:
        if not is_first(node, use.place):
            found = scan_loop(node, use.kernel, use.place, use.path)
            assert found is not None, "a scan is entered where it can run"
            scans.enter(found, use.kernel)
        self.add(node.src[0], use)

    def _enter_gather(self, node: UOp, use: Use) -> None:
        source, *parts = node.src
        place, index_place = gather_place(node, use.place)
        for part in parts:
            self.add_at(part, use.kernel, index_place, use.path)
        self.add(source, Use(use.kernel, place, use.path))


def reduction_at(
    reductions: Reductions, node: UOp, place: Place, kernel: Kernel
) -> tuple[tuple[UOp, ...], Place]:
    """The ranges of a reduction at a place of its result, and the place in its body."""
    place = kernel.reachable(place, shape_of(node))
    ranges = reductions[node, place, kernel]
    inner = list(place.indices)
    for axis, loop in zip(node.arg[1], ranges, strict=True):
        inner[axis] = loop
    return ranges, Place(tuple(inner), place.gate)
