"""What CONTRACT means in a kernel: a tile of the product of two tensors in memory.

The sum of a float product is that of its exact terms, rounded once. Matrix units round while they
add, in an order of their own, so they agree with it up to the rounding of float32.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from weft.ir.dtypes import FLOAT, DType, Scalar, by_name, canonical
from weft.ir.reduction.contract import (
    ContractParts,
    Factor,
    contract_parts,
    element_position,
    sum_dtype,
    thread_position,
)
from weft.ir.scalar import from_bits, to_bits
from weft.ir.uop import UOp
from weft.reference.memory import ElementMemory, Value

Numbers = Sequence[int]


def _factor(value: Scalar, stored: DType, dtype: DType) -> Scalar:
    """An element of a factor: one that threads have computed is rounded on its way."""
    if stored.kind == FLOAT and stored is not dtype:
        return canonical(dtype, value)
    return decoded(value, stored, dtype)


def decoded(value: Scalar, stored: DType, dtype: DType) -> Scalar:
    """An element of memory as a number: memory may hold its bits only."""
    return value if stored is dtype else from_bits(dtype, to_bits(stored, value))


def element_at(factor: Factor, memory: ElementMemory, at: Numbers) -> Scalar | None:
    """An element of a tensor by its coordinates, as memory has it; None outside of the tensor."""
    if any(not 0 <= x < size for x, size in zip(at, factor.sizes, strict=True)):
        return None
    terms = zip(at, factor.strides, strict=True)
    return memory.get(factor.offset + sum(x * stride for x, stride in terms))


def tile_product(
    parts: ContractParts,
    memories: tuple[ElementMemory, ElementMemory],
    starts: tuple[Numbers, Numbers],
) -> np.ndarray:
    """All sums of a tile, rows by columns."""
    left, right = (
        _tile(factor, memory, start, parts)
        for factor, memory, start in zip(parts.factors, memories, starts, strict=True)
    )
    product: np.ndarray = left @ right.T
    return product


def _tile(
    factor: Factor, memory: ElementMemory, start: Numbers, parts: ContractParts
) -> np.ndarray:
    """The rows of a factor's tile along all steps of the sum."""
    depth = parts.tile[2]
    kind = np.float64 if factor.of.kind == FLOAT else np.int64
    tile = np.zeros((factor.height, math.prod(parts.steps) * depth), kind)
    for number, counters in enumerate(itertools.product(*map(range, parts.steps))):
        moved = [
            first + sum(c * move for c, move in zip(counters, moves, strict=True))
            for first, moves in zip(start, factor.moves, strict=True)
        ]
        for row, along in np.ndindex(factor.height, depth):
            inside = factor.position(row, along)
            value = element_at(factor, memory, [a + b for a, b in zip(moved, inside, strict=True)])
            if value is not None:
                tile[row, number * depth + along] = _factor(value, memory.dtype, factor.of)
    return tile


# Products of tiles by what they are of: nothing that a key holds ever changes.
Tiles = dict[object, np.ndarray]


def contract_value(
    node: UOp,
    memories: Mapping[UOp, ElementMemory],
    number: Callable[[UOp], int],
    tiles: Tiles,
) -> Value:
    """An element of a product of tiles, or all that a thread has; `tiles` keeps whole products."""
    parts = contract_parts(node)
    first, second = ([number(x) for x in each] for each in parts.starts)
    factors = (memories[parts.memories[0]], memories[parts.memories[1]])
    key = (node.arg, factors, tuple(first), tuple(second))
    if key not in tiles:
        tiles[key] = tile_product(parts, factors, (first, second))
    tile, at = tiles[key], [number(x) for x in parts.positions]
    if node.dtype.lanes == 1:
        position = element_position(*at, is_in_pairs=parts.is_in_pairs)
        return as_element(tile[position], parts, node.dtype)
    warp, lane, quad = at
    kept = parts.is_in_pairs
    terms = [thread_position(warp, lane, quad, n, kept) for n in range(parts.elements)]
    return tuple([as_element(tile[position], parts, node.dtype.scalar) for position in terms])


def whole_tile(
    parts: ContractParts, owns: Iterable[tuple[Numbers, ElementMemory]]
) -> ElementMemory:
    """A left factor of which each thread has its own elements: rows, one behind the other.

    Rows of which no thread is asked are 0.
    """
    rows, _, keys = parts.tile
    tile: ElementMemory | None = None
    for (warp, lane, quad), own in owns:
        if tile is None:
            tile = ElementMemory(own.dtype, rows * keys, [0] * (rows * keys), own.name)
        for number, value in enumerate(own.values):
            row, key = thread_position(warp, lane, quad, number, is_in_pairs=True)
            tile.values[row * keys + key] = value
    assert tile is not None
    return tile


def is_shared_out(parts: ContractParts, memory: ElementMemory) -> bool:
    """Whether the left factor is one of which a thread has its own elements only."""
    return parts.is_computed and memory.size < parts.tile[0] * parts.tile[2]


def as_element(value: object, parts: ContractParts, dtype: DType) -> Scalar:
    """A sum as an element of the result, which a target may have as bits only."""
    wanted = by_name(parts.element)
    element = as_scalar(as_scalar(value, sum_dtype(parts.factors[0])), wanted)
    return element if dtype is wanted else to_bits(wanted, element)


def as_scalar(value: object, dtype: DType) -> Scalar:
    """A sum in the dtype in which it is kept."""
    number = float(value) if dtype.kind == FLOAT else int(value)  # type: ignore[arg-type, call-overload]
    return canonical(dtype, number)
