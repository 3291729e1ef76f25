"""Follows a frame of Python, instruction by instruction, with a stack of what it may hold.

Python shows the names of a running frame but not the values on its stack. This stack has, for
each of them, the objects that it may be: one where it was loaded from a name, an attribute or an
item, several after a call that is not followed, none for a new number or tensor. An instruction
that reads tells `Reads`. A value that is said to be more objects than it is costs guards, never a
change that is not seen.
"""

from __future__ import annotations

import dis
import functools
import sys
from collections.abc import Callable, Iterable
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, Final

from weft.tensor.jit.watch.calls import cached, call, consume, go_on
from weft.tensor.jit.watch.guards import ENTRY, MISSING
from weft.tensor.jit.watch.lookup import is_standard, is_weft, lookup
from weft.tensor.jit.watch.opcodes import Bytecode
from weft.tensor.jit.watch.reads import Reads

Values = tuple[Any, ...]  # what a slot of the stack may hold
_MOST_REPEATED: Final = 16
_CODE: Final = (FunctionType, BuiltinFunctionType, ModuleType, type)


class Followed:
    """A frame that runs."""

    def __init__(
        self, frame: Any, steps: dict[int, Bytecode], cells: dict[str, list[Any]]
    ) -> None:
        self.stack: list[Values] = []
        self.returned: list[Any] = []  # by frames that the running instruction called
        self.after: list[Callable[[], Any]] = []  # gives results where no frame was called
        self.called: list[Any] = []  # by the running instruction, and what it is given to call
        self._steps = steps
        self._cells = cells
        self._step: Bytecode | None = None
        self._results: list[Values] = []
        self._seen: set[tuple[int, int]] = set()
        self.guards_globals = not str(frame.f_globals.get("__name__")).startswith("weft.")
        self.is_standard = is_standard(frame.f_code.co_filename)

    def advance(self, frame: Any, reads: Reads) -> None:
        """Finish the last instruction, and look at the one that runs next."""
        step = self._steps.get(frame.f_lasti)
        if step is None or step is self._step:  # the prefix of an argument came before
            return
        if self._step is not None:
            self._finish(step, reads)
        self.stack[step.depth :] = []
        self.stack += [()] * (step.depth - len(self.stack))
        self._step = step
        self.returned = []
        self.after = []
        self.called = []
        handler = _HANDLERS.get(step.name)
        if handler is None:
            self._results = [()] * max(0, step.effect)
            if step.name in _ONE_RESULT:
                self._results = [()]
        else:
            self._results = handler(self, step, frame, reads)

    def _finish(self, current: Bytecode, reads: Reads) -> None:
        """Put what the last instruction gave on the stack, which is as deep as `current` says."""
        last = self._step
        assert last is not None
        results = self._results
        if self.after and not self.returned:
            results = [tuple(found for each in self.after for found in each())]
        if last.name in _PEEKS and current.offset != last.next:
            results = []
        if self.returned and results and last.name not in _LOADS:
            found = tuple(self.returned)
            results = [(*values, *found) for values in results]
        keep = current.depth - len(results)
        if keep < 0:
            return
        self.stack[keep:] = []
        self.stack += [()] * (keep - len(self.stack))
        self.stack += results

    def guards(self, value: Any) -> bool:
        """Whether a global of this frame may change: Weft has none, Python's library data."""
        return self.guards_globals and not (self.is_standard and type(value) in _CODE)

    def top(self, count: int) -> list[Values]:
        found = self.stack[-count:] if count else []
        return [()] * (count - len(found)) + found

    def cells(self, name: str) -> list[Any]:
        return self._cells.get(name, [])

    def cells_of(self, names: Iterable[str]) -> dict[str, list[Any]]:
        """Those of a function that this frame made; its own variables are new in each call."""
        return {name: self._cells[name] for name in names if name in self._cells}

    def is_repeated(self, step: Bytecode, values: Values) -> bool:
        """Whether these many objects went through this instruction before."""
        if len(values) <= _MOST_REPEATED:
            return False
        key = (step.offset, id(values))
        is_known = key in self._seen
        self._seen.add(key)
        return is_known


Handler = Callable[[Followed, Bytecode, Any, Reads], list[Values]]
_HANDLERS: dict[str, Handler] = {}


def _handles(*names: str) -> Callable[[Handler], Handler]:
    def note(handler: Handler) -> Handler:
        for name in names:
            _HANDLERS[name] = handler
        return handler

    return note


def _local(frame: Any, name: str) -> Values:
    found = frame.f_locals.get(name, MISSING)
    return () if found is MISSING else (found,)


