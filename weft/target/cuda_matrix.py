"""The matrix instructions of NVIDIA GPUs: shapes, dtypes and layouts of the PTX ISA (8.6).

`mma.sync` is executed by a warp on registers, `wgmma` (sm_90a) by a group of four warps on shared
memory with the result in registers, `tcgen05.mma` (sm_100a) by one thread on shared memory with
the result in tensor memory. Rates are given by the caller: they are those of one GPU.
"""

from __future__ import annotations

from typing import Final

from weft.ir.dtypes import DType, dtypes
from weft.target.matrix import Fragment, MatrixUnit, Step, Tile

_SOURCE: Final = "PTX ISA 8.6"
_HALVES: Final = ((dtypes.float16, dtypes.float16), (dtypes.bfloat16, dtypes.bfloat16))
_FLOATS: Final = ((dtypes.float32, dtypes.float32),)  # rounded to tf32
_BYTES: Final = (
    (dtypes.int8, dtypes.int8),
    (dtypes.uint8, dtypes.uint8),
    (dtypes.int8, dtypes.uint8),
    (dtypes.uint8, dtypes.int8),
)
_FP8: Final = tuple(
    (left, right)
    for left in (dtypes.fp8e4m3, dtypes.fp8e5m2)
    for right in (dtypes.fp8e4m3, dtypes.fp8e5m2)
)
_DOUBLES: Final = ((dtypes.float64, dtypes.float64),)

# Rows of the eight quads of a warp; within a quad, steps along the other axis.
_QUADS: Final[tuple[Step, ...]] = ((1, 0), (2, 0), (4, 0))
_WARPS: Final[tuple[Step, ...]] = ((16, 0), (32, 0))


