"""Movement ops as index arithmetic: where an element of a view lies in what it views.

A use of a value is a tuple with one index expression per dimension, and a mask: the condition
under which the use looks at the value at all. `through` carries a use from a movement op to its
source. Every expression is in normal form, so uses that look at the same elements have the same
tuple.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from weft.ir.build import Size, index, true
from weft.ir.extremes import is_symbolic
from weft.ir.ops import MOVEMENT, Op
from weft.ir.shapes import Shape, fill_pairs, same_shape, same_size, shape_of
from weft.ir.uop import UOp, on_sweep
from weft.rewrite.trace import ACTIVE
from weft.rules.simplify import simplify

Indices = tuple[UOp, ...]
# Layers that repeat ask for the same indices again and again: kernels number their ranges alike.
MOST_KNOWN: Final = 4096


class Address(NamedTuple):
    """Which element of a value is meant, and when."""

    indices: Indices
    mask: UOp


def everywhere(indices: Indices) -> Address:
    return Address(indices, true())


def through(node: UOp, address: Address) -> Address:
    """The address in the source of a movement op that an address in the op's result shows."""
    source = shape_of(node.src[0])
    indices, mask = address
    if node.op == Op.RESHAPE:
        return Address(reshape_indices(indices, shape_of(node), source), mask)
    if node.op == Op.EXPAND:
        zero = index(0)
        shown = zip(indices, source, shape_of(node), strict=True)
        return Address(tuple(i if s is n or s == n else zero for i, s, n in shown), mask)
    if node.op == Op.PERMUTE:
        back = sorted(range(len(indices)), key=node.arg.__getitem__)
        return Address(tuple(indices[axis] for axis in back), mask)
    if node.op == Op.FLIP:
        return Address(
            tuple(
                simplify(index(size) - 1 - i) if axis in node.arg else i
                for axis, (i, size) in enumerate(zip(indices, source, strict=True))
            ),
            mask,
        )
    if node.op == Op.SHRINK:
        starts = [start for start, _ in fill_pairs(node)]
        return Address(tuple(map(_shift, indices, starts)), mask)
    assert node.op == Op.PAD
    return _through_pad(node, address)


def seen_through(view: UOp, address: Address) -> tuple[UOp, Address]:
    """What a view shows by movement ops alone, and the address in it of an element of the view."""
    while view.op in MOVEMENT:
        address = through(view, address)
        view = view.src[0]
    return view, address


def _through_pad(node: UOp, address: Address) -> Address:
    source = shape_of(node.src[0])
    indices = []
    mask = address.mask
    for i, (before, after), size in zip(address.indices, fill_pairs(node), source, strict=True):
        inner = i if _is_zero(before) else simplify(i - index(before))
        if not _is_zero(before):
            mask = mask & ~(inner < 0)
        if not _is_zero(after):
            mask = mask & (inner < index(size))
        indices.append(inner)
    return Address(tuple(indices), simplify(mask))


def validity(node: UOp, address: Address) -> UOp:
    """The condition under which an address in the result of a PAD shows its source."""
    return _through_pad(node, everywhere(address.indices)).mask


def _is_zero(size: Size) -> bool:
    return isinstance(size, int) and size == 0


def _shift(i: UOp, start: Size) -> UOp:
    return i if _is_zero(start) else simplify(i + index(start))


def reshape_indices(indices: Indices, shape: Shape, source: Shape) -> Indices:
    """The indices into `source` of the element that `indices` mean in `shape`."""
    if same_shape(shape, source):
        return indices
    if ACTIVE.get() is not None:  # somebody wants to see every rule that fires
        return _reshaped(indices, shape, source)
    return _known_reshaped(indices, shape, source)


def _reshaped(indices: Indices, shape: Shape, source: Shape) -> Indices:
    if not is_symbolic(*[size for size in (*shape, *source) if isinstance(size, UOp)]):
        return unflatten(flatten(indices, shape), source)
    before, after = _common(shape, source)  # products of symbols are long: only what changes
    stop, end = len(shape) - after, len(source) - after
    flat = flatten(indices[before:stop], shape[before:stop])
    between = unflatten(flat, source[before:end])
    return (*indices[:before], *between, *indices[stop:])


_known_reshaped = lru_cache(MOST_KNOWN)(_reshaped)
on_sweep(_known_reshaped.cache_clear)


def _common(shape: Shape, source: Shape) -> tuple[int, int]:
    """How many sizes two shapes have in common at the front, and how many at the end."""
    most = min(len(shape), len(source))
    before = after = 0
    while before < most and same_size(shape[before], source[before]):
        before += 1
    while after < most - before and same_size(shape[-1 - after], source[-1 - after]):
        after += 1
    return before, after


def flatten(indices: Indices, shape: Shape) -> UOp:
    """The position of an element in row-major order."""
    total = index(0)
    for i, size in zip(indices, shape, strict=True):
        total = total * index(size) + i
    return simplify(total)


def unflatten(flat: UOp, shape: Shape) -> Indices:
    """The indices of the element at a position in row-major order."""
    found: list[UOp] = []
    rest = flat
    for axis in range(len(shape) - 1, -1, -1):
        size = shape[axis]
        if isinstance(size, int) and size == 1:
            found.append(index(0))
        elif all(isinstance(s, int) and s == 1 for s in shape[:axis]):
            found.append(rest)
            rest = index(0)
        else:
            found.append(simplify(rest % index(size)))
            rest = simplify(rest // index(size))
    return tuple(reversed(found))
