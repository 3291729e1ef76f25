"""Layers that shift and scale to mean 0 and variance 1, over the batch or over features.

`weight` starts as ones and `bias` as zeros. Statistics of halves are computed in float32.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.dtypes import DType, dtypes
from weft.ir.sizes import times
from weft.nn.arguments import also_named
from weft.nn.functional.normalization import cross_map_lrn2d, local_response_norm
from weft.nn.initial import constant, require_positive, state
from weft.nn.layer_of import layer_of
from weft.nn.module import Layer
from weft.support.errors import ArgumentError, NotSupported, ShapeError
from weft.tensor.autodiff.custom_gradient import with_body
from weft.tensor.neural.normalization import unbiased
from weft.tensor.tensor import Tensor


def _wide(x: Tensor) -> Tensor:
    return x.float() if x.dtype.bits < 32 else x


def _moments(x: Tensor, axes: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Mean and variance over some axes."""
    wide = _wide(x)
    mean = wide.mean(axes)
    shape = [1 if axis in axes else size for axis, size in enumerate(x.shape)]
    centered = wide - mean.reshape(shape)
    return mean, (centered * centered).mean(axes)


class BatchNorm(Layer):
    """Normalize each channel over the batch and all spatial axes: (batch, channels, …).

    y = (x - mean) / √(var + eps) · weight + bias. While `Tensor.training` is set, mean and
    variance are those of the batch, and `running_mean` and `running_var` move towards them by
    `momentum`; otherwise the running ones are used. The moves are writes: they happen together
    with whatever is computed next. With `momentum=None` the running values are plain averages of
    all batches, as in PyTorch.

    >>> with Tensor.train():
    ...     BatchNorm(3)(Tensor.ones(4, 3, 2, 2)).shape
    (4, 3, 2, 2)
    """

    @also_named(num_features="sz")
    def __init__(
        self,
        sz: int,
        eps: float = 1e-5,
        affine: bool = True,
        track_running_stats: bool = True,
        momentum: float | None = 0.1,
    ) -> None:
        if not isinstance(affine, bool):  # PyTorch's order: momentum comes third
            is_last = isinstance(momentum, bool)
            momentum, affine, track_running_stats = (
                affine, track_running_stats, momentum if is_last else True,
            )  # fmt: skip
        require_positive(type(self).__name__, sz=sz)
        self.eps, self.momentum, self.track_running_stats = eps, momentum, track_running_stats
        self.weight = constant((sz,), 1) if affine else None
        self.bias = constant((sz,), 0) if affine else None
        if track_running_stats:
            self.register_buffer("running_mean", state((sz,), 0.0))
            self.register_buffer("running_var", state((sz,), 1.0))
            self.register_buffer("num_batches_tracked", state((), 0, dtype=dtypes.int64))
        self.channels = sz

    def forward(self, x: Tensor) -> Tensor:
        self._require_channels(x)
        if Tensor.training or not self.track_running_stats:
            return self._by_batch(x)
        return self._scaled(x, self.running_mean, self.running_var, self.weight, self.bias)

    def _scaled(
        self, x: Tensor, mean: Tensor, variance: Tensor, weight: Tensor | None, bias: Tensor | None
    ) -> Tensor:
        shape = (1, -1, *[1] * (x.ndim - 2))
        scale = (variance + self.eps).rsqrt()
        scale = scale if weight is None else scale * weight
        result = (_wide(x) - mean.reshape(shape)) * scale.reshape(shape)
        result = result if bias is None else result + bias.reshape(shape)
        return result.cast(x.dtype)

    def _by_batch(self, x: Tensor) -> Tensor:
        """Scaled by the mean and the variance of each channel; the running ones move to them."""
        axes = (0, *range(2, x.ndim))
        mean, variance = _moments(x, axes)
        if self.track_running_stats and Tensor.training:
            self._move(mean, unbiased(variance, times(*[x.shape[axis] for axis in axes])))
        result = self._scaled(x, mean, variance, self.weight, self.bias)
        if not x.dtype.is_float:
            return result
        inputs = [each for each in (x, self.weight, self.bias) if each is not None]
        key = ("batch norm", self.eps)
        return with_body(result, inputs, key, lambda given, _, slope: self._slopes(given, slope))

    def _slopes(self, given: Sequence[Tensor], slope: Tensor) -> list[Tensor]:
        """The gradients of the input, the weight and the bias, from two sums over the batch.

        Reverse mode would find them too, through the mean and the variance one after the other:
        a third sum, which needs the result of another.
        """
        x, *affine = given
        axes, shape = (0, *range(2, x.ndim)), (1, -1, *[1] * (x.ndim - 2))
        mean, variance = _moments(x, axes)
        scale = (variance + self.eps).rsqrt()
        centered, g = _wide(x) - mean.reshape(shape), _wide(slope)
        along = (g * centered).mean(axes) * scale
        normal = centered * scale.reshape(shape)
        of_x = g - g.mean(axes).reshape(shape) - normal * along.reshape(shape)
        by = scale if self.weight is None else scale * affine[0]
        sums = [(g * centered).sum(axes) * scale, g.sum(axes)]
        return [of_x * by.reshape(shape), *(sums if affine else [])]

    def _move(self, mean: Tensor, variance: Tensor) -> None:
        self.num_batches_tracked.assign(self.num_batches_tracked + 1)
        by = 1 / self.num_batches_tracked.float() if self.momentum is None else self.momentum
        for running, new in ((self.running_mean, mean), (self.running_var, variance)):
            running.assign(running * (1 - by) + new.detach() * by)

    def _require_channels(self, x: Tensor) -> None:
        if x.ndim < 2 or x.shape[1] != self.channels:
            raise ShapeError(
                f"{type(self).__name__}: an input of shape {x.shape} for {self.channels} channels",
                rule="the input is (batch, channels, …)",
            )


