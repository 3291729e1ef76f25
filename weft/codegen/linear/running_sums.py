"""Accumulators that a product is added to element by element: they can be its own sums.

    for r:                                         for r:
      tile = CONTRACT(…)                             tile[4] = tile[4] * c
      acc[0] = acc[0] * c + tile[4]         ->       …
      …                                              tile += product of the factors

A matrix unit adds to the registers that it is given. Where each element of a product is added to
one accumulator, and is nothing else, the accumulators are those registers, and half of them are
enough.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.ir.views import behind, memory_of

Users = Mapping[UOp, list[UOp]]


class RunningSums(NamedTuple):
    """How accumulators become the sums of a product."""

    first: dict[UOp, int]  # of each accumulator, the element that its first one is
    others: dict[UOp, UOp]  # of each addition, what is not an element of the product


def running_sums(product: UOp, users: Users) -> RunningSums | None:
    """The accumulators of a product, by the STORE of it; None if it has other readers."""
    tile = memory_of(product.src[0])
    found = RunningSums({}, {})
    seen: set[int] = set()
    for address in _addresses(tile, users):
        if address is product.src[0]:
            continue
        for load in users[address]:
            if load.op != Op.LOAD:
                return None
            elements = _elements(load, users)
            if elements is None or not all(_note(*each, found, users) for each in elements):
                return None
            seen.update(number for number, _ in elements)
    count = product.src[1].dtype.lanes
    is_all = sum(memory.arg[2] for memory in found.first) == count
    return found if is_all and seen == set(range(count)) else None


def _addresses(memory: UOp, users: Users) -> list[UOp]:
    """The addresses in memory, whichever version of it they are in."""
    found = []
    for user in users[memory]:
        if user.op == Op.INDEX and user.src[0] is memory:
            found.append(user)
        elif user.op == Op.AFTER and user.src[0] is memory:
            found += _addresses(user, users)
    return found


def _elements(load: UOp, users: Users) -> list[tuple[int, UOp]] | None:
    """The elements of a tile that a LOAD is, by number."""
    position = load.src[0].src[2]
    if position.op != Op.CONST:
        return None
    if load.dtype.lanes == 1:
        return [(position.arg, load)]
    picked = users[load]
    if any(each.op != Op.LANES or len(each.arg) != 1 for each in picked):
        return None
    return [(position.arg + each.arg[0], each) for each in picked]


def _note(number: int, element: UOp, found: RunningSums, users: Users) -> bool:
    """Note where an element goes; False unless it is only added to an element of memory."""
    if len(users[element]) != 1 or users[element][0].op != Op.ADD:
        return False
    (total,) = users[element]
    x, y = total.src
    found.others[total] = y if x is element else x
    if x is y or len(users[total]) != 1:
        return False
    (user,) = users[total]
    lane = 0
    if user.op == Op.VECTOR:
        lane = user.src.index(total)
        if len(users[user]) != 1:
            return False
        (user,) = users[user]
    if user.op != Op.STORE or user.src[0].op != Op.INDEX:
        return False
    memory, position = memory_of(user.src[0]), user.src[0].src[2]
    is_own = behind(memory).op == Op.MEMORY and memory.arg[1] == "register"
    if not is_own or position.op != Op.CONST:
        return False
    first = number - position.arg - lane
    return bool(found.first.setdefault(memory, first) == first)
