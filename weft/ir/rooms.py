"""How much memory a value of symbolic size gets: room for its size now, and for some around it.

The values of a variable fall into classes that end at powers of two. Memory has room for the most
that any value of the class needs, so a loop over values asks for few sizes of memory, and a
variable that may be very large costs nothing while it is small.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.ir.build import Size, variable
from weft.ir.ops import Op
from weft.ir.sizes import most
from weft.ir.uop import UOp
from weft.ir.walk import substitute, topological


def class_of(value: int) -> int:
    """The class of a value: those of class n are up to 2**n, and above the classes before.

    >>> [class_of(value) for value in (0, 1, 2, 3, 4, 5, 8)]
    [0, 0, 1, 2, 2, 3, 3]
    """
    return max(value - 1, 0).bit_length()


def room(shape: Sequence[Size], values: Mapping[str, int]) -> int:
    """The elements that memory of this shape has room for, with these values of its variables.

    Bound variables have the value that they are bound to; for others there is room for the most.

    >>> from weft.ir.build import bind
    >>> n = variable("n", 1, 1000)
    >>> room((n, 4), {"n": 5}), room((bind(n, 9), n), {"n": 1}), room((n,), {})
    (32, 16, 1000)
    """
    product = 1
    for extent in shape:
        product *= extent if isinstance(extent, int) else most(_of_class(extent, values))
    return product


def _of_class(size: UOp, values: Mapping[str, int]) -> UOp:
    """The size with variables that are between the ends of their class."""
    found: dict[UOp, UOp] = {}
    for node in topological(size, enter=_is_unbound):
        if node.op == Op.BIND:
            found[node] = _within(node.src[0], int(node.src[1].arg))
        elif node.op == Op.VARIABLE and node.arg[0] in values:
            found[node] = _within(node, values[node.arg[0]])
    return substitute(size, found) if found else size


def _is_unbound(node: UOp) -> bool:
    return node.op != Op.BIND


def _within(node: UOp, value: int) -> UOp:
    name, low, high = node.arg
    number = class_of(value)
    first = (1 << number - 1) + 1 if number else low
    return variable(name, max(low, first), min(high, 1 << number))
