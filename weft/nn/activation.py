"""Layers without parameters of their own: activations, dropout, shapes; and PReLU.

A method of Tensor does the same: `x.sequential([layer, Tensor.relu])`.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.nn import functional as F  # noqa: N812 -- as everyone writes it
from weft.nn.initial import constant
from weft.nn.layer_of import layer_of
from weft.nn.module import Layer
from weft.support.errors import ArgumentError
from weft.tensor.tensor import Tensor

ReLU = layer_of(F.relu, "ReLU")
ReLU6 = layer_of(F.relu6, "ReLU6")
LeakyReLU = layer_of(F.leaky_relu, "LeakyReLU")
ELU = layer_of(F.elu, "ELU")
CELU = layer_of(F.celu, "CELU")
SELU = layer_of(F.selu, "SELU")
GELU = layer_of(F.gelu, "GELU")
SiLU = layer_of(F.silu, "SiLU")
Mish = layer_of(F.mish, "Mish")
GLU = layer_of(F.glu, "GLU")
Tanh = layer_of(F.tanh, "Tanh")
Sigmoid = layer_of(F.sigmoid, "Sigmoid")
LogSigmoid = layer_of(F.logsigmoid, "LogSigmoid")
Hardsigmoid = layer_of(F.hardsigmoid, "Hardsigmoid")
Hardswish = layer_of(F.hardswish, "Hardswish")
Hardtanh = layer_of(F.hardtanh, "Hardtanh")
Hardshrink = layer_of(F.hardshrink, "Hardshrink")
Softshrink = layer_of(F.softshrink, "Softshrink")
Tanhshrink = layer_of(F.tanhshrink, "Tanhshrink")
Softsign = layer_of(F.softsign, "Softsign")
Softplus = layer_of(F.softplus, "Softplus")
Threshold = layer_of(F.threshold, "Threshold")
Softmax = layer_of(F.softmax, "Softmax", order="dim", dim=-1)
Softmin = layer_of(F.softmin, "Softmin", order="dim", dim=-1)
LogSoftmax = layer_of(F.log_softmax, "LogSoftmax", order="dim", dim=-1)


class Identity(Layer):
    """Return the input, whatever the layer was made with."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__()

    def forward(self, x: Tensor) -> Tensor:
        """Return the input."""
        return x


class PReLU(Layer):
    """x, scaled below 0 by a parameter, one for all channels or one for each.

    >>> PReLU()(Tensor([-4.0, 2.0])).tolist()
    [-1.0, 2.0]
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.weight = constant((num_parameters,), init)

    def forward(self, x: Tensor) -> Tensor:
        """Scale what is below 0."""
        return x.prelu(self.weight)


class RReLU(Layer):
    """x, scaled below 0: by random numbers in training, by their mean otherwise."""

    _mode: bool | None = True

    def __init__(
        self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False
    ) -> None:
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, x: Tensor) -> Tensor:
        """Scale what is below 0."""
        return F.rrelu(x, self.lower, self.upper, Tensor.training, self.inplace)


class Softmax2d(Layer):
    """The softmax over the channels of images (batch, channels, height, width)."""

    def forward(self, x: Tensor) -> Tensor:
        """The softmax over axis -3."""
        return x.softmax(-3)


class Dropout(Layer):
    """Zero elements with probability `p` and divide the others by 1 - p, while training.

    >>> layer, x = Dropout(0.5), Tensor.ones(100)
    >>> sorted(set(layer(x).tolist())), layer.eval()(x).max().item()
    ([0.0, 2.0], 1.0)
    """

    _mode: bool | None = True

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ArgumentError(
                f"{type(self).__name__}: p is {p}", rule="a probability is from 0 to 1"
            )
        self.p, self.inplace = p, inplace

    def forward(self, x: Tensor) -> Tensor:
        """Drop, while training."""
        return x.dropout(self.p)

    def extra_repr(self) -> str:
        """The probability."""
        return f"p={self.p}"


class Dropout1d(Dropout):
    """Zero whole channels of (batch, channels, length), while training."""

    def forward(self, x: Tensor) -> Tensor:
        """Drop, while training."""
        return F.dropout1d(x, self.p, Tensor.training)


class Dropout2d(Dropout):
    """Zero whole channels of (batch, channels, height, width), while training."""

    def forward(self, x: Tensor) -> Tensor:
        """Drop, while training."""
        return F.dropout2d(x, self.p, Tensor.training)


class Dropout3d(Dropout):
    """Zero whole channels of (batch, channels, depth, height, width), while training."""

    def forward(self, x: Tensor) -> Tensor:
        """Drop, while training."""
        return F.dropout3d(x, self.p, Tensor.training)


class AlphaDropout(Dropout):
    """Dropout that keeps the mean and variance of what SELU gives, while training."""

    def forward(self, x: Tensor) -> Tensor:
        """Drop, while training."""
        return F.alpha_dropout(x, self.p, Tensor.training)


class FeatureAlphaDropout(Dropout):
    """AlphaDropout of whole channels."""

    def forward(self, x: Tensor) -> Tensor:
        """Drop, while training."""
        return F.feature_alpha_dropout(x, self.p, Tensor.training)


class Flatten(Layer):
    """Make one axis of several, all but the first unless told otherwise."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, x: Tensor) -> Tensor:
        """Flatten."""
        return x.flatten(self.start_dim, self.end_dim)


class Unflatten(Layer):
    """Make several axes of one.

    >>> Unflatten(1, (2, 3))(Tensor.ones(4, 6)).shape
    (4, 2, 3)
    """

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        self.dim, self.unflattened_size = dim, tuple(unflattened_size)

    def forward(self, x: Tensor) -> Tensor:
        """Unflatten."""
        return x.unflatten(self.dim, self.unflattened_size)