def _transposed(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    return tuple((column, row) for row, column in steps)


def _in_quads(width: int) -> tuple[Step, ...]:
    """A warp over eight rows; the four threads of a quad have `width` neighbors each."""
    return ((0, width), (0, 2 * width), *_QUADS)


def _left(width: int) -> Fragment:
    """Sixteen rows of a factor; a thread has `width` neighbors, below them, and to the right."""
    neighbors = tuple((0, 1 << bit) for bit in range(width.bit_length() - 1))
    return Fragment(_in_quads(width), (*neighbors, (8, 0), (0, 4 * width)))


def _right(width: int) -> Fragment:
    """Eight columns of the other factor; a thread has neighbors down a column."""
    neighbors = tuple((0, 1 << bit) for bit in range(width.bit_length() - 1))
    return Fragment(_transposed(_in_quads(width)), _transposed((*neighbors, (0, 4 * width))))


SUM_16X8: Final = Fragment(_in_quads(2), ((0, 1), (8, 0)))
SUM_64X8: Final = Fragment((*_in_quads(2), *_WARPS), ((0, 1), (8, 0)))
# m8n8k4: one element of each factor in a thread.
_DOUBLE_LEFT: Final = Fragment(((0, 1), (0, 2), *_QUADS), ())
_DOUBLE_RIGHT: Final = Fragment(_transposed(((0, 1), (0, 2), *_QUADS)), ())
_DOUBLE_SUM: Final = Fragment(_in_quads(2), ((0, 1),))


def mma_units(
    *, half: float, tf32: float, int8: float, float64: float, fp8: float = 0.0
) -> tuple[MatrixUnit, ...]:
    """`mma.sync`: a warp, all operands in registers. Without a rate for fp8 there is none."""

    def unit(
        name: str,
        inputs: tuple[tuple[DType, DType], ...],
        width: int,
        rate: float,
        accumulator: DType = dtypes.float32,
    ) -> MatrixUnit:
        return MatrixUnit(
            name=f"mma.sync.m16n8k{8 * width}.{name}",
            inputs=inputs,
            accumulator=accumulator,
            rows=16,
            columns=(8,),
            depth=8 * width,
            threads=32,
            rate=rate,
            left=_left(width),
            right=_right(width),
            result=SUM_16X8,
            source=_SOURCE,
        )

    double = MatrixUnit(
        name="mma.sync.m8n8k4.f64",
        inputs=_DOUBLES,
        accumulator=dtypes.float64,
        rows=8,
        columns=(8,),
        depth=4,
        threads=32,
        rate=float64,
        left=_DOUBLE_LEFT,
        right=_DOUBLE_RIGHT,
        result=_DOUBLE_SUM,
        source=_SOURCE,
    )
    eights = (unit("fp8", _FP8, 4, fp8),) if fp8 else ()
    return (
        unit("f16", _HALVES, 2, half),
        unit("tf32", _FLOATS, 1, tf32),
        unit("s8", _BYTES, 4, int8, dtypes.int32),
        *eights,
        double,
    )


# Shares of the speed of the largest tile, bfloat16 on an H200. They are fitted to products of
# GPT-2 and of ResNet-50 in each of the tiles, so that the fastest of these are chosen.
_WGMMA_TILES: Final = (
    Tile(128, 256, 1.0, overhead=624, after=0.9),
    Tile(128, 192, 0.95, overhead=520, after=0.9),
    Tile(256, 128, 0.86, overhead=504, after=0.7),
    Tile(192, 128, 0.90, overhead=576, after=0.46),
    Tile(128, 128, 0.95, overhead=488, after=0.98, groups=2, alone=0.75),
    Tile(64, 192, 0.83, overhead=400, after=0.57, groups=2, alone=0.75),
    Tile(64, 128, 0.81, overhead=352, after=0.31, groups=3, alone=0.75),
    Tile(256, 64, 0.70, overhead=500, after=0.41),
    Tile(128, 64, 0.66, overhead=376, after=0.18, groups=2, alone=0.75),
    Tile(64, 64, 0.53, overhead=240, after=0.0, groups=4, alone=0.85),
)


def wgmma_units(*, half: float, tf32: float, fp8: float, int8: float) -> tuple[MatrixUnit, ...]:
    """`wgmma.mma_async`: four warps, factors in shared memory, 64 rows of the result."""

    def unit(
        name: str,
        inputs: tuple[tuple[DType, DType], ...],
        depth: int,
        rate: float,
        accumulator: DType = dtypes.float32,
        digits: int = 24,
    ) -> MatrixUnit:
        every = range(8, 257, 8)
        # Of integers, only these widths exist.
        some = (8, 16, 24, *range(32, 257, 16))
        return MatrixUnit(
            name=f"wgmma.m64k{depth}.{name}",
            inputs=inputs,
            accumulator=accumulator,
            rows=64,
            columns=tuple(every) if accumulator is dtypes.float32 else some,
            depth=depth,
            threads=128,
            rate=rate,
            result=SUM_64X8,
            operands_from="local",
            source=_SOURCE,
            tiles=_WGMMA_TILES,
            digits=digits,
        )

    return (
        unit("f16", _HALVES, 16, half),
        unit("tf32", _FLOATS, 8, tf32),
        # The DeepSeek-V3 report (2024), section 3.3.2: about 14 bits of a sum are kept.
        unit("fp8", _FP8, 32, fp8, digits=14),
        unit("s8", _BYTES, 32, int8, dtypes.int32, digits=32),
    )


def tcgen05_units(*, half: float, tf32: float, fp8: float, int8: float) -> tuple[MatrixUnit, ...]:
    """`tcgen05.mma`: one thread, factors in shared memory, the result in tensor memory.

    A row of the result is a lane of tensor memory, and a column one of its columns.
    """

    def unit(
        name: str,
        inputs: tuple[tuple[DType, DType], ...],
        depth: int,
        rate: float,
        accumulator: DType = dtypes.float32,
    ) -> MatrixUnit:
        return MatrixUnit(
            name=f"tcgen05.m128k{depth}.{name}",
            inputs=inputs,
            accumulator=accumulator,
            rows=128,
            columns=tuple(range(16, 257, 16)),
            depth=depth,
            threads=1,
            rate=rate,
            operands_from="local",
            result_in="tensor",
            source=_SOURCE,
        )

    return (
        unit("f16", _HALVES, 16, half),
        unit("tf32", _FLOATS, 8, tf32),
        unit("fp8", _FP8, 32, fp8),
        unit("s8", _BYTES, 32, int8, dtypes.int32),
    )
