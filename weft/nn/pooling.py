"""Pools as layers, with the arguments of PyTorch's."""

from __future__ import annotations

from weft.nn import functional as F  # noqa: N812 -- as everyone writes it
from weft.nn.layer_of import layer_of

_MAX = "kernel_size stride padding dilation return_indices ceil_mode"

MaxPool1d = layer_of(F.max_pool1d, "MaxPool1d", order=_MAX)
MaxPool2d = layer_of(F.max_pool2d, "MaxPool2d", order=_MAX)
MaxPool3d = layer_of(F.max_pool3d, "MaxPool3d", order=_MAX)
AvgPool1d = layer_of(F.avg_pool1d, "AvgPool1d")
AvgPool2d = layer_of(F.avg_pool2d, "AvgPool2d")
AvgPool3d = layer_of(F.avg_pool3d, "AvgPool3d")
LPPool1d = layer_of(F.lp_pool1d, "LPPool1d")
LPPool2d = layer_of(F.lp_pool2d, "LPPool2d")
LPPool3d = layer_of(F.lp_pool3d, "LPPool3d")
AdaptiveMaxPool1d = layer_of(F.adaptive_max_pool1d, "AdaptiveMaxPool1d")
AdaptiveMaxPool2d = layer_of(F.adaptive_max_pool2d, "AdaptiveMaxPool2d")
AdaptiveMaxPool3d = layer_of(F.adaptive_max_pool3d, "AdaptiveMaxPool3d")
AdaptiveAvgPool1d = layer_of(F.adaptive_avg_pool1d, "AdaptiveAvgPool1d")
AdaptiveAvgPool2d = layer_of(F.adaptive_avg_pool2d, "AdaptiveAvgPool2d")
AdaptiveAvgPool3d = layer_of(F.adaptive_avg_pool3d, "AdaptiveAvgPool3d")
MaxUnpool1d = layer_of(F.max_unpool1d, "MaxUnpool1d", 2, at_call="output_size")
MaxUnpool2d = layer_of(F.max_unpool2d, "MaxUnpool2d", 2, at_call="output_size")
MaxUnpool3d = layer_of(F.max_unpool3d, "MaxUnpool3d", 2, at_call="output_size")

_FRACTIONAL = "kernel_size output_size output_ratio return_indices _random_samples"
FractionalMaxPool2d = layer_of(F.fractional_max_pool2d, "FractionalMaxPool2d", order=_FRACTIONAL)
FractionalMaxPool3d = layer_of(F.fractional_max_pool3d, "FractionalMaxPool3d", order=_FRACTIONAL)
