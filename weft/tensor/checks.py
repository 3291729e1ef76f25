"""What arguments must be: axes, shapes, operands. Each check raises with facts and a fix."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from weft.engine.bindings import take_bindings
from weft.engine.devices import canonical_name, is_file
from weft.ir.bounds import bounds
from weft.ir.build import Size
from weft.ir.dtypes import DType, dtypes
from weft.ir.ops import Op
from weft.ir.shapes import Shape, same_size
from weft.ir.sizes import least, minus, most, normal_size, size_value
from weft.ir.uop import UOp, const
from weft.ir.walk import topological
from weft.support.errors import (
    ArgumentError,
    ArgumentTypeError,
    AxisError,
    DeviceError,
    DTypeError,
    NotSupported,
    ShapeError,
)
from weft.tensor.trace.state import tracing

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

Axes = int | Sequence[int] | None
GREATER_MIN: Final = "give the Variable a greater min"
MULTIPLES: Final = "make the size a multiple of a Variable: 8 * n"
EQUAL_SIZES: Final = (
    "make both sizes of the same bound Variable: symbolic sizes are equal if they are equal for"
    " every value it can have"
)
_ARITHMETIC: Final = (Op.ADD, Op.MUL, Op.NEG, Op.FLOORDIV, Op.FLOORMOD, Op.MAX, Op.MIN)
_SIZE_OPS: Final = sum(1 << op for op in (Op.CONST, Op.VARIABLE, Op.BIND, *_ARITHMETIC))


def axis_of(name: str, axis: int, rank: int) -> int:
    """The axis counted from 0. A tensor without axes has one for this purpose, as in PyTorch."""
    if not hasattr(type(axis), "__index__") or hasattr(type(axis), "uop"):
        raise ArgumentTypeError(
            f"{name}: an axis is an int, not {type(axis).__name__}",
            rule="axes are ints; negative ones count from the end",
            fix=f"write x.{name}imum(y) to compare two tensors" if name in ("max", "min") else "",
        )
    number = axis.__index__()
    count = max(rank, 1)
    if not -count <= number < count:
        raise AxisError(
            f"{name}: axis {number} is out of range for {rank} axes",
            rule=f"an axis is from {-count} to {count - 1} here",
        )
    return number % count


def axes_of(name: str, axes: Axes, rank: int) -> tuple[int, ...]:
    """The axes counted from 0, in order; all of them for None or an empty tuple."""
    if axes is None or (isinstance(axes, (tuple, list)) and not axes):
        return tuple(range(rank))
    listed = axes if isinstance(axes, (tuple, list)) else (axes,)
    found = tuple(axis_of(name, axis, rank) for axis in listed)
    if len(set(found)) != len(found):
        raise AxisError(
            f"{name}: an axis is named twice",
            facts=[("axes", tuple(listed)), ("counted from 0", found)],
            rule="each axis is named once",
        )
    return tuple(sorted(found)) if rank else ()


def ints_of(name: str, first: object, rest: Sequence[object]) -> tuple[Size, ...]:
    """Sizes given as `f((2, 3))` or as `f(2, 3)`."""
    listed = (*first, *rest) if isinstance(first, (tuple, list)) else (first, *rest)
    return tuple(size_of(name, each) for each in listed)


def size_of(name: str, value: object) -> Size:
    """A size as an int or an index node."""
    if isinstance(value, UOp):
        if value.dtype is not dtypes.index or value.ops & ~_SIZE_OPS:
            raise ArgumentTypeError(
                f"{name}: a size is an int or made of Variables",
                facts=[("got", repr(value))],
                rule="sizes are sums, products and quotients of ints and bound Variables",
            )
        return normal_size(value)
    if hasattr(type(value), "__index__"):
        return operator.index(value)  # type: ignore[arg-type]
    raise ArgumentTypeError(
        f"{name}: a size is an int, not {type(value).__name__}",
        facts=[("got", repr(value))],
        rule="sizes are ints or Variables",
    )


def known(size: Size) -> int:
    """A size as an int; a symbolic one is refused."""
    if isinstance(size, UOp):
        raise NotSupported(
            f"the size {size!r} is symbolic",
            rule="this operation needs sizes that are ints",
            fix="cut with int(size) instead, which makes a program for the value of now",
        )
    return size


def size_node(size: Size, dtype: DType) -> UOp:
    """A size as a number in a graph, of a dtype."""
    return const(dtype, size) if isinstance(size, int) else size.cast(dtype)


def require_box(name: str, axis: int, start: Size, stop: Size, size: Size) -> None:
    """A box lies inside an axis, whatever values the variables in it take."""
    gaps = (start, minus(stop, start), minus(size, stop))
    if min(map(least, gaps)) >= 0 or _holds_now(gaps):
        return
    if all(isinstance(each, int) for each in (start, stop, size)):
        raise ShapeError(
            f"{name}: {start} to {stop} is not inside axis {axis} of size {size}",
            rule="a box has 0 <= start <= stop <= size on each axis",
        )
    raise ShapeError(
        f"{name}: {start} to {stop} is not always inside axis {axis} of size {size}",
        facts=[_span("start", start), _span("stop", stop), _span("size", size)],
        rule="0 <= start <= stop <= size holds for every value that the variables can have",
        fix=GREATER_MIN if _fit_at_most(gaps) else "give the Variable a max that fits the axis",
    )


def _holds_now(gaps: Sequence[Size]) -> bool:
    """Whether gaps are 0 or more for the values that their variables are bound to.

    A graph that a function or the JIT runs again has other values then, so it needs more.
    """
    variables = [size for size in gaps if isinstance(size, UOp)]
    if tracing.trace is not None or tracing.depth or not all(map(_is_bound, variables)):
        return False
    return min(map(size_value, gaps)) >= 0


def _fit_at_most(gaps: Sequence[Size]) -> bool:
    """Whether gaps are 0 or more for the greatest values of their variables."""
    free = [take_bindings(gap)[0] if isinstance(gap, UOp) else gap for gap in gaps]
    parts = [node for gap in free if isinstance(gap, UOp) for node in topological(gap)]
    greatest = {node.arg[0]: node.arg[2] for node in parts if node.op == Op.VARIABLE}
    return min(size_value(gap, greatest) for gap in free) >= 0


def _is_bound(size: UOp) -> bool:
    nodes = topological(size, enter=lambda node: node.op != Op.BIND)
    return all(node.op != Op.VARIABLE for node in nodes)


def _span(name: str, size: Size) -> tuple[str, str, str]:
    note = "" if isinstance(size, int) else f"is from {least(size)} to {most(size)}"
    return name, str(size), note


def symbolic_fix(*sizes: Size) -> str:
    """What to do where sizes differ and one of them is symbolic; nothing to say otherwise."""
    if all(isinstance(size, int) for size in sizes):
        return ""
    return EQUAL_SIZES


def least_fix(*sizes: Size) -> str:
    """What to do where a symbolic size can be too small; nothing to say otherwise."""
    is_known = all(isinstance(size, int) for size in sizes)
    return "" if is_known else GREATER_MIN


def multiple_fix(*sizes: Size) -> str:
    """What to do where a number does not divide a symbolic size; nothing to say otherwise."""
    return "" if all(isinstance(size, int) for size in sizes) else MULTIPLES


def shape_from(name: str, sizes: Sequence[Size]) -> Shape:
    """The sizes of a new tensor, none below 0."""
    for size in sizes:
        if least(size) < 0:
            how = "is" if isinstance(size, int) else "can be"
            raise ShapeError(
                f"{name}: the size {size} {how} negative",
                facts=[("shape", sizes)],
                rule="a size is 0 or more",
            )
    return tuple(sizes)


def broadcast_shape(name: str, *shapes: Shape) -> Shape:
    """The shape in which all these meet."""
    rank = max(map(len, shapes))
    result: list[Size] = [1] * rank
    for shape in shapes:
        for axis in range(-len(shape), 0):
            # Sizes that are nodes are equal where they are the same.
            if result[axis] == 1:
                result[axis] = shape[axis]
            elif shape[axis] != 1 and shape[axis] != result[axis]:
                raise ShapeError(
                    f"{name}: shapes do not broadcast at axis {axis} "
                    f"({result[axis]} and {shape[axis]})",
                    facts=[(_operand(i, len(shapes)), each) for i, each in enumerate(shapes)],
                    rule="counted from the last axis, two sizes are equal or one of them is 1",
                    fix=symbolic_fix(result[axis], shape[axis]),
                )
    return tuple(result)


def _operand(position: int, count: int) -> str:
    return ("left", "right")[position] if count == 2 else f"operand {position}"


def require_one_device(name: str, *tensors: Tensor) -> None:
    first = tensors[0]._storage.device
    for tensor in tensors:
        if tensor._storage.device != first:
            break
    else:
        return
    names = list(dict.fromkeys(tensor.device for tensor in tensors))
    if len(names) > 1:
        is_sharded = any(not isinstance(each, str) for each in names)
        shown = " and ".join(map(device_text, names))
        raise DeviceError(
            f"{name}: operands are on different devices ({shown})",
            facts=[
                (_operand(i, len(tensors)), each.shape, f"on {device_text(each.device)}")
                for i, each in enumerate(tensors)
            ],
            rule="one operation runs on one device" + ", or on the same several" * is_sharded,
            fix="lay one out like the other: y.shard_like(x)"
            if is_sharded
            else f"move one of them: .to({names[0]!r})",
        )


def device_text(device: Any) -> str:
    return device if isinstance(device, str) else ", ".join(device)


def devices_of(name: str, devices: Any) -> Any:
    """The full names of several devices, each once; of one, its name."""
    if isinstance(devices, str) or not isinstance(devices, (tuple, list)) or not devices:
        raise ArgumentTypeError(
            f"{name}: expected several devices, got {devices!r}",
            rule="several devices are a tuple of their names",
            fix='write ("CPU:0", "CPU:1"), for example',
        )
    names = tuple(canonical_name(each) for each in devices)
    if len(set(names)) != len(names):
        raise DeviceError(
            f"{name}: a device is named twice",
            facts=[("devices", ", ".join(names))],
            rule="each device holds one shard",
        )
    if any(map(is_file, names)):
        raise DeviceError(
            f"{name}: expected devices that compute, got a file",
            rule="the devices of a tensor compute with their shards of it",
        )
    return names if len(names) > 1 else names[0]


def without_leading_ones(value: Any, rank: int) -> Any:
    """A value with at most so many axes, if those in front that are too many have size 1."""
    extra = value.ndim - rank
    if extra > 0 and all(same_size(size, 1) for size in value.shape[:extra]):
        return value.reshape(value.shape[extra:])
    return value


def require_broadcast_to(name: str, shape: Shape, target: Shape) -> None:
    """A value of `shape` can fill a region of shape `target`."""
    fits = len(shape) <= len(target) and all(
        same_size(a, 1) or same_size(a, b)
        for a, b in zip(reversed(shape), reversed(target), strict=False)
    )
    if not fits:
        raise ShapeError(
            f"{name}: a value of shape {shape} does not fit shape {target}",
            facts=[("value", shape), ("target", target)],
            rule="counted from the last axis, a size of the value is 1 or equals the target's",
            fix=symbolic_fix(*shape, *target),
        )


def require_number_fits(name: str, value: object, dtype: DType) -> None:
    """Refuse a number of the host that an integer dtype cannot hold: it would change in silence.

    Negative numbers of unsigned dtypes count from the end of their range, as in PyTorch.
    """
    if not dtype.is_int or not isinstance(value, (int, float)):
        return
    least_number = dtype.min if dtype.min else -dtype.max
    if least_number <= value <= dtype.max:
        return
    if isinstance(value, float) and not math.isfinite(value):
        raise DTypeError(
            f"{name}: {value} in a tensor of {dtype.name}",
            rule="an integer is finite",
            fix=f"write {dtype.min}, the least {dtype.name}, or make the tensor a float",
        )
    raise ArgumentError(
        f"{name}: {value} does not fit {dtype.name}",
        rule=f"a number is from {dtype.min} to {dtype.max} here",
        fix="give the dtype: dtype=dtypes.int64, or x.long() before",
    )


def symbolic_number(name: str, value: UOp, dtype: DType) -> UOp:
    """A variable, or what was computed of some, as a number of a dtype that has all its values."""
    low, high = bounds(value)
    if dtype.is_int and not (dtype.min <= low and high <= dtype.max):
        raise ArgumentError(
            f"{name}: {value} does not always fit {dtype.name}",
            facts=[_span("value", value)],
            rule=f"a number is from {dtype.min} to {dtype.max} here",
            fix="give the Variable a smaller range, or the tensor a wider dtype",
        )
    return value.cast(dtype)


def kind_of(value: object) -> str:
    """What a value of another kind is called in a message: with its library, if it has one."""
    kind = type(value)
    library = kind.__module__.partition(".")[0]
    return kind.__name__ if library in ("builtins", "weft") else f"a {library}.{kind.__name__}"
