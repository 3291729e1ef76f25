"""Which part of the user's model a line runs in: `GPT.blocks.3.qkv`, found from the call stack.

A trace asks for it when a node is made, so that models need no base class and no names: a frame of
`__call__` or `forward` whose `self` is a layer, or holds tensors or layers, is a module, and its
name is the attribute by which the module around it holds it. Models that are functions of weights
name their parts themselves: `with part("Llama.layers.3"):`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

_CALLS: Final = frozenset(("__call__", "forward"))
_LAYERS: Final = ("weft.nn.", "weft.llm.")
_TENSORS: Final = "weft.tensor."
_DEPTH: Final = 3
# Classes of the user whose objects were found to be modules.
_MODULES: Final[set[type]] = set()


class _Here(threading.local):
    """The parts that a thread is in."""

    def __init__(self) -> None:
        self.parts: list[str] = []


_HERE: Final = _Here()


@contextmanager
def part(name: str) -> Iterator[None]:
    """What is made in this scope belongs to a part of a model with this name."""
    _HERE.parts.append(name)
    try:
        yield
    finally:
        _HERE.parts.pop()


def module_path(frame: FrameType | None) -> str:
    """The modules that run in this frame, outermost first; empty outside of any."""
    names: list[str] = []
    inner: Any = None
    while frame is not None:
        code = frame.f_code
        if code.co_name in _CALLS and code.co_varnames[:1] == ("self",):
            module = frame.f_locals.get("self")
            if inner is None:
                inner = module if is_module(module) else None
            elif module is not inner and (name := name_in(module, inner)):
                names.append(name)
                inner = module
        frame = frame.f_back
    found = [] if inner is None else [type(inner).__name__, *reversed(names)]
    return ".".join([*_HERE.parts, *found])


def is_module(thing: object, depth: int = _DEPTH) -> bool:
    """Whether an object is a layer of Weft, or one of the user that holds tensors or layers."""
    kind = type(thing)
    if kind.__module__.startswith("weft."):
        return kind.__module__.startswith(_LAYERS)
    if kind in _MODULES:
        return True
    for _, value in _held(thing):
        package = type(value).__module__
        if package.startswith((*_LAYERS, _TENSORS)) or (depth and _is_callable(value, depth)):
            _MODULES.add(kind)
            return True
    return False


def _is_callable(thing: object, depth: int) -> bool:
    return any(name in vars(type(thing)) for name in _CALLS) and is_module(thing, depth - 1)


def name_in(outer: object, inner: object) -> str:
    """By which name an object holds another, as `blocks.3`; empty where it does not."""
    return next((name for name, value in _held(outer) if value is inner), "")


def _held(thing: object) -> Iterator[tuple[str, object]]:
    """What an object has as attributes, and in lists and dicts that are attributes."""
    for name, value in getattr(thing, "__dict__", {}).items():
        yield name, value
        if isinstance(value, (list, tuple)):
            for number, item in enumerate(value):
                yield f"{name}.{number}", item
        elif isinstance(value, dict):
            for key, item in value.items():
                yield f"{name}.{key}", item
