"""Layers that learn the size of their input from the first one that they are called with.

`LazyLinear(8)` has no weights until then; it becomes a `Linear`. A model is called once, before
its parameters are handed to an optimizer: asking for them earlier is an error, where they would
be missing in silence.
"""

from __future__ import annotations

from typing import Any, ClassVar

from weft.nn import convolution, normalization
from weft.nn.functional.inputs import refusal
from weft.nn.linear import Linear
from weft.nn.module import Layer
from weft.nn.module_walk import Unfinished
from weft.support.errors import ShapeError
from weft.tensor.checks import known
from weft.tensor.tensor import Tensor


class Lazy(Layer):
    """What a layer is before its first input. PyTorch: nn.modules.lazy.LazyModuleMixin."""

    base: ClassVar[type[Layer]] = Layer
    # How many axes come after the one whose size is learned; None for the last axis.
    spatial: ClassVar[tuple[int, ...] | None] = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        self.__dict__["_arguments"] = (args, kwargs)
        self.__dict__["_uninitialized"] = Unfinished()

    def _size(self, x: Any) -> int:
        """The size of the axis that the layer is for."""
        name = type(self).__name__
        if not isinstance(x, Tensor):
            raise refusal(name, x)
        if self.spatial is None:
            return known(x.shape[-1]) if x.ndim else 1
        if x.ndim - 2 not in self.spatial and (x.ndim - 1 not in self.spatial or self.is_batched):
            raise ShapeError(
                f"{name}: an input with {x.ndim} axes",
                facts=[("input", x.shape)],
                rule=f"it is (batch, channels) and {max(self.spatial)} spatial axes",
            )
        return known(x.shape[1 if x.ndim - 2 in self.spatial else 0])

    is_batched: ClassVar[bool] = False

    def initialize_parameters(self, input: Any) -> None:
        """Become the layer for inputs like this one."""
        size = self._size(input)
        args, kwargs = self.__dict__.pop("_arguments")
        del self.__dict__["_uninitialized"]
        mode = self.__dict__.get("_mode")
        base = self.base
        object.__setattr__(self, "__class__", base)
        base.__init__(self, size, *args, **kwargs)  # type: ignore[call-arg]
        if mode is not None:
            self.__dict__["_mode"] = mode

    def has_uninitialized_params(self) -> bool:
        """Whether no input has come yet."""
        return True

    def __call__(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Take the size from the first input, and go on as the layer."""
        self.initialize_parameters(x)
        return self(x, *args, **kwargs)

    def extra_repr(self) -> str:
        """The arguments that are known."""
        args, kwargs = self.__dict__["_arguments"]
        shown = [repr(each) for each in args] + [f"{key}={each!r}" for key, each in kwargs.items()]
        return ", ".join(["?", *shown])


def lazy_of(
    base: type[Layer], spatial: tuple[int, ...] | None = None, is_batched: bool = False
) -> type[Lazy]:
    """The lazy form of a layer whose first argument is the size of an axis of its input."""
    name = f"Lazy{base.__name__}"
    body = {
        "base": base,
        "spatial": spatial,
        "is_batched": is_batched,
        "__module__": __name__,
        "__qualname__": name,
        "__doc__": f"A {base.__name__} whose first argument is learned from its first input.",
    }
    return type(name, (Lazy,), body)


LazyLinear = lazy_of(Linear)
LazyConv1d = lazy_of(convolution.Conv1d, (1,))
LazyConv2d = lazy_of(convolution.Conv2d, (2,))
LazyConv3d = lazy_of(convolution.Conv3d, (3,))
LazyConvTranspose1d = lazy_of(convolution.ConvTranspose1d, (1,))
LazyConvTranspose2d = lazy_of(convolution.ConvTranspose2d, (2,))
LazyConvTranspose3d = lazy_of(convolution.ConvTranspose3d, (3,))
LazyBatchNorm1d = lazy_of(normalization.BatchNorm1d, (0, 1), True)
LazyBatchNorm2d = lazy_of(normalization.BatchNorm2d, (2,), True)
LazyBatchNorm3d = lazy_of(normalization.BatchNorm3d, (3,), True)
LazyInstanceNorm1d = lazy_of(normalization.InstanceNorm1d, (1,))
LazyInstanceNorm2d = lazy_of(normalization.InstanceNorm2d, (2,))
LazyInstanceNorm3d = lazy_of(normalization.InstanceNorm3d, (3,))
