"""Makes a program of a function: traces it, and reads what the trace left.

`jit` calls `trace` for each new signature. It guarantees that nothing of the trace stays behind:
storages are as they were, and tensors that escaped are marked.
"""

from __future__ import annotations

import warnings
from _thread import get_ident
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from weakref import ref

from weft.ir.uop import UOp
from weft.support.errors import NotSupported
from weft.support.source_line import SourceLine
from weft.tensor.autodiff.leaves import live_leaves
from weft.tensor.jit.escape import find_store, mark_escaped
from weft.tensor.jit.graph import Made, make_graph
from weft.tensor.jit.host import kept_arrays, require_no_draws
from weft.tensor.jit.program import (
    GradientIn,
    InputRow,
    TracedProgram,
    gradient_kind,
)
from weft.tensor.jit.results import ResultReader
from weft.tensor.jit.signature import SCALARS, Arguments
from weft.tensor.jit.trace import Input, Recorder, Recording
from weft.tensor.jit.watch.guards import CONTENT, MISSING, Content, Guard, State, unwrapped
from weft.tensor.storage import Storage, live_storages
from weft.tensor.tensor import Tensor

if TYPE_CHECKING:
    from weft.tensor.jit.watch.reads import Reads
    from weft.tensor.jit.watch.watch import Watch


class Conflict(Exception):  # noqa: N818 -- it is nobody's mistake
    """Arguments that the function also reaches by itself, and that somebody writes."""

    def __init__(self, storages: set[Storage]) -> None:
        super().__init__()
        self.storages = storages


def trace(
    function: Callable[..., Any],
    name: str,
    code: Any,
    arguments: Arguments,
    names: list[str],
    shared: set[Storage],
    donated: set[int],
    strict: bool,
    closed: bool = False,
) -> TracedProgram:
    """Run a function once and make a program of what it does; raises Conflict.

    What a closed function reads is known: nobody watches it.
    """
    recorder = Recorder(name, shared)
    known = set(live_storages())
    objects = [leaf for leaf in arguments.leaves if not isinstance(leaf, Tensor)]
    watch = None if closed else _watch_of(function, objects)
    tensors: list[Any] = []
    try:
        recording = recorder.record(function, arguments, names, watch or nullcontext())
        if watch is not None:
            require_no_draws(name, watch.reads.drawn)
        # A call that raises takes nothing.
        taken = donated if recording.error is None else set()
        program = _make_program(recording, arguments, taken)
        error, has_writes = recording.error, bool(recording.written)
        if watch is not None:
            tensors = watch.reads.tensors
            program.state = _read_state(watch.reads, name, code, strict, recorder)
        else:
            program.state = State((), kept_arrays(recorder.arrays))
    finally:
        watch = None
        # Whatever holds a storage of the trace from now on is not ours.
        here = get_ident()
        others = [each for each in live_storages() if each not in known]
        made = [ref(each) for each in others if each.thread == here]
        del others
        adopted = recorder.adopted_storages()
        recording = recorder = None  # type: ignore[assignment]
        alive = [each for found in made if (each := found()) is not None]
        mark_escaped([each for each in alive if each not in adopted], name, code)
    if error is not None:
        # As when each line ran: what was written before it is kept.
        if has_writes:
            program.call(arguments.leaves)
        raise error
    if not closed:
        program.state.drop_gone()
        program.watch_tensors(tensors)
    return program


def _watch_of(function: Callable[..., Any], objects: list[Any]) -> Watch:
    # Here, because a program whose functions are closed needs nothing that reads bytecode.
    from weft.tensor.jit.watch.watch import Watch

    return Watch(function, objects)


def _read_state(reads: Reads, function: str, code: Any, strict: bool, recorder: Recorder) -> State:
    """What the next calls compare; what they cannot compare warns, or raises if it is strict.

    What the function itself changed is left out: a call that is replayed does not change it.
    Unless it left a tensor there that depends on this call, as state that is made when it is
    missing: the next call reads it, so that it must not be replayed.
    """
    guards = list(reads.guards.values())
    changed = [
        each
        for each in guards
        if not each.holds or (each.kind == CONTENT and id(unwrapped(each.owner)) in reads.changed)
    ]
    renewed: list[Guard] = []
    for each in changed:
        is_cache = id(unwrapped(each.owner)) in reads.of_library
        if is_cache or not _is_number(each, reads):
            # It is made where it is missing, so that the next call finds it.
            if any(recorder.depends_on_call(tensor.uop) for tensor in each.tensors()):
                renewed.append(each)
            elif (made := each.try_renewed()) is not None:
                renewed.append(made)
        else:
            name = each.name
            if each.kind == CONTENT:
                name = reads.names.get(id(unwrapped(each.owner)), f"a {each.owner_type}")
            where = find_store([code], str(name)) or find_store([code], "[]") or each.line
            what = f"changes {name!r} while it is traced; a call that is replayed does not."
            _say(function, what, "Keep what changes in a tensor", where, strict)
    for what, line in reads.warned.values():
        what += " while it is traced; a call that is replayed does not."
        _say(function, what, "Pass what may change as an argument", line, strict)
    left_out = set(map(id, changed))
    left = [each for each in guards if id(each) not in left_out]
    return State([*left, *renewed], kept_arrays(recorder.arrays))


