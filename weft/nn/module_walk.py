"""How a module's parts are found: its tensors, and the modules below it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from weft.nn.parameter import is_parameter
from weft.support.errors import NotSupported, UnknownName
from weft.tensor.tensor import Tensor

# What a module keeps about itself.
PRIVATE = ("_own_parameters", "_own_buffers", "_hooks", "_mode")


class Unfinished:
    """Stands in a module where parameters will be, once its first input has come."""


class Found(NamedTuple):
    """A tensor below a module, and what it is there."""

    name: str
    tensor: Tensor
    is_parameter: bool
    is_buffer: bool
    is_state: bool


def parts_of(obj: Any) -> Iterator[tuple[str, Any]]:
    """The named parts of a module, a list, a dict or a plain object."""
    if isinstance(obj, Mapping):
        yield from ((str(key), part) for key, part in obj.items())
    elif isinstance(obj, (list, tuple)):
        yield from ((str(number), part) for number, part in enumerate(obj))
    elif not isinstance(obj, (type, str, bytes)) and not callable(getattr(obj, "uop", None)):
        own = getattr(obj, "__dict__", None)
        if isinstance(own, dict):
            yield from ((name, part) for name, part in own.items() if name not in PRIVATE)


def _is_module(obj: Any) -> bool:
    return hasattr(type(obj), "named_modules")


def tensors_below(obj: Any, prefix: str, recurse: bool) -> Iterator[Found]:
    """The tensors of a module, and with `recurse` those of everything below it."""
    yield from _tensors(obj, prefix, recurse, ())


def _tensors(obj: Any, prefix: str, recurse: bool, above: tuple[int, ...]) -> Iterator[Found]:
    if id(obj) in above:  # a part that refers to its whole
        return
    own = getattr(obj, "__dict__", {}) if _is_module(obj) else {}
    here: list[Found] = []
    later = []
    for name, part in parts_of(obj):
        path = f"{prefix}.{name}" if prefix else name
        if isinstance(part, Unfinished):
            raise NotSupported(
                f"{type(obj).__name__}: there are no parameters before the first input",
                facts=[("module", prefix or "itself")],
                rule="a lazy layer learns the size of its input from the first one",
                fix="call the model once before its parameters are asked for: model(x)",
            )
        if isinstance(part, Tensor):
            here.append(_described(path, name, part, own, _is_module(obj)))
        elif recurse or not _is_module(part):
            later.append((path, part))
    yield from sorted(here, key=lambda found: not found.is_parameter)  # as PyTorch lists them
    for path, part in later:
        if recurse:
            yield from _tensors(part, path, recurse, (*above, id(obj)))


def _described(path: str, name: str, tensor: Tensor, own: Any, in_module: bool) -> Found:
    if not in_module:
        trained = is_parameter(tensor)
        return Found(path, tensor, trained, False, trained)
    trained = name in own.get("_own_parameters", ())
    buffers = own.get("_own_buffers", {})
    is_saved = trained or buffers.get(name, False)
    return Found(path, tensor, trained, name in buffers, is_saved)


def children_of(obj: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The modules directly below, also those in lists, dicts and plain objects."""
    for name, part in parts_of(obj):
        path = f"{prefix}.{name}" if prefix else name
        if _is_module(part):
            yield path, part
        elif isinstance(part, (list, tuple, dict)):
            yield from children_of(part, path)


def inside(obj: Any, target: str) -> Any:
    """What a dotted name leads to."""
    at = obj
    for name in target.split("."):
        parts = dict(parts_of(at))
        if name not in parts:
            raise UnknownName(
                f"{type(obj).__name__} has no {target!r}", rule="a name is a path of attributes"
            )
        at = parts[name]
    return at
