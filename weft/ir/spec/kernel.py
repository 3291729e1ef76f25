"""The invariants of a kernel: scalar expressions over ranges, and accesses of memory.

In: what rangeify and fuse make, and what opts rewrite. The kind and order of loops are in the arg
of the KERNEL, never in a node.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from weft.ir.ops import ELEMENTWISE, Op
from weft.ir.reduction.accumulation import hidden
from weft.ir.reduction.contract import Factor, contract_parts
from weft.ir.reduction.joined import is_joined, join_slots
from weft.ir.shapes import shape_of
from weft.ir.spec.common import (
    AFTER_ROWS,
    CALL_ROWS,
    ELEMENTWISE_ROWS,
    LEAF_ROWS,
    REDUCTIONS,
    has_types,
    is_bool,
    is_effect,
    is_index,
    is_void,
    like_first,
    no_arg,
)
from weft.ir.spec.spec import GraphRow, Row, Spec, Verdict, row
from weft.ir.spec.tensor import reduction_kind
from weft.ir.uop import UOp, range_ids
from weft.ir.views import behind
from weft.ir.walk import topological

SPACES: Final = frozenset(("global", "local", "register"))


def _is_scalar(node: UOp) -> Verdict:
    return node.dtype.lanes == 1


def scalars(ops: Iterable[int]) -> Row:
    return row("a kernel computes scalars", ops, _is_scalar)


def _no_shape(node: UOp) -> Verdict:
    return not any(map(shape_of, node.src))


def _range(node: UOp) -> Verdict:
    return node.arg.__class__ is int and node.arg >= 0 and is_index(node) and is_index(node.src[0])


def are_ranges(nodes: tuple[UOp, ...]) -> Verdict:
    return all(node.op == Op.RANGE for node in nodes) and len(set(nodes)) == len(nodes)


def are_indices(node: UOp, rank: int) -> Verdict:
    """Whether an address or a READ has a bool mask and one index per dimension."""
    _, mask, *indices = node.src
    if not is_bool(mask):
        return "the mask is not bool"
    if len(indices) != rank:
        return f"there are {len(indices)} indices for {rank} dimensions"
    return all(map(is_index, indices)) or "an index is not of dtype index"


def is_address(node: UOp) -> Verdict:
    return behind(node.src[0]).op in (Op.PARAM, Op.BUFFER)


def _stage(node: UOp) -> Verdict:
    if not has_types(node.arg, str, tuple) or node.arg[0] not in SPACES:
        return False
    sizes = node.arg[1]
    if any(size.__class__ is not int or size < 1 for size in sizes):
        return "a size is not an int from 1 on"
    indices = node.src[1 : 1 + len(sizes)]
    if len(indices) != len(sizes) or not all(map(is_index, indices)):
        return f"there are {len(sizes)} sizes, and not as many indices of dtype index"
    return are_ranges(node.src[1 + len(sizes) :])


def _read(node: UOp) -> Verdict:
    stage = behind(node.src[0])
    return stage.op == Op.STAGE and are_indices(node, len(stage.arg[1]))


def _stored(node: UOp) -> Verdict:
    address, value = node.src[:2]
    return address.op == Op.INDEX and value.dtype is address.dtype and is_void(node)


def _reduce(node: UOp) -> Verdict:
    if has_types(node.arg, UOp, tuple, int, int) or has_types(node.arg, UOp, tuple, float, int):
        return _joined(node)
    if not has_types(node.arg, int, tuple) or node.arg[0] not in REDUCTIONS or node.arg[1]:
        return False
    return len(node.src) > 1 and are_ranges(node.src[1:])


def _joined(node: UOp) -> Verdict:
    """Whether a REDUCE names others over its own ranges, and how two parts are joined."""
    join, axes, _, count = node.arg
    refers, own = node.src[1 : 1 + count], node.src[1 + count :]
    if axes or count < 1 or not own or not are_ranges(own):
        return False
    if not all(each.op == Op.REDUCE and has_types(each.arg, int, tuple) for each in refers):
        return "a reference is not a plain REDUCE"
    if any(each.src[1:] != own for each in refers):
        return "a reference closes other ranges"
    slots = join_slots(node.dtype.scalar, [each.dtype.scalar for each in refers])
    for part in topological(join):
        if part.op != Op.CONST and part.op not in ELEMENTWISE and part not in slots:
            return "the join is not an elementwise body over the two parts and those it refers to"
    return join.dtype is node.dtype.scalar or "the join has another dtype"


def _scan(node: UOp) -> Verdict:
    if not has_types(node.arg, int, tuple) or node.arg[0] not in REDUCTIONS or node.arg[1]:
        return False
    return len(node.src) == 2 and node.src[1].op == Op.RANGE


def _kind(node: UOp) -> Verdict:
    return is_joined(node) or reduction_kind(node)


def _kernel(node: UOp) -> Verdict:
    if not has_types(node.arg, str, tuple) or not is_void(node):
        return False
    loops = node.arg[1]
    if not all(has_types(loop, int, str) for loop in loops):
        return "a loop is not (range number, kind)"
    return len({loop[0] for loop in loops}) == len(loops) or "a range is listed twice"


def _program(node: UOp) -> Verdict:
    if not has_types(node.arg, str, str, str, str, tuple, tuple, tuple) or not is_void(node):
        return False
    slots = [part.arg[0] for part in node.src if part.op == Op.PARAM]
    if not all(part.op in (Op.PARAM, Op.VARIABLE) for part in node.src):
        return "an argument is neither a PARAM nor a VARIABLE"
    written = set(node.arg[4])
    return written <= set(slots) or f"it writes {sorted(written)} and takes {slots}"


def contracts(node: UOp) -> Verdict:
    """Whether a CONTRACT is of tensors of memory, at positions or of all elements of a thread."""
    kinds = (tuple, int, tuple, tuple, tuple, str)
    is_known = has_types(node.arg, *kinds) or has_types(node.arg, *kinds, str)
    if not is_known or len(node.arg[0]) != 3:
        return False
    if any(len(factor) != len(Factor._fields) for factor in node.arg[3:5]):
        return "a factor is not described"
    parts = contract_parts(node)
    left, right = parts.memories
    if right.op not in (Op.PARAM, Op.BUFFER) or behind(left).op not in _TILES:
        return "a factor is not an argument"
    if (
        parts.is_computed
        and behind(left).arg[1 if behind(left).op == Op.MEMORY else 0] != REGISTER
    ):
        return "a factor that threads compute is not in registers"
    if not all(map(_is_tensor, parts.factors)):
        return "the sizes, strides and moves of a factor are not as many"
    wanted = {1: 6, parts.elements: 3}.get(node.dtype.lanes)
    return len(parts.positions) == wanted or f"there are {len(parts.positions)} positions"


_TILES: Final = (Op.PARAM, Op.BUFFER, Op.STAGE, Op.MEMORY)
REGISTER: Final = "register"


def _is_tensor(factor: Factor) -> bool:
    rank = len(factor.sizes)
    lists = (factor.strides, factor.moves, factor.traversal)
    axes = [axis for axis, _ in (*factor.rows, *factor.depth)]
    return all(len(each) == rank for each in lists) and all(0 <= axis < rank for axis in axes)


def _effects(node: UOp) -> Verdict:
    return all(is_effect(source) or source.op == Op.RANGE for source in node.src)


def _same_number(root: UOp, nodes: list[UOp]) -> tuple[UOp, str] | None:
    seen: dict[int, UOp] = {}
    for node in nodes:
        if node.op == Op.RANGE and seen.setdefault(node.arg, node) is not node:
            return node, f"there is another range {node.arg}"
    return None


def _free_range(root: UOp, nodes: list[UOp]) -> tuple[UOp, str] | None:
    free = next(iter(range_ids(root.ranges)), None)
    if free is None:
        return None
    guilty = next(node for node in nodes if node.op == Op.RANGE and node.arg == free)
    return guilty, f"nothing closes range {free}"


def _unordered(root: UOp, nodes: list[UOp]) -> tuple[UOp, str] | None:
    """A SCAN whose loop is not ordered, or stands outside another that the SCAN depends on."""
    if root.op != Op.KERNEL or not root.ops >> Op.SCAN & 1:
        return None
    kinds = dict(root.arg[1])
    position = {number: i for i, number in enumerate(kinds)}
    for node in nodes:
        if node.op != Op.SCAN:
            continue
        own = node.src[1].arg
        if kinds.get(own) != "ordered":
            return node, f"range {own} is not listed as ordered"
        for other in range_ids(node.ranges):
            is_loop = kinds.get(other) not in ("vector", "unroll", None)
            if is_loop and position[other] > position[own]:
                return node, f"range {other}, on which it depends, is inside range {own}"
    return None


def _unturned(root: UOp, nodes: list[UOp]) -> tuple[UOp, str] | None:
    """A STORE that reduces into its address over a loop that is not ordered."""
    kinds = dict(root.arg[1]) if root.op == Op.KERNEL else {}
    for node in nodes if kinds else ():
        has_address = node.op == Op.STORE and node.src[0].op == Op.INDEX
        if has_address and behind(node.src[0].src[0]).op != Op.MEMORY:
            for number in range_ids(hidden(node)):
                if kinds.get(number) != "ordered":
                    return node, f"range {number} is not listed as ordered"
    return None


_REDUCTIONS: Final = (Op.REDUCE, Op.SCAN)
_VALUES: Final = ELEMENTWISE | {Op.CONST, Op.LOAD, Op.READ, *_REDUCTIONS, Op.STAGE, Op.INDEX}

# The tables that the forms of a kernel on its way to a program share; `lowered` has the others.
RANGE_ROWS: Final = (row("a RANGE has a number and an extent of dtype index", Op.RANGE, _range),)
STORE_ROWS: Final = (
    row("STORE writes a value of the dtype of its target", Op.STORE, _stored),
    row("STORE closes ranges, each once", Op.STORE, lambda node: are_ranges(node.src[2:])),
)
REDUCTION_ROWS: Final = (
    row("REDUCE reduces by an op over ranges, and over no axes", Op.REDUCE, _reduce),
    row("SCAN reduces by an op over one range, and over no axes", Op.SCAN, _scan),
    row("a reduction keeps the dtype", _REDUCTIONS, like_first),
    row("the reduction is defined for the dtype", _REDUCTIONS, _kind),
)
CONTRACT_ROWS: Final = (
    row("CONTRACT has two memories, a start for each axis, and positions", Op.CONTRACT, contracts),
)
TABLE_ROWS: Final = (row("a KERNEL is (name, loops), each loop once", Op.KERNEL, _kernel),)
RANGE_INVARIANTS: Final = (
    GraphRow("two ranges never share a number", _same_number),
    GraphRow("no range is free at the root", _free_range),
)
SCAN_INVARIANTS: Final = (
    GraphRow("a SCAN runs over the innermost of its loops, which is ordered", _unordered),
)
ORDER_INVARIANTS: Final = (
    GraphRow("a loop whose iterations reduce into one address is sequential", _unturned),
)

# Addresses of several dimensions, and what is read at them.
ADDRESS_ROWS: Final[tuple[Row, ...]] = (
    row("INDEX is an address in a PARAM or BUFFER", Op.INDEX, is_address),
    row("an address has the dtype of its memory", Op.INDEX, like_first),
    row(
        "INDEX has a bool mask and one index per dimension",
        Op.INDEX,
        lambda node: are_indices(node, len(shape_of(node.src[0]))),
    ),
    row(
        "LOAD reads an address", Op.LOAD, lambda node: node.src[0].op == Op.INDEX and no_arg(node)
    ),
    row("the result has the dtype of the value", (Op.LOAD, Op.READ, Op.STAGE), like_first),
)

KERNEL_ROWS: Final[tuple[Row, ...]] = (
    scalars(_VALUES),
    row(
        "memory is read by LOAD before it is computed with",
        ELEMENTWISE | {*_REDUCTIONS},
        _no_shape,
    ),
    *LEAF_ROWS,
    *ELEMENTWISE_ROWS,
    *RANGE_ROWS,
    *ADDRESS_ROWS,
    *STORE_ROWS,
    row("STORE has no arg", Op.STORE, no_arg),
    row("a STAGE has a space, an index for each size, and ranges", Op.STAGE, _stage),
    row("READ has a STAGE, a bool mask and one index per size", Op.READ, _read),
    *REDUCTION_ROWS,
    *CONTRACT_ROWS,
    *AFTER_ROWS,
    *TABLE_ROWS,
    row("a PROGRAM is a kernel of some target, over memory and sizes", Op.PROGRAM, _program),
    row("a KERNEL and a SINK hold effects", (Op.KERNEL, Op.SINK), _effects),
    *CALL_ROWS,
)
KERNEL_INVARIANTS: Final = (*RANGE_INVARIANTS, *SCAN_INVARIANTS, *ORDER_INVARIANTS)

KERNEL_SPEC: Final = Spec("kernel", KERNEL_ROWS, KERNEL_INVARIANTS)
