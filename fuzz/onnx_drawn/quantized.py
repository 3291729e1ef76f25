"""Values in few bits, and layers of com.microsoft."""

from __future__ import annotations

import numpy as np

from fuzz.onnx_drawn.pool import MICROSOFT, Pool, draws


@draws("QuantizeLinear", first=10)
def _quantize(pool: Pool, name: str) -> None:
    value = pool.floats(least=2)
    kind = pool.rng.choice(("uint8", "int8"))
    scale, zero = pool.weight(np.float32(0.05)), pool.weight(np.array(3, kind))
    made = pool.node(name, [value, scale, zero])[0]
    if pool.rng.random() < 0.7:
        pool.node("DequantizeLinear", [made, scale, zero])


@draws("QLinearMatMul", "MatMulInteger", first=10)
def _integer_product(pool: Pool, name: str) -> None:
    left = pool.numbers.integers(0, 255, (2, 3, 4)).astype(np.uint8)
    kind = pool.rng.choice((np.int8, np.uint8))
    right = pool.numbers.integers(0, 127, (4, 3)).astype(kind)
    zeros = [pool.weight(np.array(5, np.uint8)), pool.weight(np.array(2, kind))]
    if name == "MatMulInteger":
        pool.node(name, [pool.given(left), pool.given(right), *zeros[: pool.rng.randint(0, 2)]])
        return
    scales = [pool.weight(np.float32(each)) for each in (0.02, 0.03, 0.9)]
    out = pool.weight(np.array(7, np.uint8))
    pool.node(
        name,
        [pool.given(left), scales[0], zeros[0], pool.given(right), scales[1], zeros[1],
         scales[2], out],
    )  # fmt: skip


@draws("QLinearConv", "ConvInteger", first=10)
def _integer_conv(pool: Pool, name: str) -> None:
    left = pool.numbers.integers(0, 255, (1, 4, 5, 5)).astype(np.uint8)
    right = pool.numbers.integers(-127, 127, (3, 4, 3, 3)).astype(np.int8)
    pads = [pool.rng.randint(0, 1)] * 4
    zero = pool.weight(np.array(100, np.uint8))
    if name == "ConvInteger":
        pool.node(name, [pool.given(left), pool.weight(right), zero], pads=pads)
        return
    scales = [pool.weight(np.float32(each)) for each in (0.02, 0.03, 0.9)]
    inputs = [pool.given(left), scales[0], zero, pool.weight(right), scales[1]]
    inputs += [pool.weight(np.array(0, np.int8)), scales[2], zero]
    if pool.rng.random() < 0.5:
        inputs.append(pool.weight(pool.numbers.integers(-99, 99, 3).astype(np.int32)))
    pool.node(name, inputs, pads=pads)


@draws("DynamicQuantizeLinear", first=11)
def _dynamic(pool: Pool, name: str) -> None:
    pool.node(name, [pool.finite(least=1)], 3)


@draws("Gelu", "FastGelu", "QuickGelu", "BiasGelu")
def _contributed_unary(pool: Pool, name: str) -> None:
    value = pool.floats(least=1)
    inputs = [value]
    if name == "BiasGelu":
        shape = pool.values[value].shape[-1:]
        inputs.append(pool.given(pool.drawn("float32", shape)))
    pool.node(name, inputs, domain=MICROSOFT)


@draws("MultiHeadAttention", "Attention")
def _contributed_attention(pool: Pool, name: str) -> None:
    heads, size, time = 2, 4, 3
    width = heads * size
    one_way = pool.rng.choice((None, 0, 1))
    if name == "Attention":
        inputs = [
            pool.given(pool.drawn("float32", (2, time, 5))),
            pool.weight(pool.drawn("float32", (5, 3 * width))),
            pool.weight(pool.drawn("float32", (3 * width,))),
        ]
        if pool.rng.random() < 0.5:
            masks = (np.array([[1, 1, 0], [1, 1, 1]]), np.array([2, 3]))
            inputs.append(pool.given(pool.rng.choice(masks).astype(np.int32)))
    else:
        inputs = [pool.given(pool.drawn("float32", (2, length, width))) for length in (time, 5, 5)]
        if one_way:
            inputs = [inputs[0]] * 3
        if pool.rng.random() < 0.4:
            inputs.append(pool.weight(pool.drawn("float32", (3 * width,))))
    pool.node(name, inputs, domain=MICROSOFT, num_heads=heads, unidirectional=one_way)


@draws("MatMulNBits")
def _few_bits(pool: Pool, name: str) -> None:
    bits, block, depth, columns = pool.rng.choice((4, 4, 8)), 16, pool.rng.choice((16, 32, 40)), 3
    blocks = -(-depth // block)
    packed = pool.numbers.integers(0, 255, (columns, blocks, block * bits // 8)).astype(np.uint8)
    scales = (pool.numbers.random((columns, blocks)) * 0.1).astype(np.float32)
    inputs = [
        pool.given(pool.drawn("float32", (2, depth))), pool.weight(packed), pool.weight(scales)
    ]  # fmt: skip
    if pool.rng.random() < 0.5:
        size = columns, -(-blocks * bits // 8)
        inputs.append(pool.weight(pool.numbers.integers(0, 255, size).astype(np.uint8)))
    pool.node(name, inputs, domain=MICROSOFT, K=depth, N=columns, bits=bits, block_size=block)
