"""What `bench/first.py` runs in processes of its own: build a model, train it for one step.

    python -m bench.first_steps weft|torch gpt|mobilenet

The last line printed has the seconds of processor time for both.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

LAYERS, WIDTH, HEADS, SYMBOLS, CONTEXT, BATCH = 12, 192, 6, 65, 64, 4
# Of each stage: how much wider inside, channels, blocks, stride of the first.
STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1))
STAGES += ((6, 160, 3, 2), (6, 320, 1, 1))
Step = Callable[[], Any]


class Tools:
    """What both frameworks have, under one name."""

    def __init__(self, side: str) -> None:
        self.is_weft = side == "weft"
        if self.is_weft:
            from weft import nn

            self.linear, self.norm, self.table = nn.Linear, nn.LayerNorm, nn.Embedding
            self.convolution, self.batch_norm = nn.Conv2d, nn.BatchNorm
        else:
            from torch import nn as theirs

            self.linear, self.norm, self.table = theirs.Linear, theirs.LayerNorm, theirs.Embedding
            self.convolution, self.batch_norm = theirs.Conv2d, theirs.BatchNorm2d
        self.layers: list[Any] = []

    def add(self, layer: Any) -> Any:
        self.layers.append(layer)
        return layer

    def attend(self, q: Any, k: Any, v: Any) -> Any:
        if self.is_weft:
            return q.scaled_dot_product_attention(k, v, is_causal=True)
        from torch.nn.functional import scaled_dot_product_attention

        return scaled_dot_product_attention(q, k, v, is_causal=True)

    def gelu(self, x: Any) -> Any:
        if self.is_weft:
            return x.gelu()
        from torch.nn.functional import gelu

        return gelu(x, approximate="tanh")


def gpt(tools: Tools) -> Callable[[Any], Any]:
    """A GPT; the function gives logits (batch · time, symbols) of tokens (batch, time)."""
    token, position = (tools.add(tools.table(n, WIDTH)) for n in (SYMBOLS, CONTEXT))
    sizes = ((WIDTH, 3 * WIDTH), (WIDTH, WIDTH), (WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH))
    blocks = [
        [tools.add(tools.norm(WIDTH)) for _ in range(2)]
        + [tools.add(tools.linear(*size)) for size in sizes]
        for _ in range(LAYERS)
    ]
    norm, head = tools.add(tools.norm(WIDTH)), tools.add(tools.linear(WIDTH, SYMBOLS))
    numbers = tensor(tools, np.arange(CONTEXT))

    def run(tokens: Any) -> Any:
        x = token(tokens) + position(numbers)
        for norm1, norm2, qkv, mix, up, down in blocks:
            parts = qkv(norm1(x)).reshape(BATCH, CONTEXT, 3, HEADS, WIDTH // HEADS)
            q, k, v = (parts[:, :, i].transpose(1, 2) for i in range(3))
            mixed = tools.attend(q, k, v).transpose(1, 2).reshape(BATCH, CONTEXT, WIDTH)
            x = x + mix(mixed)
            x = x + down(tools.gelu(up(norm2(x))))
        return head(norm(x)).reshape(BATCH * CONTEXT, SYMBOLS)

    return run


def mobilenet(tools: Tools) -> Callable[[Any], Any]:
    """A network of the size of MobileNetV2, for images (batch, 3, height, width)."""

    def unit(inputs: int, outputs: int, size: int, stride: int, groups: int, cut: bool) -> Any:
        layer = tools.add(
            tools.convolution(
                *(inputs, outputs, size),
                **{"stride": stride, "padding": size // 2, "groups": groups, "bias": False},
            )
        )
        norm = tools.add(tools.batch_norm(outputs))
        if not cut:
            return lambda x: norm(layer(x))
        return lambda x: norm(layer(x)).clip(0, 6)

    units = [[unit(3, 32, 3, 2, 1, True)]]
    inputs, joined = 32, [False]
    for wider, channels, count, stride in STAGES:
        for number in range(count):
            step, inner = stride if number == 0 else 1, inputs * wider
            first = [unit(inputs, inner, 1, 1, 1, True)] if wider > 1 else []
            last = unit(inner, channels, 1, 1, 1, False)
            units.append([*first, unit(inner, inner, 3, step, inner, True), last])
            joined.append(step == 1 and inputs == channels)
            inputs = channels
    units.append([unit(inputs, 1280, 1, 1, 1, True)])
    joined.append(False)
    head = tools.add(tools.linear(1280, 10))

    def run(x: Any) -> Any:
        for block, is_joined in zip(units, joined, strict=True):
            y = x
            for part in block:
                y = part(y)
            x = x + y if is_joined else y
        return head(x.mean((2, 3)))

    return run


def tensor(tools: Tools, array: Any) -> Any:
    if tools.is_weft:
        from weft import Tensor

        return Tensor(array.astype(np.int32) if array.dtype == np.int64 else array).realize()
    import torch

    return torch.from_numpy(array)


def step_of(tools: Tools, model: Callable[[Any], Any], x: Any, y: Any) -> Step:
    """A training step with AdamW: jitted, or eager in torch."""
    if tools.is_weft:
        from weft import Tensor, jit, nn

        ours = nn.optim.AdamW(nn.state.get_parameters(tools.layers), lr=1e-3)

        @jit
        @Tensor.train()
        def step(x: Any, y: Any) -> Any:
            ours.zero_grad()
            loss = model(x).cross_entropy(y)
            loss.backward()
            ours.step()
            return loss

        return lambda: step(x, y).item()
    import torch

    theirs = torch.optim.AdamW([p for each in tools.layers for p in each.parameters()], lr=1e-3)

    def eager() -> Any:
        theirs.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        theirs.step()
        return loss.item()

    return eager


def main(side: str, name: str) -> None:
    tools, numbers = Tools(side), np.random.default_rng(0)
    if name == "gpt":
        x, y = (tensor(tools, numbers.integers(0, SYMBOLS, (BATCH, CONTEXT))) for _ in range(2))
        y, make = y.reshape(-1), gpt
    else:
        x = tensor(tools, numbers.standard_normal((2, 3, 64, 64)).astype(np.float32))
        y, make = tensor(tools, np.array([1, 2])), mobilenet
    start = time.process_time()
    step = step_of(tools, make(tools), x, y)
    built = time.process_time()
    step()
    print(built - start, time.process_time() - built)


if __name__ == "__main__":
    main(*sys.argv[1:3])