class BatchNorm1d(BatchNorm):
    """BatchNorm, under the name for (batch, channels) and (batch, channels, length)."""


class BatchNorm2d(BatchNorm):
    """BatchNorm, under the name for (batch, channels, height, width)."""


class BatchNorm3d(BatchNorm):
    """BatchNorm, under the name for three spatial axes."""


class SyncBatchNorm(BatchNorm):
    """`BatchNorm`: of a batch that is split over devices the statistics are those of all of it.

    >>> isinstance(SyncBatchNorm(3), BatchNorm)
    True
    """

    @classmethod
    def convert_sync_batchnorm(cls, module: Layer, process_group: object = None) -> Layer:
        """The module itself: its batch norms are such ones already."""
        return module


class GroupNorm(Layer):
    """Normalize groups of channels of each example: (batch, channels, …).

    >>> GroupNorm(2, 6)(Tensor.ones(4, 6, 3)).shape
    (4, 6, 3)
    """

    @also_named()
    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True
    ) -> None:
        name = type(self).__name__
        require_positive(name, num_groups=num_groups, num_channels=num_channels)
        if num_channels % num_groups:
            raise ArgumentError(
                f"{name}: {num_groups} groups of {num_channels} channels",
                rule="the number of groups divides the number of channels",
            )
        self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
        self.weight = constant((num_channels,), 1) if affine else None
        self.bias = constant((num_channels,), 0) if affine else None

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim < 2 or x.shape[1] != self.num_channels:
            raise ShapeError(
                f"{type(self).__name__}: an input of shape {x.shape} for {self.num_channels} "
                "channels",
                rule="the input is (batch, channels, …)",
            )
        groups = x.reshape((x.shape[0], self.num_groups, -1)).layernorm(eps=self.eps)
        return _affine(groups.reshape(x.shape), self.weight, self.bias, 1)


class InstanceNorm(GroupNorm):
    """Normalize each channel of each example: GroupNorm with a group for every channel.

    >>> InstanceNorm(6)(Tensor.ones(4, 6, 3)).shape
    (4, 6, 3)
    """

    def __init__(self, num_features: int, eps: float = 1e-5, affine: bool = True) -> None:
        super().__init__(num_features, num_features, eps, affine)


