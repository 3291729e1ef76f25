"""The tensor programs whose index expressions make the corpus.

Each entry of KERNELS is a name and a function that returns the tensors to realize. Sizes are
small and mostly odd, because nothing is computed and even sizes would let too much cancel.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from tinygrad.dtype import dtypes
from tinygrad.tensor import Tensor

Build = Callable[[], list[Tensor]]


def with_gradients(build: Callable[..., Tensor], *shapes: tuple[int, ...]) -> list[Tensor]:
    """Return the gradients of all inputs, for an incoming gradient that is read from memory."""
    inputs = [Tensor.empty(*shape) for shape in shapes]
    out = build(*inputs)
    loss = (out * Tensor.empty(*out.shape)).sum()
    return loss.gradient(*inputs)


def forward(build: Callable[..., Tensor], *shapes: tuple[int, ...]) -> list[Tensor]:
    return [build(*(Tensor.empty(*shape) for shape in shapes))]


def attention(heads: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    def split(x: Tensor) -> Tensor:
        batch, time, width = x.shape
        # (batch, heads, time, size)
        return x.reshape(batch, time, heads, width // heads).permute(0, 2, 1, 3)

    q, k, v = split(query), split(key), split(value)
    weights = (q @ k.transpose(-1, -2) * 0.3).softmax(-1)
    return (weights @ v).permute(0, 2, 1, 3).reshape(*query.shape)


def layer_norm(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    return x.layernorm() * scale + shift


def gather_rows(table: Tensor) -> Tensor:
    rows = Tensor.empty(4, 9, dtype=dtypes.int32)
    return table[rows]


def gather_along(x: Tensor) -> Tensor:
    return x.gather(1, Tensor.empty(x.shape[0], 5, dtype=dtypes.int32))


def mixed_reshapes(x: Tensor) -> Tensor:
    x = x.permute(2, 0, 1).reshape(15, 28).transpose(0, 1)
    return x.reshape(4, 7, 5, 3).permute(3, 1, 0, 2).reshape(21, 20).contiguous()


def space_to_depth(x: Tensor, block: int) -> Tensor:
    batch, channels, height, width = x.shape
    x = x.reshape(batch, channels, height // block, block, width // block, block)
    x = x.permute(0, 3, 5, 1, 2, 4)
    return x.reshape(batch, channels * block**2, height // block, width // block).contiguous()


def unfold(x: Tensor, size: int, step: int) -> Tensor:
    return x.unfold(-1, size, step).permute(1, 0, 2).reshape(-1, size).contiguous()


def conv_cases() -> Iterator[tuple[str, Build]]:
    """Forward and backward convolutions: name, image, weight, options."""
    cases: list[tuple[str, tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
        ("conv2d-3x3", (2, 5, 11, 13), (7, 5, 3, 3), {}),
        ("conv2d-3x3-p1", (2, 4, 10, 9), (6, 4, 3, 3), {"padding": 1}),
        ("conv2d-3x3-s2", (2, 3, 17, 15), (4, 3, 3, 3), {"stride": 2}),
        ("conv2d-3x3-s2-p1", (2, 8, 17, 17), (16, 8, 3, 3), {"stride": 2, "padding": 1}),
        ("conv2d-7x7-s2-p3", (1, 3, 32, 32), (8, 3, 7, 7), {"stride": 2, "padding": 3}),
        ("conv2d-3x3-d2", (1, 3, 16, 14), (5, 3, 3, 3), {"dilation": 2}),
        (
            "conv2d-3x3-s3-d2-p2",
            (2, 3, 20, 23),
            (4, 3, 3, 3),
            {"stride": 3, "dilation": 2, "padding": 2},
        ),
        (
            "conv2d-5x3-s(2,1)-p(2,1)",
            (1, 4, 14, 12),
            (6, 4, 5, 3),
            {"stride": (2, 1), "padding": (2, 1)},
        ),
        ("conv2d-groups2", (2, 6, 9, 9), (8, 3, 3, 3), {"groups": 2, "padding": 1}),
        (
            "conv2d-depthwise-s2",
            (2, 6, 12, 12),
            (6, 1, 3, 3),
            {"groups": 6, "stride": 2, "padding": 1},
        ),
        ("conv2d-1x1-s2", (2, 6, 9, 9), (10, 6, 1, 1), {"stride": 2}),
        ("conv1d-5-p2", (3, 4, 31), (6, 4, 5), {"padding": 2}),
        ("conv3d-2-s2", (1, 2, 7, 8, 9), (3, 2, 2, 2, 2), {"stride": 2}),
        ("conv2d-asymmetric-pad", (1, 3, 10, 10), (4, 3, 3, 3), {"padding": (0, 1, 2, 1)}),
    ]
    for name, image, weight, options in cases:
        build = partial(Tensor.conv2d, **options)
        yield name, partial(forward, build, image, weight)
        yield f"{name}-backward", partial(with_gradients, build, image, weight)
    transposed = partial(Tensor.conv_transpose2d, stride=2, padding=1, output_padding=1)
    yield "conv-transpose-s2", partial(forward, transposed, (1, 4, 7, 6), (4, 5, 3, 3))


def pool_cases() -> Iterator[tuple[str, Build]]:
    shape = (2, 3, 13, 15)
    cases: dict[str, Callable[..., Tensor]] = {
        "max-pool-2": lambda x: x.max_pool2d(2),
        "max-pool-3-s2-p1": lambda x: x.max_pool2d(3, stride=2, padding=1),
        "max-pool-3-d2": lambda x: x.max_pool2d(3, stride=1, dilation=2),
        "avg-pool-3-s2-p1": lambda x: x.avg_pool2d(3, stride=2, padding=1),
        "avg-pool-2-ceil": lambda x: x.avg_pool2d(2, ceil_mode=True),
        "avg-pool-3-p1-valid": lambda x: x.avg_pool2d(3, 1, padding=1, count_include_pad=False),
    }
    for name, build in cases.items():
        yield name, partial(forward, build, shape)
        yield f"{name}-backward", partial(with_gradients, build, shape)


def attention_cases() -> Iterator[tuple[str, Build]]:
    for name, heads, shape in (("2-heads", 2, (2, 7, 10)), ("4-heads", 4, (1, 16, 32))):
        build = partial(attention, heads)
        yield f"attention-{name}", partial(forward, build, shape, shape, shape)
        yield f"attention-{name}-backward", partial(with_gradients, build, shape, shape, shape)
    yield "matmul", partial(forward, Tensor.matmul, (2, 9, 14), (14, 11))
    yield "matmul-backward", partial(with_gradients, Tensor.matmul, (2, 9, 14), (14, 11))
    norm_shapes = ((3, 5, 24), (24,), (24,))
    yield "layernorm", partial(forward, layer_norm, *norm_shapes)
    yield "layernorm-backward", partial(with_gradients, layer_norm, *norm_shapes)


# Views and copies of one input, and the shape of that input.
VIEWS: dict[str, tuple[Callable[..., Tensor], tuple[int, ...]]] = {
    "slice-step": (lambda x: x[1::3, ::2].contiguous(), (14, 15)),
    "slice-negative-step": (lambda x: x[::-2, 10:2:-3].contiguous(), (9, 13)),
    "flip-reshape": (lambda x: x.flip(0, 1).reshape(10, 9).flip(0).contiguous(), (6, 15)),
    "pad": (lambda x: x.pad(((1, 2), (0, 3))).reshape(-1).contiguous(), (7, 9)),
    "pad-shrink-pad": (
        lambda x: x.pad((2, 1, 1, 1))[1:-1, 2:].pad((1, 1, 0, 2)).permute(1, 0).contiguous(),
        (6, 8),
    ),
    "pad-reflect": (lambda x: x.pad((2, 3, 1, 2), mode="reflect"), (1, 2, 7, 9)),
    "pad-circular": (
        lambda x: x.pad((2, 3, 1, 2), mode="circular").contiguous(),
        (1, 2, 7, 9),
    ),
    "pad-replicate": (lambda x: x.pad((2, 3, 1, 2), mode="replicate"), (1, 2, 7, 9)),
    "roll": (lambda x: x.roll((3, -2), (0, 1)).contiguous(), (7, 11)),
    "mixed-reshapes": (mixed_reshapes, (7, 4, 15)),
    "space-to-depth": (lambda x: space_to_depth(x, 3), (2, 4, 9, 6)),
    "unfold": (lambda x: unfold(x, 5, 2), (3, 21)),
    "repeat": (lambda x: x.repeat((2, 3)).contiguous(), (5, 7)),
    "repeat-interleave": (lambda x: x.repeat_interleave(3, 1).contiguous(), (4, 6)),
    "tril": (lambda x: x.tril(1), (9, 9)),
    "triu-flatten": (lambda x: x.triu().reshape(-1, 11), (11, 11)),
    "diagonal": (lambda x: x.diagonal().contiguous(), (12, 12)),
    "cumsum": (lambda x: x.cumsum(1), (3, 600)),
    "gather-rows": (gather_rows, (30, 12)),
    "gather-along": (gather_along, (6, 8)),
    "argmax": (lambda x: x.argmax(1), (5, 9)),
    "nearest-upsample": (lambda x: x.interpolate((12, 15), mode="nearest"), (1, 2, 4, 5)),
    "linear-upsample": (lambda x: x.interpolate((12, 15), mode="linear"), (1, 2, 4, 5)),
}


def movement_cases() -> Iterator[tuple[str, Build]]:
    for name, (build, shape) in VIEWS.items():
        yield name, partial(forward, build, shape)
    for name in (
        "slice-step",
        "pad-shrink-pad",
        "mixed-reshapes",
        "unfold",
        "repeat",
        "gather-rows",
    ):
        build, shape = VIEWS[name]
        yield f"{name}-backward", partial(with_gradients, build, shape)
    shapes = ((4, 5), (4, 3), (4, 7))
    yield "cat", partial(forward, lambda x, *rest: x.cat(*rest, dim=1), *shapes)
    yield "cat-backward", partial(with_gradients, lambda x, *rest: x.cat(*rest, dim=1), *shapes)
    same = ((4, 5),) * 3
    yield "stack", partial(forward, lambda x, *rest: x.stack(*rest, dim=1), *same)
    yield (
        "cat-reshape-flip",
        partial(forward, lambda x, *rest: x.cat(*rest).reshape(5, 12).flip(1).contiguous(), *same),
    )


KERNELS: dict[str, Build] = {
    **dict(conv_cases()),
    **dict(pool_cases()),
    **dict(attention_cases()),
    **dict(movement_cases()),
}
