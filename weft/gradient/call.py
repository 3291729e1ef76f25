"""The gradient of CALL: a call of the derivative of its body.

The derived body is a function of (arguments…, seeds…) that gives a TUPLE of the gradients that are
wanted. It follows from the body and from what is wanted alone, so a layer that is used n times
has one backward body; within one pass it is also derived only once. What the forward body computes
is computed again by the derived one, unless the scheduler keeps it.

A body may hold memory of its own, such as captured weights. A BUFFER is the same thing in every
scope, so a target BUFFER inside a body has its gradient from there.

A KERNEL or a PROGRAM says how something is computed, not what. It has no gradient of its own;
CUSTOM_GRADIENT around the call gives it one.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import NamedTuple, TypeVar

from weft.gradient.tuples import add, nothing, values_of
from weft.ir.build import call, item, param, tuple_of
from weft.ir.movement import as_shape
from weft.ir.ops import Op
from weft.ir.results import FILLING
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp
from weft.ir.walk import bodies, topological
from weft.support.errors import NotSupported

# What a walk asks for: the gradient of each target, given that of the output.
Request = tuple[UOp, Sequence[UOp], UOp]
Result = TypeVar("Result")
Asking = Generator[Request, "list[UOp | None] | None", Result]


class _Question(NamedTuple):
    """What decides a derived body: which arguments and captured memory, given which seeds."""

    body: UOp
    slots: tuple[int, ...]
    buffers: tuple[UOp, ...]
    seeded: tuple[int, ...]
    arguments: int


class Derivatives:
    """The derived bodies of one pass. They live no longer, because they may hold memory."""

    def __init__(self, targets: Sequence[UOp]) -> None:
        self._buffers = tuple(target for target in targets if target.op == Op.BUFFER)
        self._derived: dict[_Question, list[UOp | None]] = {}
        self._captured: dict[UOp, tuple[UOp, ...]] = {}

    def captured(self, body: UOp) -> tuple[UOp, ...]:
        """The target buffers that a body holds, itself or in the bodies it calls."""
        if not self._buffers:
            return ()
        if body not in self._captured:
            held = {part for scope in (body, *bodies(body)) for part in topological(scope)}
            self._captured[body] = tuple(each for each in self._buffers if each in held)
        return self._captured[body]

    def of(self, node: UOp, g: UOp, live: set[UOp]) -> Asking[list[tuple[UOp, UOp | None]]]:
        """What a CALL contributes to its arguments and to the memory that its body holds."""
        body: UOp = node.arg
        if body.op in FILLING:
            raise _without_gradient(node)
        gradients = _values(body, g)
        question = _Question(
            body,
            tuple(slot for slot, source in enumerate(node.src) if source in live),
            self.captured(body),
            tuple(gradients),
            len(node.src),
        )
        if question not in self._derived:
            self._derived[question] = yield from self._derive(question)
        found = self._derived[question]
        present = tuple(each for each in found if each is not None)
        if not present:
            return []
        derived = tuple_of(present)
        done = call(derived, *node.src, *gradients.values())
        receivers = (*(node.src[slot] for slot in question.slots), *question.buffers)
        parts: list[tuple[UOp, UOp | None]] = []
        for receiver, each in zip(receivers, found, strict=True):
            if each is not None:
                part = item(done, len(parts), each.dtype)
                parts.append((receiver, as_shape(part, shape_of(receiver))))
        return parts

    def _derive(self, question: _Question) -> Asking[list[UOp | None]]:
        """The gradients of a body in its own terms: of each wanted argument, then each buffer."""
        params: dict[int, list[UOp]] = {slot: [] for slot in question.slots}
        for part in topological(question.body):
            if part.op == Op.PARAM and part.arg[0] in params:
                params[part.arg[0]].append(part)
        targets = [part for parts in params.values() for part in parts]
        seed = _seed(question)
        found = yield question.body, [*targets, *question.buffers], seed
        assert found is not None
        gradients = dict(zip(targets, found, strict=False))
        of_slots = [_total([gradients[part] for part in parts]) for parts in params.values()]
        return [*of_slots, *found[len(targets) :]]


def _without_gradient(node: UOp) -> NotSupported:
    return NotSupported(
        f"gradient: the custom kernel {node.arg.arg[0]!r} has none",
        rule="a kernel that is written by hand is not differentiated",
        fix="pass gradient= where the kernel is called, or detach() its inputs",
        where=node.line,
    )


def _values(body: UOp, g: UOp) -> dict[int, UOp]:
    """The gradients that a CALL has, by the position of the value; a plain value is number 0."""
    if body.op != Op.TUPLE:
        return {0: g}
    empty = nothing()
    return {position: part for position, part in enumerate(g.src) if part is not empty}


def _seed(question: _Question) -> UOp:
    """The gradient of a body as PARAMs that follow its arguments."""
    body, seeded = question.body, question.seeded
    values = values_of(body) if body.op == Op.TUPLE else (body,)
    seeds = [nothing()] * len(values)
    for slot, position in enumerate(seeded, question.arguments):
        seeds[position] = param(slot, values[position].dtype, shape_of(values[position]))
    return tuple_of(seeds) if body.op == Op.TUPLE else seeds[0]


def _total(parts: list[UOp | None]) -> UOp | None:
    """The sum of those that there are; a slot has one PARAM node for each way it is described."""
    total: UOp | None = None
    for part in parts:
        if part is not None:
            total = part if total is None else add(total, as_shape(part, shape_of(total)))
    return total
