"""Where a scan can run: over a loop that passes its elements one by one, from the first on.

A scan is computed in the kernel of its consumer if a loop of that kernel is its axis: then its
accumulator is carried from iteration to iteration. `scan_loop` finds that loop. A kernel that is
made for a value with scans in it gets loops that suit them: `loop_forms` finds axes that a scan
walks backwards, as behind a FLIP, or in blocks, as behind a RESHAPE.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

from weft.ir.build import range_
from weft.ir.linear import linear
from weft.ir.ops import ELEMENTWISE, MOVEMENT, Op
from weft.ir.shapes import Shape, shape_of
from weft.ir.uop import UOp
from weft.schedule.fuse.code_size import LOOP_CODE, MOST_CODE
from weft.schedule.fuse.kernel import Form, Kernel, Path, extent
from weft.schedule.indexing import Address, everywhere, through

_POINTWISE: Final = ELEMENTWISE | {Op.COPY}

# Those that a kernel has room for: what is further below is of another kernel.
_MOST_SCANS: Final = MOST_CODE // LOOP_CODE


class ScanLoop(NamedTuple):
    """The loop that a scan runs over, and the others that it depends on."""

    loop: UOp
    others: frozenset[UOp]


def scan_loop(node: UOp, kernel: Kernel, address: Address, path: Path) -> ScanLoop | None:
    """The loop of a kernel over which a scan can run at an address inside a path, or None."""
    (axis,) = node.arg[1]
    loop = address.indices[axis]
    if loop.op != Op.RANGE or loop not in path:
        return None
    rest = [i for number, i in enumerate(address.indices) if number != axis]
    if any(i.ranges >> loop.arg & 1 for i in rest) or not _holds_at_once(address.mask, loop):
        return None
    free = address.mask.ranges
    for i in address.indices:
        free |= i.ranges
    others = frozenset(each for each in path if free >> each.arg & 1 and each is not loop)
    if not _is_innermost(loop, others, kernel.order):
        return None
    return ScanLoop(loop, others)


def is_first(node: UOp, address: Address) -> bool:
    """Whether only the first element of a scan is meant, which is that of its body."""
    (axis,) = node.arg[1]
    at = address.indices[axis]
    return at.op == Op.CONST and bool(at.arg == 0)


def fits(found: ScanLoop, kernel: Kernel) -> bool:
    """Whether the loops of a kernel can be put in the order that a scan needs."""
    if found.loop not in kernel.order:
        return True
    return kernel.can_pin(found.others) and kernel.can_pin(found.others | {found.loop})


def enter(found: ScanLoop, kernel: Kernel) -> None:
    """Order the loops of a kernel for a scan."""
    kernel.ordered.add(found.loop)
    if found.loop in kernel.order:
        kernel.pin(found.others)
        kernel.pin(found.others | {found.loop})


def _is_innermost(loop: UOp, others: Collection[UOp], order: list[UOp]) -> bool:
    """The loops of a reduction are inside those of the stores, in the order of their numbers."""
    inner = [other for other in others if other not in order]
    return not inner if loop in order else all(other.arg < loop.arg for other in inner)


def _holds_at_once(mask: UOp, loop: UOp) -> bool:
    """Whether a mask that holds in an iteration of a loop holds in all before it."""
    parts = [mask]
    while parts:
        part = parts.pop()
        if not part.ranges >> loop.arg & 1:
            continue
        if part.op == Op.AND:
            parts.extend(part.src)
        elif not _closes_once(part, loop):
            return False
    return True


def _closes_once(part: UOp, loop: UOp) -> bool:
    """Whether a condition says that something that grows with a loop is below a limit."""
    if part.op != Op.LESS or part.src[1].ranges >> loop.arg & 1:
        return False
    node = part.src[0]
    terms = [(term, factor) for term, factor in linear(node)[1] if term.ranges >> loop.arg & 1]
    return all(term is loop and factor > 0 for term, factor in terms)


def loop_forms(node: UOp, shape: Shape) -> dict[int, Form]:
    """For each axis of a value that a scan below it walks in another way, what suits the scan."""
    if not node.ops >> Op.SCAN & 1 or not shape_of(node):
        return {}
    loops = tuple(range_(axis, size) for axis, size in enumerate(shape))
    found: dict[int, Form] = {}
    stack = [(node, everywhere(loops))]
    seen = set(stack)
    scans = 0
    while stack and len(found) < len(loops) and scans < _MOST_SCANS:
        part, address = stack.pop()
        if part.op == Op.SCAN:
            scans += 1
            _note_form(address.indices[part.arg[1][0]], found)
        below = [(source, address) for source in part.src if shape_of(source)]
        if part.op in MOVEMENT:
            below = [(part.src[0], through(part, address))]
        elif part.op not in _POINTWISE and part.op != Op.SCAN:
            below = []
        fresh = [key for key in below if key not in seen and key[0].ops >> Op.SCAN & 1]
        seen.update(fresh)
        stack += fresh
    return {axis: form for axis, form in found.items() if form != Form()}


def _note_form(i: UOp, found: dict[int, Form]) -> None:
    block = None
    if i.op == Op.FLOORMOD and i.src[1].op == Op.CONST:
        block = int(i.src[1].arg)
        i = i.src[0]
    constant, terms = linear(i)
    if len(terms) != 1 or terms[0][0].op != Op.RANGE:
        return
    loop, factor = terms[0]
    last = extent(loop) - 1
    start = (
        constant if factor == 1 else constant - last
    )  # that of the first iteration, or of the last
    if factor in (1, -1) and (start == 0 if block is None else start % block == 0):
        found.setdefault(loop.arg, Form(block, factor < 0))
