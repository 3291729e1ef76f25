"""Cuts the ranged graph at its global stages, and puts the kernels in order.

In: a SINK (RANGED_SPEC). Out: a LINEAR of CALLs (SCHEDULE_SPEC). The body of a call is a KERNEL
whose parameters are numbered by their place in it, so equal kernels are the same node, whatever
buffers they run on. Nothing is decided here: a member of the SINK is a kernel, what it reaches up
to memory is its body, and it runs after what it reads and what its order edges name.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.accumulation import may_meet
from weft.ir.build import index_of, param, range_, true
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.results import FILLING, result_nodes
from weft.ir.shapes import shape_of
from weft.ir.stage import is_global, stage_parts
from weft.ir.uop import UOp, make
from weft.ir.walk import rebuild, topological
from weft.rules.simplify import simplify
from weft.schedule.context import Body, Context, next_slot
from weft.support.errors import InternalError

_MEMORIES = frozenset((Op.PARAM, Op.BUFFER, Op.AFTER, Op.CALL, Op.ITEM))


def split_kernels(root: UOp, context: Context) -> UOp:
    """The schedule: every kernel once, after all that it waits for."""
    groups = [_Group(number, member) for number, member in enumerate(root.src)]
    owners = {part: group for group in groups for part in group.parts}
    for group in groups:
        group.walk(owners)
    memory = _Memory(context.first_temporary)
    calls: list[UOp] = []
    for group in in_order(groups):
        if group.call is not None:
            calls += _called(group.call, group.outputs, memory, context)
        elif not group.is_empty:
            calls.append(_kernel(group, memory))
    return make(Op.LINEAR, dtypes.void, tuple(calls))


class _Group:
    """A member of the SINK: the outputs of a kernel, or a call with the memory that it fills."""

    def __init__(self, number: int, member: UOp) -> None:
        self.number = number
        self.outputs = member.src if member.op == Op.TUPLE else (member,)
        self.call = _call_of(self.outputs[0])
        self.parts = {member, *self.outputs}  # what order edges and readers name it by
        if self.call is not None:
            self.parts |= {self.call, *result_nodes(self.call)}
        self.nodes: list[UOp] = []
        self.waits: set[_Group] = set()

    def walk(self, owners: dict[UOp, _Group]) -> None:
        """Find the nodes of the body, and the groups that it waits for."""
        memories = self.call.src if self.call is not None else ()
        for output in self.outputs if self.call is not None else ():
            memories += output.src[:1] if output.op == Op.STORE else ()
        if self.call is None:
            roots = [part for output in self.outputs for part in _in_kernel(output)]
            self.nodes = topological(*roots, enter=lambda node: not _is_memory(node))
            memories = tuple([node for node in self.nodes if _is_memory(node)])
        for memory in memories:
            self.waits.update(owners[part] for part in _made_by(memory) if part in owners)
        self.waits.discard(self)

    @property
    def is_empty(self) -> bool:
        """Whether it writes no element."""
        loops = [loop for loop in self.nodes if loop.op == Op.RANGE]
        return any(loop.src[0].op == Op.CONST and loop.src[0].arg == 0 for loop in loops)


def _call_of(output: UOp) -> UOp | None:
    """The CALL that an output is, or whose result it stores as a whole."""
    value = output.src[1] if output.op == Op.STORE else output
    value = value.src[0] if value.op == Op.ITEM else value
    return value if value.op == Op.CALL else None


def _in_kernel(output: UOp) -> tuple[UOp, ...]:
    """The sources of an output, those of its index first."""
    if output.op == Op.STORE:
        return output.src
    parts = stage_parts(output)
    assert parts is not None
    mask = () if parts.mask is None else (parts.mask,)
    return (*mask, *parts.indices, parts.value, *parts.ranges)


def _is_memory(node: UOp) -> bool:
    """Whether a node is memory to a kernel, which ends there."""
    return node.op in _MEMORIES or is_global(node)


def _made_by(memory: UOp) -> list[UOp]:
    """What has to have happened before memory is touched."""
    found: list[UOp] = []
    stack = [memory]
    while stack:
        node = stack.pop()
        if node.op == Op.AFTER:
            stack += node.src
        else:
            found.append(node)
    return found


def in_order(groups: Sequence[_Group]) -> list[_Group]:
    """The groups, each after those it waits for; as they were listed otherwise.

    A group's round is one after the last of those it waits for. One that waits for nothing, as
    one that unpacks weights, is one before the first that waits for it: it reads memory that is
    there anyway, and what it makes takes room until it is used.
    """
    followers: dict[_Group, list[_Group]] = {group: [] for group in groups}
    for group in groups:
        for source in group.waits:
            followers[source].append(group)
    left = {group: len(group.waits) for group in groups}
    rounds = dict.fromkeys((group for group in groups if not left[group]), 0)
    ready = list(rounds)
    for group in ready:  # grows while it is walked
        for follower in followers[group]:
            rounds[follower] = max(rounds.get(follower, 0), rounds[group] + 1)
            left[follower] -= 1
            if not left[follower]:
                ready.append(follower)
    if len(ready) < len(groups):
        waiting = [group.number for group in groups if left[group]]
        raise InternalError("kernels wait for each other", facts=[("members", str(waiting))])
    for group in groups:
        if not group.waits and followers[group]:
            rounds[group] = min(rounds[follower] for follower in followers[group]) - 1
    return sorted(groups, key=rounds.__getitem__)


class _Memory:
    """The PARAM that stands for each memory; temporaries get slots as they are met."""

    def __init__(self, first_temporary: int) -> None:
        self.first = first_temporary
        self.next = first_temporary
        self._known: dict[UOp, UOp] = {}

    def of(self, node: UOp) -> UOp:
        """The PARAM of a memory, of a stage or of a result of a call."""
        while node.op == Op.AFTER:
            node = node.src[0]
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


def _kernel(group: _Group, memory: _Memory) -> UOp:
    """The call of the kernel of a group, on the memory that it writes and reads."""
    written = [o.src[0].src[0] if o.op == Op.STORE else o for o in group.outputs]
    read = [node for node in group.nodes if _is_memory(node)]
    outer = {node: memory.of(node) for node in (*written, *read)}
    arguments = list(dict.fromkeys(outer.values()))
    slots = {m: param(slot, m.dtype, shape_of(m)) for slot, m in enumerate(arguments)}
    loops = sorted((n for n in group.nodes if n.op == Op.RANGE), key=lambda loop: loop.arg)
    made: dict[UOp, UOp] = {node: slots[outer[node]] for node in outer}
    made |= {loop: range_(number, loop.src[0]) for number, loop in enumerate(loops)}
    for node in group.nodes:
        if node not in made:
            made[node] = _rebuilt(node, made)
    stores = [_store(output, made) for output in group.outputs]
    sequential = _sequential(stores) | {n.src[1] for n in made.values() if n.op == Op.SCAN}
    kinds = ["ordered" if made[loop] in sequential else "loop" for loop in loops]
    body = tuple([simplify(make(Op.STORE, dtypes.void, each.src)) for each in stores])
    name = _name(stores, body, [made[loop] for loop in loops])
    result = make(Op.KERNEL, dtypes.void, body, (name, tuple(enumerate(kinds))))
    return make(Op.CALL, dtypes.void, tuple(arguments), result)


def _rebuilt(node: UOp, made: dict[UOp, UOp]) -> UOp:
    src = tuple([made[source] for source in node.src])
    if node.op == Op.READ:
        return make(Op.LOAD, node.dtype, (make(Op.INDEX, node.dtype, src),))
    return rebuild(node, src)


def _store(output: UOp, made: dict[UOp, UOp]) -> UOp:
    """The STORE of an output; a stage becomes memory."""
    if output.op == Op.STORE:
        return make(Op.STORE, dtypes.void, tuple([made[s] for s in output.src]), output.arg)
    parts = stage_parts(output)
    assert parts is not None
    mask = true() if parts.mask is None else made[parts.mask]
    place = index_of(made[output], [made[i] for i in parts.indices], mask)
    ranges = [made[loop] for loop in parts.ranges]
    return make(Op.STORE, dtypes.void, (place, made[parts.value], *ranges))


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
    kind = "scan" if ops >> Op.SCAN & 1 else "fold" if ops >> Op.REDUCE & 1 else "map"
    if any(each.arg == "ordered" for each in stores):
        kind = "scatter"
    sizes = [str(r.src[0].arg) if r.src[0].op == Op.CONST else "n" for r in loops]
    outputs = f"{len(body)}x" if len(body) > 1 else ""
    return "_".join([kind + outputs, *sizes]) if sizes else kind + outputs


# ---- calls


def _called(
    call: UOp, outputs: Sequence[UOp], memory: _Memory, context: Context
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
        calls.append(make(Op.CALL, dtypes.void, src, part.arg))
    return calls


def _filling(body: UOp, memory: list[UOp]) -> UOp:
    """A kernel on memory by slot; a program says itself in which order it takes it."""
    if body.op == Op.PROGRAM:
        memory = [memory[part.arg[0]] for part in body.src if part.op == Op.PARAM]
    return make(Op.CALL, dtypes.void, tuple(memory), body)
