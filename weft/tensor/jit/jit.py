"""`@jit`: a Python function is traced once per signature and replayed from then on.

`jit(f)(args)` means what `f(args)` means: the values, the writes and the random numbers of every
call, the first one too. A call of a signature that was seen before runs the recorded program; on
CPU that is one native call. What cannot be replayed raises: reading a value while the function is
traced (`jit_trace`), and using a tensor that left it unreturned (`jit_escape`).
"""

from __future__ import annotations

import copy
import functools
import inspect
import operator
import sys
import time
import types
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar, overload
from weakref import ref

from weft.engine.watch.record import record_traced
from weft.ir.collector import CollectorPaused
from weft.rewrite.trace_file import current
from weft.support.errors import ArgumentTypeError, NotSupported
from weft.support.settings import cache_key, settings
from weft.support.source_line import user_line
from weft.tensor.jit.closed import (
    Closed,
    example_of,
    name_of,
    put_program,
    require_declared,
    try_program,
)
from weft.tensor.jit.fast import FastPath
from weft.tensor.jit.make import Conflict, trace
from weft.tensor.jit.program import TracedProgram
from weft.tensor.jit.signature import (
    Arguments,
    WeakIdentity,
    argument_names,
    plain_function,
    read_arguments,
    signature_of,
)
from weft.tensor.jit.watched import WATCHES, call_watched
from weft.tensor.storage import Storage
from weft.tensor.tensor import Tensor
from weft.tensor.trace.state import tracing
from weft.tensor.trees import Structure
from weft.tensor.turns import traced_alone, tracer, wait_for_trace

Function = TypeVar("Function", bound=Callable[..., Any])

# A function that has been traced this often gets a warning, and again at each doubling.
MANY_TRACES: Final = 16
_MOST_TRACES: Final = 512
# Traces of one signature, which differ in what the function reads, and in gradients.
_MOST_ALIKE: Final = 64


@overload
def jit(function: Function) -> Function: ...
@overload
def jit(
    *,
    donate: Sequence[int] = (),
    strict: bool = False,
    prune: bool = False,
    closed: Callable[[Any], Closed] | None = None,
) -> Callable[[Function], Function]: ...
@overload
def jit(
    function: Function, *, donate: Sequence[int] = (), strict: bool = False, prune: bool = False
) -> Function: ...


def jit(
    function: Any = None,
    *,
    donate: Sequence[int] = (),
    strict: bool = False,
    prune: bool = False,
    closed: Callable[[Any], Closed] | None = None,
) -> Any:
    """Trace a function of tensors once, and replay what it does.

    The arguments are tensors, numbers, strings and other hashable values, and lists, tuples, dicts
    and dataclasses of those. Tensors of another shape or dtype, and other values, are traced anew.
    `donate` has the positions of arguments whose memory a result may take; they cannot be used
    after the call. What the function reads of Python is compared in every call; what cannot be
    compared warns, and `strict` refuses it. `prune` is accepted for programs of tinygrad: what no
    result needs is never computed. `closed` is for functions of Weft's own (`jit/closed.py`).

    >>> from weft import Tensor, jit
    >>> @jit
    ... def step(x, scale):
    ...     return (x * scale).sum()
    >>> step(Tensor([1.0, 2.0]), 10).item(), step(Tensor([3.0, 4.0]), 10).item()
    (30.0, 70.0)
    """
    if function is None:
        return functools.partial(jit, donate=donate, strict=strict, closed=closed)
    if not callable(function):
        raise ArgumentTypeError(
            f"jit: a {type(function).__name__} cannot be called",
            rule="jit takes a function, a method or an object with __call__",
        )
    if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
        raise ArgumentTypeError(
            "jit: the function is a generator or a coroutine",
            rule="a jitted function runs from its first line to its return in one call",
            fix="jit the function that computes, and call it from the loop",
        )
    return Jit(function, donate, strict, closed)


