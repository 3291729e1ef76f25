"""Kernels of a small Hopper, interpreted as opts have left them: what their tests share."""

import dataclasses

import numpy as np
import pytest

from weft import dtypes
from weft.codegen.choose.heuristic import choose_opts
from weft.codegen.generate import before_opts
from weft.codegen.opts.table import TensorCore
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp
from weft.ir.views import behind
from weft.reference.kernel import run_kernel
from weft.reference.memory import ElementMemory
from weft.schedule.layout import align_factors
from weft.target.cuda import cuda_target
from weft.target.matrix import Tile
from weft.target.target import Target

BF16 = dtypes.bfloat16


def small_target() -> Target:
    """A GPU that has the smallest tile alone, so that there is little to interpret."""
    target = cuda_target("sm_90a")
    units = [
        dataclasses.replace(unit, tiles=(Tile(64, 64, 1.0, overhead=512),)) if unit.tiles else unit
        for unit in target.matrix_units
    ]
    return dataclasses.replace(target, matrix_units=tuple(units))


TARGET = small_target()


@pytest.fixture(autouse=True)
def small_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products of any size are worth a layout."""
    monkeypatch.setattr(align_factors, "LEAST_WORK", 1)


def numbers(seed: int, *shape: int) -> np.ndarray:
    """Numbers whose products add up without rounding."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float32) / 4


def tiled(kernel: UOp) -> tuple[UOp, bool]:
    """A kernel after its opts if it is a product of tiles, and whether it is."""
    shaped = before_opts(kernel, TARGET)
    opts, result = choose_opts(shaped, TARGET)
    is_tiled = any(isinstance(opt, TensorCore) for opt in opts)
    return (result if is_tiled else shaped), is_tiled


def run(calls: list[UOp], given: list[np.ndarray], shape: tuple[int, ...]) -> tuple:
    """The result of calls, and how many of them are products of tiles."""
    memories: dict[int, ElementMemory] = {0: ElementMemory(BF16, int(np.prod(shape)))}
    for slot, array in enumerate(given, 1):
        memories[slot] = ElementMemory(BF16, array.size, [float(x) for x in array.ravel()])
    count = 0
    for call in calls:
        kernel, is_tiled = tiled(call.arg)
        count += is_tiled
        found = []
        for source in map(behind, call.src):
            slot = source.arg[0]
            if slot not in memories:
                memories[slot] = ElementMemory(source.dtype, int(np.prod(shape_of(source))))
            found.append(memories[slot])
        run_kernel(kernel, found)
    return np.array(memories[0].values, np.float32).reshape(shape), count
