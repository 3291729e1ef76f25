"""Reads pickles as data: a small machine with a table of what it may call.

Pickle is a program. This machine runs those of its instructions that build plain values, and calls
nothing but the functions it is given by name; every other name is refused before anything happens.
Python's own unpickler is not used: it calls methods of what it builds, and believes sizes.

A few bytes can describe a value without end: a pair of a value with itself, again and again. So
the machine has budgets: on the steps it takes, on the size of numbers, on the text that functions
make, and on the value, which is counted as a tree and has a limited depth. Keys are short, and few
are numbers: whoever chooses numbers can make a dictionary compare each key with all the others.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final

from weft.io.pickle_codes import CODES
from weft.io.source import Source

Allowed = Mapping[str, Callable[..., Any]]
_LONGEST_LINE: Final = 1 << 16
_KEYS: Final = (str, bytes, int, float, bool, type(None))
_MARK: Final = object()
_MOST_STEPS: Final = 10_000_000
_MOST_VALUES: Final = 20_000_000  # counted as a tree
_DEEPEST: Final = 200
_MOST_BITS: Final = 128  # of a number
_MOST_KEY_BITS: Final = 64
_LONG_KEY: Final = 256  # characters
_MOST_IN_KEY: Final = 16  # of a tuple
# Numbers as keys are counted in tables of at least so many keys, those of the whole file together.
_LARGE_TABLE: Final = 1024
_MOST_NUMBERS: Final = 1 << 17
_ROOM_ALWAYS: Final = 1 << 20
_ROOM_RATIO: Final = 4
_CONTAINERS: Final = (dict, OrderedDict, list, tuple, set, frozenset)


class Unpickler:
    """Reads pickles that follow each other in a source, from `offset` on."""

    def __init__(
        self,
        source: Source,
        allowed: Allowed,
        persistent: Callable[[Any], Any] | None = None,
        offset: int = 0,
    ) -> None:
        self.source = source
        self.allowed = allowed
        self.persistent = persistent
        self.offset = offset
        self._steps = 0
        self._numbers = 0
        self._room = _ROOM_ALWAYS + _ROOM_RATIO * source.size

    def charge(self, size: int) -> None:
        """Count what functions make of a text or a list, which can be named again and again."""
        self._room -= size
        if self._room < 0:
            raise self.fault("the file makes more of its texts than it has")

    def require_key(self, key: Any, table: Collection[Any]) -> Any:
        """A key of a table, if it costs little to find its hash and to compare it."""
        parts = key if isinstance(key, tuple) else (key,)
        if not all(isinstance(part, _KEYS) for part in parts):
            raise ValueError("expected a key that is text or a number")
        if len(parts) > _MOST_IN_KEY:
            raise ValueError(f"a key has more than {_MOST_IN_KEY} parts")
        for part in parts:
            if isinstance(part, (str, bytes)):
                self.charge(len(part) if len(part) > _LONG_KEY else 0)
            elif isinstance(part, int) and part.bit_length() > _MOST_KEY_BITS:
                raise ValueError(f"a key has more than {_MOST_KEY_BITS} bits")
        if not isinstance(key, (str, bytes)) and len(table) >= _LARGE_TABLE:
            self._numbers += 1
            if self._numbers > _MOST_NUMBERS:
                raise self.fault(f"more than {_MOST_NUMBERS} keys are numbers")
        return key

    def take(self, size: int) -> bytes:
        """The next bytes, which have to be there."""
        data = self.source.read(self.offset, size, "the pickle")
        self.offset += size
        return data

    def take_line(self) -> bytes:
        """The next bytes up to the end of their line, without it."""
        data = bytes(self.source.bytes[self.offset : self.offset + _LONGEST_LINE])
        line, newline, _ = data.partition(b"\n")
        if not newline:
            raise ValueError("a line has no end")
        self.offset += len(line) + 1
        return line

    def load(self) -> Any:
        """The next value."""
        machine = _Machine(self)
        try:
            for name, argument in self._instructions():
                step = _STEPS.get(name)
                if step is None:
                    raise self.fault(f"the instruction {name} is not read")
                if type(argument) is int and argument.bit_length() > _MOST_BITS:
                    raise self.fault(f"a number has more than {_MOST_BITS} bits")
                step(machine, argument)
            (value,) = machine.stack
        except (ValueError, IndexError, KeyError, TypeError, AttributeError, OverflowError) as bad:
            if bad.__class__.__module__ == "weft":
                raise
            raise self.fault(f"the pickle is damaged: {bad}"[:300]) from None
        self._require_small(value)
        return value

    def _instructions(self) -> Iterator[tuple[str, Any]]:
        """The instructions with their arguments, up to STOP."""
        name = ""
        while name != "STOP":
            code = CODES.get(self.take(1)[0])
            if code is None:
                raise ValueError("there is no such instruction")
            self._steps += 1
            if self._steps > _MOST_STEPS:
                raise self.fault(f"the pickle has more than {_MOST_STEPS} instructions")
            name, read = code
            yield name, None if read is None else read(self)

    def _require_small(self, value: Any) -> None:
        """Raise unless a value is small as a tree, not deep, and no part of itself."""
        counts: dict[int, tuple[int, int]] = {}  # values in the tree, and levels
        open_nodes: set[int] = set()
        stack = [(value, False)]
        while stack:
            node, is_done = stack.pop()
            if type(node) not in _CONTAINERS or id(node) in counts:
                continue
            parts = list(node.values()) if isinstance(node, dict) else list(node)
            if not is_done:
                if id(node) in open_nodes:
                    raise self.fault("a value holds itself")
                open_nodes.add(id(node))
                stack.append((node, True))
                stack.extend((part, False) for part in parts if type(part) in _CONTAINERS)
                continue
            open_nodes.discard(id(node))
            below = [counts[id(part)] for part in parts if type(part) in _CONTAINERS]
            total = 1 + len(parts) + sum(count for count, _ in below)
            depth = 1 + max((level for _, level in below), default=0)
            if total > _MOST_VALUES or depth > _DEEPEST:
                raise self.fault(
                    "the value is too large or too deep",
                    f"a file holds at most {_MOST_VALUES} values, at most {_DEEPEST} deep",
                )
            counts[id(node)] = total, depth

    def fault(self, what: str, rule: str = "") -> Exception:
        return self.source.fault(what, self.offset, rule)

    def named(self, module: str, name: str) -> Callable[..., Any]:
        """A function by name; the one place where a pickle could reach out."""
        if not isinstance(module, str) or not isinstance(name, str):
            raise self.fault("expected a name that is text")
        found = self.allowed.get(f"{module}.{name}") if len(module) + len(name) < 200 else None
        if found is None:
            raise self.fault(
                f"the file wants to call {module[:100]}.{name[:100]}",
                "a file of weights builds tensors, dicts, lists and numbers, and calls nothing "
                "else; save the tensors alone, best as safetensors",
            )
        return found


class _Machine:
    """The stack of one pickle. What is called is never anything that the pickle built."""

    def __init__(self, reader: Unpickler) -> None:
        self.reader = reader
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def pop(self) -> Any:
        value = self.stack.pop()
        if value is _MARK:
            raise ValueError("expected a value, got a mark")
        return value

    def popped_to_mark(self) -> list[Any]:
        offset = len(self.stack) - 1
        while self.stack[offset] is not _MARK:
            offset -= 1
            if offset < 0:
                raise ValueError("there is no mark")
        values = self.stack[offset + 1 :]
        del self.stack[offset:]
        return values

    def top(self, kind: type) -> Any:
        value = self.stack[-1]
        if not isinstance(value, kind):
            raise ValueError(f"{kind.__name__} is needed, not {type(value).__name__}")
        return value

    def call(self, function: Any, arguments: Any) -> None:
        if not isinstance(function, Function) or not isinstance(arguments, tuple):
            raise self.reader.fault("the file calls something that is not a function")
        value = function.call(*arguments)
        if isinstance(value, (str, bytes, tuple)):
            self.reader.charge(len(value))
        self.stack.append(value)

    def set_items(self, pairs: list[Any]) -> None:
        table = self.top(dict)
        for key, value in zip(pairs[::2], pairs[1::2], strict=True):
            table[self.reader.require_key(key, table)] = value

    def add_to(self, table: set[Any], keys: list[Any]) -> None:
        for key in keys:
            table.add(self.reader.require_key(key, table))

    def build(self, state: Any) -> None:
        """Attributes of an object. Only those of an OrderedDict are expected, and left out."""
        if not isinstance(self.stack[-1], OrderedDict):
            raise self.reader.fault(f"the file sets attributes of {type(self.stack[-1]).__name__}")


class Function:
    """A function of the table, on the stack; an object of its own, so that nothing else is one."""

    __slots__ = ("call",)

    def __init__(self, call: Callable[..., Any]) -> None:
        self.call = call


def _push(machine: _Machine, argument: Any) -> None:
    machine.stack.append(argument)


def _constant(value: Any) -> Callable[[_Machine, Any], None]:
    return lambda machine, _: machine.stack.append(value)


def _new(kind: Callable[[], Any]) -> Callable[[_Machine, Any], None]:
    return lambda machine, _: machine.stack.append(kind())


def _tuple_of(count: int) -> Callable[[_Machine, Any], None]:
    def step(machine: _Machine, _: Any) -> None:
        values = [machine.pop() for _ in range(count)]
        machine.stack.append(tuple(reversed(values)))

    return step


def _global(machine: _Machine, names: tuple[str, str]) -> None:
    machine.stack.append(Function(machine.reader.named(*names)))


def _stack_global(machine: _Machine, _: Any) -> None:
    name, module = machine.pop(), machine.pop()
    machine.stack.append(Function(machine.reader.named(module, name)))


def _reduce(machine: _Machine, _: Any) -> None:
    arguments, function = machine.pop(), machine.pop()
    machine.call(function, arguments)


def _persistent(machine: _Machine, key: Any) -> None:
    if machine.reader.persistent is None:
        raise machine.reader.fault("the file refers to data outside of the pickle")
    machine.stack.append(machine.reader.persistent(key))


def _get(machine: _Machine, number: int) -> None:
    machine.stack.append(machine.memo[number])


def _put(machine: _Machine, number: int) -> None:
    memo = machine.memo
    if number != len(memo):  # not as any writer counts
        machine.reader.require_key(number, memo)
    memo[number] = machine.stack[-1]


def _nothing(machine: _Machine, _: Any) -> None:
    return None


def _pop(machine: _Machine, _: Any) -> None:
    machine.stack.pop()


def _pop_mark(machine: _Machine, _: Any) -> None:
    machine.popped_to_mark()


def _dict(machine: _Machine, _: Any) -> None:
    pairs = machine.popped_to_mark()
    machine.stack.append({})
    machine.set_items(pairs)


def _append(machine: _Machine, _: Any) -> None:
    value = machine.pop()
    machine.top(list).append(value)


def _appends(machine: _Machine, _: Any) -> None:
    values = machine.popped_to_mark()
    machine.top(list).extend(values)


def _add_items(machine: _Machine, _: Any) -> None:
    values = machine.popped_to_mark()
    machine.add_to(machine.top(set), values)


def _frozenset(machine: _Machine, _: Any) -> None:
    made: set[Any] = set()
    machine.add_to(made, machine.popped_to_mark())
    machine.stack.append(frozenset(made))


_STEPS: Final[dict[str, Callable[[_Machine, Any], None]]] = {
    **dict.fromkeys(("PROTO", "FRAME", "STOP"), _nothing),
    **dict.fromkeys(("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4"), _push),
    **dict.fromkeys(("FLOAT", "BINFLOAT", "STRING", "BINSTRING", "SHORT_BINSTRING"), _push),
    **dict.fromkeys(("UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"), _push),
    **dict.fromkeys(("BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"), _push),
    "NONE": _constant(None),
    "NEWTRUE": _constant(True),
    "NEWFALSE": _constant(False),
    "MARK": _constant(_MARK),
    "EMPTY_TUPLE": _constant(()),
    "EMPTY_LIST": _new(list),
    "EMPTY_DICT": _new(dict),
    "EMPTY_SET": _new(set),
    "TUPLE1": _tuple_of(1),
    "TUPLE2": _tuple_of(2),
    "TUPLE3": _tuple_of(3),
    "TUPLE": lambda m, _: m.stack.append(tuple(m.popped_to_mark())),
    "LIST": lambda m, _: m.stack.append(m.popped_to_mark()),
    "DICT": _dict,
    "APPEND": _append,
    "APPENDS": _appends,
    "SETITEM": lambda m, _: m.set_items([*reversed((m.pop(), m.pop()))]),
    "SETITEMS": lambda m, _: m.set_items(m.popped_to_mark()),
    "ADDITEMS": _add_items,
    "FROZENSET": _frozenset,
    "POP": _pop,
    "POP_MARK": _pop_mark,
    "DUP": lambda m, _: m.stack.append(m.stack[-1]),
    **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT"), _put),
    **dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), _get),
    "MEMOIZE": lambda m, _: _put(m, len(m.memo)),
    "GLOBAL": _global,
    "STACK_GLOBAL": _stack_global,
    "REDUCE": _reduce,
    "NEWOBJ": _reduce,
    "BUILD": lambda m, _: m.build(m.pop()),
    "PERSID": _persistent,
    "BINPERSID": lambda m, _: _persistent(m, m.pop()),
}