class Jit:
    """A jitted function. `traces` counts the signatures it has been traced for."""

    def __init__(
        self,
        function: Callable[..., Any],
        donate: Sequence[int] = (),
        strict: bool = False,
        closed: Callable[[Any], Closed] | None = None,
    ) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self._name = getattr(function, "__qualname__", type(function).__name__)
        self._donate = frozenset(donate)
        self._strict = strict
        self._closed = closed
        self._code = getattr(plain_function(function), "__code__", None)
        self._programs: dict[Any, list[TracedProgram]] = {}
        self._shared: set[Storage] = set()
        self._warn_at = MANY_TRACES
        self._fast: FastPath | None = None
        self._ends: dict[Any, list[ref[Any]]] = {}

    def reset(self) -> None:
        """Forget all traces; the next call traces the function anew."""
        self._programs.clear()
        self._ends.clear()
        self._shared.clear()
        self._fast = None

    @property
    def traces(self) -> int:
        return sum(len(found) for found in self._programs.values())

    @property
    def programs(self) -> list[TracedProgram]:
        """All that was traced, oldest first."""
        return [program for found in self._programs.values() for program in found]

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __reduce__(self) -> str | tuple[Any, ...]:
        """A pickle has the function by its name, and how it is jitted; it is traced anew."""
        name = getattr(self.function, "__qualname__", "")
        try:
            if operator.attrgetter(name)(sys.modules[self.function.__module__]) is self:
                return str(name)
        except (AttributeError, KeyError):
            if "<" in name:
                raise _not_pickled(self._name) from None
        return Jit, (self.function, sorted(self._donate), self._strict, self._closed)

    def __deepcopy__(self, memo: dict[int, Any]) -> Jit:
        function = copy.deepcopy(self.function, memo)
        return Jit(function, sorted(self._donate), self._strict, self._closed)

    def __repr__(self) -> str:
        return f"<jit {self._name}, {self.traces} traces>"

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        fast = self._fast
        if fast is not None and not kwargs:
            found = fast.try_inputs(args)
            if found is not None:
                return fast.finish(args, *found)
        if tracing.depth or not (settings.JIT or WATCHES):
            return self.function(*args, **kwargs)
        if tracer.thread:
            wait_for_trace()
        if WATCHES:
            return call_watched(self, args, kwargs)
        if settings.CHECK == "jit":
            from weft.tensor.jit.check import call_checked

            return call_checked(self, args, kwargs)
        arguments, program = self.program_for(args, kwargs)
        self._fast = FastPath.try_make(self, program, args, kwargs)
        return program.call(arguments.leaves)

    def program_for(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Arguments, TracedProgram]:
        """The arguments, computed, and the program of their signature, traced where it is new."""
        arguments = read_arguments(args, kwargs)
        key = self._key(arguments)
        found = self._try_traced(arguments, key)
        if found is None:
            # Meanwhile another thread may have traced it. What a trace makes stays.
            with traced_alone(), CollectorPaused():
                found = self._try_traced(arguments, key) or self._trace(arguments, key)
        if shared := found.linked_writes(arguments.leaves):
            self._shared |= shared
            return self.program_for(args, kwargs)
        return arguments, found

    def _try_traced(self, arguments: Arguments, key: Any) -> TracedProgram | None:
        traced = self._programs.get(key, [])
        traced[:] = [each for each in traced if not each.is_stale]
        fitting = next((each for each in traced if each.fits(arguments.leaves)), None)
        if fitting is not None and fitting is not traced[-1]:  # the one that is used stays
            traced[:] = [*(each for each in traced if each is not fitting), fitting]
        return fitting

    @property
    def shared(self) -> set[Storage]:
        return self._shared

    def _key(self, arguments: Arguments) -> tuple[Any, ...]:
        shared = self._shared
        own = signature_of(arguments, shared, lambda: self._names(arguments))
        state = (Tensor.training, settings.CHECK, settings.DEFAULT_FLOAT, settings.DEFAULT_INT)
        return own, (*state, settings.AUTOCAST, settings.DEVICE, cache_key())

    def _names(self, arguments: Arguments) -> list[str]:
        return argument_names(self.function, arguments.structure)

    def _trace(self, arguments: Arguments, key: Any) -> TracedProgram:
        start, watch = time.perf_counter(), current()
        try:
            made = self._traced(arguments) if self._closed is None else self._known(arguments, key)
        except Conflict as conflict:
            # Once more, with these arguments seen as what they are: tensors from outside.
            self._shared |= conflict.storages
            return self._trace(arguments, self._key(arguments))
        if watch is not None:
            record_traced(watch, self._name, start)
        self._shared |= made.watched
        self._warn_of_growth(key)
        alike = self._programs.setdefault(key, [])
        alike.append(made)
        if len(alike) > _MOST_ALIKE:
            del alike[0]
        self._watch(key)
        if len(self._programs) > _MOST_TRACES:
            self.forget(next(iter(self._programs)))
        return made

    def _traced(self, arguments: Arguments) -> TracedProgram:
        return trace(
            self.function,
            self._name,
            self._code,
            arguments,
            self._names(arguments),
            self._shared,
            _donated_leaves(arguments, self._donate),
            self._strict,
            self._closed is not None,
        )

    def _known(self, arguments: Arguments, key: Any) -> TracedProgram:
        """The program of a closed function: from disk, or traced and put there."""
        assert self._closed is not None
        closed = self._closed(arguments.leaves[0])
        name = name_of(self.function, closed, arguments, key[1])
        if name is not None:
            example = example_of(arguments)
            found = try_program(name, closed, arguments, lambda: self._traced_alone(example()))
            if found is not None:
                found.name = self._name
                return found
        made = self._traced(arguments)
        require_declared(closed, made)
        if name is not None:
            put_program(name, closed, made)
        return made

    def _traced_alone(self, arguments: Arguments) -> TracedProgram:
        with traced_alone():
            return self._traced(arguments)

    def _watch(self, key: Any) -> None:
        """Forget a trace when an object goes that its signature speaks of."""
        (_, *leaves), _ = key
        things = [each for each in leaves if isinstance(each, WeakIdentity)]
        forget = functools.partial(_forget, ref(self), key)
        self._ends[key] = [ref(found, forget) for each in things if (found := each()) is not None]

    def forget(self, key: Any) -> None:
        """Drop the traces of a signature, and what they captured."""
        self._programs.pop(key, None)
        self._ends.pop(key, None)
        self._fast = None

    def _warn_of_growth(self, key: Any) -> None:
        if self.traces < self._warn_at:
            return
        self._warn_at *= 2
        last = next(reversed(self._programs))
        what = _difference(self, last, key)
        changed = self._programs[last][-1].state.changed() if self._programs[last] else []
        if key == last and changed:
            what = f"{changed[0].name!r}, which the function reads,"
        where = user_line()
        warnings.warn_explicit(
            f"jit: {self._name} has been traced {self.traces} times; {what} changes from call to"
            " call. Pass what changes as a tensor",
            UserWarning,
            where.file,
            where.line,
        )


