"""Cuts the ranged graph at its global stages, and puts the kernels in order.

In: a SINK (RANGED_SPEC). Out: a LINEAR of CALLs (SCHEDULE_SPEC). The body of a call is a KERNEL
whose parameters are numbered by their position in it, so equal kernels are the same node, whatever
buffers they run on. Nothing is decided here: a member of the SINK is a kernel, what it reaches up
to memory is its body, and it runs after what it reads and what its order edges name.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.build import index_of, load, param, range_, true
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.ranged import Member, members_of
from weft.ir.reduction.accumulation import may_meet
from weft.ir.results import FILLING, result_nodes
from weft.ir.shapes import shape_of
from weft.ir.stage import stage_parts
from weft.ir.uop import UOp, make
from weft.ir.views import behind
from weft.ir.walk import substitute, topological
from weft.rules.simplify import simplify
from weft.schedule.context import Body, ScheduleContext
from weft.support.errors import InternalError


def split_kernels(root: UOp, context: ScheduleContext) -> UOp:
    """The schedule: every kernel once, after all that it waits for."""
    memory = _KernelMemory(context.first_temporary)
    calls: list[UOp] = []
    for member in in_order(members_of(root)):
        if member.call is not None:
            calls += _called(member.call, member.outputs, memory, context)
        elif not any(_is_empty(loop) for loop in member.loops):
            calls.append(_kernel(member, memory))
    return make(Op.LINEAR, dtypes.void, tuple(calls), (context.first_temporary,))


def _is_empty(loop: UOp) -> bool:
    """Whether a loop has no iteration, so that its kernel writes nothing."""
    return loop.src[0].op == Op.CONST and loop.src[0].arg == 0


def in_order(members: Sequence[Member]) -> list[Member]:
    """The members, each after those it waits for; as they were listed otherwise.

    A member's round is one after the last of those it waits for. One that waits for nothing, as
    one that unpacks weights, is one before the first that waits for it: it reads memory that is
    there anyway, and what it makes takes room until it is used.
    """
    followers: dict[Member, list[Member]] = {member: [] for member in members}
    for member in members:
        for source in member.waits:
            followers[source].append(member)
    left = {member: len(member.waits) for member in members}
    rounds = dict.fromkeys((member for member in members if not left[member]), 0)
    ready = list(rounds)
    for member in ready:  # grows while it is walked
        for follower in followers[member]:
            rounds[follower] = max(rounds.get(follower, 0), rounds[member] + 1)
            left[follower] -= 1
            if not left[follower]:
                ready.append(follower)
    if len(ready) < len(members):
        waiting = [member.number for member in members if left[member]]
        raise InternalError("kernels wait for each other", facts=[("members", str(waiting))])
    for member in members:
        if not member.waits and followers[member]:
            rounds[member] = min(rounds[follower] for follower in followers[member]) - 1
    return sorted(members, key=rounds.__getitem__)


class _KernelMemory:
    """The PARAM that stands for each memory; temporaries get slots as they are met."""

    def __init__(self, first_temporary: int) -> None:
        self.first = first_temporary
        self.next = first_temporary
        self._known: dict[UOp, UOp] = {}

    def of(self, node: UOp) -> UOp:
        """The PARAM of a memory, of a stage or of a result of a call."""
        node = behind(node)
        is_given = node.op == Op.BUFFER or (node.op == Op.PARAM and node.arg[0] < self.first)
        if is_given:
            return node
        if node not in self._known:
            self._known[node] = self.temporary(node)
        return self._known[node]

    def temporary(self, node: UOp) -> UOp:
        """New memory for a value."""
        made = param(self.next, node.dtype, shape_of(node))
        self.next += 1
        return made

    def fill(self, result: UOp, memory: UOp) -> None:
        """Let a result of a call be computed where it is stored."""
        self._known[result] = self.of(memory)


def _kernel(member: Member, memory: _KernelMemory) -> UOp:
    """The call of the kernel of a member, on the memory that it writes and reads."""
    written = [o.src[0].src[0] if o.op == Op.STORE else o for o in member.outputs]
    outer = {node: memory.of(node) for node in (*written, *member.memories)}
    arguments = list(dict.fromkeys(outer.values()))
    slots = {m: param(slot, m.dtype, shape_of(m)) for slot, m in enumerate(arguments)}
    loops = member.loops
    made: dict[UOp, UOp] = {node: slots[outer[node]] for node in outer}
    made |= {loop: range_(number, loop.src[0]) for number, loop in enumerate(loops)}
    for node in member.nodes:
        if node not in made:
            src = tuple([made[source] for source in node.src])
            if node.op == Op.READ:
                made[node] = load(make(Op.INDEX, node.dtype, src))
            else:
                made[node] = node if src == node.src else make(node.op, node.dtype, src, node.arg)
    stores = [_store(output, made) for output in member.outputs]
    sequential = _sequential(stores) | {n.src[1] for n in made.values() if n.op == Op.SCAN}
    kinds = ["ordered" if made[loop] in sequential else "loop" for loop in loops]
    body = tuple([simplify(make(Op.STORE, dtypes.void, each.src)) for each in stores])
    name = _name(stores, body, [made[loop] for loop in loops])
    result = make(Op.KERNEL, dtypes.void, body, (name, tuple(enumerate(kinds))))
    return _from_line(_call(result, arguments), member.outputs[0])


def _call(kernel: UOp, memory: Sequence[UOp]) -> UOp:
    """The call of a kernel on memory by slot, of which it may not use all.

    Values that were read as different ones can be equal once they are loads of one memory, and
    then what is computed of them may need no memory; a kernel of a user may ignore an input.
    """
    used = {node.arg[0]: node for node in topological(kernel) if node.op == Op.PARAM}
    if len(used) < len(memory):
        numbers = sorted(used)
        memory = [memory[n] for n in numbers]
        again = [param(n, each.dtype, shape_of(each)) for n, each in enumerate(memory)]
        kernel = substitute(kernel, {used[n]: new for n, new in zip(numbers, again, strict=True)})
    return make(Op.CALL, dtypes.void, tuple(memory), kernel)


def _store(output: UOp, made: dict[UOp, UOp]) -> UOp:
    """The STORE of an output; a stage becomes memory."""
    if output.op == Op.STORE:
        return make(Op.STORE, dtypes.void, tuple([made[s] for s in output.src]), output.arg)
    parts = stage_parts(output)
    mask = true() if parts.mask is None else made[parts.mask]
    address = index_of(made[output], [made[i] for i in parts.indices], mask)
    ranges = [made[loop] for loop in parts.ranges]
    return make(Op.STORE, dtypes.void, (address, made[parts.value], *ranges))


def _sequential(stores: list[UOp]) -> set[UOp]:
    """The loops over updates that may meet at one index."""
    return {
        loop
        for made in stores
        if made.arg == "ordered"
        for loop in made.src[2:]
        if may_meet(made) >> loop.arg & 1
    }


def _name(stores: list[UOp], body: tuple[UOp, ...], loops: list[UOp]) -> str:
    """What a person sees: how it computes, how many outputs, and its extents."""
    ops = 0
    for each in body:
        ops |= each.ops
    kind = "scan" if ops >> Op.SCAN & 1 else "reduce" if ops >> Op.REDUCE & 1 else "map"
    if any(each.arg == "ordered" for each in stores):
        kind = "scatter"
    sizes = [str(r.src[0].arg) if r.src[0].op == Op.CONST else "n" for r in loops]
    outputs = f"{len(body)}x" if len(body) > 1 else ""
    return "_".join([kind + outputs, *sizes]) if sizes else kind + outputs


# ---- calls


def _called(
    call: UOp, outputs: Sequence[UOp], memory: _KernelMemory, context: ScheduleContext
) -> list[UOp]:
    """The kernels of a called function, on the memory of this call."""
    for output in outputs:
        if output.op == Op.STORE:
            memory.fill(output.src[1], output.src[0])
    given = [memory.of(argument) for argument in call.src]
    results = [memory.of(result) for result in result_nodes(call)]
    if call.arg.op in FILLING:
        return [_filling(call.arg, given + results)]
    body: Body = context.schedule_body(call.arg)
    known = dict(enumerate(given))
    known |= {body.parameters + number: result for number, result in enumerate(results)}
    calls: list[UOp] = []
    for part in body.kernels.src:
        for inner in part.src:
            if inner.arg[0] not in known:
                known[inner.arg[0]] = memory.temporary(inner)
        src = tuple([known[inner.arg[0]] for inner in part.src])
        calls.append(_from_line(make(Op.CALL, dtypes.void, src, part.arg), part))
    return calls


def _from_line(call: UOp, origin: UOp) -> UOp:
    """A call, said to be for the line of the program that its origin is from."""
    call.line = origin.line
    return call


def _filling(body: UOp, memory: list[UOp]) -> UOp:
    """A kernel on memory by slot; a program says itself in which order it takes it."""
    if body.op != Op.PROGRAM:
        return _call(body, memory)
    memory = [memory[part.arg[0]] for part in body.src if part.op == Op.PARAM]
    return make(Op.CALL, dtypes.void, tuple(memory), body)
