"""Finds the function that a frame runs: Python shows its code, and the function has cells."""

from __future__ import annotations

import gc
import inspect
from types import CodeType, FunctionType
from typing import Any

from weft.tensor.jit.watch.guards import MISSING, own_attributes
from weft.tensor.jit.watch.lookup import lookup
from weft.tensor.jit.watch.reads import Reads


def find_function(reads: Reads, frame: Any) -> list[Any]:
    """The functions that a frame may run: of those with its code, the ones with its cells."""
    code = frame.f_code
    known = reads.functions.get(code, [])
    if not known and code.co_argcount:
        method = _method(reads, frame)
        known = [method] if method is not None else []
    if not known and code.co_freevars:
        known = [reads.mark(each) for each in _referrers(code) if each.__code__ is code]
    if len(known) > 1:
        known = [each for each in known if _has_cells(each, frame)]
    return known


def find_maker(frame: Any) -> Any:
    """The running frame that made this one's function: of a comprehension, a function inside.

    Its variables are those of the running call. What they have from outside is known already.
    """
    code, caller = frame.f_code, frame.f_back
    while caller is not None:
        if code in caller.f_code.co_consts:
            return caller
        caller = caller.f_back
    return None


def _referrers(code: CodeType) -> list[Any]:
    """Functions with this code. It looks at every object that there is."""
    return [each for each in gc.get_referrers(code) if type(each) is FunctionType]


def _has_cells(function: Any, frame: Any) -> bool:
    names = frame.f_locals
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            if cell.cell_contents is not names.get(name, MISSING):
                return False
        except ValueError:
            if name in names:
                return False
    return True


def _method(reads: Reads, frame: Any) -> Any:
    """The method that runs on its first argument, found in the class by its code."""
    code = frame.f_code
    thing = frame.f_locals.get(code.co_varnames[0])
    kinds = thing.__mro__ if issubclass(type(thing), type) else type(thing).__mro__
    for kind in kinds:
        raw = kind.__dict__.get(code.co_name, MISSING)
        if raw is MISSING:
            continue
        function = _function_of(raw)
        if function is not None and function.__code__ is code:
            reads.kind(thing)
            reads.class_attribute(kind, code.co_name)
            if lookup(kinds[0], code.co_name) is raw:  # a class before it may be given one
                reads.class_attribute(kinds[0], code.co_name)
            if reads.is_outside(kind):
                reads.mark(function)
            return function
    return None


def _function_of(raw: Any) -> Any:
    """The function behind a method, a property or a decorator."""
    for name in ("fget", "__func__", "func", "__wrapped__"):
        if type(raw) is FunctionType and "__wrapped__" not in own_attributes(raw):
            return raw
        found = inspect.getattr_static(raw, name, None)
        if found is not None and not hasattr(type(found), "__set__"):
            raw = found
        elif found is not None:
            raw = getattr(raw, name, raw)
    return raw if type(raw) is FunctionType else None
