"""What operators do to arrays that the host knows: the arithmetic of shapes, and strings.

A function takes the call and the arrays, and returns arrays or `NotImplemented` where tensors are
to do it. Elements of object arrays are symbolic sizes (or strings, which only move).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import TensorProto

from weft.ir.sizes import floor_quotient, least, try_quotient
from weft.ir.uop import UOp
from weft.onnx.elements import DTYPES, SMALL
from weft.onnx.real_sizes import InexactSizeError, RealSize, compare, greater, lesser
from weft.onnx.table import folds
from weft.support.errors import ShapeError
from weft.tensor.checks import GREATER_MIN

Array = Any

_TO_NUMPY = {
    TensorProto.FLOAT: np.float32,
    TensorProto.DOUBLE: np.float64,
    TensorProto.FLOAT16: np.float16,
    TensorProto.INT8: np.int8,
    TensorProto.INT16: np.int16,
    TensorProto.INT32: np.int32,
    TensorProto.INT64: np.int64,
    TensorProto.UINT8: np.uint8,
    TensorProto.UINT16: np.uint16,
    TensorProto.UINT32: np.uint32,
    TensorProto.UINT64: np.uint64,
    TensorProto.BOOL: np.bool_,
}


def _is_symbolic(*arrays: Array) -> bool:
    return any(
        array.dtype == object and any(isinstance(cell, (UOp, RealSize)) for cell in array.flat)
        for array in arrays
        if array is not None
    )


def settled(array: Array) -> Array:
    """Sizes as int64 again where none of them is symbolic any more."""
    if array.dtype != object or not array.size:
        return array
    is_known = all(isinstance(cell, (int, np.integer)) for cell in array.flat)
    return array.astype(np.int64) if is_known else array


def _is_text(*arrays: Array) -> bool:
    return any(a is not None and a.dtype == object for a in arrays) and not _is_symbolic(*arrays)


def _array(value: Any, like: Array) -> Array:
    """The result of a function of NumPy as an array, also where it is a scalar."""
    array = np.asarray(value)
    return array if array.dtype == object or like is None else array.astype(like.dtype, copy=False)


def _binary(name: str, function: Callable[[Any, Any], Any]) -> None:
    @folds(name)
    def folded(call: Any, x: Array, y: Array) -> Array:
        if _is_text(x, y):
            return NotImplemented
        if _is_symbolic(x, y):
            return _of_sizes(function, x, y)
        with np.errstate(all="ignore"):
            return _array(function(x, y), x)


def _of_sizes(function: Callable[..., Any], *arrays: Array) -> Array:
    """What a function gives for arrays of sizes, where that is exact."""
    try:
        return np.asarray(function(*[array.astype(object) for array in arrays]))
    except InexactSizeError:
        return NotImplemented


def _has_reals(*arrays: Array) -> bool:
    return any(isinstance(cell, (RealSize, float)) for array in arrays for cell in array.flat)


def _divided(x: Array, y: Array) -> Array:
    if _is_symbolic(x, y):
        return x / y if _has_reals(x, y) else np.frompyfunc(_quotient, 2, 1)(x, y)
    if x.dtype.kind == "f":
        return x / y
    if not np.all(y):
        raise ZeroDivisionError("a division of integers by zero")
    quotient = np.abs(x) // np.abs(y)
    return np.where((x < 0) != (y < 0), -quotient.astype(np.int64), quotient)


def _quotient(a: Any, b: Any) -> Any:
    """A size divided by another one, without the rest; what can be below 0 is not rounded down."""
    a, b = (int(each) if isinstance(each, np.integer) else each for each in (a, b))
    exact = try_quotient(a, b)
    if exact is not None:
        return exact
    if not isinstance(b, int) or b <= 0:
        raise InexactSizeError
    if least(a) < 0:
        raise ShapeError(f"{a} can be below 0, and is divided by {b}", fix=GREATER_MIN)
    return floor_quotient(a, b)


def _remainder(a: Any, b: Any) -> Any:
    """What is left of a size by a number; of a number by a size where that is greater."""
    a, b = (int(each) if isinstance(each, np.integer) else each for each in (a, b))
    if isinstance(b, int) and b > 0:
        return a % b
    if not isinstance(a, int) or isinstance(b, int):
        raise InexactSizeError
    if not -least(b) <= a < least(b):
        raise ShapeError(f"{b} can be less than {abs(a) + 1}", fix=GREATER_MIN)
    return a if a >= 0 else b + a


_binary("Add", lambda x, y: x + y)
_binary("Sub", lambda x, y: x - y)
_binary("Mul", lambda x, y: x * y)
_binary("Div", _divided)


def _comparison(name: str, function: Callable[[Any, Any], Any]) -> None:
    @folds(name)
    def folded(call: Any, x: Array, y: Array) -> Array:
        if _is_symbolic(x, y):
            each = np.frompyfunc(lambda a, b: compare(a, b, lambda sign: function(sign, 0)), 2, 1)
            found = _of_sizes(each, x, y)
            return found if found is NotImplemented else found.astype(np.bool_)
        return np.asarray(function(x, y)).astype(np.bool_)


@folds("Pow")
def _power(call: Any, x: Array, y: Array) -> Array:
    is_plain = x.dtype != object and y.dtype != object
    if not is_plain or (x.dtype.kind in "iu" and (y.dtype.kind == "f" or np.any(y < 0))):
        return NotImplemented
    with np.errstate(all="ignore"):
        return _array(np.power(x, y), x)


_comparison("Equal", lambda x, y: x == y)
_comparison("Less", lambda x, y: x < y)
_comparison("LessOrEqual", lambda x, y: x <= y)
_comparison("Greater", lambda x, y: x > y)
_comparison("GreaterOrEqual", lambda x, y: x >= y)
_comparison("And", np.logical_and)
_comparison("Or", np.logical_or)
_comparison("Xor", np.logical_xor)


_OF_SIZES: dict[str, Callable[[Any], Any]] = {
    "Neg": lambda cell: -cell,
    "Floor": lambda cell: RealSize.of(cell).floor(),
    "Ceil": lambda cell: RealSize.of(cell).ceil(),
}


def _unary(name: str, function: Callable[[Any], Any]) -> None:
    @folds(name)
    def folded(call: Any, x: Array) -> Array:
        if x.dtype == object:
            is_known = name in _OF_SIZES and _is_symbolic(x)
            return (
                _of_sizes(np.frompyfunc(_OF_SIZES[name], 1, 1), x) if is_known else NotImplemented
            )
        with np.errstate(all="ignore"):
            return _array(function(x), x)


_unary("Neg", lambda x: -x)
_unary("Abs", np.abs)
_unary("Floor", np.floor)
_unary("Ceil", np.ceil)
_unary("Sqrt", np.sqrt)
_unary("Not", np.logical_not)
_unary("Reciprocal", np.reciprocal)


@folds("Mod")
def _mod(call: Any, x: Array, y: Array) -> Array:
    if _is_symbolic(x, y) and not _has_reals(x, y):
        return _of_sizes(np.frompyfunc(_remainder, 2, 1), x, y)
    if x.dtype.kind not in "iu" or call.get("fmod", 0) or not np.all(y):
        return NotImplemented
    return _array(np.mod(x, y), x)


@folds("Min", "Max")
def _extreme(call: Any, *arrays: Array) -> Array:
    is_least = call.node.op == "Min"
    if _is_symbolic(*arrays):
        each = np.frompyfunc(lesser if is_least else greater, 2, 1)
        return _of_sizes(lambda *parts: functools.reduce(each, parts), *arrays)
    if any(array.dtype == object for array in arrays):
        return NotImplemented
    function = np.minimum if is_least else np.maximum
    result = arrays[0]
    for array in arrays[1:]:
        result = function(result, array)
    return _array(result, arrays[0])


@folds("Shape")
def _shape(call: Any, x: Array) -> Array:
    return shape_array(x.shape, call)


def shape_array(shape: tuple[Any, ...], call: Any) -> Array:
    """A shape, or the axes of it from `start` to `end`, as a host array."""
    cut = shape[slice(call.get("start", 0), call.get("end"))]
    return sizes_array(cut)


def sizes_array(sizes: Any) -> Array:
    """Sizes as an array of int64, or of objects where one is symbolic."""
    if any(isinstance(size, UOp) for size in sizes):
        array = np.empty(len(sizes), dtype=object)
        array[:] = list(sizes)
        return array
    return np.array([int(size) for size in sizes], dtype=np.int64)


@folds("Size")
def _size(call: Any, x: Array) -> Array:
    return np.array(x.size, dtype=np.int64)


@folds("Identity")
def _identity(call: Any, x: Array) -> Array:
    return x


def _whole(cell: Any) -> Any:
    return RealSize.of(cell).truncated()


@folds("Cast")
def _cast(call: Any, x: Array) -> Array:
    to = call.get("to")
    if to in SMALL or to not in _TO_NUMPY:
        return NotImplemented
    if _is_symbolic(x):
        each = np.frompyfunc(_whole if DTYPES[to].is_int else RealSize.of, 1, 1)
        return _of_sizes(each, x) if DTYPES[to].is_int or DTYPES[to].is_float else NotImplemented
    if x.dtype == object or x.dtype.kind not in "iufb":
        return NotImplemented
    with np.errstate(all="ignore"):
        return x.astype(_TO_NUMPY[to])


@folds("Reshape")
def _reshape(call: Any, x: Array, shape: Array) -> Array:
    if _is_symbolic(shape):
        return NotImplemented
    sizes = [
        x.shape[axis] if size == 0 and not call.get("allowzero", 0) else int(size)
        for axis, size in enumerate(shape.reshape(-1))
    ]
    return x.reshape(sizes)


@folds("Squeeze")
def _squeeze(call: Any, x: Array, axes: Array = None) -> Array:
    listed = call.get("axes") if axes is None else [int(axis) for axis in axes.reshape(-1)]
    return x.squeeze() if listed is None else x.squeeze(tuple(listed))


@folds("Unsqueeze")
def _unsqueeze(call: Any, x: Array, axes: Array = None) -> Array:
    listed = call.get("axes") if axes is None else [int(axis) for axis in axes.reshape(-1)]
    return np.expand_dims(x, tuple(listed))


@folds("Transpose")
def _transpose(call: Any, x: Array) -> Array:
    return x.transpose(call.get("perm"))


@folds("Concat")
def _concat(call: Any, *arrays: Array) -> Array:
    return np.concatenate(arrays, call.get("axis", 1))


@folds("Gather")
def _gather(call: Any, x: Array, index: Array) -> Array:
    if _is_symbolic(index):
        return NotImplemented
    axis = call.get("axis", 0)
    size = x.shape[axis]
    if np.any((index < -size) | (index >= size)):
        raise IndexError(f"an index outside of an axis of size {size}")
    return np.asarray(x.take(index, axis), dtype=x.dtype)


@folds("Slice")
def _slice(call: Any, x: Array, *rest: Array) -> Array:
    if len(rest) < 2:
        starts, ends, axes, steps = call.get("starts"), call.get("ends"), call.get("axes"), None
    else:
        starts, ends, axes, steps = (*rest, None, None)[:4]
    if any(each is not None and _is_symbolic(np.asarray(each)) for each in (starts, ends)):
        return NotImplemented
    count = len(starts)
    axes = range(count) if axes is None else axes
    steps = [1] * count if steps is None else steps
    key = [slice(None)] * x.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        key[int(axis)] = slice_of(int(start), int(end), int(step), x.shape[int(axis)])
    return x[tuple(key)]


def slice_of(start: int, end: int, step: int, extent: int) -> slice:
    """A slice of an axis as the specification clamps it.

    A start below the axis is its first element, also where the steps go backward.
    """
    if step == 0:
        raise ValueError("a slice with step 0")
    start, end = (at + extent if at < 0 else at for at in (start, end))
    if step > 0:
        return slice(min(max(start, 0), extent), min(max(end, 0), extent), step)
    start, end = min(max(start, 0), extent - 1), min(max(end, -1), extent - 1)
    return slice(0, 0, 1) if start < 0 else slice(start, None if end < 0 else end, step)


@folds("Expand")
def _expand(call: Any, x: Array, shape: Array) -> Array:
    if _is_symbolic(shape) or math.prod(int(size) for size in shape) > 1 << 16:
        return NotImplemented
    return np.array(np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(map(int, shape)))))


@folds("ConstantOfShape")
def _constant_of_shape(call: Any, shape: Array) -> Array:
    if _is_symbolic(shape) or math.prod(int(size) for size in shape) > 1 << 12:
        return NotImplemented
    value = call.get("value")
    value = np.zeros(1, np.float32) if value is None else value
    if value.dtype.kind not in "iufb":
        return NotImplemented
    return np.full([int(size) for size in shape], value.reshape(-1)[0], value.dtype)


@folds("Range")
def _range(call: Any, start: Array, limit: Array, delta: Array) -> Array:
    if _is_symbolic(start, limit, delta) or start.dtype.kind not in "iu" or not delta.size:
        return NotImplemented
    first, last, step = (int(each.reshape(())) for each in (start, limit, delta))
    if step == 0 or abs((last - first) / step) > 1 << 16:
        return NotImplemented
    return np.arange(first, last, step, dtype=start.dtype)


@folds("Where")
def _where(call: Any, condition: Array, x: Array, y: Array) -> Array:
    return np.where(condition, x, y)


@folds("ReduceProd")
def _reduce_prod(call: Any, x: Array, axes: Array = None) -> Array:
    listed = call.get("axes") if axes is None else [int(axis) for axis in axes.reshape(-1)]
    if not listed and call.get("noop_with_empty_axes", 0):
        return NotImplemented
    axis, keeps = tuple(listed) if listed else None, bool(call.get("keepdims", 1))
    if _is_symbolic(x):
        return _of_sizes(lambda sizes: sizes.prod(axis, keepdims=keeps), x)
    return _array(x.prod(axis, keepdims=keeps), x) if x.dtype.kind in "iu" else NotImplemented


@folds("NonZero")
def _nonzero(call: Any, x: Array) -> Array:
    if x.dtype == object:
        return NotImplemented
    found = np.nonzero(np.atleast_1d(x))
    return np.array(found, dtype=np.int64).reshape(max(x.ndim, 0) if x.ndim else 0, -1)


@folds("Split")
def _split(call: Any, x: Array, sizes: Array = None) -> Any:
    if _is_symbolic(sizes):
        return NotImplemented
    axis = call.get("axis", 0)
    listed = call.get("split") if sizes is None else [int(size) for size in sizes]
    count = len(call.node.outputs)
    if listed is None:
        chunk = -(-x.shape[axis] // count)
        listed = [max(0, min(chunk, x.shape[axis] - chunk * each)) for each in range(count)]
    if sum(listed) != x.shape[axis] or len(listed) != count:
        return NotImplemented
    return tuple(np.split(x, np.cumsum(listed)[:-1], axis))


@folds("Tile")
def _tile(call: Any, x: Array, repeats: Array) -> Array:
    if _is_symbolic(repeats) or x.size * math.prod(int(each) for each in repeats) > 1 << 16:
        return NotImplemented
    return np.tile(x, [int(each) for each in repeats])


@folds("Flatten")
def _flatten(call: Any, x: Array) -> Array:
    axis = call.get("axis", 1)
    axis = axis + x.ndim if axis < 0 else axis
    return x.reshape(math.prod(x.shape[:axis]), -1)
