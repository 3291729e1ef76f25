"""A value computed where it is used: what the walk of fusion remembers, and how uses go down.

The first layer of `Fusion`: its state, and the steps that hand the uses of a value on to its
sources, each at the place and inside the loops that it is then read at. `keep_values` gives values
memory instead, and `fuse` walks and decides.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from weft.ir.build import param
from weft.ir.ops import ELEMENTWISE, MOVEMENT, Op, name
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp
from weft.schedule import scans
from weft.schedule.fuse.cost import Work, sums_reused_products
from weft.schedule.fuse.kernel import Kernel, Path
from weft.schedule.fuse.uses import Kept, Use, free_ranges
from weft.schedule.indexing import Place, through
from weft.schedule.memory import gather_place
from weft.schedule.scans import is_first, scan_loop
from weft.target.target import Target

# Values computed one for one with their uses, which pass their place on to their sources.
_POINTWISE: Final = ELEMENTWISE | {Op.DETACH, Op.COPY, Op.STAGE, Op.BIND}
LEAVES: Final = frozenset((Op.CONST, Op.IOTA, Op.VARIABLE))


class InlinedValues:
    """The state of the walk, and how a value is computed where it is used."""

    def __init__(
        self, sink: UOp, target: Target, first_temporary: int, alone: frozenset[UOp] = frozenset()
    ) -> None:
        self.sink = sink
        self.alone = alone  # memory whose writes get kernels of their own
        self.target = target
        self.work = Work(target)
        self.kernels: list[Kernel] = []
        self.kept: dict[UOp, Kept] = {}
        self.makers: dict[UOp, Kernel] = {}  # STORE -> the kernel that writes it
        self.waits: dict[tuple[UOp, UOp], list[Kernel]] = {}  # of writes, per memory
        self.readers: defaultdict[UOp, list[Use]] = defaultdict(list)  # of PARAM and AFTER
        self.fold_ranges: dict[tuple[UOp, Place, Kernel], tuple[UOp, ...]] = {}
        self.temporaries: list[UOp] = []
        self.log: list[str] = []
        self._uses: defaultdict[UOp, list[Use]] = defaultdict(list)
        self._stores: defaultdict[UOp, list[UOp]] = defaultdict(list)
        self._replacing: defaultdict[UOp, list[UOp]] = defaultdict(list)  # version -> STOREs
        self._version_after: dict[UOp, UOp] = {}  # STORE -> the AFTER that reads it
        self._whole: defaultdict[UOp, list[Kernel]] = defaultdict(list)  # arguments of calls
        self._call_kernels: dict[UOp, Kernel] = {}
        self._first_temporary = first_temporary
        self._leaf_bits: dict[UOp, int] = {}
        self._placed: dict[UOp, UOp] = {}  # result of a call -> the STORE that it does itself

    def temporary(self, node: UOp) -> UOp:
        """New memory for a value."""
        made = param(self._first_temporary + len(self.temporaries), node.dtype, shape_of(node))
        self.temporaries.append(made)
        return made

    def _readers_of(self, store: UOp) -> list[Use]:
        """The uses of the version that a store makes."""
        version = self._version_after.get(store)
        return [] if version is None else self.readers[version]

    # ---- loops around a value

    def _scope(self, node: UOp, use: Use) -> Path:
        """The loops around one evaluation of a node, as it would be placed."""
        place = use.kernel.reachable(use.place, shape_of(node))
        prefix = use.kernel.prefix(use.path, place)
        own = set(use.kernel.order)
        free = free_ranges(place)
        scope = frozenset(loop for loop in prefix if loop.ranges & free)
        if scope <= own and use.kernel.can_pin(scope):
            return tuple(loop for loop in use.kernel.order if loop in scope)
        return prefix

    def _is_along(self, node: UOp, use: Use) -> bool:
        if is_first(node, use.place):
            return True
        found = scan_loop(node, use.kernel, use.place, use.path)
        return found is not None and scans.fits(found, use.kernel)

    # ---- the uses of a value become those of its sources

    def _enter(self, node: UOp, uses: list[Use]) -> None:
        if node.op in MOVEMENT:
            for use in uses:
                moved = through(node, use.place)
                self._uses[node.src[0]].append(Use(use.kernel, moved, use.path))
        elif node.op not in LEAVES:
            self._inline(node, uses)

    def _inline(self, node: UOp, uses: list[Use]) -> None:
        for use in uses:
            if node.op == Op.REDUCE:
                self._enter_fold(node, use)
            elif node.op == Op.SCAN:
                self._enter_scan(node, use)
            else:
                self._pass_on(node, use)

    def _pass_on(self, node: UOp, use: Use) -> None:
        if node.op == Op.INDEX:
            self._enter_gather(node, use)
            return
        assert node.op in _POINTWISE, name(node.op)
        for source in node.src:
            place = use.place if shape_of(source) else Place((), use.place.gate)
            self._uses[source].append(Use(use.kernel, place, use.path))

    def _enter_fold(self, node: UOp, use: Use) -> None:
        path = self._scope(node, use)
        kernel = use.kernel
        if set(path) <= set(kernel.order):
            kernel.pin(frozenset(path))
        ranges, place = self.fold_place(node, use.place, kernel)
        inside = (*path, *(loop for loop in ranges if loop.op == Op.RANGE))
        kernel.has_contraction |= sums_reused_products(node)
        kernel.folds += 1
        self._uses[node.src[0]].append(Use(kernel, place, inside))

    def _enter_scan(self, node: UOp, use: Use) -> None:
        if not is_first(node, use.place):
            found = scan_loop(node, use.kernel, use.place, use.path)
            assert found is not None, "a scan is entered where it can run"
            scans.enter(found, use.kernel)
        self._uses[node.src[0]].append(use)

    def fold_place(self, node: UOp, place: Place, kernel: Kernel) -> tuple[tuple[UOp, ...], Place]:
        """The ranges of a fold at a place of its result, and the place in its body."""
        place = kernel.reachable(place, shape_of(node))
        key = (node, place, kernel)
        axes = node.arg[1]
        body = shape_of(node.src[0])
        if key not in self.fold_ranges:
            self.fold_ranges[key] = tuple(kernel.fresh(body[axis]) for axis in axes)
        ranges = self.fold_ranges[key]
        inner = list(place.indices)
        for axis, loop in zip(axes, ranges, strict=True):
            inner[axis] = loop
        return ranges, Place(tuple(inner), place.gate)

    def _enter_gather(self, node: UOp, use: Use) -> None:
        source, gate, *indices = node.src
        place, index_place = gather_place(node, use.place)
        for part in (gate, *indices):
            at = index_place if shape_of(part) else Place((), index_place.gate)
            self._uses[part].append(Use(use.kernel, at, use.path))
        self._uses[source].append(Use(use.kernel, place, use.path))
