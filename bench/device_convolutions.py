"""Convolutions of ResNet-50 beside cuDNN's, both with channels last: rows of `device_kernels`.

The arrays have channels last on both sides; what is convolved are views of them with channels
first, which is how a network writes it. A row for the result and one for each gradient.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from bench.device_kernels import Kernel

ORDER, BACK = (0, 3, 1, 2), (0, 2, 3, 1)


class Shape(NamedTuple):
    """Images, channels, outputs, pixels along each axis, taps along each, and the stride."""

    images: int
    inputs: int
    outputs: int
    size: int
    taps: int
    stride: int = 1


SHAPES = (
    Shape(128, 3, 64, 224, 7, 2),
    Shape(128, 64, 64, 56, 3),
    Shape(128, 64, 256, 56, 1),
    Shape(128, 256, 64, 56, 1),
    Shape(128, 128, 128, 56, 3, 2),
    Shape(128, 128, 128, 28, 3),
    Shape(128, 256, 512, 56, 1, 2),
    Shape(128, 256, 256, 14, 3),
    Shape(128, 1024, 256, 14, 1),
    Shape(128, 512, 512, 7, 3),
    Shape(64, 256, 256, 56, 3),
)


def convolutions(torch: Any) -> Iterator[Kernel]:
    """A convolution of each shape and its gradients, in bfloat16."""
    for shape in SHAPES:
        yield from _of_shape(torch, shape)


def _of_shape(torch: Any, shape: Shape) -> list[Kernel]:
    images, inputs, outputs, size, taps, stride = shape
    edge = taps // 2
    pixels = (size + 2 * edge - taps) // stride + 1
    operations = 2 * images * outputs * pixels**2 * inputs * taps**2

    def drawn(*sizes: int) -> Any:
        return torch.randn(*sizes, device="cuda").bfloat16()

    x, slope = drawn(images, size, size, inputs), drawn(images, pixels, pixels, outputs)
    weight = drawn(outputs, taps, taps, inputs) * 0.05
    about = f"{images}x{inputs}x{size}x{size}, {taps}x{taps}/{stride} to {outputs}"

    def ours(x: Any, weight: Any) -> Any:
        return x.conv2d(weight, padding=edge, stride=stride)

    def result(x: Any, weight: Any) -> Any:
        return ours(x.permute(ORDER), weight.permute(ORDER)).permute(BACK)

    def gradient(which: int) -> Any:
        def function(slope: Any, x: Any, weight: Any) -> Any:
            views = x.permute(ORDER), weight.permute(ORDER)
            (found,) = ours(*views).gradient(views[which], gradient=slope.permute(ORDER))
            return found.permute(BACK)

        return function

    def their_gradient(which: int) -> Any:
        wanted = [which == 0, which == 1, False]
        sizes = ([stride] * 2, [edge] * 2, [1, 1], False, [0, 0], 1)

        def function(slope: Any, x: Any, weight: Any) -> Any:
            views = [each.permute(ORDER) for each in (slope, x, weight)]
            found = torch.ops.aten.convolution_backward(*views, None, *sizes, wanted)
            return found[which].permute(BACK)

        return function

    def theirs(x: Any, weight: Any) -> Any:
        views = x.permute(ORDER), weight.permute(ORDER)
        return torch.nn.functional.conv2d(*views, padding=edge, stride=stride).permute(BACK)

    factors = [slope, x, weight]
    return [
        Kernel(f"conv {about}", [x, weight], result, theirs, 0, operations),
        *(
            Kernel(f"conv {about}: {name}", factors, gradient(n), their_gradient(n), 0, operations)
            for n, name in enumerate(("slope of images", "slope of weight"))
            if n or inputs > 3
        ),
    ]