def _not_pickled(name: str) -> NotSupported:
    return NotSupported(
        f"pickle: the jitted function {name} is local to a function",
        rule="a pickle has a function as the name by which its module finds it",
        fix="define it at the top of a module, or write a trace of it with save_function",
    )


def _forget(jitted: ref[Jit], key: Any, _: ref[Any]) -> None:
    if (found := jitted()) is not None:
        found.forget(key)


def _donated_leaves(arguments: Arguments, donate: frozenset[int]) -> set[int]:
    """The leaves of the arguments at these positions."""
    found: set[int] = set()
    first = 0
    for position, part in enumerate(arguments.structure.parts[0].parts):
        count = _count(part)
        if position in donate:
            found.update(range(first, first + count))
        first += count
    return found


def _count(structure: Structure) -> int:
    return 1 if structure.kind is None else sum(_count(part) for part in structure.parts)


def _difference(jitted: Jit, last: Any, key: Any) -> str:
    """What differs between two signatures, in words."""
    (structure, *leaves), state = key
    (old_structure, *old_leaves), old_state = last
    if structure != old_structure:
        return "the structure of the arguments"
    names = argument_names(jitted.function, structure)
    for name, new, old in zip(names, leaves, old_leaves, strict=True):
        if new != old:
            return f"the argument {name}"
    return "a setting" if state != old_state else "the gradient of a tensor from outside"
