"""How a function reads objects that were there before it ran.

`frame.py` says which instruction reads what; this file knows how Python looks it up, and
`notes.py` keeps a guard of it.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Iterable
from types import (
    FrameType,
    FunctionType,
    MethodType,
    ModuleType,
)
from typing import Any, Final

import numpy as np

from weft.ir.uop import UOp
from weft.tensor.jit.watch.guards import (
    ATTRIBUTE,
    CALL,
    CONTENT,
    ENTRY,
    HEAP,
    ITEM,
    MISSING,
    SHADOW,
    TYPE,
    Content,
    is_empty,
    is_scalar,
    kept,
    own_attributes,
)
from weft.tensor.jit.watch.lookup import (
    bound,
    data_names,
    has_dict,
    is_weft,
    lookup,
    plain,
    runs_python,
)
from weft.tensor.jit.watch.notes import CONTAINERS, Notes
from weft.tensor.tensor import Tensor

_PROXIES: Final = (weakref.ProxyType, weakref.CallableProxyType)
# What an array has beside its elements, and can be given anew.
_OF_ARRAYS: Final = ("shape", "strides", "dtype", "ndim", "size", "nbytes", "itemsize")


class Reads(Notes):
    """Looks things up as Python does, and notes what it finds."""

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
        """An item of an object of C that is not a container of Python's."""
        raw = lookup(type(thing), "__getitem__")
        if raw is MISSING or not self.is_outside(thing) or is_weft(type(thing).__module__):
            return
        try:
            if issubclass(type(thing), ctypes._Pointer):  # its buffer is the address
                raise TypeError
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
        if found is MISSING:  # a function of the module may make it
            self.entry(scope, "__getattr__")
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
        for kind in after:  # one of those before its home may be given it
            if kind is home:
                break
            self._note_lack(kind, name)
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
                self._note_lack(each, name)
            return
        if is_weft(home.__module__):
            return
        value = plain(raw)
        is_stable = type(raw) is staticmethod or not hasattr(type(raw), "__get__")
        is_stable = is_stable or type(raw) in (FunctionType, property)
        if is_stable and type(kind) is type:
            self.note(ATTRIBUTE, kind, name, value)
        else:
            for each in kind.__mro__[: kind.__mro__.index(home)]:
                self._note_lack(each, name)
            self.note(ENTRY, self._proxy(home), name, raw)
        self.mark(value)

    def _note_lack(self, kind: type, name: str) -> None:
        """Guard that a class has no attribute of its own under a name."""
        if kind.__flags__ & HEAP and not is_weft(kind.__module__) and name not in kind.__dict__:
            self.note(ENTRY, self._proxy(kind), name, MISSING)

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
        except AttributeError:  # a slot that is not filled yet
            if self.is_outside(thing):
                self.note(CALL, is_empty, (raw, kept(thing)), True)
            return ()
        is_weft_object = is_weft(type(thing).__module__) and not issubclass(type(thing), Tensor)
        is_view = issubclass(type(thing), np.ndarray) and name not in _OF_ARRAYS
        if name == "__dict__" or is_view or is_weft_object:
            return (self.mark(found) if self.is_outside(thing) else found,)
        is_stable = kept(found) is found or raw.__get__(thing, type(thing)) is found
        is_changeable = type(thing).__flags__ & HEAP or type(thing) is FrameType
        if not is_stable and self.is_outside(thing) and is_changeable:
            self.warn(f"reads {name!r} of a {type(thing).__name__}")
        if self.is_outside(thing) and is_stable:
            self.note(ATTRIBUTE, thing, name, found)
            self.mark(found)
        return (found,)
