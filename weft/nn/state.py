"""The tensors of a model by name, and how loaded ones replace them.

A model is any object: attributes, lists, tuples and dicts are walked, and a name is the path to a
tensor, as in PyTorch (`layers.0.weight`).
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any, NamedTuple

from weft.io import (
    gguf_load,
    safe_load,
    safe_load_metadata,
    safe_save,
    tar_extract,
    torch_load,
    zip_extract,
)
from weft.ir.dtypes import DType, dtypes
from weft.nn.module_walk import PRIVATE, tensors_below
from weft.support.errors import ArgumentError
from weft.support.message import nearest
from weft.support.module_names import missing_name
from weft.tensor.jit.jit import Jit
from weft.tensor.tensor import Tensor

__all__ = [
    "get_parameters",
    "get_state_dict",
    "gguf_load",
    "load_state_dict",
    "safe_load",
    "safe_load_metadata",
    "safe_save",
    "tar_extract",
    "torch_load",
    "zip_extract",
]

# An error lists this many names of each kind; the rest is counted.
_SHOWN = 8


def get_state_dict(obj: Any, prefix: str = "", tensor_type: type = Tensor) -> dict[str, Any]:
    """Return every tensor below an object by the path to it.

    >>> from weft.nn.linear import Linear
    >>> list(get_state_dict([Linear(2, 3), {"scale": Tensor([1.0])}]))
    ['0.weight', '0.bias', '1.scale']
    """
    return dict(_tensors(obj, prefix.strip("."), tensor_type, ()))


def _tensors(
    obj: Any, path: str, tensor_type: type, above: tuple[int, ...]
) -> Iterator[tuple[str, Any]]:
    if isinstance(obj, tensor_type):
        yield path, obj
        return
    if id(obj) in above:  # a part that refers to its whole
        return
    for name, part in _parts(obj):
        inner = f"{path}.{name}" if path else name
        yield from _tensors(part, inner, tensor_type, (*above, id(obj)))


def _parts(obj: Any) -> Iterator[tuple[str, Any]]:
    """The named parts of a list, a dict or an object; nothing of anything else."""
    if isinstance(obj, Jit):  # its traces are not part of a model; an object that it calls is
        obj = obj.function
    if isinstance(obj, Mapping):
        yield from ((str(key), part) for key, part in obj.items())
    elif hasattr(type(obj), "_asdict"):
        yield from obj._asdict().items()
    elif isinstance(obj, (list, tuple)):
        yield from ((str(number), part) for number, part in enumerate(obj))
    elif not isinstance(obj, (type, ModuleType)):
        own = getattr(obj, "__dict__", None)
        if isinstance(own, dict):
            yield from ((name, part) for name, part in own.items() if name not in PRIVATE)


def get_parameters(obj: Any) -> list[Tensor]:
    """Return every tensor below an object once, those that require no gradient too.

    An optimizer tells parameters from state by `requires_grad`. Of an `nn.Module` these are its
    parameters and buffers: a constant that it has is none of them.

    >>> from weft.nn.linear import Linear
    >>> [each.shape for each in get_parameters(Linear(2, 3))]
    [(3, 2), (3,)]
    """
    if hasattr(type(obj), "named_modules"):
        listed = [f.tensor for f in tensors_below(obj, "", True) if f.is_parameter or f.is_buffer]
    else:
        listed = list(get_state_dict(obj).values())
    return list({id(each): each for each in listed}.values())


class _Mismatch(NamedTuple):
    """What differs between a state dict and a model."""

    missing: list[str]
    unexpected: list[str]
    wrong: list[tuple[str, ...]]  # name, what it is in the model, what it is in the dict


def load_state_dict(
    model: Any,
    state_dict: dict[str, Tensor],
    strict: bool = True,
    verbose: bool = True,
    consume: bool = False,
    realize: bool = True,
) -> list[Tensor]:
    """Give the tensors of a model the values of a dict with the same names, and return them.

    A value comes to the device and dtype of the model's tensor; the state dict keeps its own
    memory. Where `strict`, each name must be on both sides, and no cast may lose anything; else
    those that match are loaded, and `verbose` prints what was left out. Shapes must always agree.
    `consume` takes loaded values out of the dict, so that memory can go early.

    >>> from weft.nn.linear import Linear
    >>> first, second = Linear(2, 1), Linear(2, 1)
    >>> _ = load_state_dict(first, get_state_dict(second))
    >>> first.weight.tolist() == second.weight.tolist()
    True
    """
    own = get_state_dict(model)
    loaded, found = _load(own, state_dict, strict, consume)
    if verbose and (found.missing or found.unexpected):
        for word, names in (("missing", found.missing), ("unexpected", found.unexpected)):
            if names:
                print(f"load_state_dict: {word}: {', '.join(names)}", file=sys.stderr)
    if realize and loaded:
        loaded[0].realize(*loaded[1:])
    return loaded


def load_into(
    own: Mapping[str, Tensor], given: dict[str, Any], strict: bool, title: str
) -> tuple[list[str], list[str]]:
    """Load by name for a module called `title`; the names that only one side has."""
    values = {
        name: each if isinstance(each, Tensor) else Tensor(each) for name, each in given.items()
    }
    loaded, found = _load(own, values, strict, False, title)
    if loaded:
        loaded[0].realize(*loaded[1:])
    return found.missing, found.unexpected


def _load(
    own: Mapping[str, Tensor],
    given: dict[str, Tensor],
    strict: bool,
    consume: bool,
    title: str = "",
) -> tuple[list[Tensor], _Mismatch]:
    found = _compare(own, given, strict)
    if found.wrong or (strict and (found.missing or found.unexpected)):
        raise _error(found, own, given, strict, title)
    loaded = []
    for name, tensor in own.items():
        if name in given:
            value = given.pop(name) if consume else given[name]
            requires_grad = tensor._wants
            tensor.replace(_copied(value, tensor))
            tensor.requires_grad = requires_grad
            loaded.append(tensor)
    return loaded, found


def _copied(value: Tensor, target: Tensor) -> Tensor:
    """The value in a storage of its own, as the model's tensor needs it."""
    value = value.detach()
    moved = value.to(target.device) if isinstance(target.device, str) else value.shard_like(target)
    return moved.cast(target.dtype)._same()


