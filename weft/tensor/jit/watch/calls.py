"""What a call reads that is not followed: one of a function of C, or of Weft itself.

A function of Python is followed when it runs. For the others this file says what they look at:
attributes by a computed name, items, the whole content of a container, or state of the machine
that nobody can guard, such as the clock; that warns.
"""

from __future__ import annotations

import abc
import builtins
import contextvars
import functools
import importlib
import operator
import sys
import weakref
from collections.abc import Iterable
from types import (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    FunctionType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any, Final

import numpy as np

from weft.tensor.jit.signature import WeakIdentity
from weft.tensor.jit.watch.guards import (
    CALL,
    HEAP,
    MISSING,
    items_of,
    own_attributes,
    subclass_ids,
)
from weft.tensor.jit.watch.known import (
    BLIND,
    CHANGES,
    CHANGES_UNREAD,
    GENERATORS,
    LOOKERS,
    NOW,
    OF_FRAMES,
    PURE_HOMES,
    SETTINGS,
    SHALLOW,
    SLOTS,
    SPECIAL,
    SPECIAL_OF_ITEMS,
)
from weft.tensor.jit.watch.lookup import is_standard, is_weft, lookup, plain
from weft.tensor.jit.watch.notes import CONTAINERS
from weft.tensor.jit.watch.reads import Reads

Arguments = list[tuple[Any, ...]]  # for each argument what it may be


def call(reads: Reads, callee: Any, args: Arguments, frame: Any) -> Iterable[Any]:
    """Note what a call reads, and give what it may return, where no frame of Python says that."""
    kind = type(callee)
    if kind is MethodType:
        function = callee.__func__
        if type(lookup(type(function), "__call__")) is WrapperDescriptorType:
            if type(function) is not FunctionType:  # of C, as NumPy's random numbers
                return _method(reads, callee.__self__, function.__name__, args)
        elif type(function) is not FunctionType:
            return call(reads, function, [(callee.__self__,), *args], frame)
        callee, kind = function, FunctionType
    if kind is FunctionType:
        reads.add_function(callee)
        if is_weft(callee.__module__):
            consume(reads, args, False)
        elif callee is importlib.import_module:
            return _module(reads, args, frame)
        return ()
    if kind is functools.partial:
        known = reads.mark if reads.is_outside(callee) else lambda thing: thing
        if reads.is_outside(callee):
            for name in ("func", "args", "keywords"):
                reads.note("attribute", callee, name, getattr(callee, name))
        known(callee.keywords)
        reads.content(callee.keywords)
        held = [(known(each),) for each in (*callee.args, *callee.keywords.values())]
        return call(reads, known(callee.func), [*held, *args], frame)
    if kind is functools._lru_cache_wrapper:
        reads.add_function(callee)
        return ()
    if kind is staticmethod:
        inner = callee.__func__
        return call(reads, reads.mark(inner) if reads.is_outside(callee) else inner, args, frame)
    if kind in LOOKERS:
        return _look(reads, callee, [value for each in args[:1] for value in each], frame)
    if issubclass(kind, type):
        return _construct(reads, callee, args, frame)
    method = lookup(kind, "__call__")
    if method is not MISSING and type(method) is not WrapperDescriptorType:
        return _call_object(reads, callee, method, args)
    if kind in (MethodDescriptorType, WrapperDescriptorType):  # dict.get(thing, key)
        return _unbound(reads, callee, args)
    return _builtin(reads, callee, args, frame)


def _call_object(reads: Reads, callee: Any, method: Any, args: Arguments) -> Iterable[Any]:
    reads.kind(callee)
    reads.class_attribute(type(callee), "__call__")
    wrapped = own_attributes(callee).get("__wrapped__")
    if wrapped is not None:
        if reads.is_outside(callee):
            reads.mark(wrapped)
        reads.add_function(wrapped)
    if wrapped is None and is_weft(type(callee).__module__):
        consume(reads, args, False)
    return ()


def cached(reads: Reads, callee: Any, args: Arguments, is_spread: bool) -> Iterable[Any]:
    """What a function gave that keeps its results, and ran nothing: it is what it gives again."""
    if is_spread or any(len(each) != 1 for each in args):
        reads.warn(f"calls {callee.__qualname__}, which keeps its results")
        return ()
    return reads.called(callee, tuple([each[0] for each in args]))


def _construct(reads: Reads, kind: Any, args: Arguments, frame: Any) -> Iterable[Any]:
    if kind is super:
        return _super(args, frame)
    if kind is type and len(args) == 1:
        for each in args[0]:
            reads.kind(each)
        return [type(each) for each in args[0]]
    _special(reads, kind, args)
    if kind in BLIND:
        return ()
    if kind.__name__ in NOW and not args:
        reads.warn(f"makes a {kind.__name__} without a seed")
    if kind.__module__ == "decimal":
        _decimal_context(reads)
    makers = [plain(lookup(kind, name)) for name in ("__init__", "__new__")]
    if kind.__flags__ & HEAP and not is_weft(kind.__module__):
        for name in ("__init__", "__new__"):
            reads.class_attribute(kind, name)
    if any(type(each) is FunctionType for each in makers) and not is_weft(kind.__module__):
        return ()
    if is_weft(kind.__module__):
        return consume(reads, args, False)
    return _shallow(reads, args)


def _super(args: Arguments, frame: Any) -> Iterable[Any]:
    code = frame.f_code
    kinds = args[0] if args else (frame.f_locals.get("__class__"),)
    things = args[1] if len(args) > 1 else (frame.f_locals.get(code.co_varnames[0]),)
    found: list[Any] = []
    for kind in kinds:
        for thing in things:
            try:
                found.append(super(kind, thing))
            except TypeError:
                continue
    return found


def _unbound(reads: Reads, callee: Any, args: Arguments) -> Iterable[Any]:
    if not args:
        return ()
    found: list[Any] = []
    for owner in args[0]:
        found += _method(reads, owner, callee.__name__, args[1:])
    return found


def _builtin(reads: Reads, callee: Any, args: Arguments, frame: Any) -> Iterable[Any]:
    if issubclass(type(callee), weakref.ref):
        return reads.called(callee, ())
    owner = getattr(callee, "__self__", None)
    name = getattr(callee, "__name__", type(callee).__name__)
    if issubclass(type(callee), (BuiltinFunctionType, MethodWrapperType)) and not (
        owner is None or _is_module(owner)
    ):
        return _method(reads, owner, name, args)
    if issubclass(type(callee), BuiltinFunctionType):
        _special(reads, callee, args)
        if callee in _OWN:
            found: Iterable[Any] = _OWN[callee](reads, args, frame)
            return found
        if callee in BLIND:
            return ()
        if callee in SHALLOW:
            return _shallow(reads, args)
    home = getattr(callee, "__module__", None) or type(callee).__module__
    if name in NOW and not args:
        reads.warn(f"calls {home}.{name}() without a seed")
    if name in SETTINGS:
        reads.warn(f"calls {home}.{name}")
    if home == "sys" and name in OF_FRAMES and is_standard(frame.f_code.co_filename):
        return ()
    return _opaque(reads, str(home), name, args)


def _special(reads: Reads, callee: Any, args: Arguments) -> None:
    """Methods of classes that a function of C looks for."""
    for value in (value for each in args for value in each):
        if callee in SPECIAL:
            reads.special(value, SPECIAL[callee])
        elif callee in SPECIAL_OF_ITEMS:
            for item in reads.content(value) or (value,):
                reads.special(item, SPECIAL_OF_ITEMS[callee])


def go_on(reads: Reads, value: Any) -> None:
    """Something is iterated; an iterator that was there before goes on from call to call."""
    if type(lookup(type(value), "__iter__")) is FunctionType:
        reads.kind(value)
    elif lookup(type(value), "__next__") is not MISSING and reads.is_outside(value):
        name = type(value).__name__
        article = "an" if name[0] in "aeiou" else "a"
        reads.warn(f"goes on with {article} {name} that was there before")


def _look(reads: Reads, looker: Any, things: list[Any], frame: Any) -> list[Any]:
    """What an `attrgetter` reads of things, or the method that a `methodcaller` calls."""
    _, parts = looker.__reduce__()
    names = parts if type(looker) is operator.attrgetter else parts[:1]
    result: list[Any] = []
    for name in names:
        found = list(things)
        for part in name.split(".") if type(name) is str else ():
            found = [value for thing in found for value in reads.attribute(thing, part)]
        result += found
    if type(looker) is operator.methodcaller:
        for method in result:
            call(reads, method, [], frame)
    return [*consume(reads, [tuple(things)], True), *result]


def _shallow(reads: Reads, args: Arguments) -> list[Any]:
    """The items of all arguments, or what has none as it is.

    A function of C among them, as `operator.attrgetter`, may look at all that the items have.
    """
    lookers = [value for each in args for value in each if type(value) in LOOKERS]
    if lookers:
        values = [value for each in args for value in each]
        items = [item for value in values for item in reads.content(value) or (value,)]
        for looker in lookers:
            _look(reads, looker, items, None)
        return consume(reads, args, True)
    _warn_of_given(reads, args)
    found: list[Any] = []
    for each in args:
        for value in each:
            go_on(reads, value)
            found += reads.content(value) or (value,)
            if issubclass(type(value), BuiltinFunctionType) and not _is_module(value.__self__):
                consume(reads, [(value.__self__,)], True)  # a method, as `get` of a dict
    return found


def _warn_of_given(reads: Reads, args: Arguments) -> None:
    """Functions of C that are handed over are called, as by `map`: the clock, the machine."""
    for value in (value for each in args for value in each):
        is_function = issubclass(type(value), BuiltinFunctionType) and _is_module(value.__self__)
        home = str(getattr(value, "__module__", None))
        if is_function and not is_known(home, value.__name__):
            reads.warn(f"calls {home}.{value.__name__}")


def is_known(home: str, name: str) -> bool:
    """Whether a function depends on its arguments alone."""
    return home.split(".")[0] in PURE_HOMES or f"{home}.{name}" in PURE_HOMES


def _is_module(thing: Any) -> bool:
    return issubclass(type(thing), ModuleType)


def _decimal_context(reads: Reads) -> None:
    """How decimal numbers are rounded, which the thread has set."""
    import decimal

    context = decimal.getcontext()
    for name in ("prec", "rounding"):
        reads.note("attribute", context, name, getattr(context, name))


def _opaque(reads: Reads, home: str, name: str, args: Arguments) -> Iterable[Any]:
    """A function of C that nobody knows: it may look at all of its arguments."""
    if not is_known(home, name):
        reads.warn(f"calls {home}.{name}")
    _warn_of_given(reads, args)
    for value in (value for each in args for value in each):
        if not issubclass(type(value), (np.ndarray, np.generic)) and reads.is_outside(value):
            found = own_attributes(value).get("__array_interface__", MISSING)
            if found is not MISSING or lookup(type(value), "__array_interface__") is not MISSING:
                reads.warn(f"reads the memory that a {type(value).__name__} has the address of")
    return consume(reads, args, True)


def consume(reads: Reads, args: Arguments, with_objects: bool) -> list[Any]:
    found: list[Any] = []
    for each in args:
        for value in each:
            found += reads.deep_content(value, with_objects)
    return found


def _method(reads: Reads, owner: Any, name: str, args: Arguments) -> Iterable[Any]:
    """A method of C on an object."""
    kind = type(owner)
    if issubclass(kind, GENERATORS):
        reads.draw(owner)
        return ()
    if issubclass(kind, CONTAINERS):
        return _container_method(reads, owner, name, args)
    if name == "__getattribute__" and args:
        return [
            found for key in args[-1] if type(key) is str for found in reads.attribute(owner, key)
        ]
    if name in ("__setattr__", "__delattr__") and args:
        for key in args[0]:
            reads.write(owner, key)
        return ()
    if name in ("__next__", "send", "throw"):
        return _next(reads, [(owner,)], None)
    if issubclass(kind, contextvars.ContextVar) and name == "get":
        default = [each[0] for each in args if each][:1]
        found = reads.called(owner.get, tuple(default))
        return found or reads.called(owner.get, (MISSING,))
    if name == "__get__" and kind in SLOTS and args:
        return [found for thing in args[0] for found in reads.attribute(thing, owner.__name__)]
    if name == "cache_info" and reads.is_outside(owner):
        reads.warn(f"asks {kind.__name__} for its counts")
    if name == "locked" and reads.is_outside(owner):
        reads.warn(f"asks whether a {kind.__name__} is locked")
    if issubclass(kind, np.ndarray):
        reads.content(owner)
        return consume(reads, args, True)
    if issubclass(kind, type):
        if name in NOW:
            reads.warn(f"calls {kind_name(owner)}.{name}")
        if name == "mro":
            reads.attribute(owner, "__mro__")
            return list(owner.__mro__)
        if name == "__subclasses__":
            reads.note(CALL, subclass_ids, (WeakIdentity(owner),), subclass_ids(owner))
            return type.__subclasses__(owner)
        return consume(reads, args, True)
    if name in ("__init__", "__new__", "__init_subclass__"):
        return ()
    # A class of the user's may have the method from one of Python's.
    homes = [each for each in kind.__mro__ if _is_of_c(each.__dict__.get(name))]
    is_known = (homes[0] if homes else kind).__module__.split(".")[0] in PURE_HOMES
    if reads.is_outside(owner) and not is_known:
        reads.warn(f"calls {kind.__module__}.{kind.__name__}.{name}")
    return consume(reads, [(owner,), *args], True)


def _is_of_c(raw: Any) -> bool:
    return type(raw) in (MethodDescriptorType, WrapperDescriptorType, ClassMethodDescriptorType)


def kind_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _container_method(reads: Reads, owner: Any, name: str, args: Arguments) -> Iterable[Any]:
    is_keyed = name in ("get", "__getitem__", "setdefault") and issubclass(type(owner), dict)
    if (is_keyed or name == "__getitem__") and args and len(args[0]) == 1:
        found = list(reads.item(owner, args[0][0]))
        return found or [value for each in args[1:] for value in each]
    if name in CHANGES:
        if name not in CHANGES_UNREAD:
            reads.content(owner)
        reads.change(owner)
        given = consume(reads, args, False) if name in ("extend", "update") else []
        return [*items_of(owner), *given]
    return [*reads.content(owner), *consume(reads, args, False)]


def _next(reads: Reads, args: Arguments, frame: Any) -> Iterable[Any]:
    for value in args[0]:
        step = lookup(type(value), "__next__")
        if reads.is_outside(value) and step is not MISSING and type(step) is not FunctionType:
            reads.warn(f"takes the next item of a {type(value).__name__}")
    return [value for each in args for value in each]


def _getattr(reads: Reads, args: Arguments, frame: Any) -> Iterable[Any]:
    if len(args) < 2:
        return consume(reads, args, True)
    found: list[Any] = []
    for thing in args[0]:
        for name in args[1]:
            if type(name) is str:
                found += reads.attribute(thing, name)
        if not any(type(name) is str for name in args[1]):  # a computed name: any of them
            found += reads.deep_content(thing, True)
    return [*found, *(value for each in args[2:] for value in each)]


def _vars(reads: Reads, args: Arguments, frame: Any) -> Iterable[Any]:
    if not args:
        return ()
    found = []
    for thing in args[0]:
        own = own_attributes(thing)
        found.append(reads.mark(own) if reads.is_outside(thing) else own)
    return found


def _globals(reads: Reads, args: Arguments, frame: Any) -> Iterable[Any]:
    return (reads.mark(frame.f_globals),)


def _module(reads: Reads, args: Arguments, frame: Any) -> Iterable[Any]:
    """An import by a function: the module is an entry of the table of modules."""
    names = [name for name in (args[0] if args else ()) if type(name) is str]
    for name in names:
        if not is_weft(name):
            reads.module(name)
    return [sys.modules[name] for name in names if name in sys.modules]


def _is_of_class(reads: Reads, args: Arguments, frame: Any) -> Iterable[Any]:
    """What is of a class: of an abstract one that can change, for classes are registered."""
    for thing in args[0] if args else ():
        reads.kind(thing)
    if len(args) == 2:
        kinds = [part for each in args[1] for part in (each if type(each) is tuple else (each,))]
        for kind in kinds:
            if type(kind) is abc.ABCMeta and not is_weft(kind.__module__):
                for thing in args[0]:
                    own = thing if issubclass(type(thing), type) else type(thing)
                    reads.called(issubclass, (own, kind))
    return ()


def _dir(reads: Reads, args: Arguments, frame: Any) -> Iterable[Any]:
    for thing in args[0] if args else ():
        if reads.is_outside(thing):
            reads.content(reads.mark(own_attributes(thing)))
    return ()


def _outside_world(name: str) -> Any:
    def handler(reads: Reads, args: Arguments, frame: Any) -> Iterable[Any]:
        reads.warn(f"calls {name}")
        return ()

    return handler


_OWN: Final[dict[Any, Any]] = {
    getattr: _getattr,
    hasattr: _getattr,
    vars: _vars,
    globals: _globals,
    dir: _dir,
    next: _next,
    input: _outside_world("input"),
    open: _outside_world("open"),
    builtins.__import__: _module,
    isinstance: _is_of_class,
    issubclass: _is_of_class,
}
