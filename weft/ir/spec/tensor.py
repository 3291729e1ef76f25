"""The invariants of a tensor graph: what the user's program is before anything is scheduled.

Values have shapes; there are no ranges and no loads. Sizes may be symbolic: a None in an arg, with
an index node among the sources.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from weft.ir.build import GLOBAL_STAGE, Size
from weft.ir.dtypes import INTEGER
from weft.ir.ops import ELEMENTWISE, MOVEMENT, Op
from weft.ir.scalar import KINDS
from weft.ir.shapes import fill_pairs, fill_sizes, same_shape, same_size, shape_at, shape_of
from weft.ir.spec.common import (
    AFTER_ROWS,
    CALL_ROWS,
    ELEMENTWISE_ROWS,
    LEAF_ROWS,
    REDUCTIONS,
    SCATTERS,
    are_sizes,
    has_types,
    holes_fit,
    is_bool,
    is_index,
    is_layout,
    is_void,
    kinds_text,
    like_first,
    no_arg,
)
from weft.ir.spec.spec import GraphRow, Row, Spec, Verdict, row
from weft.ir.text.syntax import result_dtype
from weft.ir.uop import UOp

# A view of memory through these can be written: each of its elements is one address.
_VIEWS: Final = frozenset((Op.RESHAPE, Op.PERMUTE, Op.SHRINK, Op.FLIP, Op.INDEX, Op.AFTER))


def _shapes_agree(node: UOp) -> Verdict:
    shapes = [shape for shape in map(shape_of, node.src) if shape]
    for shape in shapes[1:]:
        if not same_shape(shape, shapes[0]):
            return f"the shapes are {shapes[0]} and {shape}"
    return True


def _is_scalar(node: UOp) -> Verdict:
    return node.dtype.lanes == 1


def _iota(node: UOp) -> Verdict:
    if not node.dtype.kind & INTEGER or node.arg.__class__ is not tuple or len(node.arg) != 1:
        return False
    return are_sizes(node.arg, node.src)


def _bind(node: UOp) -> Verdict:
    variable, value = node.src
    if variable.op != Op.VARIABLE or value.op != Op.CONST or not is_index(node):
        return False
    return is_index(value) and bool(variable.arg[1] <= value.arg <= variable.arg[2])


def _resized(node: UOp) -> Verdict:
    return are_sizes(node.arg, node.src[1:])


def _reshape(node: UOp) -> Verdict:
    before, after = _count(shape_of(node.src[0])), _count(fill_sizes(node, node.arg, 1))
    if before is None or after is None or before == after:
        return True
    return f"{before} elements cannot become {after}"


def _count(shape: tuple[Size, ...]) -> int | None:
    """The number of elements, where it is known; a size of 0 settles it."""
    count = 1
    for size in shape:
        count *= 0 if same_size(size, 0) else 1 if isinstance(size, UOp) else size
    return None if count and any(isinstance(size, UOp) for size in shape) else count


def _expand(node: UOp) -> Verdict:
    source, target = shape_of(node.src[0]), fill_sizes(node, node.arg, 1)
    if len(source) != len(target):
        return f"there are {len(source)} axes and {len(target)} sizes"
    for axis, (old, new) in enumerate(zip(source, target, strict=True)):
        if not same_size(old, 1) and not same_size(old, new):
            return f"axis {axis} has size {old} and cannot become {new}"
    return True


def _permute(node: UOp) -> Verdict:
    axes = node.arg
    return axes.__class__ is tuple and sorted(axes) == list(range(len(shape_of(node.src[0]))))


def _is_box(node: UOp) -> Verdict:
    pairs, rank = node.arg, len(shape_of(node.src[0]))
    if pairs.__class__ is not tuple or len(pairs) != rank:
        return f"there are {rank} axes, and not as many pairs"
    if any(pair.__class__ is not tuple or len(pair) != 2 for pair in pairs):
        return False
    bounds = [bound for pair in pairs for bound in pair]
    if any(bound is not None and (bound.__class__ is not int or bound < 0) for bound in bounds):
        return "a bound is neither an int from 0 on nor None"
    return holes_fit(bounds.count(None), node.src[1:])


def _shrink(node: UOp) -> Verdict:
    boxes = zip(fill_pairs(node), shape_of(node.src[0]), strict=True)
    for axis, ((start, stop), size) in enumerate(boxes):
        if _exceeds(start, stop) or _exceeds(stop, size):
            return f"axis {axis} has size {size}, and {start} to {stop} is not inside"
    return True


def _exceeds(a: Size, b: Size) -> bool:
    """Whether one size is known to be greater than another."""
    return isinstance(a, int) and isinstance(b, int) and a > b


def _are_axes(axes: object, node: UOp) -> Verdict:
    rank = len(shape_of(node.src[0]))
    if not isinstance(axes, tuple) or len(set(axes)) != len(axes):
        return False
    return all(axis.__class__ is int and 0 <= axis < rank for axis in axes)


def _reduce(node: UOp) -> Verdict:
    if not has_types(node.arg, int, tuple) or node.arg[0] not in REDUCTIONS or len(node.src) != 1:
        return False
    return _are_axes(node.arg[1], node)


def _scan(node: UOp) -> Verdict:
    return _reduce(node) and len(node.arg[1]) == 1


def reduction_kind(node: UOp) -> Verdict:
    mask = KINDS[node.arg[0]]
    return bool(node.dtype.kind & mask) or f"the reduction takes {kinds_text(mask)}"


def _scatter(node: UOp) -> Verdict:
    if not has_types(node.arg, int) or node.arg[0] not in SCATTERS:
        return False
    value, updates, _, *indices = node.src
    shape = shape_at(value, indices)
    if updates.dtype is not value.dtype or not same_shape(shape_of(updates), shape):
        return f"the updates are {updates.dtype.name} of shape {shape_of(updates)}, not of {shape}"
    return True


def _index(node: UOp) -> Verdict:
    memory, mask, *indices = node.src[:1] + node.src[-_addresses(node) :]
    if not indices or len(indices) > len(shape_of(memory)):
        return f"there are {len(indices)} indices for {len(shape_of(memory))} axes"
    if not is_bool(mask):
        return "the mask is not bool"
    return all(part.dtype.kind & INTEGER for part in indices) or "an index is not an integer"


def _addresses(node: UOp) -> int:
    """How many sources are the mask and the indices, which are the last ones."""
    return len(node.src) - (2 if node.op == Op.SCATTER else 1)


def _index_shapes(node: UOp) -> Verdict:
    shapes = [shape for shape in map(shape_of, node.src[-_addresses(node) :]) if shape]
    return all(same_shape(shape, shapes[0]) for shape in shapes)


def _stage(node: UOp) -> Verdict:
    return len(node.src) == 1 and bool(node.arg == GLOBAL_STAGE)


def _address(node: UOp) -> Verdict:
    address = node.src[0]
    while address.op in _VIEWS:
        address = address.src[0]
    return address.op in (Op.BUFFER, Op.PARAM)


def _stored(node: UOp) -> Verdict:
    if len(node.src) != 2 or not is_void(node) or node.arg is not None:
        return False
    address, value = node.src
    shape = shape_of(value)
    return value.dtype is address.dtype and (not shape or same_shape(shape, shape_of(address)))


def is_item(node: UOp) -> Verdict:
    return node.dtype is result_dtype(node.op, node.src, node.arg)


def _custom(node: UOp) -> Verdict:
    if not has_types(node.arg, UOp, int, tuple):
        return False
    body, inputs, slots = node.arg
    if body.op != Op.TUPLE or len(body.src) != len(slots):
        return "the body does not give one value per slot"
    return (
        all(0 <= slot < inputs < len(node.src) for slot in slots)
        or "expected slots that are inputs"
    )


def _shard(node: UOp) -> Verdict:
    return is_layout(node.arg, shape_of(node))


def _arg_is(kind: type) -> Callable[[UOp], Verdict]:
    return lambda node: node.arg.__class__ is kind


_KEEPS_DTYPE: Final = MOVEMENT | {Op.DETACH, Op.COPY, Op.SHARD, Op.STAGE, Op.INDEX, Op.INLINE}
_REDUCTIONS: Final = (Op.REDUCE, Op.SCAN, Op.SCATTER)
_PLACED: Final = (Op.INDEX, Op.SCATTER)
_STRUCTURE: Final = (Op.TUPLE, Op.SINK)
_VALUES: Final = (
    ELEMENTWISE | _KEEPS_DTYPE | {*_REDUCTIONS, Op.CONST, Op.BUFFER, Op.PARAM, Op.IOTA}
)

_ROWS: Final[tuple[Row, ...]] = (
    row("a tensor has no vector dtype", _VALUES, _is_scalar),
    *LEAF_ROWS,
    row("an IOTA is (size,) of an integer dtype", Op.IOTA, _iota),
    row("BIND gives a VARIABLE a constant inside its bounds", Op.BIND, _bind),
    *ELEMENTWISE_ROWS,
    row("the sources have one shape, or are scalars", ELEMENTWISE, _shapes_agree),
    row("the result has the dtype of the value", _KEEPS_DTYPE | {*_REDUCTIONS}, like_first),
    row("each size is an int, or None with a source", (Op.RESHAPE, Op.EXPAND), _resized),
    row("RESHAPE keeps the number of elements", Op.RESHAPE, _reshape),
    row("EXPAND repeats axes of size 1", Op.EXPAND, _expand),
    row("PERMUTE names each axis once", Op.PERMUTE, _permute),
    row("there is a pair of bounds for each axis", (Op.PAD, Op.SHRINK), _is_box),
    row("SHRINK cuts inside the value", Op.SHRINK, _shrink),
    row("FLIP names axes, each once", Op.FLIP, lambda node: _are_axes(node.arg, node)),
    row("REDUCE reduces by an op over axes, and over no ranges", Op.REDUCE, _reduce),
    row("SCAN reduces by an op along one axis, and over no range", Op.SCAN, _scan),
    row("SCATTER reduces updates of the shape at its indices, by an op", Op.SCATTER, _scatter),
    row("the reduction is defined for the dtype", _REDUCTIONS, reduction_kind),
    row("there is a bool mask, and integer indices, at most one per axis", _PLACED, _index),
    row("the indices and the mask have one shape, or are scalars", _PLACED, _index_shapes),
    row("a STAGE is global and has no indices yet", Op.STAGE, _stage),
    row("STORE writes to a view of a BUFFER or PARAM", Op.STORE, _address),
    row("STORE writes a value of the dtype and shape of its target", Op.STORE, _stored),
    *AFTER_ROWS,
    row("DETACH and INLINE have no arg", (Op.DETACH, Op.INLINE), no_arg),
    row("the arg of COPY is a device", Op.COPY, _arg_is(str)),
    row("the parts of SHARD make up its value", Op.SHARD, _shard),
    row("several values together are void", _STRUCTURE, lambda n: is_void(n) and no_arg(n)),
    row("ITEM picks a value of a TUPLE, with its dtype", Op.ITEM, is_item),
    *CALL_ROWS,
    row("CUSTOM_GRADIENT has the dtype of its value", Op.CUSTOM_GRADIENT, like_first),
    row("CUSTOM_GRADIENT has a body for the gradients of inputs", Op.CUSTOM_GRADIENT, _custom),
)

TENSOR_SPEC: Final = Spec("tensor graph", _ROWS)


# After `lower-complex`.
REAL_SPEC: Final = Spec(
    "real tensor graph",
    (*_ROWS, row("no value is complex", _VALUES, lambda node: not node.dtype.is_complex)),
    bodies=TENSOR_SPEC,
)


def _item_of_call(node: UOp) -> Verdict:
    return node.src[0].op != Op.TUPLE or "its TUPLE stands below it"


def _scattered_elsewhere(root: UOp, nodes: list[UOp]) -> tuple[UOp, str] | None:
    """A SCATTER that is not stored in the memory that it starts from."""
    for node in nodes:
        for position, source in enumerate(node.src):
            if source.op != Op.SCATTER:
                continue
            if node.op != Op.STORE or position != 1 or node.src[0] is not source.src[0]:
                return source, "it is used without memory of its own"
    return None


_NORMALIZED_ROWS: Final = (
    *(entry for entry in _ROWS if Op.CUSTOM_GRADIENT not in entry.ops),
    row("ITEM picks what a CALL gives", Op.ITEM, _item_of_call),
    row("no gradient ends here any more", Op.DETACH, lambda _: False),
)
# After `normalize`: a gradient of its own, DETACH, and a TUPLE that is taken apart, are gone.
NORMALIZED_SPEC: Final = Spec("normalized tensor graph", _NORMALIZED_ROWS, bodies=TENSOR_SPEC)
# After `store-scatters`.
STORED_SPEC: Final = Spec(
    "tensor graph with stored scatters",
    _NORMALIZED_ROWS,
    (GraphRow("a SCATTER is stored in the memory that it starts from", _scattered_elsewhere),),
    bodies=TENSOR_SPEC,
)
