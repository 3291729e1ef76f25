"""What a traced function read so far: guards of locations, and which objects are outside.

An object is *outside* if it was reached through a global, a cell, an argument or another object
that is outside. What the function wrote before it read is its own. `reads.py` knows how Python
looks things up, and notes it here.
"""

from __future__ import annotations

import functools
import sys
from collections import deque
from collections.abc import Iterable
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    MappingProxyType,
    MethodType,
    ModuleType,
)
from typing import Any, Final, NamedTuple
from weakref import ref

import numpy as np

from weft.support.source_line import SourceLine
from weft.tensor.jit.host import KeptArray
from weft.tensor.jit.signature import WeakIdentity
from weft.tensor.jit.watch.guards import (
    ATTRIBUTE,
    BUFFERS,
    CALL,
    CELL,
    CONTENT,
    ENTRY,
    ITEM,
    MISSING,
    Content,
    Guard,
    Held,
    is_scalar,
    items_of,
    kept,
    own_attributes,
)
from weft.tensor.jit.watch.lookup import is_of_library, is_weft, random_state
from weft.tensor.storage import Storage
from weft.tensor.tensor import Tensor

CONTAINERS: Final = (list, dict, set, deque, MappingProxyType, *BUFFERS)
_NOTHING: Final[dict[Any, Any]] = {}
_VIEWS: Final = (type(_NOTHING.keys()), type(_NOTHING.values()), type(_NOTHING.items()))
_NAMED: Final = (ATTRIBUTE, CELL, ENTRY)


class Warned(NamedTuple):
    """Something that is not seen when it changes, in words, and the line."""

    what: str
    line: SourceLine


