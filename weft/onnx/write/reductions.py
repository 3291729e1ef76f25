"""Reductions, products of matrices, and scans."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from onnx import helper

from weft.ir.dtypes import BOOL, dtypes
from weft.ir.ops import Op
from weft.ir.reduction.reductions import identity
from weft.ir.uop import UOp
from weft.onnx.write.builder import Builder, element, emits, static_shape
from weft.onnx.write.elementwise import arithmetic, computing_dtype

_REDUCTIONS: Final = {
    Op.ADD: "ReduceSum",
    Op.MUL: "ReduceProd",
    Op.MAX: "ReduceMax",
    Op.MIN: "ReduceMin",
    Op.LOGADD: "ReduceLogSumExp",
}
_OF_BOOLS: Final = {Op.ADD: Op.MAX, Op.OR: Op.MAX, Op.MUL: Op.MIN, Op.AND: Op.MIN}
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"


@emits(Op.REDUCE)
def reduced(b: Builder, node: UOp) -> str:
    op, axes = node.arg[:2]
    source = node.src[0]
    if op == Op.ADD and source.op == Op.MUL and node.dtype in (dtypes.float32, dtypes.float64):
        return _contracted(b, node, source, tuple(axes))
    value = b.value(source)
    if node.dtype.kind == BOOL:
        wide = b.cast(value, dtypes.int32)
        name = _REDUCTIONS[_OF_BOOLS.get(op, op)]
        total = b.add(name, wide, b.ints(axes), keepdims=1)
        return b.add("Not", b.add("Equal", total, b.scalar(0, dtypes.int32)))
    dtype = computing_dtype(node.dtype)
    ready = value if dtype is node.dtype else b.cast(value, dtype)
    total = b.add(_REDUCTIONS[op], ready, b.ints(axes), keepdims=1)
    return total if dtype is node.dtype else b.cast(total, node.dtype)


def _contracted(b: Builder, node: UOp, product: UOp, axes: tuple[int, ...]) -> str:
    """A sum of products of two values that are repeated along axes: no product is stored."""
    shape = static_shape(product)
    letters = _LETTERS[: len(shape)]
    names, terms = [], []
    for source in product.src:
        while source.op == Op.EXPAND and not source.src[1:]:
            source = source.src[0]
        own = static_shape(source)
        kept = [n for n, size in enumerate(own) if size == shape[n] and size != 1]
        names.append(b.reshape(b.value(source), [own[n] for n in kept]))
        terms.append("".join(letters[n] for n in kept))
    result = "".join(letters[n] for n, size in enumerate(shape) if n not in axes and size != 1)
    missing = set(result) - set("".join(terms))
    summed = {letters[n] for n in axes if shape[n] != 1}
    if len(shape) > len(_LETTERS) or missing or summed - set("".join(terms)) or 0 in shape:
        return b.add("ReduceSum", b.value(product), b.ints(axes), keepdims=1)
    total = b.add("Einsum", *names, equation=f"{','.join(terms)}->{result}")
    return b.reshape(total, static_shape(node))


@emits(Op.SCAN)
def scanned(b: Builder, node: UOp) -> str:
    """Prefixes along an axis: sums have an operator, others are a Scan of one op."""
    op, axes = node.arg[:2]
    (axis,) = axes
    value = b.value(node.src[0])
    is_bool = node.dtype.kind == BOOL
    dtype = dtypes.int32 if is_bool else computing_dtype(node.dtype)
    ready = value if dtype is node.dtype else b.cast(value, dtype)
    op = _OF_BOOLS.get(op, op) if is_bool else op
    if op == Op.ADD:
        result = b.add("CumSum", ready, b.constant(np.array(axis, dtype=np.int64)))
    else:
        result = _scan(b, node, op, axis, dtype, ready)
    if is_bool:
        return b.add("Not", b.add("Equal", result, b.scalar(0, dtypes.int32)))
    return result if dtype is node.dtype else b.cast(result, node.dtype)


def _scan(b: Builder, node: UOp, op: int, axis: int, dtype: Any, ready: str) -> str:
    row = [size for n, size in enumerate(static_shape(node)) if n != axis]
    inner = Builder(b.opset)
    inner._count = b._count + 1000
    b._count += 2000
    names = inner.fresh(), inner.fresh()
    total = arithmetic(inner, op, dtype, list(names))
    copy = inner.add("Identity", total)
    kind = element(dtype)
    infos = [helper.make_tensor_value_info(each, kind, row) for each in (*names, total, copy)]
    body = helper.make_graph(inner.nodes, "prefixes", infos[:2], infos[2:], inner.initializers)
    start = b.tensor(identity(op, dtype), dtype, row)
    last, output = b.fresh(), b.fresh()
    b.nodes.append(
        helper.make_node(
            "Scan", [start, ready], [last, output], body=body, num_scan_inputs=1,
            scan_input_axes=[axis], scan_output_axes=[axis],
        )
    )  # fmt: skip
    return output
