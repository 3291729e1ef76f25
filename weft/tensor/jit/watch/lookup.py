"""How Python finds an attribute, without running the user's code; and whose code a file has."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any, Final

import numpy as np

from weft.tensor.jit.watch.guards import MISSING

# The parts of Weft that have state of the user's.
LAYERS: Final = ("weft.nn", "weft.llm")
# Among them, functions of their arguments alone: an optimizer's update reads what it is given.
PURE: Final = (
    "weft.nn.optim.method",
    "weft.nn.optim.adaptive",
    "weft.nn.optim.descent",
    "weft.nn.optim.rule_bodies",
)
WEFT: Final = str(Path(__file__).parents[3]) + os.sep
STANDARD: Final = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_LIBRARY: Final = (WEFT, STANDARD, "<frozen ")
_PYTHON_DESCRIPTORS: Final = (property, functools.cached_property)


def is_of_library(file: str) -> bool:
    """Whether a file is of Weft, of the standard library or of an installed package."""
    return file.startswith(_LIBRARY) or "-packages" in file


def is_standard(file: str) -> bool:
    """Whether a file is of the standard library."""
    return file.startswith((STANDARD, "<frozen ")) and "-packages" not in file


def random_state() -> Any:
    return np.random.mtrand._rand


def is_weft(module: Any) -> bool:
    """Whether a module is a part of Weft that is the same in every call."""
    name = module if type(module) is str else ""
    return name.split(".")[0] == "weft" and (not name.startswith(LAYERS) or name in PURE)


def has_dict(thing: Any) -> bool:
    return type(thing).__dictoffset__ != 0


def lookup(kind: type, name: str) -> Any:
    """What a class or one above it has under a name, as it stands there."""
    for each in kind.__mro__:
        if name in each.__dict__:
            return each.__dict__[name]
    return MISSING


def data_names(kind: type) -> list[str]:
    """The attributes that a class of the user's has for its objects, methods left out."""
    return [
        name
        for each in kind.__mro__
        if each.__flags__ & 1 << 9  # one that can be changed
        for name, value in each.__dict__.items()
        if not name.startswith("__") and not hasattr(type(value), "__get__")
    ]


def plain(raw: Any) -> Any:
    return raw.__func__ if type(raw) is staticmethod else raw


def runs_python(descriptor: Any) -> bool:
    """Whether reading an attribute runs a function of Python, which is followed."""
    kind = type(descriptor)
    getter = lookup(kind, "__get__")
    return type(getter) is FunctionType or issubclass(kind, _PYTHON_DESCRIPTORS)


def bound(raw: Any, thing: Any) -> Iterable[Any]:
    """What an attribute of a class is for an object."""
    kind = type(raw)
    if kind is FunctionType:
        return (MethodType(raw, thing),)
    if kind is classmethod:
        owner = thing if issubclass(type(thing), type) else type(thing)
        return (MethodType(raw.__func__, owner),)
    if kind is staticmethod:
        return (raw.__func__,)
    if lookup(kind, "__get__") is MISSING:
        return (raw,)
    if runs_python(raw):
        return ()
    try:
        return (raw.__get__(thing, type(thing)),)
    except Exception:
        return ()
