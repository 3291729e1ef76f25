"""The invariants of a ranged graph: what `fuse` gives, stores and global stages over ranges.

A SINK has a member for each kernel and each call. Ranges are numbered per kernel, in the order of
its loops. Kernels read each other's results from global stages, and order edges (AFTER) say which
writes of memory a read sees and what a write waits for.
"""

from __future__ import annotations

from typing import Final

from weft.ir.ops import ELEMENTWISE, Op, name
from weft.ir.ranged import MEMORY, Member, call_of, members_of
from weft.ir.reduction.accumulation import hidden
from weft.ir.shapes import same_shape, shape_of
from weft.ir.spec.common import (
    CALL_ROWS,
    ELEMENTWISE_ROWS,
    LEAF_ROWS,
    is_bool,
    is_index,
    is_void,
    like_first,
    no_arg,
)
from weft.ir.spec.kernel import (
    ADDRESS_ROWS,
    RANGE_ROWS,
    REDUCTION_ROWS,
    are_indices,
    are_ranges,
    scalars,
)
from weft.ir.spec.spec import GraphRow, Row, Spec, Verdict, row
from weft.ir.spec.tensor import TENSOR_SPEC, is_item
from weft.ir.stage import is_global, stage_parts
from weft.ir.uop import UOp, range_ids

Found = tuple[UOp, str] | None

_REDUCTIONS: Final = (Op.REDUCE, Op.SCAN)
_VALUES: Final = ELEMENTWISE | {Op.CONST, Op.LOAD, Op.READ, *_REDUCTIONS, Op.STAGE, Op.INDEX}
_OUTPUTS: Final = (Op.STORE, Op.STAGE)
_EFFECTS: Final = (*_OUTPUTS, Op.TUPLE, Op.CALL)


def _computes(node: UOp) -> Verdict:
    for source in node.src:
        if source.op in MEMORY or source.op == Op.INDEX:
            return f"a source is {name(source.op)}, which is memory"
    return True


def _stage(node: UOp) -> Verdict:
    if not is_global(node) or len(node.arg) not in (2, 3) or node.arg[2:] not in ((), ("masked",)):
        return 'the arg is neither ("global", sizes) nor ("global", sizes, "masked")'
    static = node.arg[1]
    if any(size is not None and (size.__class__ is not int or size < 0) for size in static):
        return "a size is neither an int from 0 on nor None"
    wanted = 1 + len(static) + static.count(None) + len(node.arg[2:])
    if len(node.src) < wanted:
        return f"there are {len(node.src)} sources, and the arg asks for {wanted}"
    parts = stage_parts(node)
    indices = [*parts.indices, *(size for size in parts.sizes if isinstance(size, UOp))]
    if not all(map(is_index, indices)):
        return "an index or a symbolic size is not of dtype index"
    if parts.mask is not None and not is_bool(parts.mask):
        return "the mask is not bool"
    return are_ranges(parts.ranges)


def _read(node: UOp) -> Verdict:
    memory = node.src[0]
    if not is_global(memory) and memory.op not in (Op.CALL, Op.ITEM):
        return f"it reads {name(memory.op)}"
    return no_arg(node) and are_indices(node, len(shape_of(memory)))


def _store(node: UOp) -> Verdict:
    address, value = node.src[:2]
    if not is_void(node) or value.dtype is not address.dtype:
        return "the value has another dtype than its memory"
    if call_of(node) is not None:
        is_whole = same_shape(shape_of(address), shape_of(value)) and len(node.src) == 2
        return (is_whole and no_arg(node)) or "a call fills memory of the shape of its result"
    if address.op != Op.INDEX:
        return "it writes no INDEX, and no result of a CALL"
    if node.arg not in (None, "ordered"):
        return 'the arg is not "ordered"'
    return are_ranges(node.src[2:])


def _after(node: UOp) -> Verdict:
    memory, *effects = node.src
    if memory.op not in (Op.PARAM, Op.BUFFER):
        return f"{name(memory.op)} has no versions"
    return all(effect.op in _EFFECTS for effect in effects) and no_arg(node)


