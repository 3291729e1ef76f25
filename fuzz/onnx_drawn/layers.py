"""Products, windows, normalizations, resizing and recurrences."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fuzz.onnx_drawn.pool import Pool, Refused, draws


@draws("MatMul")
def _matmul(pool: Pool, name: str) -> None:
    left = pool.of("float32", "float32", "float64", least=1)
    value = pool.values[left]
    if pool.rng.random() < 0.2:
        shape: tuple[int, ...] = (value.shape[-1],)
    else:
        batch = value.shape[:-2] if pool.rng.random() < 0.5 else ()
        shape = (*batch, value.shape[-1], pool.rng.randint(1, 4))
    pool.node(name, [left, pool.given(pool.drawn(value.dtype.name, shape))])


@draws("Gemm")
def _gemm(pool: Pool, name: str) -> None:
    left = pool.floats(rank=2)
    transposed, other = pool.rng.randint(0, 1), pool.rng.randint(0, 1)
    rows, depth = pool.values[left].shape[:: -1 if transposed else 1]
    columns = pool.rng.randint(1, 4)
    right = pool.drawn("float32", (columns, depth) if other else (depth, columns))
    bias = pool.drawn("float32", pool.rng.choice(((columns,), (rows, 1), (rows, columns), ())))
    inputs = [left, pool.given(right)]
    if pool.opset < 11 or pool.rng.random() < 0.7:
        inputs.append(pool.given(bias))
    pool.node(
        name, inputs, transA=transposed, transB=other, alpha=pool.rng.choice((None, 0.5)),
        beta=pool.rng.choice((None, 2.0)),
    )  # fmt: skip


@draws("Einsum", first=12)
def _einsum(pool: Pool, name: str) -> None:
    sizes = {letter: pool.rng.randint(1, 4) for letter in "abcde"}
    equation = pool.rng.choice(
        ("ab,bc->ac", "abc,acd->abd", "ab,cb", "abc->cb", "aab->b", "ab,ab->", "...a,ab->...b",
         "a b , b c -> c a", "abc,dc->bda", "ii->i")
    )  # fmt: skip
    sizes["i"] = 3
    left, _, _ = equation.partition("->")
    terms = [term.replace(" ", "").replace("...", "de") for term in left.split(",")]
    values = [pool.given(pool.drawn("float32", tuple(sizes[c] for c in term))) for term in terms]
    pool.node(name, values, equation=equation)


def _window(pool: Pool, rank: int, sizes: tuple[int, ...]) -> dict[str, Any]:
    """Kernel, strides, gaps and edges that fit."""
    kernel = [pool.rng.randint(1, min(3, size)) for size in sizes]
    found: dict[str, Any] = {"kernel_shape": kernel}
    if pool.rng.random() < 0.6:
        found["strides"] = [pool.rng.randint(1, 2) for _ in range(rank)]
    if pool.rng.random() < 0.5:
        found["pads"] = [pool.rng.randint(0, max(0, size - 1)) for size in (*kernel, *kernel)]
    elif pool.rng.random() < 0.4:
        found["auto_pad"] = pool.rng.choice(("SAME_UPPER", "SAME_LOWER", "VALID"))
    return found


@draws("Conv", "ConvTranspose")
def _conv(pool: Pool, name: str) -> None:
    rank = pool.rng.choice((1, 2, 2, 3))
    value = pool.old(lambda v: v.dtype == np.float32 and v.ndim == rank + 2 and v.size < 300)
    if value is None:
        shape = (pool.rng.randint(1, 2), pool.rng.choice((1, 2, 4)))
        shape = (*shape, *(pool.rng.randint(3, 6) for _ in range(rank)))  # type: ignore[assignment]
        value = pool.given(pool.drawn("float32", shape))
    inner, *sizes = pool.values[value].shape[1:]
    window = _window(pool, rank, tuple(sizes))
    groups = pool.rng.choice([n for n in (1, 2, 4) if inner % n == 0])
    width = pool.rng.choice((1, 2, 3)) * groups
    if pool.rng.random() < 0.3 and "auto_pad" not in window:
        window["dilations"] = [pool.rng.randint(1, 2) for _ in range(rank)]
    kernel = window["kernel_shape"] if pool.rng.random() < 0.7 else window.pop("kernel_shape")
    if name == "ConvTranspose":
        window.pop("auto_pad", None)  # onnxruntime has shapes that the specification does not
    if name == "Conv":
        shape = (width, inner // groups, *kernel)
    else:
        shape = (inner, width // groups, *kernel)
        if pool.rng.random() < 0.4 and "strides" in window and "auto_pad" not in window:
            window["output_padding"] = [pool.rng.randint(0, s - 1) for s in window["strides"]]
    inputs = [value, pool.given(pool.drawn("float32", shape))]
    if pool.rng.random() < 0.5:
        inputs.append(pool.given(pool.drawn("float32", (width,))))
    pool.node(name, inputs, group=groups, **window)


@draws("MaxPool", "AveragePool", "LpPool")
def _pool_windows(pool: Pool, name: str) -> None:
    rank = pool.rng.choice((1, 2, 2, 3))
    value = pool.finite(rank=rank + 2)
    sizes = pool.values[value].shape[2:]
    window = _window(pool, rank, sizes)
    if name == "AveragePool":
        window["count_include_pad"] = pool.rng.choice((None, 0, 1))
    if name != "LpPool" and pool.opset >= 10:
        window["ceil_mode"] = pool.rng.choice((None, 0, 1))
    later = {"MaxPool": 10, "AveragePool": 19, "LpPool": 18}[name]
    is_roomy = all(
        2 * k - 1 <= size for k, size in zip(window["kernel_shape"], sizes, strict=True)
    )
    if pool.opset >= later and pool.rng.random() < 0.3 and is_roomy and "auto_pad" not in window:
        window["dilations"] = [pool.rng.randint(1, 2) for _ in range(rank)]
    count = 2 if name == "MaxPool" and pool.rng.random() < 0.3 and pool.opset >= 8 else 1
    pool.node(name, [value], count, **window)


@draws("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool", "DepthToSpace", "SpaceToDepth", "LRN")
def _images(pool: Pool, name: str) -> None:
    shape = (pool.rng.randint(1, 2), pool.rng.choice((4, 8)), 4, 2)
    value = pool.given(pool.drawn("float32", shape))
    extra: dict[str, Any] = {}
    if name in ("DepthToSpace", "SpaceToDepth"):
        extra["blocksize"] = 2
        if name == "DepthToSpace" and pool.opset >= 11:
            extra["mode"] = pool.rng.choice(("DCR", "CRD"))
    if name == "LRN":
        extra["size"] = pool.rng.choice((1, 3))
    pool.node(name, [value], **extra)


def _require_many(pool: Pool, value: str) -> int:
    """The channels of a value; one element of each has no deviation, and its rest is noise."""
    _, width, *sizes = pool.values[value].shape
    if math.prod(sizes) < 2:
        raise Refused
    return int(width)


@draws("BatchNormalization", "InstanceNormalization")
def _norms(pool: Pool, name: str) -> None:
    value = pool.floats(rank=pool.rng.choice((3, 4)))
    width = _require_many(pool, value)
    rows = [pool.given(pool.drawn("float32", (width,))) for _ in range(3)]
    epsilon = pool.rng.choice((None, 1e-3))
    if name == "InstanceNormalization":
        pool.node(name, [value, *rows[:2]], epsilon=epsilon)
        return
    spread = pool.given(np.abs(pool.drawn("float32", (width,))) + np.float32(0.5))
    pool.node(name, [value, *rows, spread], epsilon=epsilon)


@draws("LayerNormalization", first=17)
def _layer_norm(pool: Pool, name: str) -> None:
    value = pool.floats(least=2)
    shape = pool.values[value].shape
    axis = pool.rng.randrange(1, len(shape))
    rows = [pool.given(pool.drawn("float32", shape[axis:])) for _ in range(2)]
    pool.node(name, [value, *rows[: pool.rng.randint(1, 2)]], axis=axis - len(shape))


@draws("GroupNormalization", first=21)
def _group_norm(pool: Pool, name: str) -> None:
    value = pool.given(pool.drawn("float32", (2, 4, *pool.shape(pool.rng.randint(1, 2)))))
    rows = [pool.given(pool.drawn("float32", (4,))) for _ in range(2)]
    pool.node(name, [value, *rows], num_groups=pool.rng.choice((1, 2, 4)))


@draws("RMSNormalization", first=23)
def _rms_norm(pool: Pool, name: str) -> None:
    value = pool.floats(least=1)
    shape = pool.values[value].shape
    pool.node(name, [value, pool.given(pool.drawn("float32", shape[-1:]))])


@draws("LpNormalization", "MeanVarianceNormalization", first=9)
def _other_norms(pool: Pool, name: str) -> None:
    if name == "LpNormalization":
        value = pool.floats(least=1)
        pool.node(name, [value], axis=pool.axis(value), p=pool.rng.choice((1, 2)))
    else:
        value = pool.floats(rank=4)
        _require_many(pool, value)
        pool.node(name, [value])


@draws("Upsample", last=9)
def _upsample(pool: Pool, name: str) -> None:
    value = pool.given(pool.drawn("float32", (1, 2, 3, 4)))
    scales = [1.0, 1.0, pool.rng.choice((1.0, 2.0)), pool.rng.choice((2.0, 3.0))]
    if pool.opset < 9:
        pool.node(name, [value], mode="nearest", scales=scales)
    else:
        given = pool.weight(np.array(scales, np.float32))
        pool.node(name, [value, given], mode=pool.rng.choice(("nearest", "linear")))


@draws("Resize", first=10)
def _resize(pool: Pool, name: str) -> None:
    value = pool.given(pool.drawn("float32", (1, 2, 4, 5)))
    scales = np.array(
        [1, 1, *(pool.rng.choice((0.6, 1.0, 1.5, 2.0)) for _ in range(2))], np.float32
    )
    if pool.opset == 10:
        pool.node(name, [value, pool.weight(scales)], mode=pool.rng.choice(("nearest", "linear")))
        return
    modes = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"]
    found: dict[str, Any] = {
        "mode": pool.rng.choice(("nearest", "linear", "cubic")),
        "coordinate_transformation_mode": pool.rng.choice(modes),
    }
    if found["mode"] == "nearest":
        rounds = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
        found["nearest_mode"] = pool.rng.choice(rounds)
    if found["mode"] == "cubic":
        found["cubic_coeff_a"] = pool.rng.choice((None, -0.5))
    roi = pool.weight(np.zeros(0, np.float32)) if pool.opset < 13 else ""
    if pool.rng.random() < 0.5:
        pool.node(name, [value, roi, pool.weight(scales)], **found)
    else:
        empty = pool.weight(np.zeros(0, np.float32)) if pool.opset < 13 else ""
        sizes = pool.ints([1, 2, pool.rng.randint(1, 7), pool.rng.randint(1, 7)])
        pool.node(name, [value, roi, empty, sizes], **found)


@draws("LSTM", "GRU", "RNN")
def _recurrent(pool: Pool, name: str) -> None:
    time, batch, width, hidden = 3, pool.rng.randint(1, 2), 2, 2
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[name]
    direction = pool.rng.choice(("forward", "reverse", "bidirectional"))
    sides = 2 if direction == "bidirectional" else 1
    inputs = [
        pool.given(pool.drawn("float32", (time, batch, width))),
        pool.weight(pool.drawn("float32", (sides, gates * hidden, width))),
        pool.weight(pool.drawn("float32", (sides, gates * hidden, hidden))),
    ]
    extra: dict[str, Any] = {}
    if pool.rng.random() < 0.6:
        inputs.append(pool.weight(pool.drawn("float32", (sides, 2 * gates * hidden))))
        if pool.rng.random() < 0.5:
            lengths = pool.numbers.integers(1, time + 1, batch).astype(np.int32)
            inputs.append(pool.given(lengths))
            if pool.rng.random() < 0.5:
                inputs.append(pool.given(pool.drawn("float32", (sides, batch, hidden))))
    if name == "GRU":
        extra["linear_before_reset"] = pool.rng.choice((None, 0, 1))
    if pool.rng.random() < 0.3:
        extra["clip"] = 0.5
    if name == "RNN" and pool.rng.random() < 0.3:
        extra["activations"] = ["Relu"] * sides
    count = 3 if name == "LSTM" else 2
    pool.node(name, inputs, count, hidden_size=hidden, direction=direction, **extra)


@draws("GridSample", first=16)
def _grid_sample(pool: Pool, name: str) -> None:
    value = pool.given(pool.drawn("float32", (1, 2, 4, 5)))
    grid = pool.given(pool.numbers.uniform(-1.3, 1.3, (1, 3, 2, 2)).astype(np.float32))
    modes = (
        ("bilinear", "nearest", "bicubic") if pool.opset < 20 else ("linear", "nearest", "cubic")
    )
    pool.node(
        name, [value, grid], mode=pool.rng.choice(modes),
        padding_mode=pool.rng.choice((None, "zeros", "border", "reflection")),
        align_corners=pool.rng.choice((None, 0, 1)),
    )  # fmt: skip
