"""What a trace has read of Python, as checks that every call makes before it replays.

A `Guard` is a location and what was there. `State.holds` evaluates all of them in one generated
function, without a call of the user's code: an attribute costs about as much as reading it.
Objects are held weakly where Python allows, so a trace keeps no model alive.
"""

from __future__ import annotations

import array
import functools
import keyword
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from types import MappingProxyType
from typing import Any, Final, NamedTuple
from weakref import ref

from weft.ir.uop import UOp
from weft.support.source_line import SourceLine
from weft.tensor.core import Core
from weft.tensor.jit.host import KeptArray
from weft.tensor.jit.signature import SCALARS, WeakIdentity

MISSING: Final = type("Missing", (), {"__repr__": lambda self: "missing"})()
HEAP: Final = 1 << 9  # the flag of a class that can be changed
BUFFERS: Final = (bytearray, memoryview, array.array)
_ITERATED: Final = (list, tuple, set, frozenset, deque)
# Kinds of locations.
ATTRIBUTE: Final = "attribute"  # of an object, a class
SHADOW: Final = "shadow"  # an attribute of the class that the object has no own one of
TYPE: Final = "type"  # the class of an object
ENTRY: Final = "entry"  # of a dict: globals, modules, classes, instances
ITEM: Final = "item"  # of a list
CELL: Final = "cell"  # a variable of an enclosing function
CONTENT: Final = "content"  # all of a container, or of an array
CALL: Final = "call"  # of a context variable, a weak reference, a cached function


class Content:
    """The items of a container, by identity, in its order."""

    __slots__ = ("__weakref__", "_ids", "_refs", "items")

    def __init__(self, items: list[Any]) -> None:
        self.items = [kept(item) for item in items]
        # Numbers tell objects apart as long as all of them live.
        self._ids: list[int] | None = list(map(id, items))
        forget = functools.partial(_forget_ids, ref(self))
        self._refs = [ref(item, forget) for item in items if kept(item).__class__ is WeakIdentity]

    @classmethod
    def of(cls, container: Any) -> Content:
        return cls(items_of(container))

    def forget_ids(self) -> None:
        self._ids = None

    def is_in(self, container: Any) -> bool:
        found = container if container.__class__ is list else items_of(container)
        if list(map(id, found)) == self._ids:
            return True
        return len(found) == len(self.items) and all(map(_agrees, found, self.items))


def _forget_ids(content: ref[Content], _: ref[Any]) -> None:
    if (found := content()) is not None:
        found.forget_ids()


def items_of(container: Any) -> list[Any]:
    """All that a container of C has, without a call of the user's code; an array is its bytes."""
    kind = type(container)
    if issubclass(kind, OrderedDict):  # which has an order of its own
        keys = list(OrderedDict.__iter__(container))
        return [*keys, *(dict.__getitem__(container, key) for key in keys)]
    if issubclass(kind, dict):
        return [*dict.keys(container), *dict.values(container)]
    if issubclass(kind, MappingProxyType):
        return [*container.keys(), *container.values()]
    own: Any = next((each for each in kind.__mro__ if each in _ITERATED), None)
    if own is None:
        return [bytes(memoryview(container))]
    return list(own.__iter__(container))  # also where a subclass iterates in its own way