def _is_number(guard: Guard, reads: Reads) -> bool:
    """Whether what a function changes is a value that it reads, and no new tensor or object."""
    if guard.kind == CONTENT:
        owner = unwrapped(guard.owner)
        if isinstance(owner, MappingProxyType):  # of a class: Python keeps what it finds there
            return any(not _is_special(name) for name in _names_that_differ(guard.value, owner))
        is_filled = isinstance(owner, dict) and 2 * len(owner) > len(guard.value.items)
        return not is_filled or id(owner) in reads.changed
    return guard.value is not None and isinstance(guard.value, SCALARS)


def _names_that_differ(before: Content, names: Mapping[str, Any]) -> set[str]:
    """The attributes of a class that are not what they were."""
    items = list(map(unwrapped, before.items))
    half = len(items) // 2
    had = dict(zip(items[:half], items[half:], strict=True))
    return {
        name for name in {*had, *names} if had.get(name, MISSING) is not names.get(name, MISSING)
    }


def _is_special(name: str) -> bool:
    return name.startswith(("__", "_abc_"))


def _say(function: str, what: str, fix: str, where: SourceLine, strict: bool) -> None:
    if strict:
        raise NotSupported(
            f"jit: {function} {what.rstrip('.')}",
            where=where,
            rule="jit(strict=True) refuses what it cannot compare from call to call",
            fix=fix.lower(),
        )
    text = f"jit: {function} {what} {fix}"
    warnings.warn_explicit(text, UserWarning, where.file, where.line)


def _make_program(recording: Recording, arguments: Arguments, donated: set[int]) -> TracedProgram:
    written = recording.written
    donors = [
        number
        for number, each in enumerate(recording.inputs)
        if each.leaf in donated
        and not (each.is_view or each.is_gradient or each.placeholder in written)
    ]
    positions = {id(leaf): number for number, leaf in enumerate(arguments.leaves)}
    reader = ResultReader(recording, donors)
    results = reader.read(positions)
    made = make_graph(recording, reader.wanted)
    program = TracedProgram(made.graph, made.constants, made.captured)
    program.name = recording.name
    program.results = results
    program.rows = [_row(each, written, donated) for each in recording.inputs]
    program.describe(arguments)
    program.watched = _watched(recording, made, program.rows)
    leaves = arguments.leaves
    found = {leaves[row.leaf]._storage for row in program.rows if not row.is_gradient}
    if shared := found & program.watched:
        raise Conflict(shared)
    _note_gradients(program, recording, arguments)
    program.has_gradients = wants_gradients(arguments, made.captured)
    program.leaves_more = bool(program.gradients_out or program.argument_gradients) or any(
        row.is_donated or (row.is_view and row.is_written) for row in program.rows
    )
    return program


def _row(each: Input, written: dict[Storage, UOp], donated: set[int]) -> InputRow:
    is_donated = each.leaf in donated and not each.is_gradient
    return InputRow(
        each.leaf, each.is_gradient, each.is_view, each.placeholder in written, is_donated
    )


def _watched(recording: Recording, made: Made, rows: list[InputRow]) -> set[Storage]:
    """The storages that must not come in as an argument, because a write would not be seen."""
    if any(row.is_written or row.is_donated for row in rows):
        return set(made.captured)
    return {storage for storage in made.captured if storage in recording.written}


def _note_gradients(program: TracedProgram, recording: Recording, arguments: Arguments) -> None:
    inside = {id(tensor): leaf for leaf, tensor in recording.inside.items()}
    positions = {id(leaf): number for number, leaf in enumerate(arguments.leaves)}
    for tensor, grad in recording.grads_read:
        if id(tensor) in inside:
            program.read_gradients.append(positions[inside[id(tensor)]])
        elif tensor._storage in recording.known:
            kind = None if grad is None else gradient_kind(grad)
            storage = None if grad is None else grad._storage
            number = program.captured.index(storage) if storage in program.captured else None
            program.gradients_in.append(GradientIn(ref(tensor), kind, number))
    for tensor in recording.grads_written:
        if id(tensor) in inside:
            program.argument_gradients.append((positions[inside[id(tensor)]], tensor._grad))
        elif tensor._storage in recording.known:
            program.gradients_out.append((ref(tensor), tensor._grad))


def wants_gradients(arguments: Arguments, captured: list[Storage]) -> bool:
    """Whether somebody asked for gradients of what the function read."""
    if any(tensor._wants for tensor in arguments.tensors):
        return True
    return any(leaf._wants and leaf._storage in captured for leaf in live_leaves())
