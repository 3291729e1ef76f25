"""The laws of a program: a LINEAR of instructions, in the order in which they run.

Out of linearize, into the renderers. Each line is one instruction; memory is flat, vectors are
explicit, and loops are closed by END.
"""

from __future__ import annotations

from typing import Final

from weft.ir.dtypes import INTEGER, VOID, dtypes
from weft.ir.ops import Op
from weft.ir.spec.common import (
    AFTER_ROWS,
    ELEMENTWISE_ROWS,
    LEAF_ROWS,
    has_types,
    is_bool,
    is_void,
    like_first,
    no_arg,
)
from weft.ir.spec.kernel import SPACES
from weft.ir.spec.spec import GraphRow, Row, Spec, Verdict, row
from weft.ir.text.syntax import result_dtype
from weft.ir.uop import UOp
from weft.ir.views import behind

MEMORIES: Final = frozenset((Op.PARAM, Op.BUFFER, Op.MEMORY))
# What a program only names: it need not be listed.
LEAVES: Final = MEMORIES | {Op.CONST, Op.VARIABLE}


def _memory(node: UOp) -> Verdict:
    if not has_types(node.arg, str, str, int) or node.dtype.kind == VOID:
        return False
    return node.arg[1] in SPACES and bool(node.arg[2] >= 1)


def _is_integer(node: UOp) -> bool:
    return bool(node.dtype.kind & INTEGER) and node.dtype.lanes == 1


def _counter(node: UOp) -> Verdict:
    return like_first(node) and _is_integer(node)


def _place(node: UOp) -> Verdict:
    if len(node.src) != 3:
        return f"there are {len(node.src) - 2} indices"
    memory, gate, index = node.src
    if behind(memory).op not in MEMORIES:
        return "it is not in memory"
    if not is_bool(gate) and gate.dtype is not dtypes.bool.vector(node.dtype.lanes):
        return "the gate is not bool, nor has it a bool for each lane"
    return _is_integer(index) or "the index is not an integer"


def _place_dtype(node: UOp) -> Verdict:
    return node.dtype.scalar is node.src[0].dtype.scalar


def _load(node: UOp) -> Verdict:
    return node.src[0].op == Op.INDEX and like_first(node) and no_arg(node)


def _store(node: UOp) -> Verdict:
    if len(node.src) != 2 or not is_void(node) or node.arg is not None:
        return False
    place, value = node.src
    return place.op == Op.INDEX and value.dtype is place.dtype


def _vector(node: UOp) -> Verdict:
    scalar = node.dtype.scalar
    if any(source.dtype.scalar is not scalar for source in node.src):
        return "the sources differ in dtype"
    return node.dtype is result_dtype(node.op, node.src, node.arg)


def _lanes(node: UOp) -> Verdict:
    if node.dtype is not result_dtype(node.op, node.src, node.arg):
        return False
    return all(lane.__class__ is int and 0 <= lane < node.src[0].dtype.lanes for lane in node.arg)


def _control(node: UOp) -> Verdict:
    return is_void(node) and node.arg is None


def _not_a_list(root: UOp, nodes: list[UOp]) -> tuple[UOp, str] | None:
    if root.op != Op.LINEAR:
        return root, "the root is another op"
    inner = next((node for node in nodes if node.op == Op.LINEAR and node is not root), None)
    return None if inner is None else (inner, "it stands inside another one")


def _listed_twice(root: UOp, nodes: list[UOp]) -> tuple[UOp, str] | None:
    seen: set[UOp] = set()
    for node in root.src:
        if node in seen:
            return node, "it is listed again"
        seen.add(node)
    return None


def _used_too_soon(root: UOp, nodes: list[UOp]) -> tuple[UOp, str] | None:
    seen: set[UOp] = set()
    for node in root.src:
        for i, source in enumerate(node.src):
            while source.op == Op.AFTER:
                if not seen.issuperset(source.src[1:]):
                    return node, f"source {i} comes after what is not listed before it"
                source = source.src[0]
            if source not in seen and source.op not in LEAVES:
                return node, f"source {i} is not listed before it"
        seen.add(node)
    return None


def _badly_nested(root: UOp, nodes: list[UOp]) -> tuple[UOp, str] | None:
    opened: list[UOp] = []
    for node in root.src:
        if node.op == Op.RANGE:
            opened.append(node)
        elif node.op == Op.END and (not opened or opened.pop() is not node.src[0]):
            return node, "it does not close what was opened last"
    return (opened[-1], "nothing closes it") if opened else None


def _used_outside(root: UOp, nodes: list[UOp]) -> tuple[UOp, str] | None:
    """A value that is used after the END of the loop in which it was made."""
    opened: list[list[UOp]] = [[]]
    gone: set[UOp] = set()
    for node in root.src:
        for i, source in enumerate(node.src):
            if source in gone:
                return node, f"source {i} was made inside a loop that has ended"
        if node.op == Op.END:
            gone.update(opened.pop())
        elif node.op == Op.RANGE:
            opened.append([node])
        else:
            opened[-1].append(node)
    return None


MEMORY_ROWS: Final = (row("MEMORY is (name, space, size)", Op.MEMORY, _memory),)
SPECIAL_ROWS: Final = (
    row("a SPECIAL is (kind, axis)", Op.SPECIAL, lambda node: has_types(node.arg, str, int)),
)
PLACE_ROWS: Final = (
    row("INDEX has memory, a bool gate and one flat index", Op.INDEX, _place),
    row("a place holds one element of its memory, or a vector", Op.INDEX, _place_dtype),
    row("LOAD reads a place, with its dtype", Op.LOAD, _load),
)
VECTOR_ROWS: Final = (
    row("VECTOR joins lanes of one dtype", Op.VECTOR, _vector),
    row("LANES picks lanes that exist", Op.LANES, _lanes),
)
COUNTER_ROWS: Final = (
    row("a counter is an integer, as its extent is", (Op.RANGE, Op.SPECIAL), _counter),
)

_ROWS: Final[tuple[Row, ...]] = (
    *LEAF_ROWS,
    *ELEMENTWISE_ROWS,
    *AFTER_ROWS,
    *MEMORY_ROWS,
    *COUNTER_ROWS,
    *SPECIAL_ROWS,
    *PLACE_ROWS,
    row("STORE writes a value of the dtype of its place", Op.STORE, _store),
    *VECTOR_ROWS,
    row("control is void", (Op.END, Op.BARRIER, Op.LINEAR), _control),
    row("END closes a RANGE", Op.END, lambda node: node.src[0].op == Op.RANGE),
)
_GRAPH_ROWS: Final = (
    GraphRow("a program is one LINEAR", _not_a_list),
    GraphRow("an instruction is listed once", _listed_twice),
    GraphRow("the sources of an instruction are listed before it", _used_too_soon),
    GraphRow("each RANGE is closed by an END, and they nest", _badly_nested),
    GraphRow("a value is used inside the loop that makes it", _used_outside),
)

PROGRAM_SPEC: Final = Spec("program", _ROWS, _GRAPH_ROWS)
