"""The interpreter of tensor graphs, in NumPy: what every later form of a program must compute.

Nothing here is lazy or in place. A node has one value; a write makes a new array, and AFTER is its
first source read again with the new arrays instead of the old. So what was read before a
write keeps the old version without any care for order. Arrays hold values in the form of
`weft.ir.arrays.values`; memory goes through `from_storage` before and `to_storage` after.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

import numpy as np

from weft.ir.arrays.values import (
    Array,
    from_storage,
    require_values,
    storage_dtype,
    to_storage,
    value_dtype,
)
from weft.ir.build import Size
from weft.ir.dtypes import DType, dtypes
from weft.ir.ops import ELEMENTWISE, MOVEMENT, Op, name
from weft.ir.results import FILLING, filled_by
from weft.ir.shapes import fill_sizes, shape_of
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.reference.fault import fault
from weft.reference.kernel import run_kernel
from weft.reference.lanes import variable_value
from weft.reference.memory import ElementMemory
from weft.reference.numpy_movement import move, pick, scatter
from weft.reference.numpy_ops import elementwise, reduction, scan
from weft.reference.tensor_writes import Contents, Write, element_numbers, memory_below
from weft.support.errors import NotSupported

# An array, the values of a TUPLE, or None for what has no value of its own (STORE, SINK).
Value = Any
Values = dict[UOp, Value]
# A called body, the values that it was given, and those of the variables.
Calls = dict[UOp, tuple[list[Value], dict[str, int]]]


def evaluate(
    root: UOp | Sequence[UOp],
    buffers: Mapping[int, Array] | None = None,
    variables: Mapping[str, int] | None = None,
) -> Any:
    """The value of a graph: an array, a tuple of them for a TUPLE or for several roots.

    `buffers` holds the contents by BUFFER number, `variables` the symbolic sizes by name. The
    value of a SINK is `buffers` after its stores. Neither argument is changed.

    >>> from weft.ir.uop import const
    >>> evaluate(const(dtypes.int32, 3) * 2)
    array(6, dtype=int32)
    """
    roots = (root,) if isinstance(root, UOp) else tuple(root)
    scope = _Scope(dict(buffers or {}), dict(variables or {}), ())
    results = tuple(scope.result(each) for each in roots)
    return results[0] if isinstance(root, UOp) else results


def evaluate_stores(
    root: UOp,
    arguments: Sequence[Array],
    variables: Mapping[str, int] | None = None,
    calls: Calls | None = None,
) -> list[Array]:
    """The arguments after the stores of a SINK over PARAMs; those given are not changed.

    What each called body was first given is written down in `calls`.
    """
    scope = _Scope({}, dict(variables or {}), arguments, calls)
    scope.run(root)
    after = list(arguments)
    for memory, now in scope.final_contents(root).items():
        after[memory.arg[0]] = np.array(now)
    return after


def evaluate_nodes(
    root: UOp, arguments: Sequence[Array], variables: Mapping[str, int] | None = None
) -> Mapping[UOp, Any]:
    """The value of every node below a SINK over PARAMs, sources first."""
    scope = _Scope({}, dict(variables or {}), arguments)
    scope.run(root)
    return scope.values


def _fresh(value: Value) -> Value:
    """A copy that shares nothing with any buffer."""
    return tuple(_fresh(each) for each in value) if isinstance(value, tuple) else np.array(value)


class _Scope:
    """A graph, or the body of one CALL, with what its leaves stand for."""

    def __init__(
        self,
        buffers: dict[int, Array],
        variables: dict[str, int],
        arguments: Sequence[Value],
        calls: Calls | None = None,
    ) -> None:
        self.calls: Calls = {} if calls is None else calls
        self.buffers = buffers
        self.variables = variables
        self.arguments = arguments
        self.values: Values = {}
        # Per STORE or CALL what it writes; per AFTER the contents it sees, and what it reads.
        self.writes: dict[UOp, list[Write]] = {}
        self.versions: dict[UOp, Contents] = {}
        self.reads: dict[UOp, UOp] = {}

    def result(self, root: UOp) -> Any:
        """What `evaluate` returns for one root."""
        self.run(root)
        if root.op != Op.SINK:
            return _fresh(self.values[root])
        changed = {memory.arg[0]: now for memory, now in self.final_contents(root).items()}
        return {number: np.array(now) for number, now in (self.buffers | changed).items()}

    def run(self, root: UOp) -> None:
        """Evaluate everything below a root."""
        order = topological(root)
        for node in order:
            if node.op == Op.BIND:
                self._bind(node)
        for node in order:
            if node not in self.values:
                self.values[node] = self.compute(node, self.values)

    def final_contents(self, root: UOp) -> Contents:
        """The memory that anything below the root writes, after all of it has happened.

        Versions depend on each other, so an order with sources first is the order of the writes.
        """
        contents: Contents = {}
        for node in topological(root):
            for write in self.writes.get(node, ()):
                start: Array = self.values[write.memory]
                contents[write.memory] = write.apply(contents.get(write.memory, start))
        return contents

    def compute(self, node: UOp, values: Values) -> Value:
        """The value of a node, given those of its sources."""
        if node.op in ELEMENTWISE:
            source = node.src[-1].dtype
            return elementwise(node.op, node.dtype, source, *(values[x] for x in node.src))
        if node.op in MOVEMENT:
            return move(node, values[node.src[0]], lambda size: _size(size, values))
        rule = _RULES.get(node.op)
        if rule is None:
            raise fault(f"{name(node.op)} has no meaning in a tensor graph", node)
        return rule(self, node, values)

    def _bind(self, node: UOp) -> None:
        variable, value = node.src[0].arg[0], int(node.src[1].arg)
        if self.variables.setdefault(variable, value) != value:
            raise fault(f"the variable {variable!r} is bound to two values", node)

    def memory(self, node: UOp, values: Values) -> Array:
        """The contents of a BUFFER or the argument of a PARAM, checked against the node."""
        number, static = node.arg[:2]
        if node.op == Op.BUFFER and number not in self.buffers:
            raise fault(f"buffer {number} has no contents", node)
        if node.op == Op.PARAM and number >= len(self.arguments):
            raise fault(f"argument {number} is missing", node, arguments=len(self.arguments))
        array = self.buffers[number] if node.op == Op.BUFFER else self.arguments[number]
        shape = tuple(_size(extent, values) for extent in fill_sizes(node, static, 0))
        if array.shape != shape:
            raise fault(f"{name(node.op)} {number} has another shape", node, given=array.shape)
        return require_values(node.dtype, array)

    def store(self, node: UOp, values: Values) -> Value:
        self.writes[node] = [self.write(node.src[0], values[node.src[1]], values)]
        return None

    def write(self, address: UOp, value: Array, values: Values) -> Write:
        """The patch that puts a value at an address."""
        memory = memory_below(address)
        require_values(memory.dtype, value)
        start: Array = values[memory]
        numbers = element_numbers(
            address, start.shape, values, lambda size: _size(size, values)
        ).reshape(-1)
        shape = values[address].shape
        before = self._version_below(address).get(memory, start)
        return Write(memory, before, numbers, np.broadcast_to(value, shape).reshape(-1))

    def _version_below(self, address: UOp) -> Contents:
        while address.src and address.op != Op.AFTER:
            address = address.src[0]
        return self.versions.get(address, {})

    def after(self, node: UOp, values: Values) -> Value:
        """Read the first source again, now that the others have happened."""
        first, *others = node.src
        written: Contents = {}
        for other in others if len(others) == 1 else _sources_first(others):
            written |= self.versions.get(other, {})
            for write in self.writes.get(other, ()):
                before = written.get(write.memory, write.before)
                written[write.memory] = write.apply(before)
        self.versions[node] = self.versions.get(first, {}) | written
        self.reads[node] = self.reads.get(first, first)
        return self._read_again(self.reads[node], self.versions[node])

    def _read_again(self, root: UOp, contents: Contents) -> Value:
        """The value of a node with other contents of some memory; the rest is not recomputed."""
        values: Values = {}
        for node in topological(root, enter=lambda node: node.op != Op.AFTER):
            if node in contents:
                values[node] = contents[node]
            elif node.op == Op.AFTER:
                values[node] = self._read_again(self.reads[node], self.versions[node] | contents)
            elif all(values[source] is self.values[source] for source in node.src):
                values[node] = self.values[node]
            else:
                values[node] = self.compute(node, values)
        return values[root]

    def call(self, node: UOp, values: Values) -> Value:
        """The value of the body; where the body only stores, its writes to its arguments."""
        body: UOp = node.arg
        if body.op in FILLING:
            return self._fill(node, values)
        given = [values[source] for source in node.src]
        self.calls.setdefault(body, (given, dict(self.variables)))
        inner = _Scope(self.buffers, self.variables, given, self.calls)
        inner.run(body)
        if body.op != Op.SINK:
            return inner.values[body]
        self.writes[node] = []
        for memory, contents in inner.final_contents(body).items():
            address = node.src[memory.arg[0]] if memory.op == Op.PARAM else memory
            if address.op == Op.BUFFER and address not in values:
                values[address] = self.memory(address, inner.values)
            self.writes[node].append(self.write(address, contents, values))
        return None

    def _fill(self, node: UOp, values: Values) -> Value:
        """The memory that a KERNEL fills, as values."""
        body: UOp = node.arg
        if body.op == Op.PROGRAM:
            raise NotSupported(
                f"the interpreter cannot run the program {body.arg[0]!r}",
                rule=f"it is written for {body.arg[1]}",
                fix="run it on a device of that target",
            )
        memory = [_to_memory(source.dtype, values[source]) for source in node.src]
        shapes: list[tuple[int, ...]] = []
        for part in filled_by(body, len(node.src)).values():
            sizes = _Scope({}, self.variables, ())
            for size in part.src:
                sizes.run(size)
            shapes.append(tuple(_size(size, sizes.values) for size in shape_of(part)))
            memory.append(ElementMemory(part.dtype, math.prod(shapes[-1])))
        run_kernel(body, memory, self.variables)
        filled = zip(memory[len(node.src) :], shapes, strict=True)
        return tuple(_from_memory(part).reshape(shape) for part, shape in filled)


def _to_memory(dtype: DType, value: Array) -> ElementMemory:
    return ElementMemory.from_bytes(
        dtype, to_storage(dtype, np.ascontiguousarray(value)).tobytes()
    )


def _from_memory(memory: ElementMemory) -> Array:
    raw = np.frombuffer(memory.to_bytes(), storage_dtype(memory.dtype))
    return from_storage(memory.dtype, raw)


def _size(size: Size, values: Values) -> int:
    return int(values[size]) if isinstance(size, UOp) else size


def _sources_first(nodes: list[UOp]) -> list[UOp]:
    wanted = set(nodes)
    return [node for node in topological(*nodes) if node in wanted]


def _iota(scope: _Scope, node: UOp, values: Values) -> Value:
    (size,) = fill_sizes(node, node.arg, 0)
    numbers = np.arange(_size(size, values), dtype=np.int64)
    return elementwise(Op.CAST, node.dtype, dtypes.index, numbers)


def _reduce(scope: _Scope, node: UOp, values: Values) -> Value:
    if len(node.src) != 1:
        raise fault("REDUCE over ranges has no meaning in a tensor graph", node)
    op, axes = node.arg
    return reduction(op, node.dtype, values[node.src[0]], axes)


def _scan(scope: _Scope, node: UOp, values: Values) -> Value:
    if len(node.src) != 1:
        raise fault("SCAN over a range has no meaning in a tensor graph", node)
    op, (axis,) = node.arg
    return scan(op, node.dtype, values[node.src[0]], axis)


def _index(scope: _Scope, node: UOp, values: Values) -> Value:
    source, mask, *indices = (values[part] for part in node.src)
    return pick(node, source, mask, indices)


def _scatter(scope: _Scope, node: UOp, values: Values) -> Value:
    source, updates, mask, *indices = (values[part] for part in node.src)
    return scatter(node, source, updates, mask, indices)


def _first(scope: _Scope, node: UOp, values: Values) -> Value:
    return values[node.src[0]]


_Rule = Callable[[_Scope, UOp, Values], Value]
_RULES: Final[dict[int, _Rule]] = {
    Op.CONST: lambda scope, node, values: np.array(node.arg, value_dtype(node.dtype)),
    Op.VARIABLE: lambda scope, node, values: np.array(
        variable_value(node, scope.variables), np.int64
    ),
    Op.BIND: lambda scope, node, values: values[node.src[1]],
    Op.BUFFER: _Scope.memory,
    Op.PARAM: _Scope.memory,
    Op.IOTA: _iota,
    Op.REDUCE: _reduce,
    Op.SCAN: _scan,
    Op.INDEX: _index,
    Op.SCATTER: _scatter,
    Op.STORE: _Scope.store,
    Op.AFTER: _Scope.after,
    Op.CALL: _Scope.call,
    Op.TUPLE: lambda scope, node, values: tuple(values[source] for source in node.src),
    Op.ITEM: lambda scope, node, values: cast("tuple[Value, ...]", values[node.src[0]])[node.arg],
    Op.SINK: lambda scope, node, values: None,
    **dict.fromkeys((Op.STAGE, Op.COPY, Op.SHARD, Op.DETACH), _first),
    **dict.fromkeys((Op.CUSTOM_GRADIENT, Op.INLINE), _first),
}
