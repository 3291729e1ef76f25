"""The invariants of a kernel on its way to a program: a spec for what each pass gives.

A form differs from the one before it by rows: what a pass has lowered is no longer legal, and what
it has made is. The tables that forms share with kernels and programs are in those two modules.
The last four forms depend on what a target can do, so they are made for its data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Final

from weft.ir.dtypes import FIXED, FLOAT, INDEX, INTEGER, DType
from weft.ir.ops import ELEMENTWISE, Op, name
from weft.ir.spec.common import ELEMENTWISE_ROWS, LEAF_ROWS, is_index, like_first, no_arg
from weft.ir.spec.kernel import (
    CONTRACT_ROWS,
    KERNEL_INVARIANTS,
    KERNEL_ROWS,
    ORDER_INVARIANTS,
    RANGE_INVARIANTS,
    RANGE_ROWS,
    REDUCTION_ROWS,
    SCAN_INVARIANTS,
    STORE_ROWS,
    TABLE_ROWS,
    scalars,
)
from weft.ir.spec.program import (
    ADDRESS_ROWS,
    COUNTER_ROWS,
    MEMORIES,
    MEMORY_ROWS,
    SHUFFLE_ROWS,
    SPECIAL_ROWS,
    VECTOR_ROWS,
)
from weft.ir.spec.spec import GraphRow, Row, Spec, Verdict, row
from weft.ir.uop import UOp, first_closed
from weft.ir.views import behind
from weft.ir.walk import topological

LOOP_KINDS: Final = frozenset(("loop", "ordered"))
WRITTEN_OUT: Final = frozenset(("sequential",))
BOUND_KINDS: Final = frozenset(("grid", "thread"))
LANE_KINDS: Final = frozenset(("vector", "unroll"))

Found = tuple[UOp, str] | None


def _unlisted(root: UOp, nodes: list[UOp]) -> Found:
    """A range that the table leaves out, or one of the table that there is not."""
    listed = {number for number, _ in root.arg[1]}
    present = {node.arg: node for node in nodes if node.op == Op.RANGE}
    for number, node in present.items():
        if number not in listed:
            return node, f"range {number} is not in the table"
    missing = listed - present.keys()
    return (root, f"there are no ranges {sorted(missing)}") if missing else None


def _closes_nothing(node: UOp) -> Verdict:
    return all(source.op == Op.STORE for source in node.src) or "a source is not a STORE"


def _loaded(node: UOp) -> Verdict:
    addresses = node.src[1:] if node.op == Op.STORE else node.src
    return not any(each.op == Op.INDEX for each in addresses) or "an address is used as a value"


def _wide_reduction(node: UOp) -> Verdict:
    return node.dtype.kind != FLOAT or node.dtype.bits >= 32


def _kinds(*kinds: Iterable[str]) -> Row:
    legal = frozenset(kind for each in kinds for kind in each)

    def listed(node: UOp) -> Verdict:
        others = sorted({kind for _, kind in node.arg[1]} - legal)
        return not others or f"there are loops of the kinds {others}"

    return row(f"a loop is of a kind of {', '.join(sorted(legal))}", Op.KERNEL, listed)


def _is_number(node: UOp) -> Verdict:
    return is_index(node.src[2])


def _version(node: UOp, kinds: Iterable[int]) -> Verdict:
    if behind(node).op not in MEMORIES or not like_first(node) or not no_arg(node):
        return "it is not memory"
    return all(source.op in kinds for source in node.src[1:])


def _read_of_nothing(node: UOp) -> Verdict:
    return node.src[0].src[0].op != Op.MEMORY or "nothing is stored there before"


_LOADED: Final = ELEMENTWISE | {Op.STORE, Op.REDUCE, Op.SCAN, Op.STAGE}
_LISTED: Final = (GraphRow("the table lists the ranges of a kernel", _unlisted),)
_NORMAL_ROWS: Final = (
    *KERNEL_ROWS,
    row("memory is read by LOAD only", _LOADED, _loaded),
    row("a KERNEL holds STOREs, which close its ranges", Op.KERNEL, _closes_nothing),
    _kinds(LOOP_KINDS, WRITTEN_OUT, BOUND_KINDS, LANE_KINDS),
)
NORMAL_SPEC: Final = Spec("normalized kernel", _NORMAL_ROWS, (*KERNEL_INVARIANTS, *_LISTED))

WIDENED_SPEC: Final = Spec(
    "kernel with wide reductions",
    (
        *_NORMAL_ROWS,
        row("a reduction of floats has 32 bits or more", (Op.REDUCE, Op.SCAN), _wide_reduction),
    ),
    (*KERNEL_INVARIANTS, *_LISTED),
)

# What all forms with flat memory share: no STAGE, no READ, one index per address.
_FLAT_ROWS: Final = (
    *LEAF_ROWS,
    *ELEMENTWISE_ROWS,
    *MEMORY_ROWS,
    *ADDRESS_ROWS,
    row("memory inside a kernel is read after a STORE", Op.LOAD, _read_of_nothing),
    *STORE_ROWS,
    *TABLE_ROWS,
    *CONTRACT_ROWS,
    row("a KERNEL holds STOREs, which close its ranges", Op.KERNEL, _closes_nothing),
)
_INDEX_ROWS: Final = (row("an index is of dtype index", Op.INDEX, _is_number),)
_REDUCTION_VERSIONS: Final = (
    row(
        "AFTER is memory once STOREs have happened",
        Op.AFTER,
        lambda node: _version(node, (Op.STORE,)),
    ),
)
_CARRIED_VERSIONS: Final = (
    row(
        "AFTER is memory once STOREs have happened, and may name the loop that carries it on",
        Op.AFTER,
        lambda node: _version(node, (Op.STORE, Op.RANGE)),
    ),
)

FLAT_SPEC: Final = Spec(
    "kernel with flat memory",
    (
        scalars(ELEMENTWISE | {Op.CONST, Op.LOAD, Op.INDEX, Op.REDUCE, Op.SCAN}),
        *_FLAT_ROWS,
        *_INDEX_ROWS,
        *_REDUCTION_VERSIONS,
        *RANGE_ROWS,
        *REDUCTION_ROWS,
        _kinds(LOOP_KINDS, WRITTEN_OUT, BOUND_KINDS, LANE_KINDS),
    ),
    (*RANGE_INVARIANTS, *SCAN_INVARIANTS, *ORDER_INVARIANTS, *_LISTED),
)

FRAGMENT_SPEC: Final = Spec(
    "kernel with fragments",
    (
        *_FLAT_ROWS,
        *_INDEX_ROWS,
        *_REDUCTION_VERSIONS,
        *RANGE_ROWS,
        *REDUCTION_ROWS,
        _kinds(LOOP_KINDS, WRITTEN_OUT, BOUND_KINDS, LANE_KINDS),
    ),
    (*RANGE_INVARIANTS, *SCAN_INVARIANTS, *ORDER_INVARIANTS, *_LISTED),
)

EXPANDED_SPEC: Final = Spec(
    "expanded kernel",
    (
        *_FLAT_ROWS,
        *_INDEX_ROWS,
        *_REDUCTION_VERSIONS,
        *RANGE_ROWS,
        *REDUCTION_ROWS,
        *VECTOR_ROWS,
        _kinds(LOOP_KINDS, WRITTEN_OUT, BOUND_KINDS),
    ),
    (*RANGE_INVARIANTS, *SCAN_INVARIANTS, *ORDER_INVARIANTS),
)


def _joined_by_threads(root: UOp, nodes: list[UOp]) -> Found:
    threads = {number for number, kind in root.arg[1] if kind == "thread"}
    for node in nodes:
        if node.op == Op.REDUCE and any(r.arg in threads for r in node.src[first_closed(node) :]):
            return node, "it closes a range of threads"
    return None


JOINED_SPEC: Final = Spec(
    "kernel whose threads share reductions",
    (
        *_FLAT_ROWS,
        *_INDEX_ROWS,
        *_REDUCTION_VERSIONS,
        *RANGE_ROWS,
        *REDUCTION_ROWS,
        *VECTOR_ROWS,
        *SHUFFLE_ROWS,
        _kinds(LOOP_KINDS, WRITTEN_OUT, BOUND_KINDS),
    ),
    (
        *(*RANGE_INVARIANTS, *SCAN_INVARIANTS, *ORDER_INVARIANTS),
        GraphRow("a thread reduces its own part", _joined_by_threads),
    ),
)

ACCUMULATED_SPEC: Final = Spec(
    "kernel with accumulators",
    (
        *_FLAT_ROWS,
        *_INDEX_ROWS,
        *_CARRIED_VERSIONS,
        *RANGE_ROWS,
        *VECTOR_ROWS,
        *SHUFFLE_ROWS,
        _kinds(LOOP_KINDS, BOUND_KINDS),
    ),
    (*RANGE_INVARIANTS, *ORDER_INVARIANTS),
)

_BOUND_ROWS: Final = (
    *_FLAT_ROWS,
    *_CARRIED_VERSIONS,
    *COUNTER_ROWS,
    *SPECIAL_ROWS,
    *VECTOR_ROWS,
    *SHUFFLE_ROWS,
    _kinds(LOOP_KINDS),
)
BOUND_SPEC: Final = Spec(
    "kernel bound to hardware",
    (*_INDEX_ROWS, *RANGE_ROWS, *_BOUND_ROWS),
    (*RANGE_INVARIANTS, *ORDER_INVARIANTS),
)


def computed(root: UOp) -> list[UOp]:
    """The nodes of a lowered kernel or program, without the sizes of its arguments."""
    return topological(root, enter=lambda node: node.op not in (Op.PARAM, Op.BUFFER))


def _without_width(root: UOp, nodes: list[UOp]) -> Found:
    for node in computed(root):
        if node.dtype.kind == INDEX and node.op != Op.VARIABLE:
            return node, "it is of dtype index"
    return None


_WIDTHS: Final = (GraphRow("an index has the width of a machine integer", _without_width),)
INDEXED_SPEC: Final = Spec(
    "kernel of machine integers", _BOUND_ROWS, (*RANGE_INVARIANTS, *_WIDTHS)
)


def _only(is_legal: Callable[[UOp], Verdict]) -> Callable[[UOp, list[UOp]], Found]:
    def find(root: UOp, nodes: list[UOp]) -> Found:
        for node in computed(root):
            verdict = is_legal(node)
            if verdict is not True:
                return node, verdict or ""
        return None

    return find


def _of_floats(native: frozenset[DType], rounded: frozenset[DType]) -> GraphRow:
    def is_legal(node: UOp) -> Verdict:
        dtype = node.dtype
        is_small = dtype.kind == FLOAT and dtype.bits < 32 and dtype.scalar not in native
        # Bits may become a float that the target only turns into a float32, or makes of one.
        is_rounded = node.op == Op.CAST and dtype.scalar in rounded
        is_known = not is_small or node.op == Op.BITCAST or is_rounded
        return is_known or f"the target lacks {dtype.scalar.name}"

    return GraphRow("small floats are those that the target computes with", _only(is_legal))


def _is_wide(dtype: DType) -> bool:
    return bool(dtype.kind & FIXED & INTEGER) and dtype.bits == 64


def _of_ops(native: frozenset[int], lacking: frozenset[int]) -> GraphRow:
    def is_legal(node: UOp) -> Verdict:
        is_lacking = node.op in lacking and node.op not in native
        later = node.dtype.kind != FLOAT and any(
            _is_wide(part.dtype) for part in (node, *node.src)
        )
        return not is_lacking or later or f"the target lacks {name(node.op)}"

    return GraphRow("an op that can be decomposed is one that the target has", _only(is_legal))


def _of_integers(native: frozenset[DType]) -> GraphRow:
    def is_legal(node: UOp) -> Verdict:
        is_lacking = _is_wide(node.dtype) and node.dtype.scalar not in native
        return not is_lacking or f"the target lacks {node.dtype.scalar.name}"

    return GraphRow("wide integers are those that the target computes with", _only(is_legal))


@cache
def emulated_floats_spec(
    native: frozenset[DType], rounded: frozenset[DType] = frozenset()
) -> Spec:
    """Of a kernel whose floats a target with these dtypes computes with.

    `rounded` are those that it only rounds a float32 to.
    """
    invariants = (*RANGE_INVARIANTS, *_WIDTHS, _of_floats(native, rounded))
    return Spec("kernel of native floats", _BOUND_ROWS, invariants)


@cache
def decomposed_spec(
    native: frozenset[DType],
    ops: frozenset[int],
    lacking: frozenset[int],
    rounded: frozenset[DType] = frozenset(),
) -> Spec:
    """Of a kernel for a target with these ops; `lacking` are those that can be decomposed.

    Ops of integers that the target lacks are left for the words that they become.
    """
    invariants = (*RANGE_INVARIANTS, *_WIDTHS, _of_floats(native, rounded), _of_ops(ops, lacking))
    return Spec("kernel of native ops", _BOUND_ROWS, invariants)


@cache
def native_spec(
    native: frozenset[DType],
    ops: frozenset[int],
    lacking: frozenset[int],
    rounded: frozenset[DType] = frozenset(),
) -> Spec:
    """Of a kernel that a target can run, but for the order of its instructions."""
    numbers = (_of_floats(native, rounded), _of_ops(ops, lacking), _of_integers(native))
    invariants = (*RANGE_INVARIANTS, *_WIDTHS, *numbers)
    return Spec("native kernel", _BOUND_ROWS, invariants)


def _is_scalar(node: UOp) -> Verdict:
    lanes = max([node.dtype.lanes, *(source.dtype.lanes for source in node.src)])
    return node.op not in ELEMENTWISE or lanes == 1 or "it computes on lanes"


_SCALAR: Final = GraphRow("lanes are for memory alone", _only(_is_scalar))


@cache
def scalar_spec(
    native: frozenset[DType],
    ops: frozenset[int],
    lacking: frozenset[int],
    rounded: frozenset[DType] = frozenset(),
) -> Spec:
    """Of a native kernel for threads that compute on scalars."""
    invariants = (*native_spec(native, ops, lacking, rounded).graph_rows, _SCALAR)
    return Spec("scalar kernel", _BOUND_ROWS, invariants)
