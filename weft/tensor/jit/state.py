"""Python state that a jitted function reads: attributes and items of the objects that it reaches.

A trace has read them once. `read_state` finds, from the arguments that are objects and from what
the function has in its closure, its defaults and its globals, all attributes and items whose names
stand in its code or in the code of functions and methods that are named there. `State.holds` says
whether they are what they were; a trace for which they are not does not fit a call.

What the function itself changes while it is traced is left out: it is done once per trace.
"""

from __future__ import annotations

import functools
import sysconfig
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

from weft.ir.uop import UOp
from weft.tensor.jit.host import KeptArray, kept_arrays
from weft.tensor.jit.signature import (
    SCALARS,
    Identity,
    attribute_names,
    cell_value,
    global_names,
    plain_function,
)
from weft.tensor.tensor import Tensor

# A longer list is data and no state, and is not watched.
_MOST_ITEMS: Final = 1024
_OPAQUE: Final = (types.ModuleType, types.BuiltinFunctionType, Tensor, UOp, *SCALARS)
_LIBRARIES: Final = tuple({path for key, path in sysconfig.get_paths().items() if "lib" in key})
# The parts of Weft that have state of the user's.
_LAYERS: Final = ("weft.nn", "weft.llm")
_MISSING: Final = object()


class Entry(NamedTuple):
    """A place, as an owner and a key, and what was there."""

    owner: Any  # a dict, a list, a cell, or what stands for an object
    key: Any
    value: Any

    @property
    def place(self) -> tuple[int, Any]:
        is_object = isinstance(self.owner, (Identity, _Held))
        return (hash(self.owner) if is_object else id(self.owner)), self.key


class State(NamedTuple):
    """What was read, and how many items each list and dict had."""

    entries: tuple[Entry, ...]
    lengths: tuple[tuple[Any, int], ...]
    arrays: tuple[KeptArray, ...] = ()
    functions: tuple[Any, ...] = ()  # that may run

    def holds(self) -> bool:
        """Whether everything is what it was."""
        for owner, key, value in self.entries:
            found = _look(owner, key)
            if found is not value and not _is_same(found, value):
                return False
        for owner, length in self.lengths:
            if len(owner) != length:
                return False
        return not self.arrays or all(each.is_same for each in self.arrays)

    def without(self, changed: Iterable[Entry], arrays: list[KeptArray]) -> State:
        """The state but for entries and the lengths of their owners; with arrays, which hold."""
        places = {entry.place for entry in changed}
        owners = {id(entry.owner) for entry in changed}
        return State(
            tuple([each for each in self.entries if each.place not in places]),
            tuple([row for row in self.lengths if id(row[0]) not in owners]),
            kept_arrays(arrays),
        )

    def changed(self) -> list[Entry]:
        """The entries that are not what they were; a list that has grown is one of them."""
        found = [each for each in self.entries if not _is_same(_look(*each[:2]), each.value)]
        longer = [Entry(owner, None, n) for owner, n in self.lengths if len(owner) != n]
        return found + longer


def read_state(function: Callable[..., Any], objects: Iterable[Any]) -> State:
    """The state that a function reads, given its arguments that are no tensors."""
    reader = _Reader()
    plain = plain_function(function)
    if hasattr(plain, "__code__"):
        reader.add(plain)
    roots = [getattr(function, "__self__", function), *objects]
    while True:
        before = len(reader.names), len(reader.functions)
        reader.read(roots)
        if before == (len(reader.names), len(reader.functions)):
            functions = tuple(reader.functions)
            return State(tuple(reader.entries), tuple(reader.lengths), functions=functions)


