"""Layers for images: padding, other sizes, pixels and channels in another order, patches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from weft.nn import functional as F  # noqa: N812 -- as everyone writes it
from weft.nn.layer_of import layer_of
from weft.nn.module import Layer
from weft.tensor.tensor import Tensor

Upsample = layer_of(
    F.interpolate, "Upsample", order="size scale_factor mode align_corners recompute_scale_factor"
)
UpsamplingNearest2d = layer_of(F.upsample_nearest, "UpsamplingNearest2d")
UpsamplingBilinear2d = layer_of(F.upsample_bilinear, "UpsamplingBilinear2d")
PixelShuffle = layer_of(F.pixel_shuffle, "PixelShuffle")
PixelUnshuffle = layer_of(F.pixel_unshuffle, "PixelUnshuffle")
ChannelShuffle = layer_of(F.channel_shuffle, "ChannelShuffle")
Fold = layer_of(F.fold, "Fold")
Unfold = layer_of(F.unfold, "Unfold")


class _Pad(Layer):
    """Elements around the last axes: an int for all sides, or pairs with the last axis first."""

    axes: ClassVar[int] = 2
    mode: ClassVar[str] = "constant"

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__()
        self.padding = (padding,) * (2 * self.axes) if isinstance(padding, int) else tuple(padding)
        self.value = 0.0

    def forward(self, x: Tensor) -> Tensor:
        """Pad."""
        return F.pad(x, self.padding, self.mode, self.value)

    def extra_repr(self) -> str:
        """The amounts."""
        return str(self.padding)


class _ConstantPad(_Pad):
    """Padding with a value."""

    def __init__(self, padding: int | Sequence[int], value: float) -> None:
        super().__init__(padding)
        self.value = value


def _pads(base: type[_Pad], title: str, mode: str) -> list[type[_Pad]]:
    made = []
    for axes in (1, 2, 3):
        name = f"{title}{axes}d"
        body = {
            "axes": axes,
            "mode": mode,
            "__module__": __name__,
            "__qualname__": name,
            "__doc__": f"Padding over {axes} axes, mode {mode}. PyTorch: nn.{name}.",
        }
        made.append(type(name, (base,), body))
    return made


ZeroPad1d, ZeroPad2d, ZeroPad3d = _pads(_Pad, "ZeroPad", "constant")
ConstantPad1d, ConstantPad2d, ConstantPad3d = _pads(_ConstantPad, "ConstantPad", "constant")
ReflectionPad1d, ReflectionPad2d, ReflectionPad3d = _pads(_Pad, "ReflectionPad", "reflect")
ReplicationPad1d, ReplicationPad2d, ReplicationPad3d = _pads(_Pad, "ReplicationPad", "replicate")
CircularPad1d, CircularPad2d, CircularPad3d = _pads(_Pad, "CircularPad", "circular")
