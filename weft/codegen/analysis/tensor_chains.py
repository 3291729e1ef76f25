"""Two products of matrices with values for each row and key between them, as matrix units see it.

    scores   sums of products of a row of the left factor and a key of the right one
    rows     what is reduced of the scores along the keys: a maximum, a sum
    weights  what is computed of both, for each row and key
    result   the sum over the keys of weights and values, for each row and column

`TensorChain` and the chooser ask here. What cannot be one comes with the reason, in words.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from weft.codegen.analysis.loops import extent_of, nodes_of, own_ranges, ranges_of
from weft.codegen.analysis.tensor_factors import (
    SUMS,
    Axis,
    axes_of,
    faults_of_axes,
    product_of,
)
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.reduction.contract import ROW_BYTES
from weft.ir.uop import UOp
from weft.ir.walk import topological

# Elements of a row of 128 bytes, which copies bring.
SPAN: Final = ROW_BYTES // 2
ROUNDED: Final = frozenset((dtypes.bfloat16, dtypes.float16))
_OTHERS: Final = (Op.STAGE, Op.SCAN, Op.AFTER, Op.CONTRACT)


class Score(NamedTuple):
    """A product for each row and key: the loads of its factors with their axes."""

    loads: tuple[UOp, UOp]
    axes: tuple[list[Axis], list[Axis]]
    key: int  # the range along the keys
    depth: int  # the range that it sums over


class Values(NamedTuple):
    """What weights are multiplied with: the load and its axes."""

    load: UOp
    axes: list[Axis]


class Chain(NamedTuple):
    """The parts of a kernel that is a chain."""

    scores: list[Score]
    rows: list[UOp]
    key: int  # the range that the second product sums over
    keys: list[int]  # all ranges along the keys, that one first
    results: list[Values]  # of each second product, in the order of the stores of them
    extents: dict[int, int]

    def scores_over(self, depths: Iterable[int]) -> list[Score]:
        wanted = set(depths)
        return [each for each in self.scores if each.depth in wanted]


def chain_of(kernel: UOp, row: int, column: int, block: int = SPAN) -> Chain | str:
    """The chain that a kernel is, in blocks of so many keys, or why it is none."""
    nodes = nodes_of(kernel)
    if any(node.op in _OTHERS for node in nodes):
        return "the kernel has stages or scans"
    extents = {number: extent_of(r) for number, r in ranges_of(kernel).items()}
    known = {number: extent for number, extent in extents.items() if extent is not None}
    if len(known) != len(extents):
        return "an extent is symbolic"
    reductions = [node for node in nodes if node.op == Op.REDUCE]
    if any(len(own_ranges(node)) != 1 for node in reductions):
        return "a reduction is over several ranges"
    last = [node for node in reductions_in_order(kernel) if node.ranges >> column & 1]
    if not last or any(n.arg[0] != Op.ADD or not n.ranges >> row & 1 for n in last):
        return "no product has the columns"
    if any(sum(node in last for node in topological(each)) > 1 for each in kernel.src):
        return "a store needs several products of the columns"
    if any(row not in {r.arg for r in own_ranges(store)} for store in kernel.src):
        return "a store is not of the rows"
    others = [node for node in reductions if node not in last]
    rows = [node for node in others if node.src[0].ops >> Op.REDUCE & 1]
    key = own_ranges(last[0])[0]
    if any(own_ranges(node)[0] is not key for node in last):
        return "products of several results do not sum over the same range"
    keys = [key.arg, *(own_ranges(node)[0].arg for node in rows)]
    if any(known[number] != known[key.arg] for number in keys) or len(set(keys)) != len(keys):
        return "what is between the products is not reduced along the keys alone"
    scores: list[Score] = []
    for node in others:
        if node not in rows:
            found = _score(kernel, node, row, keys)
            if isinstance(found, str):
                return found
            scores.append(found)
    if not scores:
        return "weights are not a product"
    results: list[Values] = []
    for node in last:
        values = _values(kernel, node, row, column, block)
        if isinstance(values, str):
            return values
        results.append(values)
    written = {node.src[0].src[0] for node in kernel.src}
    loads = [*(each.load for each in results), *(load for each in scores for load in each.loads)]
    if any(load.src[0].src[0] in written for load in loads):
        return "the kernel writes a factor"
    return Chain(scores, rows, key.arg, keys, results, known)


def reductions_in_order(kernel: UOp) -> list[UOp]:
    """The reductions of a kernel, in the order of its stores, which opts keep."""
    found: dict[UOp, None] = {}
    for each in kernel.src:
        found |= dict.fromkeys(node for node in topological(each) if node.op == Op.REDUCE)
    return list(found)


def _score(kernel: UOp, node: UOp, row: int, keys: list[int]) -> Score | str:
    product = product_of(node)
    if isinstance(product, str):
        return product
    loads = product.loads
    if loads[1].ranges >> row & 1:
        loads = loads[::-1]
    own = [number for number in keys if loads[1].ranges >> number & 1]
    is_apart = not any(loads[0].ranges >> number & 1 for number in keys)
    if len(own) != 1 or not is_apart or not loads[0].ranges >> row & 1:
        return "rows and keys are not those of different factors"
    if loads[1].ranges >> row & 1:
        return "keys depend on the row"
    depth = own_ranges(node)[0].arg
    axes: list[list[Axis]] = []
    for load, number in zip(loads, (row, own[0]), strict=True):
        if load.dtype not in ROUNDED:
            return f"weights of {load.dtype.name} do not go on in registers"
        found = axes_of(load)
        if isinstance(found, str):
            return found
        fault = _fault(kernel, found, (number, depth), 1, load)
        if fault:
            return fault
        axes.append(found)
    return Score(loads, (axes[0], axes[1]), own[0], depth)


def _fault(kernel: UOp, axes: list[Axis], numbers: tuple[int, int], parts: int, load: UOp) -> str:
    """Why copies cannot bring a factor in boxes of rows and steps; nothing if they can."""
    rows, steps = (((number, SPAN),) for number in numbers)
    return next(faults_of_axes(axes, rows, steps, parts, ranges_of(kernel), load), "")


def _values(kernel: UOp, node: UOp, row: int, column: int, block: int) -> Values | str:
    """The values of the second product, once its weights are rounded to their dtype."""
    found = weighed(node)
    if found is None:
        return "the second product is not one of weights, rounded to 16 bits, and memory"
    _, load = found
    if load.ranges >> row & 1 or not load.ranges >> column & 1:
        return "values are not those of columns"
    axes = axes_of(load)
    if isinstance(axes, str):
        return axes
    fault = _fault(kernel, axes, (column, own_ranges(node)[0].arg), block // SPAN, load)
    return fault or Values(load, axes)


def weighed(node: UOp) -> tuple[UOp, UOp] | None:
    """The weights of a product, not rounded yet, and the values that they are multiplied with."""
    value, conditions = node.src[0], []
    while value.op == Op.WHERE and value.src[2].op == Op.CONST and value.src[2].arg == 0:
        conditions.append(value.src[0])
        value = value.src[1]
    if value.op != Op.MUL:
        return None
    for weights, factor in (value.src, value.src[::-1]):
        load = factor.src[0] if factor.op == Op.CAST else factor
        narrow = weights.src[0] if weights.op == Op.CAST else weights
        is_rounded = narrow.op == Op.CAST and narrow.dtype is load.dtype
        if load.op != Op.LOAD or load.dtype not in ROUNDED or not is_rounded:
            continue
        if narrow.src[0].dtype is SUMS[load.dtype]:
            weights = narrow.src[0]
            for condition in reversed(conditions):
                weights = condition.where(weights, 0.0)
            return weights, load
    return None
