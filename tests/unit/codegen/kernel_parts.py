"""What the small kernels of `kernels.py` are built with."""

from typing import NamedTuple

from weft.ir.build import index_of, load, reduce_ranges, store, true
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.uop import UOp, make
from weft.ir.walk import topological

F32, I32 = dtypes.float32, dtypes.int32


class Case(NamedTuple):
    """A kernel and what to run it on; `exact` where reductions in any order give the same bits."""

    kernel: UOp
    exact: bool = False
    variables: dict[str, int] = {}  # noqa: RUF012


def stage(
    value: UOp, sizes: tuple[int, ...], indices: list[UOp], ranges: list[UOp], space: str = "local"
) -> UOp:
    return make(Op.STAGE, value.dtype, (value, *indices, *ranges), (space, sizes))


def read(source: UOp, *indices: UOp, mask: UOp | None = None) -> UOp:
    return make(Op.READ, source.dtype, (source, true() if mask is None else mask, *indices))


def at(memory: UOp, *indices: UOp, mask: UOp | None = None) -> UOp:
    return load(index_of(memory, indices, mask))


def put(memory: UOp, indices: list[UOp], value: UOp, ranges: list[UOp]) -> UOp:
    return store(index_of(memory, indices), value, ranges)


def kernel(name: str, *stores: UOp) -> UOp:
    nodes = topological(*stores)
    numbers = sorted({node.arg for node in nodes if node.op == Op.RANGE})
    scanned = {node.src[1].arg for node in nodes if node.op == Op.SCAN}
    loops = tuple((n, "ordered" if n in scanned else "loop") for n in numbers)
    return make(Op.KERNEL, dtypes.void, stores, (name, loops))


def exp(x: UOp) -> UOp:
    return make(Op.EXP, x.dtype, (x,))


def sqrt(x: UOp) -> UOp:
    return make(Op.SQRT, x.dtype, (x,))


def total(value: UOp, *ranges: UOp) -> UOp:
    return reduce_ranges(value, Op.ADD, ranges)
