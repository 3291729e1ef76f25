"""Notes what a function reads of objects that were there before it ran.

`frame.py` says which instruction reads what; this file knows how Python looks it up, and makes a
guard of it. An object is *outside* if it was reached through a global, a cell, an argument or
another object that is outside. What the function wrote before it read is its own.
"""

from __future__ import annotations

import functools
import threading
import weakref
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

from weft.ir.uop import UOp
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
    HEAP,
    ITEM,
    MISSING,
    SHADOW,
    TYPE,
    Content,
    Guard,
    Held,
    is_scalar,
    items_of,
    kept,
    own_attributes,
)
from weft.tensor.jit.watch.lookup import (
    bound,
    data_names,
    has_dict,
    is_of_library,
    is_weft,
    lookup,
    plain,
    random_state,
    runs_python,
)
from weft.tensor.storage import Storage
from weft.tensor.tensor import Tensor

CONTAINERS: Final = (list, dict, set, deque, MappingProxyType, *BUFFERS)
_NOTHING: Final[dict[Any, Any]] = {}
_VIEWS: Final = (type(_NOTHING.keys()), type(_NOTHING.values()), type(_NOTHING.items()))


_NAMED: Final = (ATTRIBUTE, CELL, ENTRY)
_PROXIES: Final = (weakref.ProxyType, weakref.CallableProxyType)
# What an array has beside its elements, and can be given anew.
_OF_ARRAYS: Final = ("shape", "strides", "dtype", "ndim", "size", "nbytes", "itemsize")


class Warned(NamedTuple):
    """Something that is not seen when it changes, in words, and the line."""

    what: str
    line: SourceLine


