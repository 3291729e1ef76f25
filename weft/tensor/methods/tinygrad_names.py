"""Methods by tinygrad's names that no other framework has; programs written for it use them."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from weft.ir.shapes import Shape
from weft.ir.sizes import most
from weft.support.download import downloaded
from weft.support.errors import FileFormatError, MissingFile, ShapeError
from weft.tensor.checks import known, shape_from

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


def is_param_(self: Tensor, is_param: bool = True) -> Tensor:
    """Say that this tensor is a parameter, and return it. tinygrad: is_param_.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0]).is_param_().requires_grad
    True
    """
    return self.requires_grad_(is_param)


def max_shape(self: Tensor) -> tuple[int, ...]:
    """The greatest value of each size; the shape itself where no size is symbolic.

    >>> from weft.tensor import Tensor
    >>> Tensor.ones(2, 3).max_shape
    (2, 3)
    """
    return tuple(most(size) for size in self.shape)


def _wanted(name: str, self: Tensor, shape: tuple[Any, ...]) -> Shape:
    """A size for each axis; None keeps that of the tensor."""
    sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
    if len(sizes) != self.ndim:
        raise ShapeError(
            f"{name}: {len(sizes)} sizes for {self.ndim} axes",
            facts=[("shape", self.shape)],
            rule="there is a size for each axis, or None for the size that it has",
        )
    pairs = zip(sizes, self.shape, strict=True)
    return shape_from(name, tuple(own if size is None else size for size, own in pairs))


def shrink_to(self: Tensor, *shape: Any) -> Tensor:
    """Keep the first elements of each axis, as many as a shape says. tinygrad: shrink_to.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 2], [3, 4]]).shrink_to(1, None).tolist()
    [[1, 2]]
    """
    return self.shrink([(0, size) for size in _wanted("shrink_to", self, shape)])


def pad_to(self: Tensor, *shape: Any) -> Tensor:
    """Add zeros behind the elements of each axis, up to a shape. tinygrad: pad_to.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 2]).pad_to(4).tolist()
    [1, 2, 0, 0]
    """
    pairs = zip(_wanted("pad_to", self, shape), self.shape, strict=True)
    return self.pad([(0, size - own) for size, own in pairs])


def contiguous_backward(self: Tensor) -> Tensor:
    """Return the value; its gradient is computed into memory of its own. tinygrad has it.

    >>> from weft.tensor import Tensor
    >>> x = Tensor([1.0, 2.0])
    >>> x.contiguous_backward().square().sum().gradient(x)[0].tolist()
    [2.0, 4.0]
    """
    from weft.tensor.autodiff.custom_gradient import with_body

    return with_body(self, [self], "contiguous_backward", lambda _, __, g: g.contiguous())


def batchnorm(
    self: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor,
    invstd: Tensor,
    axis: int | tuple[int, ...] = 1,
) -> Tensor:
    """Return (x - mean) invstd weight + bias, with statistics along an axis. tinygrad: batchnorm.

    >>> from weft.tensor import Tensor
    >>> x = Tensor([[1.0, 5.0]])
    >>> x.batchnorm(None, None, Tensor([1.0, 1.0]), Tensor([1.0, 0.5])).tolist()
    [[0.0, 2.0]]
    """
    axes = (axis,) if isinstance(axis, int) else axis
    shape = [known(size) if number in axes else 1 for number, size in enumerate(self.shape)]
    result = self - mean.reshape(shape)
    result = result if weight is None else result * weight.reshape(shape)
    result = result * (invstd.reshape(shape) if invstd.ndim == len(axes) else invstd)
    return result if bias is None else result + bias.reshape(shape)


def newton_schulz(
    self: Tensor, steps: int, params: Sequence[float], eps: float = 1.0e-7
) -> Tensor:
    """Bring the singular values of matrices near 1, by steps of an odd polynomial.

    `params` are the coefficients of x, x³, x⁵ and so on. tinygrad: newton_schulz.

    >>> from weft.tensor import Tensor
    >>> x = Tensor([[2.0, 0.0], [0.0, 1.0]])
    >>> y = x.newton_schulz(20, (1.5, -0.5))
    >>> bool((y - Tensor.eye(2)).abs().max() < 1e-3)
    True
    """
    is_tall = known(self.shape[-2]) > known(self.shape[-1])
    x = self.transpose(-2, -1) if is_tall else self
    x = x / (x.square().sum((-2, -1), keepdim=True).sqrt() + eps)
    for _ in range(steps):
        square = x @ x.transpose(-2, -1)
        total, power = params[0] * x, x
        for factor in params[1:]:
            power = square @ power
            total = total + factor * power
        x = total
    return x.transpose(-2, -1) if is_tall else x


def from_url(cls: type[Tensor], /, url: str, gunzip: bool = False, **kwargs: Any) -> Tensor:
    """Make a tensor of the bytes of a file, which is downloaded once. tinygrad: from_url.

    A path or a `file:` address is read where it lies. With `gunzip` the bytes are unpacked.

    >>> import tempfile
    >>> from weft.tensor import Tensor
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(b"weft"), file.flush()
    ...     Tensor.from_url(f"file://{file.name}").tolist()
    [119, 101, 102, 116]
    """
    path = downloaded("from_url", url)
    try:
        data = path.read_bytes()
    except OSError as failure:
        raise MissingFile(f"from_url: {path} cannot be read: {failure.strerror}") from None
    if gunzip:
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as failure:
            raise FileFormatError(f"from_url: {path} is not a gzip file: {failure}") from None
    return cls(data, **kwargs)