class Guard(NamedTuple):
    """A location, as an owner and a key, and what was there."""

    kind: str
    owner: Any
    key: Any
    value: Any
    line: SourceLine

    @property
    def name(self) -> Any:
        """What the location is called in a message."""
        return f"a {self.owner_type}" if self.key is None else self.key

    @property
    def owner_type(self) -> str:
        return type(unwrapped(self.owner)).__name__

    @property
    def holds(self) -> bool:
        """Whether the location has what it had."""
        try:
            return self._holds()
        except Exception:  # an attribute is gone, an index is out of range
            return False

    def try_renewed(self) -> Guard | None:
        """The guard with what is at its location now; None for a tensor, or for nothing."""
        owner = unwrapped(self.owner)
        if self.kind == CONTENT:
            return self._replace(value=Content.of(owner))
        kind = ATTRIBUTE if self.kind == SHADOW else self.kind
        made = self._replace(kind=kind)
        try:
            value = made._look(owner)
        except Exception:
            return None
        return None if isinstance(value, Core) else made._replace(value=kept(value))

    def tensors(self) -> list[Core]:
        """The tensors that are at the location now."""
        owner = unwrapped(self.owner)
        try:
            found = items_of(owner) if self.kind == CONTENT else [self._own_value(owner)]
        except Exception:  # there is nothing
            return []
        return [each for each in found if isinstance(each, Core)]

    def _own_value(self, owner: Any) -> Any:
        return (self._replace(kind=ATTRIBUTE) if self.kind == SHADOW else self)._look(owner)

    def _holds(self) -> bool:
        owner = unwrapped(self.owner)
        if self.kind == CONTENT:
            return bool(self.value.is_in(owner))
        if self.kind == TYPE:
            return type(owner) is unwrapped(self.value)
        if self.kind == SHADOW:
            return self.key not in own_attributes(owner)
        return _agrees(self._look(owner), self.value)

    def _look(self, owner: Any) -> Any:
        if self.kind == ATTRIBUTE:
            return getattr(owner, self.key)
        if self.kind == ENTRY:
            return entry_getter(owner)(self.key, MISSING)
        if self.kind == ITEM:
            return item_getter(owner)(self.key)
        return owner.cell_contents if self.kind == CELL else owner(*self.key)


def own_attributes(thing: Any) -> Any:
    """The dict of an object's own attributes, without a call of the user's code."""
    try:
        return object.__getattribute__(thing, "__dict__")
    except AttributeError:
        return {}


def entry_getter(owner: Any) -> Callable[..., Any]:
    """`get` of a dict, whatever a subclass makes of it."""
    found: Callable[..., Any] = (
        dict.get.__get__(owner) if issubclass(type(owner), dict) else owner.get
    )
    return found


def item_getter(owner: Any) -> Callable[..., Any]:
    kind: Any = list if issubclass(type(owner), list) else type(owner)
    found: Callable[..., Any] = kind.__getitem__.__get__(owner)
    return found


class Held(NamedTuple):
    """An object that only its own reference can watch, as a list or one with `__slots__`."""

    thing: Any

    def __call__(self) -> Any:
        return self.thing


def kept(thing: Any) -> Any:
    """A value as a guard keeps it: plain values as they are, and objects as themselves."""
    if thing is MISSING or _is_plain(thing):
        return thing
    return WeakIdentity(thing) if type(thing).__weakrefoffset__ else Held(thing)


def _is_plain(thing: Any) -> bool:
    if type(thing) is tuple:
        return all(map(_is_plain, thing))
    return is_scalar(type(thing)) or issubclass(type(thing), UOp)


def is_scalar(kind: type) -> bool:
    """Whether objects of a class are their value; one of the user's may have attributes too."""
    return issubclass(kind, SCALARS) and not kind.__flags__ & HEAP


def unwrapped(value: Any) -> Any:
    return value() if value.__class__ is WeakIdentity or value.__class__ is Held else value


def is_empty(slot: Any, owner: Any) -> bool:
    """Whether an object has no value for a slot of its class."""
    try:
        slot.__get__(unwrapped(owner))
    except AttributeError:
        return True
    return False


def subclass_ids(kind: Any) -> tuple[int, ...]:
    """The classes that derive from a class, which keeps them in order, by number."""
    return tuple(map(id, type.__subclasses__(unwrapped(kind))))


def _agrees(found: Any, value: Any) -> bool:
    wanted = unwrapped(value)
    if wanted is None and value is not None:  # the object is gone
        return False
    return found is wanted or is_same(found, wanted)


