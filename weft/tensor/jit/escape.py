"""Tensors that leave a traced function by another way than being returned.

They stand for values that only exist while the trace runs, so a later use raises, with the line
that made the tensor and the line that put it where it was found.
"""

from __future__ import annotations

import dis
import functools
import gc
from collections.abc import Collection, Iterable, Iterator
from types import CellType, CodeType, FrameType, ModuleType
from typing import Any, Final, NamedTuple

from weft.ir.walk import topological
from weft.support.errors import NotSupported
from weft.support.source_line import SourceLine
from weft.tensor.core import Core
from weft.tensor.storage import Storage
from weft.tensor.trace.state import Reason, retire
from weft.tensor.trees import Structure, flatten

_FILLS: Final = ("append", "add", "extend", "insert", "setdefault", "update", "appendleft", "put")
_STORES: Final = ("STORE_ATTR", "STORE_GLOBAL", "STORE_NAME", "STORE_DEREF", "STORE_FAST")
_STORES_ITEMS: Final = ("STORE_SUBSCR", "STORE_SLICE")


class _Owner(NamedTuple):
    """Where a tensor was found, in words; the name it has there, or None.

    Of several holders the one of the lowest rank says most.
    """

    words: str
    name: str | None
    rank: int


def require_unchanged(
    function: str, given: Any, structure: Structure, leaves: list[Any], names: list[str]
) -> None:
    """Raise if a function put something else into the containers that it was given."""
    after: list[Any] = []
    if flatten(given, after) == structure:
        changed = [n for n, (a, b) in enumerate(zip(after, leaves, strict=True)) if a is not b]
        if not changed:
            return
        what = names[changed[0]]
    else:
        what = "a list, dict or dataclass among its arguments"
    raise NotSupported(
        f"jit: {function} changes {what}",
        rule="a jitted function is traced once and replayed; what it does to tensors is repeated\n"
        "and what it puts into lists, dicts and objects is not",
        fix="return what is new, or write it to a tensor that was there before: kept.assign(...)",
    )


def mark_escaped(storages: Collection[Storage], function: str, code: CodeType | None) -> None:
    """Let every later use of these storages, which were made in a trace, raise."""
    nodes = topological(*(storage.uop for storage in storages))  # one walk: they share most
    codes = {node.line.code: None for node in nodes if node.line is not None}
    for storage in storages:
        made = storage.uop.line
        own = None if made is None else made.code
        seen = {each: None for each in (code, own, *codes) if each is not None}
        error = functools.partial(_error, function, made, tuple(seen))
        retire(storage, Reason(f"it was made while {function} was traced", error))


def _error(
    function: str, made: SourceLine | None, codes: tuple[CodeType, ...], storage: Storage
) -> NotSupported:
    holder = _find_holder(storage)
    facts: list[tuple[str, ...]] = []
    if made is not None and made.file:
        facts.append(("made at", f"{made.file}:{made.line}", made.text))
    escaped = made if holder.name == "grad" else find_store(codes, holder.name)
    if escaped is not None and escaped.file:
        facts.append(("escaped at", f"{escaped.file}:{escaped.line}", escaped.text))
    facts.append(("found in", holder.words))
    return NotSupported(
        f"this tensor was made while {function} was traced, and has no value outside",
        facts=facts,
        rule="a jitted function is traced once and replayed; it gives away the tensors that it\n"
        "returns and those that it writes to",
        fix="return it, or clear .grad before backward"
        if holder.name == "grad"
        else "return it, or write it to a tensor that was there before: kept.assign(...)",
    )


def _find_holder(storage: Storage) -> _Owner:
    """Who holds a tensor of this storage: a gradient, an attribute, a container."""
    tensors = [each for each in gc.get_referrers(storage) if isinstance(each, Core)]
    found = []
    for tensor in tensors:
        holders = gc.get_referrers(tensor)
        found += [
            described
            for holder in holders
            if holder is not tensors and (described := _describe(holder, tensor)) is not None
        ]
    return min(found, key=lambda holder: holder.rank, default=_Owner("a variable", None, 9))


def _describe(holder: Any, tensor: Core) -> _Owner | None:
    if isinstance(holder, Core):
        return _Owner("the attribute grad of a tensor", "grad", 0)
    if isinstance(holder, dict):
        for key, value in holder.items():
            if value is tensor and isinstance(key, str):
                owner = _owner_of(holder)
                if owner is not None:
                    return _Owner(f"the attribute {key} of a {owner}", key, 1)
                return _Owner(f"the name {key!r}", key, 2)
        return _Owner("a dict", "[]", 3)
    if isinstance(holder, (list, set)):
        return _Owner(f"a {type(holder).__name__}", "[]", 3)
    if isinstance(holder, CellType):
        return _Owner("a variable of an enclosing function", None, 4)
    for name, value in getattr(holder, "__dict__", {}).items():
        if value is tensor:
            return _Owner(f"the attribute {name} of a {type(holder).__name__}", name, 1)
    return None


def _owner_of(names: dict[str, Any]) -> str | None:
    """The type of the object whose attributes these are, if they are those of an object."""
    for owner in gc.get_referrers(names):
        is_object = not isinstance(owner, (ModuleType, dict, FrameType))
        if is_object and getattr(owner, "__dict__", None) is names:
            return type(owner).__name__
    return None


def find_store(codes: Iterable[CodeType], name: str | None) -> SourceLine | None:
    """The line of the traced code that put something there; `[]` is the name of an item."""
    if name is None:
        return None
    for code in codes:
        for instruction in _instructions(code):
            is_store = instruction.opname.startswith(_STORES) and name in _stored(instruction)
            is_fill = name == "[]" and (
                instruction.opname in _STORES_ITEMS
                or (instruction.opname.startswith("LOAD_") and instruction.argval in _FILLS)
            )
            if is_store or is_fill:
                return SourceLine(code, instruction.offset)
    return None


def _stored(instruction: dis.Instruction) -> tuple[Any, ...]:
    """The names that an instruction stores to; from 3.13 on some are of two variables."""
    names = instruction.argval
    return names[: instruction.opname.count("STORE")] if isinstance(names, tuple) else (names,)


def _instructions(code: CodeType) -> Iterator[dis.Instruction]:
    yield from dis.get_instructions(code)