class Notes:
    """What was read, and what is outside."""

    def __init__(self) -> None:
        self.guards: dict[tuple[Any, ...], Guard] = {}
        self.warned: dict[str, Warned] = {}
        self.tensors: list[tuple[WeakIdentity, ref[Storage]]] = []
        self.functions: dict[CodeType, list[Any]] = {}
        self.frame: Any = None  # that reads now
        self.changed: set[int] = set()  # containers that the function fills or empties
        self.of_library: set[int] = set()  # what modules of Python's library keep for themselves
        self.names: dict[int, Any] = {}  # of containers, as the function found them
        self.drawn: list[tuple[Any, SourceLine]] = []
        self._defaults: list[tuple[Any, Any]] = []  # items that a dict makes when they are read
        self._imported: list[str] = []  # modules that were not there yet
        self._proxies: dict[int, Any] = {}
        self._outside: dict[int, Any] = {}
        self._written: set[tuple[int, Any]] = set()

    def mark(self, thing: Any) -> Any:
        """Say that something is outside; gives it back."""
        kind = type(thing)
        if is_scalar(kind) or id(thing) in self._outside or thing is MISSING:
            return thing
        self._outside[id(thing)] = thing
        if issubclass(kind, Tensor):
            self.tensors.append((WeakIdentity(thing), ref(thing._storage)))
        elif issubclass(kind, (tuple, frozenset)):
            for part in items_of(thing):
                self.mark(part)
        elif kind is FunctionType:
            self.add_function(thing)
        elif issubclass(kind, (MethodType, BuiltinFunctionType)):
            self.mark(thing.__self__)
            self.mark(getattr(thing, "__func__", None))
        elif kind is functools.partial:
            self.mark((thing.func, thing.keywords, *thing.args))
        return thing

    def add_function(self, function: Any) -> None:
        """Know a function, so that its cells are found when it runs; what it wraps, too."""
        for _ in range(16):
            if type(function) is FunctionType:
                known = self.functions.setdefault(function.__code__, [])
                if not any(function is each for each in known):
                    known.append(function)
                if id(function) in self._outside:
                    for cell in function.__closure__ or ():
                        self._outside[id(cell)] = cell
                    for default in (function.__defaults__ or ()) + tuple(
                        (function.__kwdefaults__ or {}).values()
                    ):
                        self.mark(default)
            inner = own_attributes(function).get("__wrapped__")
            if inner is None:
                return
            if id(function) in self._outside:
                self._outside[id(inner)] = inner
            function = inner

    def function(self, function: Any) -> None:
        """What a function that runs has of its own: its code, and the values of parameters."""
        if not self.is_outside(function) or is_weft(function.__module__):
            return
        if not is_of_library(function.__code__.co_filename):  # a notebook that reloads changes it
            self.note(ATTRIBUTE, function, "__code__", function.__code__)
        if function.__defaults__ is not None:
            self.note(ATTRIBUTE, function, "__defaults__", function.__defaults__)
        if function.__kwdefaults__ is not None:
            self.note(ATTRIBUTE, function, "__kwdefaults__", function.__kwdefaults__)
            self.content(self.mark(function.__kwdefaults__))

    def is_outside(self, thing: Any) -> bool:
        return id(thing) in self._outside or issubclass(type(thing), (ModuleType, type))

    @property
    def line(self) -> SourceLine:
        """The innermost line that is not of the standard library or of Weft."""
        here = self.frame
        while here is not None and is_of_library(here.f_code.co_filename):
            here = here.f_back
        here = self.frame if here is None else here
        return SourceLine(here.f_code, here.f_lasti)

    def warn(self, what: str) -> None:
        """Say that something is read that cannot be compared in the next call."""
        line = self.line
        self.warned.setdefault(f"{what} {line!r}", Warned(what, line))

    def draw(self, generator: Any) -> None:
        """A random number is drawn that a replay would repeat."""
        if self.is_outside(generator) or generator is random_state():
            self.drawn.append((generator, self.line))

    def change(self, container: Any) -> None:
        """The function fills or empties a container: what it reads there depends on calls."""
        if self.is_outside(container):
            self.changed.add(id(container))

    def note_library(self, scope: dict[str, Any], found: Any) -> None:
        """A module of the library reads its own global, which may be a cache that it fills."""
        self.of_library.add(id(scope))
        if issubclass(type(found), CONTAINERS):
            self.of_library.add(id(found))

    def finish(self) -> None:
        """Note what a dict has made of what it did not have."""
        for container, key in self._defaults:
            if dict.__contains__(container, key):
                self.entry(container, key)
        for name in self._imported:
            self.entry(sys.modules, name)

    def is_noted(self, kind: str, owner: Any, key: Any) -> bool:
        return (kind, id(owner), key) in self.guards or (id(owner), key) in self._written

    def note(self, kind: str, owner: Any, key: Any, value: Any) -> None:
        """Guard a location, unless that is done or the function wrote it."""
        if self.is_noted(kind, owner, key):
            return
        self._outside.setdefault(id(owner), owner)
        if kind in _NAMED and issubclass(type(value), (np.ndarray, *CONTAINERS)):
            self.names.setdefault(id(value), key)
        self.guards[kind, id(owner), key] = Guard(
            kind,
            Held(owner) if kind == CALL else kept(owner),
            key,
            value if kind == CONTENT else kept(value),
            self.line,
        )
        if kind != CONTENT and KeptArray.is_short(value):
            self.content(self.mark(value))

    def write(self, owner: Any, key: Any) -> None:
        """The function itself writes a location: what it reads there from now on is its own."""
        try:
            hash(key)
        except TypeError:  # a slice, a list: no location that is noted
            return
        guarded = [(kind, id(owner), key) for kind in (ATTRIBUTE, ENTRY, ITEM, CELL)]
        if not any(each in self.guards for each in guarded):
            self._written.add((id(owner), key))

    def entry(self, scope: Any, key: Any) -> Any:
        """An entry of a dict: a global, an attribute of a module, an item."""
        found = dict.get(scope, key, MISSING)
        self.note(ENTRY, scope, key, found)
        return self.mark(found)

    def module(self, name: str) -> Iterable[Any]:
        """A module by its name; one that is not there yet is imported now, or is missed."""
        if name not in sys.modules:
            self._imported.append(name)
            return ()
        return (self.entry(sys.modules, name),)

    def cell(self, cell: CellType, name: str) -> None:
        if id(cell) in self._outside:
            try:
                found = cell.cell_contents
            except ValueError:  # not filled yet
                return
            self.note(CELL, cell, name, found)
            self.mark(found)

    def content(self, container: Any) -> list[Any]:
        """All of a container; gives its items, which are outside as it is."""
        if issubclass(type(container), np.ndarray):
            if self.is_outside(container) and not self.is_noted(CONTENT, container, None):
                self.note(CONTENT, container, None, KeptArray.of(container))
            return self._objects_in(container) if container.dtype.hasobject else []
        if issubclass(type(container), _VIEWS):
            mapping = container.mapping
            return self.content(self.mark(mapping) if self.is_outside(container) else mapping)
        if not issubclass(type(container), (tuple, frozenset, *CONTAINERS)):
            return []
        found = items_of(container)
        if self.is_outside(container):
            is_noted = self.is_noted(CONTENT, container, None)
            if issubclass(type(container), CONTAINERS) and not is_noted:
                self.note(CONTENT, container, None, Content.of(container))
            for item in found:
                self.mark(item)
        return found

    def _objects_in(self, array: Any) -> list[Any]:
        """The objects that an array refers to; fields of a structured one are its items."""
        found = np.ndarray.ravel(array).tolist()
        return [self.mark(each) for each in found] if self.is_outside(array) else found
