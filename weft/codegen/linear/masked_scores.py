"""Masks of scores where a block of them needs any: most blocks are before the end of a mask.

    e = where(key + 7 < row + 1, tile[9], -inf)        for once < int(last key of the block < …):
    …                                            ->      tile[9] = where(…, tile[9], -inf)
                                                         …
                                                       e = tile[9]

Conditions that compare positions are sums of counters. What threads and elements add to these has
bounds, so one comparison for the whole group says that all of them hold.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from weft.ir.dtypes import INDEX, INT, dtypes
from weft.ir.linear import from_linear, linear
from weft.ir.ops import Op
from weft.ir.uop import UOp, const, make
from weft.ir.views import memory_of
from weft.ir.walk import topological

Users = Mapping[UOp, list[UOp]]
# Elements from which on a branch is worth it.
LEAST_ELEMENTS: Final = 8
_COUNTERS: Final = frozenset((Op.CONST, Op.SPECIAL, Op.RANGE, Op.VARIABLE))
_EFFECTS: Final = frozenset((Op.LOAD, Op.SHUFFLE, Op.AFTER, Op.INDEX))


class MaskedScores(NamedTuple):
    """The elements of a tile that are masked, and when any of them is."""

    chosen: tuple[UOp, ...]  # each a WHERE of an element and -inf
    needed: UOp  # whether a condition may not hold
    own: frozenset[UOp]  # what is computed for the conditions alone


# Counters that a group has in common, and the factor of each.
_Common = tuple[tuple[UOp, int], ...]


def masked_scores(tile: UOp, body: Sequence[UOp], users: Users) -> MaskedScores | None:
    """The masks of a tile of scores; None if they are not bounded by counters."""
    chosen = [node for node in body if _is_mask(node, tile, users)]
    if len(chosen) < LEAST_ELEMENTS:
        return None
    bounds: dict[_Common, int] = {}
    for node in chosen:
        keeps = node.src[1].op == Op.LOAD
        found = _bounds(node.src[0], keeps)
        if found is None:
            return None
        for common, most in found:
            bounds[common] = max(most, bounds.get(common, most))
    needed: UOp | None = None
    for common, most in bounds.items():
        total = from_linear(dtypes.int32, most, common)
        each = make(Op.LESS, dtypes.bool, (const(dtypes.int32, -1), total))
        needed = each if needed is None else make(Op.OR, dtypes.bool, (needed, each))
    if needed is None:
        return None
    return MaskedScores(tuple(chosen), needed, _own(chosen, body, users))


def _is_mask(node: UOp, tile: UOp, users: Users) -> bool:
    """Whether a node is an element of a tile that nobody reads without its mask."""
    if node.op != Op.WHERE:
        return False
    for element, other in (node.src[1:], node.src[:0:-1]):
        is_nothing = other.op == Op.CONST and other.arg == -math.inf
        is_own = element.op == Op.LOAD and memory_of(element.src[0]) is tile
        if is_nothing and is_own and users[element] == [node]:
            return bool(element.src[0].src[2].op == Op.CONST and element.dtype.lanes == 1)
    return False


def _bounds(condition: UOp, holds: bool) -> list[tuple[_Common, int]] | None:
    """Sums that are below 0 where a condition holds in all threads, or in none of them."""
    if condition.op == Op.NOT:
        return _bounds(condition.src[0], not holds)
    if condition.op == (Op.AND if holds else Op.OR):
        parts = [_bounds(each, holds) for each in condition.src]
        known = [part for part in parts if part is not None]
        return [each for part in known for each in part] if len(known) == len(parts) else None
    if condition.op != Op.LESS or condition.src[0].dtype.kind not in (INT, INDEX):
        return None
    x, y = condition.src
    # x < y holds where x - y < 0, and does not where y - x - 1 < 0.
    first, second = (_terms(x), _terms(y)) if holds else (_terms(y), _terms(x))
    if first is None or second is None:
        return None
    most = first[0] - second[0] - (0 if holds else 1)
    sums = dict(first[1])
    for term, factor in second[1]:
        sums[term] = sums.get(term, 0) - factor
    common: list[tuple[UOp, int]] = []
    for term, factor in sums.items():
        if term.op == Op.SPECIAL and term.arg[0] == "thread":
            most += max(0, factor * (int(term.src[0].arg) - 1))
        elif factor:
            common.append((term, factor))
    return [(tuple(common), most)]


def _terms(node: UOp) -> tuple[int, list[tuple[UOp, int]]] | None:
    """A sum of counters, seen through casts that keep it; None if it is of something else."""
    while node.op == Op.CAST and node.src[0].dtype is node.dtype:
        node = node.src[0]
    constant, terms = linear(node)
    found: list[tuple[UOp, int]] = []
    for term, factor in terms:
        if term.op in (Op.SPECIAL, Op.RANGE) or _is_common(term):
            found.append((term, factor))
        elif term.op in (Op.CAST, Op.ADD, Op.MUL) and term is not node:
            inner = _terms(term)
            if inner is None:
                return None
            constant += factor * inner[0]
            found += [(each, factor * by) for each, by in inner[1]]
        else:
            return None
    return constant, found


def _is_common(node: UOp) -> bool:
    """Whether a number is the same in all threads of a group."""
    nodes = topological(node)
    is_known = all(each.op in _COUNTERS for each in nodes if not each.src)
    threads = any(each.op == Op.SPECIAL and each.arg[0] == "thread" for each in nodes)
    return is_known and not threads and not any(each.op in _EFFECTS for each in nodes)


def _own(chosen: Sequence[UOp], body: Sequence[UOp], users: Users) -> frozenset[UOp]:
    """What only conditions of masks are made of."""
    below = set(topological(*(node.src[0] for node in chosen)))
    wanted = set(chosen)
    own: set[UOp] = set()
    for node in reversed(body):
        if node in below and all(each in wanted or each in own for each in users[node]):
            own.add(node)
    return frozenset(own)
