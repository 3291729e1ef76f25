"""Reductions, and what is made of them: statistics, softmax, normalizations.

Sums and products of bools and integers are int64, as in PyTorch (uint64 stays); halves are summed
in float32 and rounded once. `mean`, `var` and `std` of integers are computed in the default float,
where PyTorch refuses them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from weft.ir import movement
from weft.ir.build import reduce_axes
from weft.ir.dtypes import BOOL, COMPLEX, DType, dtypes
from weft.ir.ops import Op
from weft.ir.shapes import Shape, shape_of
from weft.ir.sizes import least
from weft.ir.uop import UOp, make
from weft.support.errors import ShapeError
from weft.support.source_line import user_line
from weft.tensor.checks import Axes, axes_of, axis_of, size_node
from weft.tensor.complexes.functions import product
from weft.tensor.complexes.parts import require_real
from weft.tensor.host.convert import dtype_of
from weft.tensor.methods.examples import with_example
from weft.tensor.methods.pairs import Extremes
from weft.tensor.small_floats import widened

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

DTypeLike = DType | str | None


def reduction(self: Tensor, op: int, axis: Axes, keepdim: bool, name: str) -> Tensor:
    """The reduction over some axes, which are dropped unless `keepdim` is set."""
    node = self.uop
    shape = shape_of(node)
    axes = axes_of(name, axis, len(shape))
    if not axes:
        return self._same()
    reduced = _reduced(self, op, axes, name)
    if keepdim:
        return self._new(reduced)
    if reduced.line is None:
        reduced.line = user_line()
    return self._new(movement.reshape(reduced, without_axes(shape, axes)))


def without_axes(shape: Shape, axes: tuple[int, ...]) -> Shape:
    """A shape without some of its axes."""
    if len(axes) == len(shape):
        return ()
    return tuple([size for i, size in enumerate(shape) if i not in axes])


def _reduced(self: Tensor, op: int, axes: tuple[int, ...], name: str) -> UOp:
    """The reduction over axes, which keep size 1."""
    node = self.uop
    if node.dtype.kind == COMPLEX:
        if op == Op.MUL:
            return product(self, axes).uop
        if op != Op.ADD:
            require_real(self, name)
    return reduce_axes(node, op, axes)


def accumulated_dtype(dtype: DType) -> DType:
    """The dtype of a sum."""
    return dtype if dtype.is_inexact or dtype is dtypes.uint64 else dtypes.int64


def _accumulate(
    self: Tensor, op: int, axis: Axes, keepdim: bool, dtype: DTypeLike, name: str
) -> Tensor:
    target = dtype_of(dtype, accumulated_dtype(self.dtype))
    if target.kind == BOOL:
        return reduction(self.bool(), op, axis, keepdim, name)
    return reduction(widened(self.cast(target)), op, axis, keepdim, name).cast(target)


def sum_(
    self: Tensor, axis: Axes = None, keepdim: bool = False, dtype: DTypeLike = None
) -> Tensor:
    """Add up all elements, or those along some axes.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 2], [3, 4]]).sum(axis=0).tolist()
    [4, 6]
    """
    return _accumulate(self, Op.ADD, axis, keepdim, dtype, "sum")


def prod(
    self: Tensor, axis: Axes = None, keepdim: bool = False, dtype: DTypeLike = None
) -> Tensor:
    """Multiply all elements, or those along some axes.

    Integers and bools give int64. Without an axis all elements count; keepdim leaves axes of size
    1. PyTorch and NumPy: prod.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 2], [3, 4]]).prod(axis=1).tolist()
    [2, 12]
    """
    return _accumulate(self, Op.MUL, axis, keepdim, dtype, "prod")


def _require_elements(self: Tensor, axis: Axes, name: str) -> None:
    axes = axes_of(name, axis, self.ndim)
    if any(least(self.shape[i]) == 0 for i in axes):
        is_empty = any(self.shape[i] == 0 for i in axes)
        raise ShapeError(
            f"{name}: an empty axis has no {name}"
            if is_empty
            else f"{name}: an axis can be empty, and has no {name} then",
            facts=[("shape", self.shape), ("axes", axes)],
            rule=f"{name} needs at least one element along its axes",
            fix="" if is_empty else "give the Variable a min of 1",
        )


def max_(self: Tensor, axis: Axes = None, keepdim: bool = False) -> Tensor:
    """Return the greatest element; NaN if there is one.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 5], [3, 4]]).max(axis=1).tolist()
    [5, 4]
    """
    _require_elements(self, axis, "max")
    return reduction(self, Op.MAX, axis, keepdim, "max")


def min_(self: Tensor, axis: Axes = None, keepdim: bool = False) -> Tensor:
    """Return the least element; NaN if there is one.

    Without an axis all elements count; keepdim leaves axes of size 1. PyTorch and NumPy: min.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 5], [7, 0]]).min(axis=0).tolist()
    [1, 0]
    """
    _require_elements(self, axis, "min")
    return reduction(self, Op.MIN, axis, keepdim, "min")


def amax(self: Tensor, dim: Axes = None, keepdim: bool = False) -> Tensor:
    """Return the greatest element along axes. PyTorch and NumPy: amax.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 5], [3, 4]]).amax((0, 1)).item()
    5
    """
    return self.max(dim, keepdim)


def amin(self: Tensor, dim: Axes = None, keepdim: bool = False) -> Tensor:
    """Return the least element along axes. PyTorch and NumPy: amin.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 5], [3, 4]]).amin(0).tolist()
    [1, 4]
    """
    return self.min(dim, keepdim)


def count_nonzero(self: Tensor, dim: Axes = None) -> Tensor:
    """Return how many elements are not zero, as int64. PyTorch and NumPy: count_nonzero.

    >>> from weft.tensor import Tensor
    >>> Tensor([[1, 0], [3, 4]]).count_nonzero(0).tolist()
    [2, 1]
    """
    return self.bool().sum(dim)


def aminmax(self: Tensor, dim: int | None = None, keepdim: bool = False) -> Extremes:
    """Return the least and the greatest element, of all or along an axis; NaN if there is one.

    As `torch.aminmax`.

    >>> from weft.tensor import Tensor
    >>> low, high = Tensor([3, 1, 2]).aminmax()
    >>> low.item(), high.item()
    (1, 3)
    """
    return Extremes(self.min(dim, keepdim), self.max(dim, keepdim))


def nansum(
    self: Tensor, axis: Axes = None, keepdim: bool = False, dtype: DTypeLike = None
) -> Tensor:
    """Add up elements as `sum` does, with NaN as 0.

    As `numpy.nansum` and `torch.nansum`.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0, float("nan"), 2.0]).nansum().item()
    3.0
    """
    return self.isnan().where(0, self).sum(axis, keepdim, dtype)


def any_(self: Tensor, axis: Axes = None, keepdim: bool = False) -> Tensor:
    """Tell whether an element is not zero.

    The result is bool. Without an axis all elements count; keepdim leaves axes of size 1. PyTorch
    and NumPy: any.

    >>> from weft.tensor import Tensor
    >>> Tensor([[True, False], [False, False]]).any(axis=1).tolist()
    [True, False]
    """
    return reduction(self.bool(), Op.OR, axis, keepdim, "any")


def all_(self: Tensor, axis: Axes = None, keepdim: bool = False) -> Tensor:
    """Tell whether no element is zero.

    The result is bool. Without an axis all elements count; keepdim leaves axes of size 1. PyTorch
    and NumPy: all.

    >>> from weft.tensor import Tensor
    >>> Tensor([[True, False], [True, True]]).all(axis=1).tolist()
    [False, True]
    """
    return reduction(self.bool(), Op.AND, axis, keepdim, "all")


def _arg_extreme(op: int, name: str, which: str, shown: str) -> Callable[..., Tensor]:
    def function(self: Tensor, axis: int | None = None, keepdim: bool = False) -> Tensor:
        if axis is None:
            flat = function(self.flatten(), 0)
            return flat.reshape((1,) * self.ndim) if keepdim else flat
        number = axis_of(name, axis, self.ndim)
        if not self.ndim:
            return self._new(movement.full(dtypes.int64, 0, ()))
        _require_elements(self, number, name)
        extreme = reduction(self, op, number, True, name)
        found = (self == extreme) | self.isnan()
        position = movement.positions(self.shape, number)
        beyond = size_node(self.shape[number], position.dtype)
        first = self._new(make(Op.WHERE, position.dtype, (found.uop, position, beyond)))
        return reduction(first, Op.MIN, number, keepdim, name).cast(dtypes.int64)

    function.__name__ = function.__qualname__ = name
    summary = f"Return the first position of the {which} element as int64; NaN counts."
    more = f"\n\nWithout an axis it is that in the flat tensor. PyTorch and NumPy: {name}."
    call = f"Tensor([[1, 5, 2], [7, 0, 7]]).{name}(axis=1).tolist()"
    function.__doc__ = with_example(summary, call, shown, more)
    return function


argmax: Final = _arg_extreme(Op.MAX, "argmax", "greatest", "[1, 0]")
argmin: Final = _arg_extreme(Op.MIN, "argmin", "least", "[0, 1]")
