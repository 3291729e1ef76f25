"""What a traced function takes from outside of Weft: arrays, and random numbers of Python.

A trace has copied an array that the function gave to a tensor. `kept_arrays` says which of them
live on and may change; a call compares them with their copies, which costs no more than the copy
that the function itself makes. `Draws` finds out whether a function drew random numbers that a
replay would repeat.
"""

from __future__ import annotations

import dis
import random
import sys
import threading
from collections.abc import Iterable, Iterator
from types import BuiltinMethodType, CodeType, ModuleType
from typing import Any, Final, NamedTuple

import numpy as np

from weft.support.errors import NotSupported
from weft.support.source_line import SourceLine
from weft.tensor.jit.signature import cell_value

# A longer array is data and no state; it is watched where a tensor is made of it.
_MOST_BYTES: Final = 4096
_LOADS: Final = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF")


class KeptArray(NamedTuple):
    """An array that a tensor was made of, and the bytes that it had."""

    array: Any
    content: bytes

    @classmethod
    def of(cls, array: Any) -> KeptArray:
        return cls(array, array.tobytes())

    @classmethod
    def is_short(cls, thing: Any) -> bool:
        """Whether something is an array that can be compared in passing."""
        return isinstance(thing, np.ndarray) and thing.nbytes <= _MOST_BYTES

    @property
    def is_same(self) -> bool:
        return bool(self.array.tobytes() == self.content)


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


class Draws:
    """The generators of random numbers that a function may use, as they were before it ran."""

    def __init__(self, functions: Iterable[Any]) -> None:
        self._uses = [use for each in functions for use in _uses(each)]
        every = {id(_PYTHON): _PYTHON, id(_NUMPY): _NUMPY}
        every |= {id(use.generator): use.generator for use in self._uses}
        self._before = [(each, _state_of(each)) for each in every.values()]

    def require_none(self, name: str) -> None:
        """Raise if one of them has moved."""
        moved = [each for each, before in self._before if _state_of(each) != before]
        if not moved:
            return
        use = next((use for use in self._uses if use.generator is moved[0]), None)
        if use is None and threading.active_count() > 1:
            return  # it may have been another thread
        what = "NumPy" if "numpy" in type(moved[0]).__module__ else "Python"
        raise NotSupported(
            f"jit: {name} draws random numbers of {what} while it is traced",
            where=None if use is None else use.line,
            law="a jitted function is traced once and replayed, so each call would have the same\n"
            "numbers; those of Weft are new in each call",
            fix="draw with Tensor.rand or the like, or pass the number as a tensor",
        )


_PYTHON: Final[Any] = getattr(random.random, "__self__", None)
_NUMPY: Final[Any] = getattr(np.random.rand, "__self__", None)


class _Use(NamedTuple):
    generator: Any
    line: SourceLine


def _uses(function: Any) -> Iterator[_Use]:
    """Where a function names a generator, or a module that has one."""
    code = function.__code__
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=False))
    names = {name: cell_value(cell) for name, cell in cells.items()}
    for part in _codes(code):
        before: Any = None
        for each in dis.get_instructions(part):
            value: Any = None
            if each.opname in _LOADS:
                value = names.get(each.argval, function.__globals__.get(each.argval))
            elif each.opname in ("LOAD_ATTR", "LOAD_METHOD") and isinstance(before, ModuleType):
                value = getattr(before, str(each.argval), None)
            if (found := _generator_of(value)) is not None:
                yield _Use(found, SourceLine(part, each.offset))
            before = value


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _codes(part)


def _generator_of(value: Any) -> Any:
    """The generator that a name stands for; a module and its functions stand for its own."""
    if isinstance(value, BuiltinMethodType) or hasattr(value, "__func__"):
        value = getattr(value, "__self__", value)
    if value is random:
        return _PYTHON
    if value is np.random:
        return _NUMPY
    kinds = (random.Random, np.random.Generator, np.random.RandomState)
    return value if isinstance(value, kinds) else None


def _state_of(generator: Any) -> Any:
    """What moves when a number is drawn, as something that can be compared."""
    if isinstance(generator, random.Random):
        return generator.getstate()
    bits = getattr(generator, "bit_generator", None) or generator._bit_generator
    return _comparable(bits.state)


def _comparable(state: Any) -> Any:
    if isinstance(state, dict):
        return {name: _comparable(value) for name, value in state.items()}
    return state.tobytes() if isinstance(state, np.ndarray) else state