def _tuple(node: UOp) -> Verdict:
    if len(node.src) < 2 or len(set(node.src)) != len(node.src) or not is_void(node):
        return "it has not several sources, each once"
    if any(output.op not in _OUTPUTS for output in node.src):
        return "a source is neither a STORE nor a STAGE"
    return len({call_of(output) for output in node.src}) == 1 or "it mixes calls and kernels"


def _sink(node: UOp) -> Verdict:
    if len(set(node.src)) != len(node.src):
        return "a member is listed twice"
    return is_void(node) and no_arg(node) and all(part.op in _EFFECTS for part in node.src)


_ROWS: Final[tuple[Row, ...]] = (
    scalars(_VALUES),
    *LEAF_ROWS,
    *ELEMENTWISE_ROWS,
    row("memory is read before it is computed with", ELEMENTWISE | {*_REDUCTIONS}, _computes),
    *RANGE_ROWS,
    *ADDRESS_ROWS,
    row("a STAGE is global, with indices, sizes and ranges", Op.STAGE, _stage),
    row("READ reads a STAGE or a result, at one index per size", Op.READ, _read),
    row("STORE writes a value at an index, or what a call gives", Op.STORE, _store),
    *REDUCTION_ROWS,
    row("AFTER has the dtype of its first source", Op.AFTER, like_first),
    row("AFTER is memory once kernels or calls have run", Op.AFTER, _after),
    row("a TUPLE is the outputs of a kernel or of a call", Op.TUPLE, _tuple),
    row("a SINK has kernels and calls, each once", Op.SINK, _sink),
    row("ITEM picks a value of a CALL, with its dtype", Op.ITEM, is_item),
    *CALL_ROWS,
)


def _listed_once(root: UOp, nodes: list[UOp]) -> Found:
    owners: dict[UOp, Member] = {}
    for member in members_of(root):
        for part in (*member.outputs, *([] if member.call is None else [member.call])):
            if owners.setdefault(part, member) is not member:
                return part, "it is an output of two members"
    for node in nodes:
        is_output = node.op in (Op.STORE, Op.STAGE, Op.CALL)
        if is_output and node not in owners:
            return node, "no member of the SINK has it"
    return None


def _acyclic(root: UOp, nodes: list[UOp]) -> Found:
    members = members_of(root)
    left = {member: len(member.waits) for member in members}
    followers: dict[Member, list[Member]] = {member: [] for member in members}
    for member in members:
        for other in member.waits:
            followers[other].append(member)
    ready = [member for member in members if not left[member]]
    for member in ready:  # grows while it is walked
        for follower in followers[member]:
            left[follower] -= 1
            if not left[follower]:
                ready.append(follower)
    stuck = next((member for member in members if left[member]), None)
    return None if stuck is None else (stuck.node, "it waits for what waits for it")


def _numbered(root: UOp, nodes: list[UOp]) -> Found:
    for member in members_of(root):
        seen: dict[int, UOp] = {}
        for loop in member.loops:
            if seen.setdefault(loop.arg, loop) is not loop:
                return loop, f"its kernel has another range {loop.arg}"
    return None


def _closed(root: UOp, nodes: list[UOp]) -> Found:
    for node in nodes:
        if node.op in _OUTPUTS and node.ranges:
            return node, f"range {range_ids(node.ranges)[0]} is not among those it runs over"
    return None


def _sequential(root: UOp, nodes: list[UOp]) -> Found:
    for node in nodes:
        if node.op == Op.SCAN and any(n > node.src[1].arg for n in range_ids(node.ranges)):
            return node, "a range inside its own is one that it depends on"
        is_plain = node.op == Op.STORE and node.arg is None and node.src[0].op == Op.INDEX
        if is_plain and hidden(node):
            return node, "its iterations meet at one index, and it is not ordered"
    return None


RANGED_SPEC: Final = Spec(
    "ranged graph",
    _ROWS,
    (
        GraphRow("each output belongs to one member", _listed_once),
        GraphRow("members can be put in order", _acyclic),
        GraphRow("two ranges of a kernel never share a number", _numbered),
        GraphRow("an output closes all ranges that it depends on", _closed),
        GraphRow("what is carried from iteration to iteration is innermost", _sequential),
    ),
    bodies=TENSOR_SPEC,
)
