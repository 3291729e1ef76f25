"""Scatters cut into parts that threads own: they give what the scatter gives, and when."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from weft.ir.build import buffer, param, reduce_axes, scatter, sink, store, true
from weft.ir.dtypes import DType, by_name, dtypes
from weft.ir.movement import expand, full, positions, reshape
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp, const
from weft.ir.walk import substitute, topological
from weft.reference.memory import ElementMemory
from weft.reference.schedule import run_schedule
from weft.reference.tensor import evaluate
from weft.schedule.reductions import parallelize_scatters as module
from weft.schedule.reductions.parallelize_scatters import (
    _compared,
    _Cut,
    _in_copies,
    _owned,
    _updates,
)
from weft.schedule.schedule import make_schedule
from weft.target.compute import UpdateNumbers
from weft.target.cpu import cpu_target
from weft.target.cuda import cuda_target

I32, F32 = dtypes.int32, dtypes.float32
CUDA = cuda_target("sm_90a")
# The same with updates that take long.
SLOW = replace(CUDA, compute=replace(CUDA.compute, updates=UpdateNumbers(update=1e7)))


def p(slot: int, *shape: int, dtype: DType = I32) -> UOp:
    return param(slot, dtype, shape)


def into(
    value: UOp, updates: UOp, *indices: UOp, op: int = Op.ADD, mask: UOp | None = None
) -> UOp:
    return scatter(value, updates, true() if mask is None else mask, indices, op)


TABLE, ROWS, FLAT = p(1, 5, 3), p(2, 70), p(3, 70)
VALUES, PAIRS = p(3, 70, 3), p(2, 7, 40)
CASES = {
    "rows": into(full(I32, 0, (5, 3)), VALUES, ROWS),
    "rows into a value": into(TABLE * 2, VALUES + 1, ROWS),
    "the greatest": into(TABLE, VALUES, ROWS, op=Op.MAX),
    "the least": into(TABLE, VALUES, ROWS, op=Op.MIN),
    "products": into(TABLE, VALUES, ROWS, op=Op.MUL),
    "behind a mask": into(TABLE, VALUES, ROWS, mask=ROWS < 3),
    "elements": into(TABLE, FLAT, ROWS, ROWS - 2),
    "one row": into(TABLE, p(3, 3), const(I32, 2)),
    "several positions": into(p(1, 5), p(3, 7, 40), PAIRS),
    "along an axis": into(p(1, 7, 5), p(3, 7, 40), positions((7, 40), 0), PAIRS),
    "down an axis": into(p(1, 5, 40), p(3, 7, 40), PAIRS, positions((7, 40), 1)),
    "a narrow index": into(p(1, 5), FLAT, p(2, 70, dtype=dtypes.uint8)),
    "a computed index": into(
        p(1, 300), reshape(reduce_axes(p(3, 70, 4), Op.MAX, (1,)), (70,)), ROWS * ROWS
    ),
    "a repeated update": into(TABLE, expand(reshape(p(3, 3), (1, 3)), (70, 3)), ROWS),
}
WAYS: dict[str, Callable[[UOp], UOp]] = {
    **{f"{n} owners": lambda node, n=n: _owned(_updates(node), n) for n in (1, 2, 5)},  # type: ignore[misc, arg-type]
    **{
        f"{n} copies": lambda node, n=n: _in_copies(_updates(node), _Cut(0.0, n, 2))  # type: ignore[misc, arg-type]
        for n in (2, 3)
    },
    "compared": lambda node: _compared(_updates(node)),  # type: ignore[arg-type]
}


def filled(value: UOp) -> dict[int, np.ndarray]:
    draw = np.random.default_rng(0)
    nodes = [node for node in topological(value) if node.op == Op.PARAM]
    return {
        node.arg[0]: draw.integers(2, 5, shape_of(node)).astype(node.dtype.name) for node in nodes
    }


def evaluated(value: UOp, arrays: dict[int, np.ndarray]) -> np.ndarray:
    nodes = [node for node in topological(value) if node.op == Op.PARAM]
    slots = {node: buffer(node.arg[0], node.dtype, shape_of(node), "CPU") for node in nodes}
    graph = substitute(sink(store(buffer(0, value.dtype, shape_of(value), "CPU"), value)), slots)
    memory = {0: np.zeros(shape_of(value), value.dtype.name)}
    return evaluate(graph, {**memory, **{n: a.copy() for n, a in arrays.items()}})[0]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", CASES)
def test_a_cut_scatter_gives_the_same(name: str, way: str):
    node = CASES[name]
    found = _updates(node)
    if found is None or (way == "compared" and (found.apart or len(found.indices) > 1)):
        assert name == "one row" or way == "compared"
        return
    arrays = filled(node)
    assert evaluated(WAYS[way](node), arrays).tolist() == evaluated(node, arrays).tolist()


@pytest.mark.parametrize("name", CASES)
def test_kernels_of_a_cut_scatter(name: str, monkeypatch: pytest.MonkeyPatch):
    """The schedule for a GPU, interpreted; loops over owners are none that wait."""
    monkeypatch.setattr(module, "LEAST_UPDATES", 8)
    value = CASES[name]
    arrays = filled(value)
    made = make_schedule(sink(store(p(0, *shape_of(value)), value)), SLOW)
    size = math.prod(shape_of(value))
    given = [ElementMemory(I32, size, [0] * size)]
    for slot in range(1, max(arrays) + 1):
        array = arrays.get(slot, np.zeros(1, np.int32))
        dtype = by_name(array.dtype.name)
        given.append(ElementMemory(dtype, array.size, array.ravel().tolist()))
    given += [ElementMemory(m.dtype, math.prod(shape_of(m))) for m in made.temporaries]
    run_schedule(made.kernels, {}, {}, given)
    assert given[0].values == evaluated(value, arrays).ravel().tolist()


def names(value: UOp, target=CUDA) -> list[str]:
    made = make_schedule(sink(store(p(0, *shape_of(value), dtype=value.dtype), value)), target)
    return [call.arg.arg[0] for call in made.kernels.src]


def test_updates_of_a_large_table_have_owners():
    rows, slopes = p(2, 8192), p(3, 8192, 768, dtype=F32)
    value = into(full(F32, 0, (50304, 768)), slopes, rows)
    found = [name for name in names(value) if name.startswith("scatter")]
    assert len(found) == 1
    *_, owners, _, words, bits = map(int, found[0].split("_")[1:])
    assert words * bits == 8192
    assert owners >= CUDA.units


def test_few_rows_compare_and_few_updates_wait():
    value = into(full(F32, 0, (32,)), p(3, 1 << 20, dtype=F32), p(2, 1 << 20))
    assert not any(name.startswith("scatter") for name in names(value))
    value = into(full(F32, 0, (50304, 768)), p(3, 16, 768, dtype=F32), p(2, 16))
    assert "scatter_768_16" in names(value)


def test_cores_keep_one_loop_over_updates():
    value = into(full(F32, 0, (5000, 768)), p(3, 8192, 768, dtype=F32), p(2, 8192))
    assert "scatter_768_8192" in names(value, cpu_target("x86_64", ("avx2",), threads=4))