class Reads:
    """What was read, and what is outside."""

    def __init__(self) -> None:
        self.guards: dict[tuple[Any, ...], Guard] = {}
        self.warned: dict[str, Warned] = {}
        self.tensors: list[tuple[WeakIdentity, ref[Storage]]] = []
        self.functions: dict[CodeType, list[Any]] = {}
        self.frame: Any = None  # that reads now
        self.changed: set[int] = set()  # containers that the function fills or empties
        self.names: dict[int, Any] = {}  # of containers, as the function found them
        self.drawn: list[tuple[Any, SourceLine]] = []
        self._defaults: list[tuple[Any, Any]] = []  # items that a dict makes when they are read
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
        elif kind in (MethodType, BuiltinFunctionType):
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

    def finish(self) -> None:
        """Note what a dict has made of what it did not have."""
        for container, key in self._defaults:
            if dict.__contains__(container, key):
                self.entry(container, key)

    def is_noted(self, kind: str, owner: Any, key: Any) -> bool:
        return (kind, id(owner), key) in self.guards or (id(owner), key) in self._written

    def note(self, kind: str, owner: Any, key: Any, value: Any) -> None:
        """Guard a place, unless that is done or the function wrote it."""
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
        """The function itself writes a place: what it reads there from now on is its own."""
        try:
            hash(key)
        except TypeError:  # a slice, a list: no place that is noted
            return
        places = [(kind, id(owner), key) for kind in (ATTRIBUTE, ENTRY, ITEM, CELL)]
        if not any(place in self.guards for place in places):
            self._written.add((id(owner), key))

    # How Python looks things up.

    def entry(self, scope: Any, key: Any) -> Any:
        """An entry of a dict: a global, an attribute of a module, an item."""
        found = dict.get(scope, key, MISSING)
        self.note(ENTRY, scope, key, found)
        return self.mark(found)

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
            return []
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

    def deep_content(self, thing: Any, with_objects: bool) -> list[Any]:
        """All that code which is not followed may read of a thing; gives what it may return."""
        seen: dict[int, Any] = {}
        waiting = [thing]
        while waiting:
            part = waiting.pop()
            if id(part) in seen or is_scalar(type(part)):
                continue
            if issubclass(type(part), (Tensor, UOp, ModuleType, type)):
                continue
            seen[id(part)] = part
            waiting += self.content(part)
            has_state = with_objects and self.is_outside(part) and has_dict(part)
            if has_state and type(part) is not FunctionType and not is_weft(type(part).__module__):
                for name in dict.fromkeys([*own_attributes(part), *data_names(type(part))]):
                    waiting += self.attribute(part, name)
        return list(seen.values())

    def item(self, container: Any, key: Any) -> Iterable[Any]:
        """`container[key]` of a container of C; gives what it may be."""
        kind = type(container)
        if issubclass(kind, dict):
            try:
                found = dict.get(container, key, MISSING)
            except TypeError:  # a key that cannot be one
                return ()
            if self.is_outside(container):
                if found is MISSING and lookup(kind, "__missing__") is not MISSING:
                    self._defaults.append((container, key))
                    return ()
                self.entry(container, key)
            return () if found is MISSING else (found,)
        is_index = issubclass(type(key), int)
        if (
            issubclass(kind, (list, tuple))
            and is_index
            and -len(container) <= key < len(container)
        ):
            found = (list if issubclass(kind, list) else tuple).__getitem__(container, key)
            if self.is_outside(container):
                if issubclass(kind, list):
                    self.note(ITEM, container, key, found)
                self.mark(found)
            return (found,)
        if not issubclass(kind, (tuple, str, bytes, np.ndarray, Tensor, UOp, *CONTAINERS)):
            self._other_items(container)
        return self.content(container) or (container,)

    def _other_items(self, thing: Any) -> None:
        """An item of an object of C that is no container of Python's."""
        raw = lookup(type(thing), "__getitem__")
        if raw is MISSING or not self.is_outside(thing) or is_weft(type(thing).__module__):
            return
        try:
            memoryview(thing)
        except TypeError:
            if not issubclass(type(thing), (range, type)):
                self.warn(f"reads an item of a {type(thing).__name__}")
        else:
            self.note(CONTENT, thing, None, Content.of(thing))

    def called(self, function: Any, args: tuple[Any, ...]) -> Iterable[Any]:
        """A call without effect that gives what is there now."""
        try:
            found = function(*args)
        except Exception:
            found = MISSING
        if found is not MISSING or args == (MISSING,):
            self.note(CALL, function, args, found)
            self.mark(found)
        return () if found is MISSING else (found,)

    def kind(self, thing: Any) -> None:
        """The class of an object, whose methods are called."""
        if self.is_outside(thing) and type(thing).__flags__ & HEAP:
            self.note(TYPE, thing, None, type(thing))

    def special(self, thing: Any, names: Iterable[str]) -> None:
        """Methods that Python looks for in the class of an object, also where there are none."""
        if self.is_outside(thing) and type(thing).__flags__ & HEAP:
            self.kind(thing)
            for name in names:
                self.class_attribute(type(thing), name)

    def attribute(self, thing: Any, name: str) -> Iterable[Any]:
        """`thing.name`; gives what it may be, unless code of Python runs that says so."""
        kind = type(thing)
        if issubclass(kind, Tensor):
            return self._of_tensor(thing, name)
        if kind in _PROXIES:
            return self._of_proxy(thing, name)
        if is_scalar(kind) or issubclass(kind, UOp):  # of a string, its methods
            raw = lookup(kind, name)
            return () if raw is MISSING or issubclass(kind, UOp) else bound(raw, thing)
        if issubclass(kind, ModuleType):
            return self._of_module(thing, name)
        if issubclass(kind, super):
            return self._of_super(thing, name)
        if issubclass(kind, type):
            return self._of_class(thing, name)
        return self._of_object(thing, name)

    def _of_proxy(self, proxy: Any, name: str) -> Iterable[Any]:
        """An attribute of what a weak proxy stands for."""
        try:
            thing = proxy.__init__.__self__
        except ReferenceError:  # it is gone
            return ()
        return self.attribute(self.mark(thing) if self.is_outside(proxy) else thing, name)

    def _of_module(self, module: ModuleType, name: str) -> Iterable[Any]:
        scope = own_attributes(module)
        if is_weft(module.__name__):
            return (scope[name],) if name in scope else ()
        found = self.entry(scope, name)
        return () if found is MISSING else (found,)

    def _of_tensor(self, tensor: Any, name: str) -> Iterable[Any]:
        raw = lookup(type(tensor), name)
        if name == "requires_grad":
            return self._of_slot(tensor, name, raw)
        return bound(raw, tensor) if type(raw) is FunctionType else ()

    def _of_class(self, kind: type, name: str) -> Iterable[Any]:
        raw = lookup(kind, name)
        if name == "__dict__":
            return (self.mark(self._proxy(kind)),)
        self.class_attribute(kind, name)
        if raw is MISSING and type(kind) is not type:
            return self._of_object(kind, name)
        if raw is MISSING:
            return self._of_slot(kind, name, lookup(type, name)) if hasattr(type, name) else ()
        if issubclass(type(raw), classmethod):
            return (MethodType(raw.__func__, kind),)
        return (self.mark(plain(raw)),)

    def _of_super(self, thing: Any, name: str) -> Iterable[Any]:
        owner = thing.__self__
        kinds = thing.__self_class__.__mro__
        after = kinds[kinds.index(thing.__thisclass__) + 1 :]
        home = next((each for each in after if name in each.__dict__), None)
        if home is None:
            return ()
        self.class_attribute(home, name)
        return bound(home.__dict__[name], owner)

    def class_attribute(self, kind: type, name: str) -> None:
        """Guard an attribute of a class, as a class or an object of it finds it."""
        raw = lookup(kind, name)
        home = next((each for each in kind.__mro__ if name in each.__dict__), None)
        if home is None or not home.__flags__ & HEAP:  # one that comes before it may be given it
            for each in kind.__mro__:
                if each.__flags__ & HEAP and not is_weft(each.__module__):
                    self.note(ENTRY, self._proxy(each), name, MISSING)
            return
        if is_weft(home.__module__):
            return
        value = plain(raw)
        is_stable = type(raw) is staticmethod or not hasattr(type(raw), "__get__")
        is_stable = is_stable or type(raw) in (FunctionType, property)
        if is_stable and type(kind) is type:
            self.note(ATTRIBUTE, kind, name, value)
        else:
            self.note(ENTRY, self._proxy(home), name, raw)
        self.mark(value)

    def _proxy(self, kind: type) -> Any:
        """The dict of a class, the same one each time."""
        return self._proxies.setdefault(id(kind), kind.__dict__)

    def _of_object(self, thing: Any, name: str) -> Iterable[Any]:
        kind = type(thing)
        raw = lookup(kind, name)
        if issubclass(kind, threading.local) and raw is MISSING:
            return self._of_thread(thing, name)
        own = own_attributes(thing)
        is_data = hasattr(type(raw), "__set__") or hasattr(type(raw), "__delete__")
        if raw is not MISSING and is_data:
            if not runs_python(raw):
                return self._of_slot(thing, name, raw)
            self.kind(thing)
            self.class_attribute(kind, name)
            return ()
        is_guarded = self.is_outside(thing) and not is_weft(kind.__module__)
        if name in own:
            if is_guarded:
                self._note_own(thing, own, name)
            return (self.mark(own[name]) if self.is_outside(thing) else own[name],)
        if is_guarded:
            self.kind(thing)
            if has_dict(thing):
                self._note_own(thing, own, name, raw)
            self.class_attribute(kind, name)
        return () if raw is MISSING else bound(raw, thing)

    def _of_thread(self, thing: Any, name: str) -> Iterable[Any]:
        """An attribute that each thread has of its own."""
        try:
            found = getattr(thing, name)
        except AttributeError:
            self.warn(f"looks for the attribute {name!r} of a thread")
            return ()
        if self.is_outside(thing):
            self.note(ATTRIBUTE, thing, name, found)
        return (self.mark(found),)

    def _note_own(self, thing: Any, own: dict[str, Any], name: str, hidden: Any = MISSING) -> None:
        if type(lookup(type(thing), "__getattribute__")) is FunctionType:
            self.note(ENTRY, own, name, own.get(name, MISSING))
        elif name in own:
            self.note(ATTRIBUTE, thing, name, own[name])
        else:
            self.note(SHADOW, thing, name, hidden)

    def _of_slot(self, thing: Any, name: str, raw: Any) -> Iterable[Any]:
        try:
            found = raw.__get__(thing, type(thing))
        except AttributeError:
            return ()
        is_weft_object = is_weft(type(thing).__module__) and not issubclass(type(thing), Tensor)
        is_view = issubclass(type(thing), np.ndarray) and name not in _OF_ARRAYS
        if name == "__dict__" or is_view or is_weft_object:
            return (self.mark(found) if self.is_outside(thing) else found,)
        is_stable = kept(found) is found or raw.__get__(thing, type(thing)) is found
        if not is_stable and self.is_outside(thing) and type(thing).__flags__ & HEAP:
            self.warn(f"reads {name!r} of a {type(thing).__name__}")
        if self.is_outside(thing) and is_stable:
            self.note(ATTRIBUTE, thing, name, found)
            self.mark(found)
        return (found,)
