"""The models of the speed table, for Weft and for torch, with equal weights."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

Call = Callable[[], Any]
Pair = tuple[Call, Call | None]
Arrays = dict[str, np.ndarray[Any, Any]]

SIZES = (784, 512, 512, 10)
BATCH = 128
RATE, DECAY, SQUARED_DECAY, SMALL = 0.001, 0.9, 0.999, 1e-8


def mlp_step(has_peer: bool) -> Pair:
    """A training step of an MLP with Adam."""
    numbers = np.random.default_rng(0)
    layers = list(itertools.pairwise(SIZES))
    weights = [numbers.standard_normal(s).astype(np.float32) * s[0] ** -0.5 for s in layers]
    biases = [np.zeros(out, np.float32) for _, out in layers]
    x = numbers.standard_normal((BATCH, SIZES[0])).astype(np.float32)
    y = numbers.integers(0, SIZES[-1], BATCH)
    arrays = [array for pair in zip(weights, biases, strict=True) for array in pair]
    return _weft_mlp(arrays, x, y), _torch_mlp(arrays, x, y) if has_peer else None


def _weft_mlp(arrays: list[Any], x: Any, y: Any) -> Call:
    from weft import Tensor, jit

    parameters = [Tensor(array).realize() for array in arrays]
    means = [Tensor.zeros(*p.shape).contiguous().realize() for p in parameters]
    squares = [Tensor.zeros(*p.shape).contiguous().realize() for p in parameters]
    count = Tensor.zeros(1).contiguous().realize()
    inputs, labels = Tensor(x).realize(), Tensor(y.astype(np.int32)).realize()

    @jit
    def step(inputs: Any, labels: Any) -> Any:
        hidden = inputs
        for weight, bias in zip(parameters[::2], parameters[1::2], strict=True):
            out = hidden @ weight + bias
            hidden = out.relu() if weight is not parameters[-2] else out
        loss = hidden.sparse_categorical_crossentropy(labels)
        slopes = loss.gradient(*parameters)
        count.assign(count + 1)
        for p, g, m, v in zip(parameters, slopes, means, squares, strict=True):
            m.assign(DECAY * m + (1 - DECAY) * g)
            v.assign(SQUARED_DECAY * v + (1 - SQUARED_DECAY) * g * g)
            mean = m / (1 - DECAY**count)
            root = (v / (1 - SQUARED_DECAY**count)).sqrt() + SMALL
            p.assign(p - RATE * mean / root)
        return loss

    return lambda: step(inputs, labels)


def _torch_mlp(arrays: list[Any], x: Any, y: Any) -> Call:
    import torch
    from torch.nn.functional import cross_entropy

    from weft.engine.devices import device

    torch.set_num_threads(device("CPU").target.threads)
    parameters = [torch.from_numpy(array.copy()).requires_grad_() for array in arrays]
    optimizer = torch.optim.Adam(parameters, lr=RATE)
    inputs, labels = torch.from_numpy(x), torch.from_numpy(y)

    def step() -> Any:
        optimizer.zero_grad()
        hidden = inputs
        for weight, bias in zip(parameters[::2], parameters[1::2], strict=True):
            out = hidden @ weight + bias
            hidden = out.relu() if weight is not parameters[-2] else out
        loss = cross_entropy(hidden, labels)
        loss.backward()
        optimizer.step()
        return loss

    return step


# A GPT block.
B, T, C, HEADS = 4, 256, 384, 6


def _block_arrays() -> Arrays:
    numbers = np.random.default_rng(0)

    def some(*shape: int) -> Any:
        return (numbers.standard_normal(shape) * 0.02).astype(np.float32)

    ones, zeros = np.ones(C, np.float32), np.zeros(C, np.float32)
    return {
        "x": numbers.standard_normal((B, T, C)).astype(np.float32),
        **{"norm1": ones, "norm1_bias": zeros, "norm2": ones, "norm2_bias": zeros},
        **{"qkv": some(3 * C, C), "qkv_bias": some(3 * C), "out": some(C, C), "out_bias": some(C)},
        **{"up": some(4 * C, C), "up_bias": some(4 * C)},
        **{"down": some(C, 4 * C), "down_bias": some(C)},
    }


def _block(x: Any, p: dict[str, Any], norm: Any, linear: Any, gelu: Any, attention: Any) -> Any:
    hidden = norm(x, p["norm1"], p["norm1_bias"])
    joined = linear(hidden, p["qkv"], p["qkv_bias"]).reshape(B, T, 3, HEADS, C // HEADS)
    q, k, v = (joined[:, :, i].transpose(1, 2) for i in range(3))  # (batch, heads, time, size)
    mixed = attention(q, k, v).transpose(1, 2).reshape(B, T, C)
    x = x + linear(mixed, p["out"], p["out_bias"])
    hidden = norm(x, p["norm2"], p["norm2_bias"])
    inner = gelu(linear(hidden, p["up"], p["up_bias"]))
    return x + linear(inner, p["down"], p["down_bias"])


def gpt_block(has_peer: bool) -> Pair:
    """Loss and all gradients of a GPT block."""
    return _weft_block(), _torch_block() if has_peer else None


def _weft_block() -> Call:
    from weft import Tensor, jit

    tensors = {name: Tensor(array).realize() for name, array in _block_arrays().items()}

    @jit
    def step(tensors: dict[str, Tensor]) -> Any:
        out = _block(
            tensors["x"],
            tensors,
            lambda x, weight, bias: x.layernorm() * weight + bias,
            lambda x, weight, bias: x.linear(weight.T, bias),
            lambda x: x.gelu(),
            lambda q, k, v: q.scaled_dot_product_attention(k, v, is_causal=True),
        )
        loss = (out * out).mean()
        return loss, loss.gradient(*tensors.values())

    return lambda: step(tensors)


def _torch_block() -> Call:
    import torch
    from torch.nn import functional

    from weft.engine.devices import device

    torch.set_num_threads(device("CPU").target.threads)
    tensors = {k: torch.from_numpy(a.copy()).requires_grad_() for k, a in _block_arrays().items()}

    def step() -> Any:
        for tensor in tensors.values():
            tensor.grad = None
        out = _block(
            tensors["x"],
            tensors,
            lambda x, weight, bias: functional.layer_norm(x, (C,), weight, bias),
            functional.linear,
            lambda x: functional.gelu(x, approximate="tanh"),
            lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, is_causal=True),
        )
        loss = (out * out).mean()
        loss.backward()
        return loss

    return step