class _Reader:
    """Walks from roots over what is named; a walk may find more names, then there is another."""

    def __init__(self) -> None:
        self.names: set[str] = {"__call__"}
        self.functions: list[Any] = []
        self._known: set[Any] = set()
        self.entries: list[Entry] = []
        self.lengths: list[tuple[Any, int]] = []

    def read(self, roots: list[Any]) -> None:
        self.entries, self.lengths = [], []
        waiting = list(roots)
        for function in self.functions:
            self.names |= attribute_names(function.__code__)
            waiting += self._enter_function(function)
        seen: set[int] = set()
        while waiting:
            thing = waiting.pop()
            if id(thing) not in seen and not isinstance(thing, _OPAQUE):
                seen.add(id(thing))
                waiting += self._enter(thing)

    def _enter_function(self, function: Any) -> Iterator[Any]:
        for cell in function.__closure__ or ():
            yield from self._note(cell, None, cell_value(cell))
        scope = function.__globals__
        for name in global_names(function.__code__) & scope.keys():
            yield from self._note(scope, name, scope[name])
        yield from function.__defaults__ or ()
        yield from (function.__kwdefaults__ or {}).values()

    def _enter(self, thing: Any) -> Iterator[Any]:
        """Note what a thing has; gives what has to be entered next."""
        function = _unwrapped(thing)
        if isinstance(function, types.MethodType):
            yield function.__self__
            function = function.__func__
        if isinstance(function, types.FunctionType):
            self.add(function)
        elif isinstance(thing, functools.partial):
            yield from (thing.func, *thing.args, *thing.keywords.values())
        elif isinstance(thing, (list, tuple)):
            yield from self._enter_items(thing, enumerate(thing))
        elif isinstance(thing, dict):
            yield from self._enter_items(thing, thing.items())
        elif _has_state(thing):
            yield from self._enter_object(thing)

    def _enter_items(self, owner: Any, items: Iterable[tuple[Any, Any]]) -> Iterator[Any]:
        if len(owner) > _MOST_ITEMS:
            return
        if not isinstance(owner, tuple):
            self.lengths.append((owner, len(owner)))
        for key, value in list(items):
            yield from [value] if isinstance(owner, tuple) else self._note(owner, key, value)

    def _enter_object(self, thing: Any) -> Iterator[Any]:
        """The attributes that are named, of an object or of a class that holds settings."""
        for kind in type(thing).__mro__[:-1] if not isinstance(thing, type) else ():
            for name in self.names & kind.__dict__.keys():
                value = kind.__dict__[name]
                value = value.fget if isinstance(value, property) else value
                value = _unwrapped(value)
                if isinstance(value, types.FunctionType):
                    self.add(value)
                elif isinstance(value, SCALARS) and name not in getattr(thing, "__dict__", ()):
                    self.entries.append(Entry(_identity(thing), name, value))
                elif isinstance(value, types.MemberDescriptorType) and hasattr(thing, name):
                    yield from self._note(_identity(thing), name, getattr(thing, name))
        own = getattr(thing, "__dict__", {})
        for name in self.names & own.keys():
            yield from self._note(_identity(thing), name, own[name])

    def _note(self, owner: Any, key: Any, value: Any) -> Iterator[Any]:
        is_plain = isinstance(value, (*SCALARS, UOp, list, dict, tuple))
        kept = value if is_plain else _identity(value)
        if KeptArray.is_short(value):
            kept = KeptArray.of(value)
        if not isinstance(value, (types.ModuleType, types.BuiltinFunctionType)):
            self.entries.append(Entry(owner, key, kept))
            yield value

    def add(self, function: Any) -> None:
        """Read what a function names, too, unless it is of a library."""
        is_library = function.__code__.co_filename.startswith(_LIBRARIES)
        if function not in self._known and not is_library and _is_of_users(function.__module__):
            self._known.add(function)
            self.functions.append(function)


def _unwrapped(thing: Any) -> Any:
    """What a decorator took, as `functools.wraps` and `jit` note it; no attribute is computed."""
    seen: set[int] = set()
    while id(thing) not in seen:
        seen.add(id(thing))
        thing = getattr(thing, "__dict__", {}).get("__wrapped__", thing)
    return thing


def _is_of_users(module: str | None) -> bool:
    """Whether a module has state of the user's: it is no part of Weft, or one with layers."""
    name = module or ""
    return not name.startswith("weft.") or name.startswith(_LAYERS)


def _has_state(thing: Any) -> bool:
    kind = type(thing)
    home = thing.__module__ if isinstance(thing, type) else kind.__module__
    has_slots = any("__slots__" in each.__dict__ for each in kind.__mro__)
    return (hasattr(thing, "__dict__") or has_slots) and _is_of_users(home)


class _Held:
    """An object that only its own reference can watch, as one with `__slots__`."""

    __slots__ = ("_thing",)

    def __init__(self, thing: Any) -> None:
        self._thing = thing

    def __call__(self) -> Any:
        return self._thing

    def __hash__(self) -> int:
        return id(self._thing)


def _identity(thing: Any) -> Identity | _Held:
    return Identity(thing) if type(thing).__weakrefoffset__ else _Held(thing)


def _look(owner: Any, key: Any) -> Any:
    kind = owner.__class__
    if kind is Identity or kind is _Held:
        return getattr(owner(), key, _MISSING)
    if kind is types.CellType:
        return cell_value(owner)
    if isinstance(owner, dict):
        return owner.get(key, _MISSING)
    return owner[key] if key < len(owner) else _MISSING


def _is_same(found: Any, value: Any) -> bool:
    """Whether a value is what it was: numbers and strings by value, everything else itself."""
    if found is value:
        return True
    if value.__class__ is KeptArray:
        return found is value.array and value.is_same
    if value.__class__ is Identity or value.__class__ is _Held:
        return bool(value() is found)
    return found.__class__ is value.__class__ and isinstance(value, SCALARS) and found == value
