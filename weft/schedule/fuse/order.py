"""Which kernel waits for which, kept so that a lookup is cheap.

A kernel needs those that it reads from, and comes after those that it must not overtake. Each
knows all kernels that wait for it, however far, as a bit set of their numbers: the walk decides
consumers before producers, so most edges end at a kernel that waits for nothing yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Final

from weft.schedule.fuse.kernel import Kernel
from weft.support.errors import InternalError

_NUMBER: Final = attrgetter("number")


def need(kernel: Kernel, source: Kernel) -> None:
    """Let a kernel read from another."""
    if source is not kernel and source not in kernel.needs:
        kernel.needs.add(source)
        _propagate(kernel.waiting, source)


def follow(kernel: Kernel, first: Kernel) -> None:
    """Let a kernel run after another, from which it reads nothing."""
    if first is not kernel and first not in kernel.after:
        kernel.after.add(first)
        _propagate(kernel.waiting, first)


def depends_on(kernel: Kernel, other: Kernel) -> bool:
    """Whether a kernel can only run once another has run; itself included."""
    return bool(other.waiting >> kernel.number & 1)


def waiting_for(kernels: Iterable[Kernel]) -> int:
    """The kernels that wait for any of some kernels, those included, as a bit set."""
    bits = 0
    for kernel in kernels:
        bits |= kernel.waiting
    return bits


def _propagate(waiting: int, kernel: Kernel) -> None:
    stack = [kernel]
    while stack:
        part = stack.pop()
        if waiting & ~part.waiting:
            part.waiting |= waiting
            stack += part.needs
            stack += part.after


def forget_after(kernels: Sequence[Kernel]) -> None:
    """Leave only the edges of data, as before anything was written."""
    for kernel in kernels:
        kernel.after.clear()
        kernel.waiting = 1 << kernel.number
    order, is_acyclic = _listed(kernels)
    for kernel in reversed(order):
        for source in kernel.needs:
            source.waiting |= kernel.waiting
    for kernel in () if is_acyclic else order:  # what waits for itself shows as such
        for source in kernel.needs:
            _propagate(kernel.waiting, source)


def producers_first(kernels: Sequence[Kernel]) -> list[Kernel]:
    """The kernels, each after those that it waits for."""
    order, is_acyclic = _listed(kernels)
    if not is_acyclic:
        raise InternalError("kernels wait for each other")
    return order


def _listed(kernels: Sequence[Kernel]) -> tuple[list[Kernel], bool]:
    """Kernels after those that they wait for, and whether that is so for all of them."""
    order: list[Kernel] = []
    is_acyclic = True
    is_listed: dict[Kernel, bool] = {}  # false while those are listed that a kernel waits for
    for root in kernels:
        stack = [root]
        while stack:
            kernel = stack[-1]
            if kernel in is_listed:
                stack.pop()
                if not is_listed[kernel]:
                    is_listed[kernel] = True
                    order.append(kernel)
                continue
            is_listed[kernel] = False
            others = waits_of(kernel)
            is_acyclic &= not any(is_listed.get(other) is False for other in others)
            stack += [other for other in others if other not in is_listed]
    return order, is_acyclic


def waits_of(kernel: Kernel) -> list[Kernel]:
    """The kernels that a kernel waits for, by number."""
    return sorted(kernel.needs | kernel.after, key=_NUMBER)
