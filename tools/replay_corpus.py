"""The programs that `tools/replay` compares: ops, layers, models and training steps, all small.

A program is a function that realizes what it computes. It uses the public names alone, so that
older commits can run it too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from weft import Tensor, dtypes, nn


def x(*shape: int) -> Tensor:
    return Tensor.empty(*shape).realize()


def numbers(*shape: int) -> Tensor:
    return Tensor.zeros(*shape, dtype=dtypes.int32).contiguous().realize()


def of(compute: Callable[..., Tensor], *shapes: tuple[int, ...]) -> Callable[[], object]:
    """A program of one expression over memory of these shapes."""
    return lambda: compute(*(x(*shape) for shape in shapes)).realize()


def gradients(compute: Callable[..., Tensor], *shapes: tuple[int, ...]) -> Callable[[], object]:
    """The gradients of the sum of an expression."""

    def run() -> object:
        inputs = [x(*shape).requires_grad_() for shape in shapes]
        compute(*inputs).sum().backward()
        first, *rest = [each.grad for each in inputs if each.grad is not None]
        return first.realize(*rest)

    return run


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return q.scaled_dot_product_attention(k, v)


class Block:
    """A transformer block: attention and a network of two layers, each with a residual."""

    def __init__(self, width: int, heads: int) -> None:
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def __call__(self, x: Tensor) -> Tensor:
        batch, time, width = x.shape
        parts = self.qkv(self.first(x)).reshape(batch, time, 3, self.heads, width // self.heads)
        q, k, v = (parts[:, :, i].transpose(1, 2) for i in range(3))
        seen = q.scaled_dot_product_attention(k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, time, width))
        return x + self.down(self.up(self.second(x)).gelu())


class ConvNet:
    """Two convolutions and a linear layer."""

    def __init__(self) -> None:
        self.a, self.b = nn.Conv2d(1, 8, 3), nn.Conv2d(8, 16, 3)
        self.norm = nn.BatchNorm2d(16)
        self.out = nn.Linear(16 * 5 * 5, 10)

    def __call__(self, x: Tensor) -> Tensor:
        x = self.a(x).relu().max_pool2d((2, 2))
        x = self.norm(self.b(x)).relu().max_pool2d((2, 2))
        return self.out(x.flatten(1))


class Network:
    """Two linear layers."""

    def __init__(self) -> None:
        self.a, self.b = nn.Linear(64, 128), nn.Linear(128, 10)

    def __call__(self, x: Tensor) -> Tensor:
        return self.b(self.a(x).relu())


def infer(model: type, *arguments: int, shape: tuple[int, ...]) -> Callable[[], object]:
    return lambda: model(*arguments)(x(*shape)).realize()


def train(
    model: type, optimizer: Callable[..., object], *arguments: int, shape: tuple[int, ...]
) -> Callable[[], object]:
    """One step of training on the sum of squares of what a model gives."""

    def run() -> None:
        net = model(*arguments)
        steps = optimizer(nn.state.get_parameters(net))
        with Tensor.train():
            loss = net(x(*shape)).square().mean()
            loss.backward()
            steps.step()  # type: ignore[attr-defined]
        loss.realize()

    return run


PROGRAMS: Final[dict[str, Callable[[], object]]] = {
    "add": of(lambda a, b: a + b, (1000,), (1000,)),
    "gelu of a sum": of(lambda a, b: (a + b).gelu(), (64, 96), (96,)),
    "transpose": of(lambda a: a.T.contiguous(), (96, 64)),
    "pad and flip": of(lambda a: a.pad(((1, 2), (0, 3))).flip(1), (30, 40)),
    "sum of rows": of(lambda a: a.sum(1), (64, 1000)),
    "sum of columns": of(lambda a: a.sum(0), (1000, 64)),
    "sum of all": of(lambda a: a.sum(), (600, 1000)),
    "mean and variance": of(lambda a: a.var(1), (64, 256)),
    "softmax": of(lambda a: a.softmax(), (64, 128)),
    "log softmax": of(lambda a: a.log_softmax(), (64, 1000)),
    "layernorm": of(lambda a: a.layernorm(), (64, 256)),
    "argmax": of(lambda a: a.argmax(1), (64, 128)),
    "matmul": of(lambda a, b: a @ b, (256, 256), (256, 256)),
    "tall matmul": of(lambda a, b: a @ b, (1000, 64), (64, 32)),
    "matrix by vector": of(lambda a, b: a @ b, (512, 512), (512,)),
    "batched matmul": of(lambda a, b: a @ b, (8, 64, 48), (8, 48, 32)),
    "matmul, bias, relu": of(lambda a, b, c: (a @ b + c).relu(), (64, 96), (96, 128), (128,)),
    "conv 3x3": of(lambda a, w: a.conv2d(w, padding=1), (2, 16, 28, 28), (32, 16, 3, 3)),
    "conv 1x1": of(lambda a, w: a.conv2d(w), (2, 64, 14, 14), (64, 64, 1, 1)),
    "max pool": of(lambda a: a.max_pool2d((2, 2)), (2, 16, 28, 28)),
    "cumsum": of(lambda a: a.cumsum(1), (64, 128)),
    "sort": of(lambda a: a.sort(1)[0], (16, 128)),
    "gather": lambda: x(100, 64)[numbers(32)].realize(),
    "scatter": lambda: x(100).scatter_add(0, numbers(300), x(300)).realize(),
    "halves": lambda: (x(64, 64).cast(dtypes.float16) @ x(64, 64).cast(dtypes.float16)).realize(),
    "attention": of(attention, (2, 4, 64, 32), (2, 4, 64, 32), (2, 4, 64, 32)),
    "gradients of a matmul": gradients(lambda a, b: (a @ b).relu(), (64, 96), (96, 48)),
    "gradients of softmax": gradients(lambda a: a.softmax() * a, (64, 128)),
    "gradients of a convolution": gradients(
        lambda a, w: a.conv2d(w, padding=1).relu(), (2, 8, 14, 14), (16, 8, 3, 3)
    ),
    "network": infer(Network, shape=(32, 64)),
    "convolutional network": infer(ConvNet, shape=(4, 1, 28, 28)),
    "transformer block": infer(Block, 64, 4, shape=(2, 32, 64)),
    "training of a network": train(Network, nn.optim.SGD, shape=(32, 64)),
    "training of a convolutional network": train(ConvNet, nn.optim.Adam, shape=(4, 1, 28, 28)),
    "training of a transformer": train(Block, nn.optim.AdamW, 64, 4, shape=(2, 32, 64)),
}
