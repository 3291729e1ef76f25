"""The invariants of a program: a LINEAR of instructions, in the order in which they run.

Out of linearize, into the renderers. Each line is one instruction; memory is flat, vectors are
explicit, and loops are closed by END.
"""

from __future__ import annotations

from typing import Final

from weft.ir.dtypes import INTEGER, VOID, dtypes
from weft.ir.ops import Op
from weft.ir.reduction.contract import MOST_AXES
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
from weft.ir.spec.kernel import CONTRACT_ROWS, SPACES
from weft.ir.spec.spec import GraphRow, Row, Spec, Verdict, row
from weft.ir.text.syntax import result_dtype
from weft.ir.uop import UOp
from weft.ir.views import behind

MEMORIES: Final = frozenset((Op.PARAM, Op.BUFFER, Op.MEMORY))
# What a program only names: it need not be listed.
LEAVES: Final = MEMORIES | {Op.CONST, Op.VARIABLE}
# Local memory that a launch asks for.
DYNAMIC: Final = "dynamic"


def _memory(node: UOp) -> Verdict:
    if not has_types(node.arg, str, str, int) or node.dtype.kind == VOID:
        return False
    return node.arg[1] in SPACES | {DYNAMIC} and bool(node.arg[2] >= 1)


def _is_integer(node: UOp) -> bool:
    return bool(node.dtype.kind & INTEGER) and node.dtype.lanes == 1


def _counter(node: UOp) -> Verdict:
    return like_first(node) and _is_integer(node)


def _address(node: UOp) -> Verdict:
    if len(node.src) != 3:
        return f"there are {len(node.src) - 2} indices"
    memory, mask, index = node.src
    if behind(memory).op not in MEMORIES:
        return "it is not in memory"
    if not is_bool(mask) and mask.dtype is not dtypes.bool.vector(node.dtype.lanes):
        return "the mask is not bool, and has not one bool for each lane"
    return _is_integer(index) or "the index is not an integer"


def _address_dtype(node: UOp) -> Verdict:
    return node.dtype.scalar is node.src[0].dtype.scalar


def _load(node: UOp) -> Verdict:
    return node.src[0].op == Op.INDEX and like_first(node) and no_arg(node)


def _store(node: UOp) -> Verdict:
    if len(node.src) != 2 or not is_void(node) or node.arg is not None:
        return False
    address, value = node.src
    return address.op == Op.INDEX and value.dtype is address.dtype


def _vector(node: UOp) -> Verdict:
    scalar = node.dtype.scalar
    if any(source.dtype.scalar is not scalar for source in node.src):
        return "the sources differ in dtype"
    return node.dtype is result_dtype(node.op, node.src, node.arg)


def _lanes(node: UOp) -> Verdict:
    if node.dtype is not result_dtype(node.op, node.src, node.arg):
        return False
    return all(lane.__class__ is int and 0 <= lane < node.src[0].dtype.lanes for lane in node.arg)


def _shuffle(node: UOp) -> Verdict:
    if not has_types(node.arg, int) or node.arg[0] < 1:
        return "the bits are not a positive number"
    if node.src[1].op not in (Op.RANGE, Op.SPECIAL):
        return "the second source is not a counter"
    return like_first(node) and node.dtype.kind != VOID


def _map(node: UOp) -> Verdict:
    if not has_types(node.arg, int, tuple, tuple, tuple, tuple) or node.src[0].op != Op.PARAM:
        return False
    rank = len(node.arg[1])
    return all(len(part) == rank for part in node.arg[1:]) and 2 <= rank <= MOST_AXES


def _is_in(node: UOp, *spaces: str) -> bool:
    """Whether a node is an address in memory of one of these spaces."""
    memory = behind(node.src[0]) if node.op == Op.INDEX else node
    return node.op == Op.INDEX and memory.op == Op.MEMORY and memory.arg[1] in spaces


def _copy_box(node: UOp) -> Verdict:
    target, tensor, barrier, mask, *coordinates = node.src[:-1]
    if node.arg is not None or tensor.op != Op.TENSOR_MAP or not is_bool(mask):
        return False
    if not _is_in(target, DYNAMIC) or not _is_in(barrier, DYNAMIC):
        return "the target or the barrier is not in dynamic memory"
    return len(coordinates) == len(tensor.arg[1]) and all(map(_is_integer, coordinates))


def _mbarrier(node: UOp) -> Verdict:
    if node.arg.__class__ is not tuple or not node.arg or not is_bool(node.src[1]):
        return False
    kinds = {"init": (2, 3), "expect": (1, 3), "arrive": (0, 3), "wait": (0, 4)}
    if kinds.get(node.arg[0]) != (len(node.arg) - 1, len(node.src)):
        return "it does nothing that is known"
    return _is_in(node.src[0], DYNAMIC)


def _mma(node: UOp) -> Verdict:
    is_known = has_types(node.arg, tuple, tuple, tuple) or node.arg[3:] == ("start",)
    if not is_known or len(node.arg[1]) != 3:
        return False
    sums, left, right, _ = node.src
    if not _is_in(left, DYNAMIC, "register"):
        return "the left factor is neither in local memory nor in registers"
    return _is_in(sums, "register") and _is_in(right, DYNAMIC)


def _mma_group(node: UOp) -> Verdict:
    is_known = node.arg in (("fence",), ("commit",), ("computed",)) or (
        has_types(node.arg, str, int) and node.arg[0] in ("wait", "ready") and node.arg[1] >= 0
    )
    return is_known and _is_in(node.src[0], "register")


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
ADDRESS_ROWS: Final = (
    row("INDEX has memory, a bool mask and one flat index", Op.INDEX, _address),
    row("an address holds one element of its memory, or a vector", Op.INDEX, _address_dtype),
    row("LOAD reads an address, with its dtype", Op.LOAD, _load),
)
VECTOR_ROWS: Final = (
    row("VECTOR joins lanes of one dtype", Op.VECTOR, _vector),
    row("LANES picks lanes that exist", Op.LANES, _lanes),
)
SHUFFLE_ROWS: Final = (
    row("SHUFFLE takes a value and a thread counter, and has (bits,)", Op.SHUFFLE, _shuffle),
)
ASYNC_ROWS: Final = (
    row(
        "a TENSOR_MAP has an argument, an offset, and as many sizes, strides", Op.TENSOR_MAP, _map
    ),
    row("COPY_BOX has a target, a map, a barrier, a mask and coordinates", Op.COPY_BOX, _copy_box),
    row("MBARRIER has a barrier and a mask, and knows what it does", Op.MBARRIER, _mbarrier),
    row("MMA has sums in registers, and two tiles, of which the right is shared", Op.MMA, _mma),
    row("MMA_GROUP has sums in registers, and knows what it does", Op.MMA_GROUP, _mma_group),
    row(
        "what runs beside the arithmetic is void",
        (Op.COPY_BOX, Op.MBARRIER, Op.MMA, Op.MMA_GROUP),
        is_void,
    ),
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
    *ADDRESS_ROWS,
    row("STORE writes a value of the dtype of its target", Op.STORE, _store),
    *VECTOR_ROWS,
    *SHUFFLE_ROWS,
    *CONTRACT_ROWS,
    *ASYNC_ROWS,
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
