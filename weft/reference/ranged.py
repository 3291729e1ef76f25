"""An interpreter for ranged graphs: kernels and calls on memory, before they are cut apart.

Members of the SINK run one after the other, each after what it waits for by data and order edges,
and by those alone: in which order independent ones run is another matter than in `split`, so an
edge that is missing shows. A global STAGE and a result of a CALL are memory that is filled once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from weft.ir.arrays.values import Array, from_storage, storage_dtype, to_storage, value_dtype
from weft.ir.build import param, sink, store
from weft.ir.ops import Op, name
from weft.ir.ranged import Member, members_of
from weft.ir.results import FILLING, result_nodes
from weft.ir.shapes import shape_of
from weft.ir.stage import stage_parts
from weft.ir.uop import UOp
from weft.ir.views import behind
from weft.reference.fault import fault
from weft.reference.kernel import run_kernel
from weft.reference.kernel_values import KernelFacts, KernelValues, Point
from weft.reference.lanes import size_value
from weft.reference.memory import Cell, ElementMemory, Value
from weft.reference.memory import store as write
from weft.reference.tensor import evaluate_stores


def run_ranged(
    root: UOp, arguments: Sequence[ElementMemory], variables: Mapping[str, int] | None = None
) -> None:
    """Run a ranged graph; `arguments[slot]` is the memory of `PARAM(slot)`, written in place."""
    if root.op != Op.SINK:
        raise fault(f"expected a SINK of kernels and calls, got {name(root.op)}", root)
    run = _RangedRun(arguments, variables or {})
    done: set[Member] = set()
    for member in reversed(members_of(root)):
        stack = [member]
        while stack:
            last = stack[-1]
            waiting = [other for other in last.waits if other not in done]
            if last not in done and waiting:
                stack += sorted(waiting, key=lambda other: other.number)
                if len(stack) > len(root.src) ** 2 + 1:
                    raise fault("members wait for each other", root)
                continue
            stack.pop()
            if last not in done:
                done.add(last)
                run.perform(last)


class _RangedRun:
    """The memory of a ranged graph, and what has been done to it."""

    def __init__(self, arguments: Sequence[ElementMemory], variables: Mapping[str, int]) -> None:
        self.arguments = arguments
        self.variables = variables
        self._values: dict[UOp, ElementMemory] = {}  # of stages and results of calls

    def perform(self, member: Member) -> None:
        """Run one member on the memory as it is now."""
        if member.call is not None:
            self._call(member.call, member.outputs)
            return
        for output in member.outputs:
            if output.op == Op.STAGE:
                self._values[output] = self._fresh(output, "global stage")
        targets = {output: self._target(output) for output in member.outputs}
        start = {memory: memory.copy() for memory in targets.values()}
        groups: dict[tuple[UOp, ...], list[UOp]] = {}
        for output in member.outputs:
            is_store = output.op == Op.STORE
            loops = output.src[2:] if is_store else stage_parts(output).ranges
            groups.setdefault(loops, []).append(output)
        facts = KernelFacts(member.nodes)
        for group in groups.values():
            live = {targets[output] for output in group}
            seen: dict[UOp, ElementMemory] = {}
            for node in member.memories:  # others see what was there before the kernel
                memory = self.memory(node)
                seen[node] = memory if memory in live else start.get(memory, memory)
            _Outputs(facts, self.variables, seen, live).write_all(group, targets)

    def memory(self, node: UOp) -> ElementMemory:
        """The memory that a node of a kernel means."""
        node = behind(node)
        if node in self._values:
            return self._values[node]
        if node.op == Op.PARAM and node.arg[0] < len(self.arguments):
            memory: ElementMemory = self.arguments[node.arg[0]]
            if memory.dtype is not node.dtype:
                raise fault(f"PARAM {node.arg[0]} is {memory.dtype.name}", node)
            return memory
        raise fault(f"{name(node.op)} stands for no memory", node)

    def _target(self, output: UOp) -> ElementMemory:
        """The memory that an output fills."""
        return self.memory(output.src[0].src[0] if output.op == Op.STORE else output)

    def _fresh(self, node: UOp, title: str) -> ElementMemory:
        sizes = [self._size(size) for size in shape_of(node)]
        return ElementMemory(node.dtype, math.prod(sizes), name=title)

    def _size(self, size: int | UOp) -> int:
        return size_value(size, self.variables) if isinstance(size, UOp) else size

    # ---- calls

    def _call(self, call: UOp, outputs: Sequence[UOp]) -> None:
        """Run the body of a call; its results go where they are stored."""
        given = [self.memory(argument) for argument in call.src]
        filled = {out.src[1]: self.memory(out.src[0]) for out in outputs if out.op == Op.STORE}
        for result in result_nodes(call):
            self._values[result] = filled.get(result) or self._fresh(result, "result")
        results = [self._values[result] for result in result_nodes(call)]
        body: UOp = call.arg
        if body.op == Op.PROGRAM:
            raise fault("PROGRAM is made for a machine, and cannot be interpreted", body)
        if body.op in FILLING or body.op == Op.SINK:
            run_kernel(body, [*given, *results], self.variables)
        else:
            self._evaluate(body, call, given, results)

    def _evaluate(
        self, body: UOp, call: UOp, given: list[ElementMemory], results: list[ElementMemory]
    ) -> None:
        """The values of a tensor graph over its arguments."""
        values = body.src if body.op == Op.TUPLE else (body,)
        arrays = [self._array(memory, node) for memory, node in zip(given, call.src, strict=True)]
        stores: list[UOp] = []
        for value, result in zip(values, result_nodes(call), strict=True):
            sizes = [self._size(size) for size in shape_of(result)]
            stores.append(store(param(len(arrays), value.dtype, shape_of(value)), value))
            arrays.append(np.zeros(sizes, value_dtype(value.dtype)))
        after = evaluate_stores(sink(*stores), arrays, self.variables)
        for memory, array in zip(results, after[len(given) :], strict=True):
            data = to_storage(memory.dtype, array).tobytes()
            memory.values[:] = ElementMemory.from_bytes(memory.dtype, data).values

    def _array(self, memory: ElementMemory, node: UOp) -> Array:
        sizes = [self._size(size) for size in shape_of(node)]
        raw = np.frombuffer(memory.to_bytes(), storage_dtype(memory.dtype))
        return from_storage(memory.dtype, raw[: math.prod(sizes)].reshape(sizes))


class _Outputs(KernelValues):
    """Outputs of a kernel over the same ranges: at each point all are computed, then written."""

    def write_all(self, outputs: Sequence[UOp], targets: Mapping[UOp, ElementMemory]) -> None:
        first = outputs[0]
        loops = first.src[2:] if first.op == Op.STORE else stage_parts(first).ranges
        for point in self.points(loops, {}):
            writes = [
                (self.target(output, targets[output], point), self.computed(output, point))
                for output in outputs
            ]
            for output, (target, value) in zip(outputs, writes, strict=True):
                write(target, value, output)

    def computed(self, output: UOp, point: Point) -> Value:
        return self.value(output.src[1 if output.op == Op.STORE else 0], point)

    def target(self, output: UOp, memory: ElementMemory, point: Point) -> Cell:
        """Where an output is written at a point."""
        if output.op == Op.STORE:
            return self.address(output.src[0], memory, point)
        parts = stage_parts(output)
        if parts.mask is not None and not self.value(parts.mask, point):
            return Cell(memory, False, 0)
        sizes = [self.number(x, point) if isinstance(x, UOp) else x for x in parts.sizes]
        return Cell(memory, True, self.position(output, parts.indices, sizes, point))