def is_same(found: Any, value: Any) -> bool:
    """Whether values that are not the same object are the same number, string or tuple."""
    kind = value.__class__
    if found.__class__ is not kind:
        return False
    if kind is float:
        return bool(found.hex() == value.hex())
    if kind is tuple:
        return len(found) == len(value) and all(
            x is y or is_same(x, y) for x, y in zip(found, value, strict=True)
        )
    return issubclass(kind, SCALARS) and bool(found == value)


class State:
    """All that was read. `holds` says whether everything is what it was."""

    def __init__(self, guards: Iterable[Guard] = (), arrays: Iterable[KeptArray] = ()) -> None:
        self.guards = list(guards)
        self.arrays = tuple(arrays)
        self._check: Callable[[], bool] | None = None

    def drop_gone(self) -> None:
        """Leave out what is gone with the trace: the function itself made it."""
        self.guards = [each for each in self.guards if unwrapped(each.owner) is not None]

    def holds(self) -> bool:
        if self._check is None:
            self._check = _compiled(self.guards)
        if not self._check():
            return False
        return not self.arrays or all(each.is_same for each in self.arrays)

    def changed(self) -> list[Guard]:
        """The guards whose locations do not hold what they did."""
        return [each for each in self.guards if not each.holds]


def _compiled(guards: list[Guard]) -> Callable[[], bool]:
    """One function that makes all checks, with each owner looked at once."""
    scope: dict[str, Any] = {"same": is_same, "MISSING": MISSING}
    groups: dict[int, list[Guard]] = {}
    for guard in guards:
        groups.setdefault(id(unwrapped(guard.owner)), []).append(guard)
    lines = ["def check():", "  try:", "    o = None"]
    for group in groups.values():
        owner = _named(scope, group[0].owner)
        lines.append(f"    o = {owner}{'()' if group[0].owner.__class__ is WeakIdentity else ''}")
        for guard in group:
            lines += [f"    {line}" for line in _lines(scope, guard)]
    lines += ["  except Exception:", "    return False", "  return True"]
    exec(compile("\n".join(lines), "<weft guards>", "exec"), scope)
    made: Callable[[], bool] = scope["check"]
    return made


def _named(scope: dict[str, Any], thing: Any) -> str:
    name = f"v{len(scope)}"
    scope[name] = thing.thing if thing.__class__ is Held else thing
    return name


def _lines(scope: dict[str, Any], guard: Guard) -> list[str]:
    kind, _, key, value, _ = guard
    wanted = _named(scope, value)
    if value.__class__ is WeakIdentity:
        wanted += "()"
    if kind == CONTENT:
        return [f"if not {wanted}.is_in(o): return False"]
    if kind == TYPE:
        return [f"if type(o) is not {wanted}: return False"]
    if kind == SHADOW:
        return [f"if {key!r} in o.__dict__: return False"]
    found = _expression(scope, guard)
    if value.__class__ is Held or value is MISSING:
        return [f"if {found} is not {wanted}: return False"]
    if value.__class__ is WeakIdentity:  # None where the object is gone
        return [f"x = {found}", f"if x is None or x is not {wanted}: return False"]
    return [f"x = {found}", f"if x is not {wanted} and not same(x, {wanted}): return False"]


def _expression(scope: dict[str, Any], guard: Guard) -> str:
    kind, owner, key, _, _ = guard
    if kind == ATTRIBUTE:
        is_plain = key.isidentifier() and not keyword.iskeyword(key)
        return f"o.{key}" if is_plain else f"getattr(o, {key!r})"
    if kind == CELL:
        return "o.cell_contents"
    if kind == CALL:
        return f"o(*{_named(scope, key)})"
    get = entry_getter if kind == ENTRY else item_getter
    getter = _named(scope, get(unwrapped(owner)))
    missing = ", MISSING" if kind == ENTRY else ""
    return f"{getter}({_named(scope, key)}{missing})"
