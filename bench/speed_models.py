"""The models of the speed table, for Weft and for torch, with equal weights."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Call = Callable[[], Any]
Arrays = dict[str, np.ndarray[Any, Any]]

SIZES = (784, 512, 512, 10)
BATCH = 128
RATE, DECAY, SQUARED_DECAY, SMALL = 0.001, 0.9, 0.999, 1e-8


def mlp_step(side: str) -> Call:
    """A training step of an MLP with Adam, as one side of the table runs it."""
    numbers = np.random.default_rng(0)
    layers = list(itertools.pairwise(SIZES))
    weights = [numbers.standard_normal(s).astype(np.float32) * s[0] ** -0.5 for s in layers]
    biases = [np.zeros(out, np.float32) for _, out in layers]
    x = numbers.standard_normal((BATCH, SIZES[0])).astype(np.float32)
    y = numbers.integers(0, SIZES[-1], BATCH)
    arrays = [array for pair in zip(weights, biases, strict=True) for array in pair]
    if side.startswith("torch"):
        return _torch_mlp(arrays, x, y, side == "torch compiled")
    return _lazy_mlp(_tools(side), arrays, x, y)


class Tools(NamedTuple):
    """What a framework of lazy tensors brings: tensors, a jit, and how a call comes to its end."""

    tensor: Any
    jit: Callable[..., Any]
    wait: Call


def _tools(side: str) -> Tools:
    if side == "weft":
        from weft import Tensor, jit

        return Tools(Tensor, jit, lambda: None)
    from tinygrad import Device, TinyJit
    from tinygrad import Tensor as Other

    return Tools(Other, TinyJit, Device[Device.DEFAULT].synchronize)


def _called(tools: Tools, run: Call) -> Call:
    """Calls that wait for their end, past the one in which a jit only looks on."""

    def call() -> None:
        run()
        tools.wait()

    call()
    return call


def _forward(inputs: Any, parameters: list[Any]) -> Any:
    hidden = inputs
    for weight, bias in zip(parameters[::2], parameters[1::2], strict=True):
        out = hidden @ weight + bias
        hidden = out.relu() if weight is not parameters[-2] else out
    return hidden


def _lazy_mlp(tools: Tools, arrays: list[Any], x: Any, y: Any) -> Call:
    tensor = tools.tensor
    parameters = [tensor(array).realize() for array in arrays]
    means = [tensor.zeros(*p.shape).contiguous().realize() for p in parameters]
    squares = [tensor.zeros(*p.shape).contiguous().realize() for p in parameters]
    count = tensor.zeros(1).contiguous().realize()
    inputs, labels = tensor(x).realize(), tensor(y.astype(np.int32)).realize()

    @tools.jit
    def step(inputs: Any, labels: Any) -> Any:
        loss = _forward(inputs, parameters).sparse_categorical_crossentropy(labels)
        slopes = loss.gradient(*parameters)
        count.assign(count + 1)
        for p, g, m, v in zip(parameters, slopes, means, squares, strict=True):
            m.assign(DECAY * m + (1 - DECAY) * g)
            v.assign(SQUARED_DECAY * v + (1 - SQUARED_DECAY) * g * g)
            mean = m / (1 - DECAY**count)
            root = (v / (1 - SQUARED_DECAY**count)).sqrt() + SMALL
            p.assign(p - RATE * mean / root)
        return loss.realize(count, *parameters, *means, *squares)

    return _called(tools, lambda: step(inputs, labels))


def _torch_mlp(arrays: list[Any], x: Any, y: Any, is_compiled: bool) -> Call:
    import torch
    from torch.nn.functional import cross_entropy

    parameters = [torch.from_numpy(array.copy()).requires_grad_() for array in arrays]
    optimizer = torch.optim.Adam(parameters, lr=RATE)
    inputs, labels = torch.from_numpy(x), torch.from_numpy(y)
    update = torch.compile(optimizer.step) if is_compiled else optimizer.step

    def loss_of(inputs: Any, labels: Any) -> Any:
        return cross_entropy(_forward(inputs, parameters), labels)

    loss_function = torch.compile(loss_of, dynamic=False) if is_compiled else loss_of

    def step() -> Any:
        optimizer.zero_grad()
        loss = loss_function(inputs, labels)
        loss.backward()
        update()
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


def gpt_block(side: str) -> Call:
    """Loss and all gradients of a GPT block, as one side of the table runs it."""
    if side.startswith("torch"):
        return _torch_block(side == "torch compiled")
    return _lazy_block(_tools(side))


def _lazy_block(tools: Tools) -> Call:
    tensors = {name: tools.tensor(array).realize() for name, array in _block_arrays().items()}

    @tools.jit
    def step(x: Any) -> Any:
        out = _block(
            x,
            tensors,
            lambda x, weight, bias: x.layernorm() * weight + bias,
            lambda x, weight, bias: x.linear(weight.T, bias),
            lambda x: x.gelu(),
            lambda q, k, v: q.scaled_dot_product_attention(k, v, is_causal=True),
        )
        loss = (out * out).mean()
        slopes = loss.gradient(x, *(tensors[name] for name in tensors if name != "x"))
        loss.realize(*slopes)
        return loss, *slopes

    return _called(tools, lambda: step(tensors["x"]))


def _torch_block(is_compiled: bool) -> Call:
    import torch
    from torch.nn import functional

    tensors = {k: torch.from_numpy(a.copy()).requires_grad_() for k, a in _block_arrays().items()}

    def loss_of(tensors: dict[str, Any]) -> Any:
        out = _block(
            tensors["x"],
            tensors,
            lambda x, weight, bias: functional.layer_norm(x, (C,), weight, bias),
            functional.linear,
            lambda x: functional.gelu(x, approximate="tanh"),
            lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, is_causal=True),
        )
        return (out * out).mean()

    loss_function = torch.compile(loss_of, dynamic=False) if is_compiled else loss_of

    def step() -> Any:
        for tensor in tensors.values():
            tensor.grad = None
        loss = loss_function(tensors)
        loss.backward()
        return loss

    return step
