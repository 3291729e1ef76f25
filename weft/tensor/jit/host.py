"""What a traced function takes from outside of Weft: arrays, and random numbers of Python.

A trace has copied an array that the function gave to a tensor. `kept_arrays` says which of them
live on and may change; a call compares them with their copies, which costs no more than the copy
that the function itself makes. Random numbers that a replay would repeat are refused.
"""

from __future__ import annotations

import sys
from typing import Any, Final, NamedTuple

import numpy as np

from weft.support.errors import NotSupported
from weft.support.source_line import SourceLine

# A longer array is data and no state; it is watched where a tensor is made of it.
_MOST_BYTES: Final = 4096


class KeptArray(NamedTuple):
    """An array that a tensor was made of, and the bytes that it had."""

    array: Any
    content: bytes

    @classmethod
    def of(cls, array: Any) -> KeptArray:
        return cls(array, _bytes_of(array))

    @classmethod
    def is_short(cls, thing: Any) -> bool:
        """Whether something is an array that can be compared in passing."""
        return issubclass(type(thing), np.ndarray) and thing.nbytes <= _MOST_BYTES

    def is_in(self, array: Any) -> bool:
        """Whether an array has the bytes that this one had."""
        return _bytes_of(array) == self.content

    @property
    def is_same(self) -> bool:
        return _bytes_of(self.array) == self.content


def _bytes_of(array: Any) -> bytes:
    """The elements of an array, whatever a subclass makes of them."""
    return np.ndarray.tobytes(array)


def kept_arrays(taken: list[KeptArray]) -> tuple[KeptArray, ...]:
    """Those whose memory somebody else holds, too; others were made by the function itself."""
    return tuple([each for each in taken if _is_held(each)])


def _is_held(kept: KeptArray) -> bool:
    root = _root(kept.array)
    is_view = root is not kept.array
    can_change = bool(root.flags.writeable)
    del root  # it would count
    return can_change and _references(kept) > (_TO_VIEWED if is_view else _TO_ARRAY)


def _references(kept: KeptArray) -> int:
    """How many references there are to the array that has the memory; one more if it is lent."""
    root = _root(kept.array)
    return sys.getrefcount(root) + (root.base is not None)


def _root(array: Any) -> Any:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


# References to an array, and to the one behind a view, that nobody but this module has.
_TO_ARRAY: Final = _references(KeptArray.of(np.zeros(1)))
_TO_VIEWED: Final = _references(KeptArray.of(np.zeros(2)[:1]))


def require_no_draws(name: str, drawn: list[tuple[Any, SourceLine]]) -> None:
    """Raise if a function drew random numbers that a replay would repeat."""
    if not drawn:
        return
    generator, line = drawn[0]
    what = "NumPy" if "numpy" in type(generator).__module__ else "Python"
    raise NotSupported(
        f"jit: {name} draws random numbers of {what} while it is traced",
        where=line,
        rule="a jitted function is traced once and replayed, so each call would have the same\n"
        "numbers; those of Weft are new in each call",
        fix="draw with Tensor.rand or the like, or pass the number as a tensor",
    )