def _compare(own: Mapping[str, Tensor], given: Mapping[str, Tensor], strict: bool) -> _Mismatch:
    wrong: list[tuple[str, ...]] = []
    for name in own.keys() & given.keys():
        mine, theirs = own[name], given[name]
        if mine.shape != theirs.shape:
            wrong.append((name, str(mine.shape), str(theirs.shape)))
        elif strict and _loses(theirs.dtype, mine.dtype):
            wrong.append((name, mine.dtype.name, theirs.dtype.name))
    return _Mismatch(
        [name for name in own if name not in given],
        [name for name in given if name not in own],
        sorted(wrong),
    )


def _loses(source: DType, target: DType) -> bool:
    """Whether a cast changes the kind of number, or makes it narrower."""
    return source is not target and (source.kind != target.kind or source.bits > target.bits)


def _error(
    found: _Mismatch,
    own: Mapping[str, Tensor],
    given: Mapping[str, Tensor],
    strict: bool,
    title: str,
) -> ArgumentError:
    rows: list[tuple[str, ...]] = []
    for name, mine, theirs in found.wrong[:_SHOWN]:
        kind = "shape" if mine.startswith("(") else "dtype"
        rows.append((kind, name, f"{mine} in the model", f"{theirs} in the dict"))
    lists = (("missing", found.missing, given), ("unexpected", found.unexpected, own))
    for word, names, others in lists if strict else ():
        for name in names[:_SHOWN]:
            guess = nearest(name, others)
            rows.append((word, name, f"the nearest is {guess}") if guess else (word, name))
        if len(names) > _SHOWN:
            rows.append((word, f"and {len(names) - _SHOWN} more"))
    counts = [
        f"{len(names)} {word}"
        for word, names in (
            ("missing", found.missing if strict else []),
            ("unexpected", found.unexpected if strict else []),
            ("of another shape or dtype", found.wrong),
        )
        if names
    ]
    only_names = not found.wrong
    return ArgumentError(
        f"load_state_dict: {title or 'the model'} and the dict differ ({', '.join(counts)})",
        facts=rows,
        rule="each tensor of the model has one of its name and shape in the dict, and none is left"
        if strict
        else "tensors of one name have one shape",
        fix="to load only what matches, pass strict=False" if only_names else "",
    )


class TensorIO(io.RawIOBase):
    """A tensor of bytes as a file that can be read. tinygrad: TensorIO.

    >>> TensorIO(Tensor(b"abc")).read(2)
    b'ab'
    """

    def __init__(self, t: Tensor) -> None:
        if t.ndim != 1 or t.dtype is not dtypes.uint8:
            raise ArgumentError(
                f"TensorIO: a tensor of {t.dtype.name} with {t.ndim} axes",
                rule="a file is bytes: uint8 along one axis",
            )
        self._tensor, self._position = t, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        end = int(self._tensor.numel())
        if size is not None and size >= 0:
            end = min(end, self._position + size)
        part = self._tensor[self._position : end]
        self._position = max(self._position, end)
        return bytes(part.data()) if part.numel() else b""

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = 0, /) -> int:
        start = (0, self._position, int(self._tensor.numel()))[whence]
        self._position = min(int(self._tensor.numel()), max(0, start + offset))
        return self._position

    def tell(self) -> int:
        return self._position


__getattr__ = missing_name(__name__)
