"""Bodies of many iterations: two calls of a body are the body of twice as many.

A loop of n iterations so has about log2(n) bodies, each scheduled once, and time to trace,
schedule and compile hardly grows with n. `scan` and the iterations of linear algebra use it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from weft.ir.uop import UOp


def doubled(body: UOp, count: int, twice: Callable[[UOp, int], UOp]) -> list[UOp]:
    """The bodies of 1, 2, 4 … iterations, as many as `count` has bits.

    `twice(body, half)` makes the body of 2 * half iterations of that of half as many.
    """
    bodies = [body]
    for bit in range(count.bit_length() - 1):
        bodies.append(twice(bodies[-1], 1 << bit))
    return bodies


def in_powers(count: int) -> Iterator[tuple[int, int]]:
    """The powers of two that add up to a count, greatest first: (exponent, iterations before it).

    >>> list(in_powers(13))
    [(3, 0), (2, 8), (0, 12)]
    """
    done = 0
    for bit in reversed(range(count.bit_length())):
        if count >> bit & 1:
            yield bit, done
            done += 1 << bit
