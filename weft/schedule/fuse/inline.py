"""A value computed where it is used: its uses become those of its sources.

`Inliner` holds the uses of nodes that the walk has not come to yet. It hands the uses of a value
on to its sources, each at the address and inside the loops that it is then read at, and gives
reductions their ranges.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from weft.ir.ops import ELEMENTWISE, MOVEMENT, Op, name
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp
from weft.schedule.fuse.chains.chains import Chains
from weft.schedule.fuse.code_size import CodeSize
from weft.schedule.fuse.cost import sums_reused_products
from weft.schedule.fuse.kernel import Kernel, Path
from weft.schedule.fuse.uses import Use, free_ranges
from weft.schedule.indexing import Address, through
from weft.schedule.memory import gather_address
from weft.schedule.reductions import scans
from weft.schedule.reductions.scans import is_first, scan_loop

# Values computed one for one with their uses, which pass their address on to their sources.
_POINTWISE: Final = ELEMENTWISE | {Op.COPY, Op.STAGE, Op.BIND}
LEAVES: Final = frozenset((Op.CONST, Op.IOTA, Op.VARIABLE))

# The ranges of each reduction at an address of its result in a kernel, and the address in its
# body.
Reductions = dict[tuple[UOp, Address, Kernel], tuple[UOp, ...]]


class Inliner:
    """The uses of nodes, on their way down."""

    def __init__(self, code: CodeSize, chains: Chains) -> None:
        self._code = code
        self._chains = chains
        self._keys: dict[UOp, tuple[UOp, ...]] = {}  # the ranges of products that end chains
        self._keys_in: dict[Kernel, tuple[UOp, ...]] = {}
        self.reductions: Reductions = {}
        self.computed: defaultdict[Kernel, set[UOp]] = defaultdict(set)
        self._uses: defaultdict[UOp, list[Use]] = defaultdict(list)

    def add(self, node: UOp, use: Use) -> None:
        """Let a value be used."""
        self._uses[node].append(use)

    def add_at(self, node: UOp, kernel: Kernel, address: Address, path: Path) -> None:
        """Let a value be used at an address; a scalar has none, only the mask."""
        at = address if shape_of(node) else Address((), address.mask)
        self._uses[node].append(Use(kernel, at, path))

    def take(self, node: UOp) -> list[Use]:
        """The uses of a node whose users have all been seen, each once."""
        uses = list(dict.fromkeys(self._uses.pop(node, ())))
        chain = self._chains.of.get(node)
        if chain is not None and node in chain.rows:  # where it is computed anyway
            keys = self._keys.get(chain.result)
            uses.sort(key=lambda use: self._keys_in.get(use.kernel) is not keys)
        return uses

    # ---- loops around a value

    def scope(self, node: UOp, use: Use) -> Path:
        """The loops around one evaluation of a node, as it would be placed."""
        address = use.kernel.reachable(use.address, shape_of(node))
        prefix = use.kernel.prefix(use.path, address)
        own = set(use.kernel.order)
        free = free_ranges(address)
        scope = frozenset(loop for loop in prefix if loop.ranges & free)
        if scope <= own and use.kernel.can_pin(scope):
            return tuple(loop for loop in use.kernel.order if loop in scope)
        return prefix

    def is_along(self, node: UOp, use: Use) -> bool:
        """Whether a loop of a kernel passes the elements of a scan one by one."""
        if is_first(node, use.address):
            return True
        found = scan_loop(node, use.kernel, use.address, use.path)
        return found is not None and scans.fits(found, use.kernel)

    # ---- the uses of a value become those of its sources

    def enter(self, node: UOp, uses: list[Use]) -> None:
        """Compute a value at its uses, whatever it is."""
        if node.op in MOVEMENT:
            self.move(node, uses)
        elif node.op not in LEAVES:
            self.inline(node, uses)

    def move(self, node: UOp, uses: list[Use]) -> None:
        """A movement op only moves the address."""
        for use in uses:
            self._code.add(node, use.kernel)
            self.add(node.src[0], Use(use.kernel, through(node, use.address), use.path))

    def inline(self, node: UOp, uses: list[Use]) -> None:
        """Compute a value at each of its uses."""
        for use in uses:
            self._code.add(node, use.kernel)
            use = self._in_tile(node, use)
            if node.op == Op.REDUCE:
                self._enter_reduction(node, use)
            elif node.op == Op.SCAN:
                self._enter_scan(node, use)
            elif node.op == Op.INDEX:
                self._enter_gather(node, use)
            else:
                assert node.op in _POINTWISE, name(node.op)
                self.computed[use.kernel].add(node)
                for source in node.src:
                    self.add_at(source, use.kernel, use.address, use.path)

    def is_in_tile(self, use: Use) -> bool:
        """Whether a value is read for each query and key of a chain."""
        free = free_ranges(use.address)
        keys = self._keys_in.get(use.kernel, ())
        return any(loop in use.path and loop.ranges & free for loop in keys)

    def _in_tile(self, node: UOp, use: Use) -> Use:
        """A use of a value between two products, which stays near for all other loops."""
        if node not in self._chains.values:
            return use
        free = free_ranges(use.address)
        return use._replace(path=tuple([loop for loop in use.path if loop.ranges & free]))

    def _enter_reduction(self, node: UOp, use: Use) -> None:
        path = self.scope(node, use)
        kernel = use.kernel
        if set(path) <= set(kernel.order):
            kernel.pin(frozenset(path))
        at = kernel.reachable(use.address, shape_of(node))
        key = (node, at, kernel)
        if key not in self.reductions:
            self.reductions[key] = self._ranges(node, kernel)
        ranges, address = reduction_at(self.reductions, node, at, kernel)
        inside = (*path, *(loop for loop in ranges if loop.op == Op.RANGE))
        kernel.has_contraction |= sums_reused_products(node)
        self.add(node.src[0], Use(kernel, address, inside))

    def _ranges(self, node: UOp, kernel: Kernel) -> tuple[UOp, ...]:
        """The ranges of a reduction: those of the product that it is on the way to, or fresh."""
        chain = self._chains.of.get(node)
        if chain is not None and node not in chain.products:
            return self._keys[chain.result]
        body = shape_of(node.src[0])
        known = self._keys_in.get(kernel)
        if node in self._chains.results and known is not None:  # two chains of the same keys
            self._keys[node] = known
            return known
        made = tuple([kernel.fresh(body[axis]) for axis in node.arg[1]])
        if node in self._chains.results:
            self._keys[node] = self._keys_in[kernel] = made
        return made

    def _enter_scan(self, node: UOp, use: Use) -> None:
        if not is_first(node, use.address):
            found = scan_loop(node, use.kernel, use.address, use.path)
            assert found is not None, "a scan is entered where it can run"
            scans.enter(found, use.kernel)
        self.add(node.src[0], use)

    def _enter_gather(self, node: UOp, use: Use) -> None:
        source, *parts = node.src
        address, index_address = gather_address(node, use.address)
        for part in parts:
            self.add_at(part, use.kernel, index_address, use.path)
        self.add(source, Use(use.kernel, address, use.path))


def reduction_at(
    reductions: Reductions, node: UOp, address: Address, kernel: Kernel
) -> tuple[tuple[UOp, ...], Address]:
    """The ranges of a reduction at an address of its result, and the address in its body."""
    address = kernel.reachable(address, shape_of(node))
    ranges = reductions[node, address, kernel]
    inner = list(address.indices)
    for axis, loop in zip(node.arg[1], ranges, strict=True):
        inner[axis] = loop
    return ranges, Address(tuple(inner), address.mask)