@_handles("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW", "LOAD_FAST_AND_CLEAR")
def _load_local(own: Followed, step: Bytecode, frame: Any, reads: Reads) -> list[Values]:
    return [_local(frame, step.value)]


@_handles("LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW")
def _load_locals(own: Followed, step: Bytecode, frame: Any, reads: Reads) -> list[Values]:
    return [_local(frame, name) for name in step.value]


@_handles("STORE_FAST_LOAD_FAST")
def _store_and_load(own: Followed, step: Bytecode, frame: Any, reads: Reads) -> list[Values]:
    own.after = [lambda: _local(frame, step.value[1])]  # once it is stored
    return [()]


@_handles("LOAD_CONST", "LOAD_SMALL_INT")
def _load_constant(own: Followed, step: Bytecode, frame: Any, reads: Reads) -> list[Values]:
    return [(step.value,)]


@_handles("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
def _load_global(own: Followed, step: Bytecode, frame: Any, reads: Reads) -> list[Values]:
    name = step.value
    if step.name != "LOAD_GLOBAL" and name in frame.f_locals:  # the body of a class
        return [_local(frame, name)]
    found = frame.f_globals.get(name, MISSING)
    if found is MISSING:
        found = frame.f_builtins.get(name, MISSING)
        if own.guards(found):
            reads.note(ENTRY, frame.f_globals, name, MISSING)
            reads.entry(frame.f_builtins, name)
    elif own.guards(found):
        reads.entry(frame.f_globals, name)
    if own.is_standard:
        reads.note_library(frame.f_globals, found)
    values = () if found is MISSING else (found,)
    return [values] * max(1, step.effect)  # with the empty slot beside a callable


@_handles("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")
def _load_cell(own: Followed, step: Bytecode, frame: Any, reads: Reads) -> list[Values]:
    for cell in own.cells(step.value):
        reads.cell(cell, step.value)
    return [_local(frame, step.value)]


@_handles("LOAD_ATTR", "LOAD_METHOD")
def _load_attribute(own: Followed, step: Bytecode, frame: Any, reads: Reads) -> list[Values]:
    values = own.top(1)[0]
    count = 1 + step.effect
    if own.is_repeated(step, values):
        return [()] * count
    found: list[Any] = []
    for value in values:
        found += reads.attribute(value, step.value)
    return [tuple(found)] * count


@_handles("LOAD_SUPER_ATTR")
def _load_super(own: Followed, step: Bytecode, frame: Any, reads: Reads) -> list[Values]:
    _, kinds, things = own.top(3)
    found: list[Any] = []
    for kind in kinds:
        for thing in things:
            try:
                found += reads.attribute(super(kind, thing), step.value)
            except TypeError:  # not an object of that class
                continue
    return [tuple(found)] * (3 + step.effect)


def _subscript(own: Followed, step: Bytecode, frame: Any, reads: Reads) -> list[Values]:
    containers, keys = own.top(2)
    found: list[Any] = []
    if own.is_repeated(step, containers):
        return [()]
    for container in containers:
        if type(lookup(type(container), "__getitem__")) is FunctionType:
            reads.kind(container)  # its own method runs
        elif len(keys) == 1:
            found += reads.item(container, keys[0])
        else:
            found += reads.content(container) or (container,)
    return [tuple(found)]


_HANDLERS["BINARY_SUBSCR"] = _subscript


@_handles("BINARY_OP")
def _operate(own: Followed, step: Bytecode, frame: Any, reads: Reads) -> list[Values]:
    if step.arg == _SUBSCRIPT:
        return _subscript(own, step, frame, reads)
    return _consume(own, step, frame, reads)


_BINARY: Final = [name for name, *_ in getattr(dis, "_nb_ops", ())]
# The number of `x[y]` among the binary operations, from 3.14 on.
_SUBSCRIPT: Final = _BINARY.index("NB_SUBSCR") if "NB_SUBSCR" in _BINARY else -1
_SHORT_NAMES: Final = {
    "add": "add", "and": "and", "floor_divide": "floordiv", "lshift": "lshift",
    "matrix_multiply": "matmul", "multiply": "mul", "remainder": "mod", "or": "or",
    "power": "pow", "rshift": "rshift", "subtract": "sub", "true_divide": "truediv",
    "xor": "xor",
}  # fmt: skip


def _operator_methods(name: str) -> tuple[str, ...]:
    """The methods behind a binary operation: of the left operand, the right one, in place."""
    words = name.removeprefix("NB_").lower()
    short = _SHORT_NAMES.get(words.removeprefix("inplace_"))
    if short is None:
        return ()
    methods = (f"__{short}__", f"__r{short}__")
    return (f"__i{short}__", *methods) if words.startswith("inplace_") else methods


_OPERATORS: Final = [_operator_methods(name) for name in _BINARY]


def _consume(own: Followed, step: Bytecode, frame: Any, reads: Reads) -> list[Values]:
    """An instruction that may look at all of its operands' contents, and gives something new."""
    results = 1 if step.name in _ONE_RESULT else 0
    found: list[Any] = []
    special = _special_methods(step)
    for values in own.top(max(1, results - step.effect)):
        if own.is_repeated(step, values):
            continue
        for value in values:
            found += reads.content(value)
            if special:
                reads.special(value, special)
    return [tuple(found)] * results


def _special_methods(step: Bytecode) -> tuple[str, ...]:
    """What an instruction looks for in the class of its operands, and does without."""
    name = step.name
    if name == "BINARY_OP":
        return _OPERATORS[step.arg] if step.arg < len(_OPERATORS) else ()
    if name in ("FORMAT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC", "CONVERT_VALUE"):
        return ("__format__", "__str__", "__repr__")
    if name == "COMPARE_OP":
        return ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")
    if name == "CONTAINS_OP":
        return ("__contains__", "__iter__")
    is_test = ("JUMP" in name and "_IF_" in name) or name in ("TO_BOOL", "UNARY_NOT")
    return ("__bool__", "__len__") if is_test else ()


@_handles("MATCH_CLASS")
def _match_class(own: Followed, step: Bytecode, frame: Any, reads: Reads) -> list[Values]:
    things, kinds, names = own.top(3)
    found: list[Any] = []
    for thing in things:
        for kind in kinds:
            reads.attribute(kind, "__match_args__")
            positional = getattr(kind, "__match_args__", ())[: step.arg]
            for name in (*positional, *(each for given in names for each in given)):
                found += reads.attribute(thing, name)
    return [tuple(found)]


@_handles("UNPACK_SEQUENCE", "UNPACK_EX")
def _unpack(own: Followed, step: Bytecode, frame: Any, reads: Reads) -> list[Values]:
    (found,) = _items(own, step, reads)
    return [found] * (1 + step.effect)


@_handles("GET_ITER", "GET_YIELD_FROM_ITER")
def _iterate(own: Followed, step: Bytecode, frame: Any, reads: Reads) -> list[Values]:
    for value in own.top(1)[0]:
        reads.special(value, ("__iter__", "__getitem__"))
        go_on(reads, value)
    return _items(own, step, reads)


def _items(own: Followed, step: Bytecode, reads: Reads) -> list[Values]:
    values = own.top(1)[0]
    if own.is_repeated(step, values):
        return [()]
    found: list[Any] = []
    for value in values:
        found += reads.content(value) or (value,)
    return [tuple(found)]


@_handles("FOR_ITER")
def _next_item(own: Followed, step: Bytecode, frame: Any, reads: Reads) -> list[Values]:
    return [own.top(1)[0]]


@_handles("COPY")
def _copy(own: Followed, step: Bytecode, frame: Any, reads: Reads) -> list[Values]:
    return [own.top(step.arg)[0]]


@_handles("SWAP")
def _swap(own: Followed, step: Bytecode, frame: Any, reads: Reads) -> list[Values]:
    stack = own.stack
    if 0 < step.arg <= len(stack):
        stack[-1], stack[-step.arg] = stack[-step.arg], stack[-1]
    return []


@_handles("BUILD_TUPLE", "BUILD_LIST", "BUILD_SET", "BUILD_MAP", "BUILD_CONST_KEY_MAP")
def _build(own: Followed, step: Bytecode, frame: Any, reads: Reads) -> list[Values]:
    return [sum(own.top(1 - step.effect), ())]


@_handles("LIST_EXTEND", "SET_UPDATE", "DICT_UPDATE", "DICT_MERGE")
def _extend(own: Followed, step: Bytecode, frame: Any, reads: Reads) -> list[Values]:
    """A new container gets all items of another one; its slot of the stack has its items."""
    found: list[Any] = []
    for value in own.top(1)[0]:
        go_on(reads, value)
        found += reads.content(value) or (value,)
    slot = len(own.stack) - 1 - step.arg
    if slot >= 0:
        own.stack[slot] = (*own.stack[slot], *found)
    return []


@_handles("LIST_TO_TUPLE", "CALL_INTRINSIC_1")
def _same(own: Followed, step: Bytecode, frame: Any, reads: Reads) -> list[Values]:
    return own.top(1)


@_handles("IMPORT_NAME")
def _import(own: Followed, step: Bytecode, frame: Any, reads: Reads) -> list[Values]:
    found = sys.modules.get(step.value, MISSING)
    if not is_weft(step.value):
        reads.module(step.value)
    return [() if found is MISSING else (found,)]


@_handles("IMPORT_FROM")
def _import_from(own: Followed, step: Bytecode, frame: Any, reads: Reads) -> list[Values]:
    found: list[Any] = []
    for module in own.top(1)[0]:
        there = reads.attribute(module, step.value)
        if not there and isinstance(module, ModuleType) and not is_weft(module.__name__):
            there = reads.module(f"{module.__name__}.{step.value}")
        found += there
    return [tuple(found)]


@_handles("CALL", "CALL_KW", "CALL_FUNCTION_EX")
def _call(own: Followed, step: Bytecode, frame: Any, reads: Reads) -> list[Values]:
    operands = own.top(1 - step.effect)
    callees = {id(each): each for values in operands[:2] for each in values if callable(each)}
    args = operands[2:] if step.name != "CALL_KW" else operands[2:-1]
    is_spread = step.name == "CALL_FUNCTION_EX"
    if is_spread:
        args = [
            tuple(item for value in each for item in reads.content(value)) or each
            for each in operands[2:]
        ]
    own.called = [*callees.values(), *(each for given in args for each in given if callable(each))]
    found: dict[int, Any] = {}
    if not callees:  # a method of a new tensor, or the like
        consume(reads, args, False)
    for callee in callees.values():
        if type(callee) is functools._lru_cache_wrapper:
            own.after.append(functools.partial(cached, reads, callee, args, is_spread))
        for value in call(reads, callee, args, frame):
            found[id(value)] = value
    return [tuple(found.values())]


@_handles("STORE_ATTR", "DELETE_ATTR")
def _store_attribute(own: Followed, step: Bytecode, frame: Any, reads: Reads) -> list[Values]:
    for thing in own.top(1)[0]:
        reads.write(thing, step.value)
    return []


@_handles("STORE_SUBSCR", "DELETE_SUBSCR")
def _store_item(own: Followed, step: Bytecode, frame: Any, reads: Reads) -> list[Values]:
    containers, keys = own.top(2)
    for container in containers:
        for key in keys:
            reads.write(container, key)
    return []


@_handles("STORE_GLOBAL", "DELETE_GLOBAL", "STORE_NAME", "DELETE_NAME")
def _store_global(own: Followed, step: Bytecode, frame: Any, reads: Reads) -> list[Values]:
    reads.write(frame.f_globals, step.value)
    return []


@_handles("STORE_DEREF", "DELETE_DEREF")
def _store_cell(own: Followed, step: Bytecode, frame: Any, reads: Reads) -> list[Values]:
    for cell in own.cells(step.value):
        reads.write(cell, step.value)
    return []


_PEEKS: Final = ("FOR_ITER", "SEND")  # give a result only where they do not jump
_LOADS: Final = ("LOAD_FAST", "LOAD_CONST", "COPY", "LOAD_GLOBAL", "LOAD_DEREF")
_ONE_RESULT: Final = (
    "BINARY_OP", "BINARY_SUBSCR", "BINARY_SLICE", "COMPARE_OP", "CONTAINS_OP", "IS_OP",
    "UNARY_NOT", "UNARY_NEGATIVE", "UNARY_INVERT", "UNARY_POSITIVE", "TO_BOOL",
    "FORMAT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC", "CONVERT_VALUE", "BUILD_STRING",
    "BUILD_SLICE", "MAKE_FUNCTION", "GET_LEN", "MATCH_KEYS", "MATCH_MAPPING",
    "MATCH_SEQUENCE", "MATCH_CLASS", "SET_FUNCTION_ATTRIBUTE",
)  # fmt: skip
_CONSUMING: Final = (
    "BINARY_SLICE", "COMPARE_OP", "CONTAINS_OP", "UNARY_NOT", "UNARY_NEGATIVE",
    "UNARY_INVERT", "UNARY_POSITIVE", "TO_BOOL", "FORMAT_VALUE", "FORMAT_SIMPLE",
    "FORMAT_WITH_SPEC", "CONVERT_VALUE", "GET_LEN", "MATCH_KEYS", "MATCH_MAPPING",
    "MATCH_SEQUENCE", "POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE", "POP_JUMP_FORWARD_IF_TRUE",
    "POP_JUMP_FORWARD_IF_FALSE", "POP_JUMP_BACKWARD_IF_TRUE", "POP_JUMP_BACKWARD_IF_FALSE",
    "JUMP_IF_TRUE_OR_POP", "JUMP_IF_FALSE_OR_POP",
)  # fmt: skip
_HANDLERS.update(dict.fromkeys(_CONSUMING, _consume))
