"""What is between the brackets of `x[...]`, read once: steps of a view, then index tensors.

Ints, slices, None and Ellipsis are basic: they make a view. Lists, arrays and tensors of integers
are advanced: they pick elements, and the result is a new value. As in PyTorch an int is always
basic, also beside index tensors. Bools become positions, one index for each of their axes; of a
bool tensor the number of those is computed when the key is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from weft.ir import movement
from weft.ir.build import Size
from weft.ir.movement import Movement
from weft.ir.ops import Op
from weft.ir.shapes import Shape
from weft.ir.sizes import ceil_quotient, least, minus, most, plus
from weft.ir.uop import UOp
from weft.support.errors import (
    ArgumentError,
    ArgumentTypeError,
    IndexOutOfRange,
    NotSupported,
    ShapeError,
)
from weft.tensor.checks import known, require_box, size_of
from weft.tensor.trace.state import tracing

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


class Inside(NamedTuple):
    """An index tensor of positions that are known to lie in their axis."""

    tensor: Any


class Key(NamedTuple):
    """Steps to a view, and what indexes that view, by axis; positions of the host are checked."""

    steps: tuple[Movement, ...]
    advanced: dict[int, Any]


def read_key(shape: Shape, key: Any, tensor_type: type[Tensor]) -> Key:
    """The meaning of a key for a shape."""
    parts = [*key] if isinstance(key, tuple) else [key]
    parts = [_known(part, tensor_type) for part in parts]
    parts = [each for part in parts for each in _positions(part, tensor_type)]
    parts = _without_ellipsis(parts, shape, tensor_type)
    reader = _KeyReader(shape, tensor_type)
    for part in parts:
        reader.read(part)
    return Key(tuple(reader.steps()), reader.advanced)


def _known(part: Any, tensor_type: type[Tensor]) -> Any:
    """A part with what is indexed by data of the host converted to an array."""
    if isinstance(part, (list, tuple)) and any(
        each is None or each is Ellipsis or isinstance(each, (slice, list, tuple)) for each in part
    ) and not all(isinstance(each, (list, tuple)) for each in part):  # fmt: skip
        raise ArgumentTypeError(
            "index: a list of several keys",
            rule="a list is one index of integers; a key for each axis is a tuple",
            fix="write x[a, b], or x[tuple(keys)]",
        )
    if isinstance(part, (list, tuple, range)):
        part = _array_of(part)
    if isinstance(part, np.generic):
        part = part.item()
    elif isinstance(part, np.ndarray) and tracing.trace is not None:
        tracing.trace.note_array(part)
    if isinstance(part, np.ndarray) and part.dtype.kind not in "biu":
        raise _no_index(f"an array of {part.dtype}")
    if isinstance(part, tensor_type) and not (part.dtype.is_int or part.dtype.name == "bool"):
        raise _no_index(f"a tensor of {part.dtype.name}")
    return part


def _array_of(part: Any) -> Any:
    """The integers of a list, which may be nested."""
    try:
        return np.asarray(part) if len(part) else np.zeros(0, np.int64)
    except ValueError:
        raise ShapeError(
            "index: a nested list is not rectangular",
            rule="the lists at one depth have one length",
        ) from None


def _no_index(what: str) -> ArgumentTypeError:
    return ArgumentTypeError(
        f"index: expected an index, got {what}",
        rule="an index is an int, a slice, None, ..., or integers in a list, array or tensor",
    )


def _positions(part: Any, tensor_type: type[Tensor]) -> tuple[Any, ...]:
    """An array or tensor of bools as positions for each of its axes."""
    if isinstance(part, tensor_type) and part.dtype.name == "bool":
        if not part.ndim:
            raise _no_bool()
        found = part.nonzero()
        return tuple(_Masked(found[:, axis], known(n)) for axis, n in enumerate(part.shape))
    if isinstance(part, bool):
        part = np.asarray(part)
    if isinstance(part, np.ndarray) and part.dtype.kind == "b":
        if not part.ndim:
            raise _no_bool()
        return tuple(
            _Masked(each, size) for each, size in zip(part.nonzero(), part.shape, strict=True)
        )
    return (part,)


def _no_bool() -> NotSupported:
    return NotSupported(
        "index: expected an index, got a bool", rule="x[True] would add an axis; use x[None]"
    )


def _slice_numbers(part: slice, size: int) -> tuple[int, int, int]:
    """The start, stop and step of a slice of an axis."""
    try:
        return part.indices(size)
    except TypeError:
        ends = (part.start, part.stop, part.step)
        names = [type(e).__name__ for e in ends if e is not None and not hasattr(e, "__index__")]
        raise _no_index(f"a slice with a {names[0] if names else 'symbolic step'}") from None
    except ValueError:
        raise ArgumentError(
            "index: the step of a slice is 0", rule="a slice has a step above or below 0"
        ) from None


class _Masked(NamedTuple):
    """Positions from a mask that had this size."""

    positions: Any
    size: int


def _without_ellipsis(parts: list[Any], shape: Shape, tensor_type: type[Tensor]) -> list[Any]:
    used = sum(part is not None and part is not Ellipsis for part in parts)
    holes = sum(part is Ellipsis for part in parts)
    if holes > 1 or used > len(shape):
        what = "there are two ellipses" if holes > 1 else f"{used} indices for {len(shape)} axes"
        raise IndexOutOfRange(
            f"index: {what}",
            facts=[("shape", shape)],
            rule="an index has at most one part for each axis and one ellipsis",
        )
    missing = [slice(None)] * (len(shape) - used)
    if not holes:
        return [*parts, *missing]
    index = next(i for i, part in enumerate(parts) if part is Ellipsis)
    return [*parts[:index], *missing, *parts[index + 1 :]]


class _KeyReader:
    """Collects, part by part, a box, what is flipped and strided, and the final shape."""

    def __init__(self, shape: Shape, tensor_type: type[Tensor]) -> None:
        self.shape = shape
        self.tensor_type = tensor_type
        self.axis = 0
        self.box: list[tuple[Any, Any]] = []
        self.flipped: list[int] = []
        self.strides: list[int] = []
        self.final: list[Any] = []
        self.advanced: dict[int, Any] = {}

    def read(self, part: Any) -> None:
        if part is None:
            self.final.append(1)
            return
        size = self.shape[self.axis]
        if isinstance(part, slice):
            self._slice(part, size)
        elif isinstance(part, (np.ndarray, _Masked)):
            self._positions(part, known(size))
        elif isinstance(part, self.tensor_type):
            self._take(part, size)
        elif hasattr(type(part), "__index__") or isinstance(part, UOp):
            self._int(part, size)
        else:
            raise _no_index(type(part).__name__)
        self.axis += 1

    def _take(self, index: Any, size: Any) -> None:
        self.advanced[len(self.final)] = index
        self._whole(size)

    def _whole(self, size: Any) -> None:
        self.box.append((0, size))
        self.strides.append(1)
        self.final.append(size)

    def _int(self, part: Any, size: Any) -> None:
        number = size_of("index", part)
        if isinstance(number, int) and isinstance(size, int) and not -size <= number < size:
            raise self._outside(number, size)
        start = self._from_start(number, size)
        require_box("index", self.axis, start, plus(start, 1), size)
        self.box.append((start, plus(start, 1)))
        self.strides.append(1)

    def _from_start(self, number: Size, size: Size) -> Size:
        """A position counted from the start; one that may be below 0 or not is refused."""
        if least(number) >= 0:
            return number
        if most(number) < 0:
            return plus(number, size)
        raise IndexOutOfRange(
            f"index: {number} can be below 0 and above",
            facts=[("least", least(number)), ("greatest", most(number))],
            rule="a symbolic index counts from one end for every value of its variables",
            fix="give the Variable a min of 0 or more",
        )

    def _outside(self, number: int, size: int) -> IndexOutOfRange:
        return IndexOutOfRange(
            f"index: {number} is out of range for axis {self.axis} of size {size}",
            facts=[("shape", self.shape)],
            rule=f"an index of this axis is from {-size} to {size - 1}"
            if size
            else "an axis of size 0 has no elements",
        )

    def _positions(self, part: Any, size: int) -> None:
        """Positions that the host knows: checked now, and counted from 0."""
        if isinstance(part, _Masked):
            if part.size != size:
                raise IndexOutOfRange(
                    f"index: a mask of size {part.size} for axis {self.axis} of size {size}",
                    facts=[("shape", self.shape)],
                    rule="a mask has the sizes of the axes it selects from",
                )
            part = part.positions
        if isinstance(part, self.tensor_type):
            self._take(Inside(part), size)
            return
        for bad in part[(part < -size) | (part >= size)].flat[:1]:
            raise self._outside(int(bad), size)
        self._take(np.where(part < 0, part + size, part).astype(np.int64), size)

    def _slice(self, part: slice, size: Any) -> None:
        if not isinstance(size, int) or any(isinstance(x, UOp) for x in (part.start, part.stop)):
            self._symbolic_slice(part, size)
            return
        start, stop, step = _slice_numbers(part, size)
        count = len(range(start, stop, step))
        if step < 0 and count:  # the same elements upwards, then flipped
            self.flipped.append(self.axis)
            start, stop = start + (count - 1) * step, start + 1
        elif count:
            stop = start + (count - 1) * step + 1
        else:
            start = stop = 0
        self.box.append((start, stop))
        self.strides.append(abs(step) if count > 1 else 1)
        self.final.append(count)

    def _symbolic_slice(self, part: slice, size: Size) -> None:
        """A slice with a symbolic end or size. It is not cut to the axis: it must lie inside."""
        is_whole = part.start is None and part.stop is None
        step = 1 if part.step is None else part.step
        if not isinstance(step, int) or not step or (step < 0 and not is_whole):
            raise NotSupported(
                f"index: the step {part.step} along a symbolic size",
                facts=[("shape", self.shape)],
                rule="a step is an int above 0, or below 0 where the slice is the whole axis:"
                " [::-1] reads it backwards",
            )
        given = [
            each if each is None else size_of("index", each) for each in (part.start, part.stop)
        ]
        start = 0 if given[0] is None else self._from_start(given[0], size)
        stop = size if given[1] is None else self._from_start(given[1], size)
        require_box("index", self.axis, start, stop, size)
        if step < 0:
            self.flipped.append(self.axis)
        self.box.append((start, stop))
        self.strides.append(abs(step))
        self.final.append(ceil_quotient(minus(stop, start), abs(step)))

    def steps(self) -> list[Movement]:
        """The box, then flips, strides, and axes dropped and inserted."""
        steps: list[Movement] = []
        if any(pair != (0, size) for pair, size in zip(self.box, self.shape, strict=True)):
            steps.append(movement.boxed_step(Op.SHRINK, self.box))
        if self.flipped:
            steps.append((Op.FLIP, tuple(self.flipped), ()))
        shape: list[Size] = [minus(b, a) for a, b in self.box]
        for axis, stride in enumerate(self.strides):
            if stride > 1:
                steps += movement.strided_steps(tuple(shape), axis, stride)
                shape[axis] = ceil_quotient(shape[axis], stride)
        if shape != self.final:
            steps.append(movement.sized_step(Op.RESHAPE, self.final))
        return steps
