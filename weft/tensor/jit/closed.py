"""Functions that say what they read: they are not watched, and their programs come from disk.

A jitted function of Weft's own whose first argument never changes may be *closed*, by
`jit(closed=f)`. `f` of that argument tells all that the function reads beside its other arguments:
a text of the facts, and the memory. A trace that reached other memory is refused. What two
processes would trace alike has one name, so a second process takes the slots of the run and its
schedule from disk, and calls the function only for a reader who asks for the graph.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple
from weakref import ref

from weft.engine.compile import machine_key
from weft.engine.devices import device
from weft.engine.stored.schedule import is_wanted, schedule_key, try_stored_as
from weft.ir.dtypes import DType, by_name
from weft.ir.ops import Op
from weft.ir.shapes import Shape
from weft.ir.text import dump, parse
from weft.ir.uop import UOp
from weft.support.cache import DiskCache
from weft.support.code_version import COMPILER, code_version
from weft.support.errors import InternalError
from weft.tensor.jit.graph import CAPTURED, CONSTANT, Output, Role, Slots, body_of
from weft.tensor.jit.make import wants_gradients
from weft.tensor.jit.program import InputRow, TensorKind, TracedProgram, leaf_kind
from weft.tensor.jit.results import FromOutput, Results
from weft.tensor.jit.run import NativeRun
from weft.tensor.jit.signature import SCALARS, Arguments, grad_of, unbound
from weft.tensor.storage import Storage
from weft.tensor.tensor import Tensor
from weft.tensor.trees import LEAF

_CACHE: Final = DiskCache("traces", 1)
# The packages that decide what a function of Weft traces to.
_TRACER: Final = (*COMPILER, "support", "schedule", "engine", "tensor", "io", "llm")


class Closed(NamedTuple):
    """All that a function reads: `facts` as a text, `constants` (BUFFER nodes) and `tensors`.

    The facts say everything that is not memory, and how the memory is read; `constants` are never
    written. Tensors are whole, and may be written.
    """

    facts: str
    constants: Sequence[UOp]
    tensors: Sequence[Tensor]

    @property
    def storages(self) -> list[Storage]:
        return [tensor._storage for tensor in self.tensors]


def require_declared(closed: Closed, program: TracedProgram) -> None:
    """A trace that reached other memory than was declared is a mistake of the declaration."""
    known = {*closed.storages}
    nodes = {*closed.constants, *(tensor._storage.uop for tensor in closed.tensors)}
    reached = [each for each in program.captured if each not in known and each.uop not in nodes]
    if reached:
        raise InternalError(
            f"jit: {program.name} is closed, and reads a tensor it does not declare"
        )


def name_of(function: Any, closed: Closed, arguments: Arguments, state: Any) -> str | None:
    """What the program of a call is found by on disk; None where no name says enough.

    `state` is what beside the arguments tells traces apart in one process.
    """
    storages = [tensor._storage for tensor in arguments.tensors]
    leaves = [_leaf_text(leaf) for leaf in arguments.leaves[1:]]
    memory = [_memory_text(node) for node in (*closed.constants, *_nodes(closed))]
    is_plain = len(set(storages)) == len(storages) and None not in (*leaves, *memory)
    if not is_plain or not is_wanted():
        return None
    names = {node.arg[2] for node in (*_nodes(closed), *(each.uop for each in storages))}
    version = code_version(_TRACER)
    machines = sorted([(name, machine_key(device(name), version)) for name in names])
    what = f"{function.__module__}.{function.__qualname__}"
    return repr((what, closed.facts, arguments.structure, leaves, memory, machines, state))


def _nodes(closed: Closed) -> list[UOp]:
    return [storage.uop for storage in closed.storages]


def _memory_text(node: UOp) -> str | None:
    """What memory is, whose contents nobody asks for; None for what is not one piece."""
    is_plain = node.op == Op.BUFFER and not node.src and isinstance(node.arg[2], str)
    return f"{node.dtype.name} {node.arg[1:]}" if is_plain else None


def _leaf_text(leaf: Any) -> str | None:
    if isinstance(leaf, Tensor):
        memory = _memory_text(leaf._storage.uop)
        is_plain = memory is not None and not leaf._steps and grad_of(leaf) is None
        return f"{memory} {leaf.requires_grad}" if is_plain else None
    if isinstance(leaf, UOp):
        return dump(unbound(leaf))
    return f"{type(leaf).__name__} {leaf!r}" if isinstance(leaf, SCALARS) else None


def try_program(
    name: str, closed: Closed, arguments: Arguments, trace: Callable[[], TracedProgram]
) -> TracedProgram | None:
    """The program as another process left it; None where the disk has it no more.

    `trace` makes it anew, for who asks for the graph.
    """
    data = _CACHE.get(name)
    if data is None:
        return None
    stored = json.loads(data)
    slots = _slots_from(stored)
    captured = closed.storages
    roles = [slots.roles[slot] for slot in slots.written]
    watched = {captured[role.number] for role in roles if role.kind == CAPTURED}
    is_apart = watched.isdisjoint(tensor._storage for tensor in arguments.tensors)
    if not is_apart or wants_gradients(arguments, captured):
        return None
    graph = functools.cache(lambda: trace().graph)
    on = device(stored["device"])
    prepared = try_stored_as(stored["schedule"], lambda: body_of(graph()), on)
    if prepared is None:
        return None
    constants = list(closed.constants)
    run = NativeRun(slots, prepared, stored["device"], constants, hides=False)
    program = TracedProgram(graph, constants, captured, run)
    program.results = Results(LEAF, (FromOutput(0, (), stored["wants"], None, None),))
    program.rows = [InputRow(leaf, False, False, False, False) for leaf in stored["rows"]]
    program.watched = watched
    program.describe(arguments)
    return program


def example_of(arguments: Arguments) -> Callable[[], Arguments]:
    """Makes arguments that are traced like these; nothing is kept alive for it."""
    owner, *rest = arguments.leaves
    structure, held, kinds = arguments.structure, ref(owner), list(map(leaf_kind, rest))
    devices = [each.device if isinstance(each, Tensor) else "" for each in rest]

    def example(kind: Any, device: Any) -> Any:
        if isinstance(kind, TensorKind):
            made = Tensor.empty(*kind.shape, dtype=kind.dtype, device=device)
            made.requires_grad = kind.requires_grad
            return made
        return kind.value

    return lambda: Arguments(structure, [held(), *map(example, kinds, devices)])


def put_program(name: str, closed: Closed, program: TracedProgram) -> None:
    """Keep a program for other processes, if it is one run of memory that they have, too."""
    run, numbers = program.prepare(), _numbers(closed, program)
    if not isinstance(run, NativeRun) or numbers is None or not _is_plain(program, run):
        return
    slots, plan = run.slots, program.results.plans[0]
    assert isinstance(plan, FromOutput)
    prepared = run.replay.prepared
    stored = {
        "schedule": schedule_key(prepared.body, prepared.device),
        "device": run.device,
        "roles": [(kind, numbers.get((kind, n), n)) for kind, n in slots.roles],
        "locals": [(slot, *_kind_to(dtype, shape)) for slot, dtype, shape in slots.locals],
        "written": slots.written,
        "output": _kind_to(slots.outputs[0].dtype, slots.outputs[0].shape),
        "wants": plan.requires_grad,
        "rows": [row.leaf for row in program.rows],
    }
    _CACHE.put(name, json.dumps(stored).encode())


def _is_plain(program: TracedProgram, run: NativeRun) -> bool:
    """Whether a program is a run with one result, and leaves nothing behind but memory."""
    plan = program.results.plans[0]
    return (
        program.results.structure == LEAF
        and isinstance(plan, FromOutput)
        and plan.steps == ()
        and plan.grad is None
        and [each.donor for each in run.slots.outputs] == [None]
        and not any(any(row[1:]) for row in program.rows)
        and not (program.leaves_more or program.has_gradients or program.gradients_in)
        and not (program.read_gradients or program.state.guards or program.state.arrays)
        and not run.replay.has_bindings
    )


def _numbers(closed: Closed, program: TracedProgram) -> dict[tuple[str, int], int] | None:
    """Where captured memory and constants stand in what is declared; None if some do not."""
    found: dict[tuple[str, int], int] = {}
    declared: tuple[tuple[str, Sequence[Any], Sequence[Any]], ...] = (
        (CAPTURED, closed.storages, program.captured),
        (CONSTANT, closed.constants, program.constants),
    )
    for kind, known, used in declared:
        indices = {each: index for index, each in enumerate(known)}
        if any(each not in indices for each in used):
            return None
        found |= {(kind, number): indices[each] for number, each in enumerate(used)}
    return found


def _kind_to(dtype: DType, shape: Shape) -> tuple[str, list[int | str]]:
    return dtype.name, [size if isinstance(size, int) else dump(size) for size in shape]


def _kind_from(stored: Any) -> tuple[DType, Shape]:
    name, sizes = stored
    shape = tuple([size if isinstance(size, int) else parse(size) for size in sizes])
    return by_name(name), shape


def _slots_from(stored: Any) -> Slots:
    return Slots(
        tuple([Role(*each) for each in stored["roles"]]),
        tuple([(slot, *_kind_from(kind)) for slot, *kind in stored["locals"]]),
        tuple(stored["written"]),
        (Output(*_kind_from(stored["output"]), stored["device"], None),),
    )
