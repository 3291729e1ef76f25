"""Gradients of STAGE, COPY, STORE and AFTER.

A write is a function: AFTER(x, STORE(view of x, v)) is x with v instead of the view. So v has
the view of the gradient, and x has the gradient with zeros in the view. To say that with rules,
the gradient of a STORE (which has no value) is that of the whole memory after it: AFTER hands it
to its stores, each without what later stores overwrite, and STORE hands its view on to the value.

Where several elements of one INDEX name the same address, it is not specified which of them stays;
as in torch, each has the gradient of that address.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from weft.gradient.elementwise import Parts, SlopeRule, sum_to
from weft.gradient.index import INDEX_RULES, scatter
from weft.gradient.movement import MOVEMENT_RULES
from weft.ir.build import where
from weft.ir.dtypes import dtypes
from weft.ir.layouts import layout_of
from weft.ir.movement import full
from weft.ir.ops import Op, name
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp, make
from weft.ir.views import behind, memory_of, version_of, views_between
from weft.ir.walk import topological
from weft.support.errors import NotSupported

_MEMORY: Final = (Op.BUFFER, Op.PARAM)
_WRITES: Final = (Op.STORE, Op.AFTER, Op.CALL)
_ONE_TO_ONE: Final = frozenset((Op.RESHAPE, Op.PERMUTE, Op.FLIP))


def _stage(node: UOp, g: UOp) -> Parts:
    """STAGE: g, not staged; whether to keep it is a question of cost"""
    return (g,)


def _copy(node: UOp, g: UOp) -> Parts:
    """COPY, SHARD: g where x came from"""
    source = node.src[0]
    layout = layout_of(source)
    if layout is not None:
        return (make(Op.SHARD, g.dtype, (g,), tuple(layout)),)
    for part in topological(source, enter=lambda part: part.op != Op.COPY):
        device = part.arg if part.op == Op.COPY else part.arg[2] if part.op == Op.BUFFER else None
        if device is not None:
            return (make(Op.COPY, g.dtype, (g,), device),)
    if node.op == Op.SHARD:  # of a value without memory, which is everywhere
        return (g,)
    raise NotSupported(
        "gradient: the device that a COPY reads from is not known",
        rule="the gradient of a copy goes back to the device of its source",
        fix="copy outside the function, and pass the copy as its argument",
    )


def _view(views: list[UOp], whole: UOp) -> UOp:
    """The same view of something else with the shape of the memory."""
    for step in views:
        whole = make(step.op, whole.dtype, (whole, *step.src[1:]), step.arg)
    return whole


def _gradient_below(views: list[UOp], g: UOp) -> UOp:
    """The gradient of what the views are of, given that of the view."""
    for step in reversed(views):
        part = (INDEX_RULES if step.op == Op.INDEX else MOVEMENT_RULES)[step.op](step, g)[0]
        assert part is not None
        g = part
    return g


def _written(views: list[UOp], address: UOp) -> UOp:
    """For each element of the memory, whether an address holds it."""
    mask = full(dtypes.bool, True, shape_of(address))
    for step in reversed(views):
        if step.op == Op.INDEX:
            mask = scatter(step, mask, Op.OR)
        else:
            part = MOVEMENT_RULES[step.op](step, mask)[0]
            assert part is not None
            mask = part
    return mask


def _store(node: UOp, g: UOp) -> Parts:
    """STORE(address, v): for v the view of g; what the address held is the business of AFTER"""
    address, value = node.src
    return None, sum_to(_view(views_between(address)[1], g), shape_of(value))


class _Writes(NamedTuple):
    """What an AFTER means for its first source.

    `survivor` is the node whose contents remain where nothing is written; `views` lead from the
    version that is read to the first source. `effects` are those that write this memory,
    in the order in which they happen, with their positions among the sources.
    """

    survivor: UOp
    views: list[UOp]
    effects: list[tuple[int, UOp]]


def _writes(node: UOp) -> _Writes:
    """Which effects of an AFTER change what it reads, and what they change."""
    version, views = views_between(node.src[0])
    happened = [
        (position, effect)
        for position, effect in _in_order(node)
        if effect.op in _WRITES and _touches(effect, version)
    ]
    if not happened:
        return _Writes(version, views, [])
    if not (_is_written(version, happened) and _are_fixed(views)):
        raise _refused(node, "reads memory again through a computation")
    survivor = version
    effects: list[tuple[int, UOp]] = []
    for position, effect in happened:
        if effect.op == Op.CALL:
            raise _refused(node, "waits for a CALL that writes")
        before = effect if effect.op == Op.AFTER else version_of(effect.src[0])
        if before is not version and not (_is_whole(before) and _is_whole(version)):
            raise _refused(node, "joins versions of different views of memory")
        if effect.op == Op.STORE and not effects:
            survivor = before
        effects.append((position, effect))
    return _Writes(survivor, views, effects)


def _is_written(version: UOp, effects: list[tuple[int, UOp]]) -> bool:
    """Whether a version is one of memory. A STORE above it says so; else the leaf below it does,
    which is far away at the end of many writes.
    """
    stores = [effect for _, effect in effects if effect.op == Op.STORE]
    is_address = any(version_of(store.src[0]) is version for store in stores)
    return is_address or _try_memory(version) is not None


def _in_order(node: UOp) -> list[tuple[int, UOp]]:
    """The effects of an AFTER with their positions, those that depend on others after them."""
    positions = {effect: i for i, effect in enumerate(node.src) if i}
    if len(positions) > 1:
        order = [effect for effect in topological(*positions) if effect in positions]
        return [(positions[effect], effect) for effect in order]
    return [(position, effect) for effect, position in positions.items()]


def _touches(effect: UOp, version: UOp) -> bool:
    """Whether an effect writes memory that a version is of."""
    if effect.op == Op.CALL:
        return any(_touches_memory(address, version) for address in _addresses_of(effect))
    if effect.op == Op.AFTER:
        return _touches_memory(effect, version)
    address = version_of(effect.src[0])
    return address is version or _touches_memory(address, version)


def _touches_memory(address: UOp, version: UOp) -> bool:
    memory = _try_memory(address)
    if memory is None or memory is _try_memory(version):
        return memory is not None
    return _try_memory(version) is None and memory in topological(version)


def _addresses_of(call: UOp) -> list[UOp]:
    """What a CALL writes: arguments, and memory that its body holds."""
    if call.arg.op != Op.SINK:
        return []
    inside: list[UOp] = []
    for part in topological(call.arg):
        if part.op in (Op.STORE, Op.CALL):
            inside += [part.src[0]] if part.op == Op.STORE else _addresses_of(part)
    memories = [memory for memory in map(_try_memory, inside) if memory is not None]
    return [call.src[memory.arg[0]] if memory.op == Op.PARAM else memory for memory in memories]


def _try_memory(node: UOp) -> UOp | None:
    """The BUFFER or PARAM that a view or a version is of; None for other values."""
    memory = memory_of(node)
    return memory if memory.op in _MEMORY else None


def _is_whole(version: UOp) -> bool:
    """Whether a version has the shape of its memory, not of a view of it."""
    return behind(version).op in _MEMORY


def _are_fixed(views: list[UOp]) -> bool:
    """Whether views are certain to name the same elements when they are read again.

    An index that is computed from floats may be computed from what was written.
    """
    indices = [part for step in views if step.op == Op.INDEX for part in step.src[1:]]
    return not any(part.dtype.is_float for part in topological(*indices))


def _refused(node: UOp, why: str) -> NotSupported:
    return NotSupported(
        f"gradient: an AFTER that {why} has none",
        facts=[("reads", name(node.src[0].op), shape_of(node))],
        rule="a write has a gradient where AFTER reads a view of the memory that it writes",
        fix="read the memory after the write, and compute with what was read",
        where=node.line,
    )


def receivers(node: UOp) -> tuple[UOp, ...]:
    """The nodes to which the contributions of an AFTER belong.

    These are its sources, but a write to another version than that which is read leaves the rest
    of that version: AFTER(x, STORE(view of y, v)) is y with v instead of the view.
    """
    survivor = _writes(node).survivor
    first = node.src[0]
    if survivor is version_of(first):
        return node.src
    return survivor, *node.src[1:]


def _after(node: UOp, g: UOp) -> Parts:
    """AFTER(x, stores…): for x, g where nothing was written; for each store, g of its memory"""
    survivor, views, effects = _writes(node)
    parts: list[UOp | None] = [None] * len(node.src)
    whole = _gradient_below(views, g) if effects else g
    zero = g.const_like(0)
    covered: UOp | None = None
    for position, effect in reversed(effects):
        parts[position] = whole if covered is None else where(covered, zero, whole)
        if effect.op == Op.AFTER:  # a version of its own: nothing from before it remains
            return tuple(parts)
        address = effect.src[0]
        _, steps = views_between(address)
        if all(step.op in _ONE_TO_ONE for step in steps):
            return tuple(parts)
        mask = _written(steps, address)
        covered = mask if covered is None else covered | mask
    if covered is None:
        parts[0] = g
    elif survivor is version_of(node.src[0]):
        parts[0] = where(_view(views, covered), zero, g)
    else:
        parts[0] = where(covered, zero, whole)
    return tuple(parts)


MEMORY_RULES: Final[dict[int, SlopeRule]] = {
    Op.COPY: _copy,
    Op.SHARD: _copy,
    Op.STORE: _store,
    Op.STAGE: _stage,
    Op.AFTER: _after,
}