class _InstanceNorm(InstanceNorm):
    """`InstanceNorm` with PyTorch's arguments and defaults; there are no running statistics."""

    @also_named()
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
    ) -> None:
        if track_running_stats:
            raise NotSupported(
                f"{type(self).__name__}: track_running_stats is given",
                rule="each example is normalized by itself",
            )
        super().__init__(num_features, eps, affine)


class InstanceNorm1d(_InstanceNorm):
    """Normalize each channel of each example, (batch, channels, length)."""


class InstanceNorm2d(_InstanceNorm):
    """Normalize each channel of each example, (batch, channels, height, width)."""


class InstanceNorm3d(_InstanceNorm):
    """Normalize each channel of each example, (batch, channels, depth, height, width)."""


def _affine(x: Tensor, weight: Tensor | None, bias: Tensor | None, axis: int) -> Tensor:
    """x · weight + bias along an axis, in the dtype of x."""
    shape = [1] * x.ndim
    shape[axis] = -1
    result = x if weight is None else x * weight.reshape(shape)
    result = result if bias is None else result + bias.reshape(shape)
    return result.cast(x.dtype)


class LayerNorm(Layer):
    """Normalize over the last axes, those of `normalized_shape`.

    >>> LayerNorm(4)(Tensor([[1.0, 2.0, 3.0, 4.0]])).sum().item() < 1e-6
    True
    """

    @also_named()
    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
    ) -> None:
        listed = (normalized_shape,) if isinstance(normalized_shape, int) else normalized_shape
        self.normalized_shape, self.eps = tuple(listed), eps
        self.weight = constant(self.normalized_shape, 1) if elementwise_affine else None
        self.bias = constant(self.normalized_shape, 0) if elementwise_affine and bias else None

    def forward(self, x: Tensor) -> Tensor:
        rank = len(self.normalized_shape)
        if x.shape[x.ndim - rank :] != self.normalized_shape or x.ndim < rank:
            raise ShapeError(
                f"{type(self).__name__}: an input of shape {x.shape}",
                facts=[("normalized_shape", self.normalized_shape)],
                rule="the last axes of the input are normalized_shape",
            )
        result = x.layernorm(tuple(range(x.ndim - rank, x.ndim)), self.eps)
        dtype = result.dtype
        result = result if self.weight is None else result * self.weight
        result = result if self.bias is None else result + self.bias
        return result.cast(dtype)


class LayerNorm2d(LayerNorm):
    """LayerNorm over the channels of images: (batch, channels, height, width).

    >>> LayerNorm2d(3)(Tensor.ones(2, 3, 4, 4)).shape
    (2, 3, 4, 4)
    """

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class RMSNorm(Layer):
    """Divide by the root of the mean square over the last axis: x / √(mean(x²) + eps) · weight.

    >>> RMSNorm(2, eps=0)(Tensor([[3.0, 3.0]])).tolist()
    [[1.0, 1.0]]
    """

    @also_named(normalized_shape="dim")
    def __init__(self, dim: int, eps: float = 1e-6, elementwise_affine: bool = True) -> None:
        require_positive("RMSNorm", dim=dim)
        self.dim, self.eps = dim, eps
        self.weight = constant((dim,), 1) if elementwise_affine else None

    def forward(self, x: Tensor) -> Tensor:
        if not x.ndim or x.shape[-1] != self.dim:
            raise ShapeError(
                f"RMSNorm: an input of shape {x.shape} for {self.dim} features",
                rule="the last axis of the input has dim elements",
            )
        dtype: DType = x.dtype
        wide = _wide(x)
        result = (wide * ((wide * wide).mean(-1, keepdim=True) + self.eps).rsqrt()).cast(dtype)
        return result if self.weight is None else result * self.weight


LocalResponseNorm = layer_of(local_response_norm, "LocalResponseNorm")
CrossMapLRN2d = layer_of(cross_map_lrn2d, "CrossMapLRN2d")
