"""Operators of com.microsoft in few bits, and earlier forms of others, beside onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from tests.onnx.test_beside_onnxruntime import MICROSOFT, f32, i8, number, run, u8

B, T, WIDTH = 2, 3, 8


def i64(*values: Any) -> Any:
    return np.array(values, np.int64)


def _lstm(directions: int, **attributes: Any) -> tuple[Any, ...]:
    inputs = [
        f32(4, B, 5),
        i8(directions, 5, 4 * 3, seed=1),
        i8(directions, 3, 4 * 3, seed=2),
        f32(directions, 2 * 4 * 3, seed=3),
        None,
        None,
        None,
        None,
        np.full(directions, 0.01, np.float32),
        np.zeros(directions, np.int8),
        np.full(directions, 0.02, np.float32),
        np.zeros(directions, np.int8),
    ]
    return "DynamicQuantizeLSTM", inputs, 3, {"hidden_size": 3, **attributes}, 1e-2


def _attention(zero: Any, mask: Any, **attributes: Any) -> tuple[Any, ...]:
    inputs = [u8(B, T, 6), i8(6, 3 * WIDTH, seed=1), f32(3 * WIDTH), number(0.02), number(0.01)]
    return "QAttention", [*inputs, mask, zero, number(0, np.int8)], 1, attributes, 1e-4


def _rows(bits: int, has_zeros: bool) -> tuple[Any, ...]:
    packed = u8(5, 32 * bits // 8)
    zeros = [u8(5, max(1, 2 * bits // 8), seed=2)] if has_zeros else []
    index = np.array([[1, 4], [-2, 0]], np.int64)
    inputs = [packed, index, np.abs(f32(5, 2)), *zeros]
    extra = {"bits": bits, "block_size": 16, "gather_axis": 0, "quantize_axis": 1}
    return "GatherBlockQuantized", inputs, 1, extra, 1e-5


_IMAGE = [u8(1, 5, 5, 4), number(0.02), number(120, np.uint8), i8(3, 4, 3, 3), number(0.03)]
_IMAGE += [number(0, np.int8), number(0.8), number(9, np.uint8)]
CASES: dict[str, tuple[Any, ...]] = {
    "attention": _attention(number(120, np.uint8), None, num_heads=2),
    "attention-causal": _attention(
        number(7, np.uint8), number([2, 3], np.int32), num_heads=2, unidirectional=1
    ),
    "embed-layer-norm": (
        "QEmbedLayerNormalization",
        [
            *(number([[1, 2, 3]], np.int32), number([[0, 1, 0]], np.int32)),
            *(u8(6, 8), u8(5, 8, seed=1), u8(2, 8, seed=2), u8(8, seed=3), u8(8, seed=4)),
            number([[1, 1, 0]], np.int32),
            *[number(0.01 * n) for n in range(1, 6)],
            *[number(100 + n, np.uint8) for n in range(5)],
        ],
        2,
        {"epsilon": 1e-5},
        1e-4,
    ),
    "lstm": _lstm(1),
    "lstm-both-ways": _lstm(2, direction="bidirectional"),
    "rows-4": _rows(4, False),
    "rows-4-zeros": _rows(4, True),
    "rows-8": _rows(8, False),
    "where": (
        "QLinearWhere",
        [
            number([True, False, True], np.bool_),
            *(u8(2, 3), number(0.02), number(3, np.uint8)),
            *(u8(2, 3, seed=1), number(0.05), number(9, np.uint8)),
            *(number(0.04), number(100, np.uint8)),
        ],
        1,
        {},
        0,
    ),
    "conv-channels-last": ("QLinearConv", _IMAGE, 1, {"channels_last": 1}, 0),
    "pool-channels-last": (
        "NhwcMaxPool",
        [u8(1, 5, 5, 4)],
        1,
        {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
        0,
    ),
    "groups-of-rows": (
        "MatMulNBits",
        [
            *(f32(2, 32), u8(3, 2, 8), np.abs(f32(6)), None),
            np.random.default_rng(0).integers(0, 2, 32).astype(np.int32),
        ],
        1,
        {"K": 32, "N": 3, "bits": 4, "block_size": 16},
        1e-4,
    ),
    "transpose-matmul": (
        "TransposeMatMul", [f32(2, 4, 3), f32(2, 5, 4)], 1, {"transA": 1, "transB": 1}, 1e-5,
    ),
    "distances": ("CDist", [f32(3, 4), f32(5, 4, seed=1)], 1, {"metric": "euclidean"}, 1e-5),
    "squared-distances": ("CDist", [f32(3, 4), f32(5, 4, seed=1)], 1, {}, 1e-5),
    "grid-sample": ("GridSample", [f32(1, 2, 4, 5), f32(1, 3, 2, 2)], 1, {}, 1e-5),
    "pad": ("Pad", [f32(2, 3), i64(1, 0, 0, 2), number(1.5)], 1, {}, 0),
    "range": ("Range", [number(1.0), number(4.0), number(1.5)], 1, {}, 0),
    "gather-nd": ("GatherND", [f32(3, 4), np.array([[0, 1], [2, 3]], np.int64)], 1, {}, 0),
    "unique": ("Unique", [f32(3).repeat(2)], 3, {}, 0),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_contributed_operators(name: str) -> None:
    operator, inputs, outputs, attributes, tolerance = CASES[name]
    wanted, ours = run(operator, MICROSOFT, inputs, outputs, **attributes)
    for result, other in zip(ours, wanted, strict=True):
        assert result.shape == other.shape and result.dtype == other.dtype
        gap = np.abs(result.astype(np.float64) - other.astype(np.float64)).max(initial=0)
        assert gap <= tolerance * max(1.0, float(np.abs(other).max(initial=0)))
