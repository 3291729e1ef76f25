"""`CHECK=levels`: a graph evaluated after each pass, and the first pass that changes the result.

The oracle evaluates the tensor graph, then what each pass of the schedule makes of it, the kernels
after each pass of codegen and their programs, all on the same memory; the device's own result
comes last. It is for finding bugs: every element is computed many times in plain Python, so graphs
with more than `MOST_ELEMENTS` are refused. A pass that changes nothing is not evaluated again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

import numpy as np

from weft.codegen.generate import generate
from weft.engine.contents import read_bytes
from weft.ir.array_values import (
    Array,
    from_storage,
    storage_dtype,
    to_storage,
    value_dtype,
)
from weft.ir.dtypes import FLOAT, DType, dtypes
from weft.ir.layouts import Layout, layout_of
from weft.ir.ops import Op
from weft.ir.shapes import largest_size, shape_of
from weft.ir.sizes import shape_value
from weft.ir.spec.ranged import RANGED_SPEC
from weft.ir.text import dump
from weft.ir.uop import UOp, make
from weft.ir.walk import topological
from weft.reference.kernel import run_kernel
from weft.reference.lanes import size_value
from weft.reference.memory import Memory, reinterpreted
from weft.reference.program import run_program
from weft.reference.ranged import run_ranged
from weft.reference.schedule import is_schedule, run_schedule
from weft.reference.tensor import evaluate, evaluate_stores
from weft.rewrite.phase import Pass
from weft.schedule.schedule import make_schedule
from weft.support.errors import InternalError, NotSupported
from weft.target.target import Target

MOST_ELEMENTS: Final = 200_000
# Folds add in another order on a device, and the oracle rounds only once.
_TOLERANCE: Final = {"rtol": 2e-3, "atol": 1e-4}

Contents = list[bytes]


class LevelCheck:
    """What the memory of a graph must hold after it ran, level by level.

    `body` is a SINK over PARAMs, which stand for `memory`.
    """

    def __init__(self, body: UOp, memory: Sequence[UOp], variables: Mapping[str, int]) -> None:
        _require_small(memory)
        self.body = body
        self.memory = list(memory)
        self.variables = variables
        self.before: Contents = [bytes(read_bytes(node)) for node in memory]
        self.right_until = "tensor"
        self.expected = self._from_tensors(body)

    def run_passes(self, target: Target) -> None:
        """Evaluate what each pass of the schedule and of codegen gives."""
        last = self.body

        def watch(step: Pass, root: UOp) -> None:
            nonlocal last
            if root is not last:
                self.compare(step.name, lambda: self._interpreted(step, root), root)
                last = root

        schedule = make_schedule(self.body, target, watch)
        self._run_codegen(schedule.kernels, target)

    def _run_codegen(self, calls: UOp, target: Target) -> None:
        """Run the schedule call by call, each kernel as every pass of codegen leaves it."""
        arguments = self._arguments(calls)
        forms: dict[UOp, list[tuple[str, UOp]]] = {}
        for call in calls.src:
            kernel: UOp = call.arg
            given = [arguments[source.arg[0]] for source in call.src]
            level = _KernelCheck(kernel, given, self.variables)
            if kernel in forms:
                for name, form in forms[kernel]:
                    level.compare(name, form)
            else:
                generate(kernel, target, watch=level.watch)
                forms[kernel] = level.forms
            for source, result in zip(call.src, level.expected, strict=True):
                arguments[source.arg[0]] = result
        stored = [part.to_bytes() for part in arguments[: len(self.memory)]]
        self.right_until, self.expected = "codegen", stored

    def add_device(self) -> None:
        """Compare with what a device made of the memory."""
        contents = [bytes(read_bytes(node)) for node in self.memory]
        self.compare("device", lambda: contents, self.body)

    def compare(self, name: str, run: Callable[[], Contents], shown: UOp) -> None:
        """Raise if a level differs from the one before it, or cannot be run."""
        with _blaming(name, self.right_until, shown):
            result = run()
        for position, node in enumerate(self.memory):
            if not _agree(node, self.expected[position], result[position]):
                raise _changed(name, self.right_until, shown, repr(node))
        self.right_until, self.expected = name, result

    def _interpreted(self, step: Pass, root: UOp) -> Contents:
        """The memory after what a pass of the schedule gives."""
        if not is_schedule(root) and step.gives is not RANGED_SPEC:
            return self._from_tensors(root)
        arguments = self._arguments(root)
        if is_schedule(root):
            run_schedule(root, {}, self.variables, arguments)
        else:
            run_ranged(root, arguments, self.variables)
        return [part.to_bytes() for part in arguments[: len(self.memory)]]

    def _from_tensors(self, root: UOp) -> Contents:
        arrays = [
            _as_array(node.dtype, data, shape_value(shape_of(node)))
            for node, data in zip(self.memory, self.before, strict=True)
        ]
        for node in self._temporaries(root):
            sizes = [self._size(size) for size in shape_of(node)]
            arrays.append(np.zeros(sizes, value_dtype(node.dtype)))
        after = evaluate_stores(root, arrays, self.variables)
        pairs = zip(self.memory, after, strict=False)
        return [to_storage(node.dtype, now).tobytes() for node, now in pairs]

    def _arguments(self, calls: UOp) -> list[Memory]:
        """The memory of a schedule or a ranged graph before it runs."""
        arguments = [
            Memory.from_bytes(node.dtype, data)
            for node, data in zip(self.memory, self.before, strict=True)
        ]
        temporaries = self._temporaries(calls)
        return arguments + [Memory(n.dtype, largest_size(shape_of(n))) for n in temporaries]

    def _temporaries(self, root: UOp) -> list[UOp]:
        """The PARAMs of a graph beyond its memory, by slot."""
        found = {node.arg[0]: node for node in topological(root) if node.op == Op.PARAM}
        first, last = len(self.memory), 1 + max(found, default=-1)
        unused = make(Op.PARAM, dtypes.bool, (), (0, (1,)))
        return [found.get(slot, unused) for slot in range(first, last)]

    def _size(self, size: int | UOp) -> int:
        return size_value(size, self.variables) if isinstance(size, UOp) else size


class _KernelCheck:
    """One call of a kernel, run as each pass of codegen leaves it; its arguments stay as given."""

    def __init__(self, kernel: UOp, given: Sequence[Memory], variables: Mapping[str, int]) -> None:
        self.given = given
        self.variables = variables
        self.forms: list[tuple[str, UOp]] = []
        self.last = kernel
        self.right_until = "schedule"
        self.expected = self._run(kernel)

    def compare(self, name: str, form: UOp) -> None:
        """Raise if a form of the kernel differs from the one before it, or cannot be run."""
        if form is self.last:
            return
        with _blaming(name, self.right_until, form):
            result = self._run(form)
        for slot, (old, new) in enumerate(zip(self.expected, result, strict=True)):
            if not _hold_the_same(old, new):
                raise _changed(name, self.right_until, form, f"argument {slot} of the kernel")
        self.forms.append((name, form))
        self.last, self.right_until, self.expected = form, name, result

    def watch(self, step: Pass, form: UOp) -> None:
        self.compare(step.name, form)

    def _run(self, form: UOp) -> list[Memory]:
        """The arguments afterwards; a target that lacks their dtype sees bits or words of them."""
        seen = {node.arg[0]: node.dtype for node in topological(form) if node.op == Op.PARAM}
        memories = [
            reinterpreted(memory, seen.get(slot, memory.dtype))
            for slot, memory in enumerate(self.given)
        ]
        (run_program if form.op == Op.LINEAR else run_kernel)(form, memories, self.variables)
        pairs = zip(memories, self.given, strict=True)
        return [reinterpreted(memory, old.dtype) for memory, old in pairs]


@contextmanager
def _blaming(name: str, right_until: str, shown: UOp) -> Iterator[None]:
    """An error of the interpreter is one of the pass whose graph it runs."""
    try:
        yield
    except InternalError as error:
        raise InternalError(
            f"what pass {name} gives cannot be run: {error.what}",
            pass_name=name,
            facts=[("right until", right_until)],
            ir_text=dump(shown),
        ) from error


def _changed(name: str, right_until: str, shown: UOp, where: str) -> InternalError:
    return InternalError(
        f"the result changes in pass {name}",
        pass_name=name,
        facts=[("memory", where), ("right until", right_until)],
        ir_text=dump(shown),
    )


def _hold_the_same(old: Memory, new: Memory) -> bool:
    written = [value is not None for value in old.values]
    if written != [value is not None for value in new.values]:
        return False
    x, y = ([v for v in part.values if v is not None] for part in (old, new))
    if old.dtype.kind != FLOAT:
        return x == y
    return _are_close(old.dtype, np.array(x, np.float64), np.array(y, np.float64))


def check_shards(nodes: Sequence[UOp], tuples: Sequence[UOp]) -> None:
    """Compare values over several devices with the shards that the pass `shard` makes of them."""
    memory = [node for node in topological(*nodes, *tuples) if node.op == Op.BUFFER]
    _require_small(memory)
    contents = {
        node.arg[0]: _as_array(node.dtype, bytes(read_bytes(node)), shape_value(shape_of(node)))
        for node in memory
    }
    for node, parts in zip(nodes, tuples, strict=True):
        whole, shards = evaluate(node, contents), evaluate(parts, contents)
        for number, shard in enumerate(shards):
            want = _shard_of(whole, layout_of(node), number)
            if want.shape != shard.shape or not _are_close(node.dtype, want, shard):
                raise _changed("shard", "tensor", parts, f"shard {number} of {node!r}")


def _shard_of(whole: Array, layout: Layout | None, number: int) -> Array:
    if layout is None or layout.axis is None:
        return whole
    return whole[(slice(None),) * layout.axis + (slice(*layout.bounds[number]),)]


def _require_small(memory: Sequence[UOp]) -> None:
    if sum(largest_size(shape_of(node)) for node in memory) > MOST_ELEMENTS:
        raise NotSupported(
            "CHECK=levels: the graph is too large for the interpreter",
            law=f"it takes at most {MOST_ELEMENTS} elements of memory",
            fix="run a smaller case, or without CHECK",
        )


def _as_array(dtype: DType, data: bytes, shape: tuple[int, ...]) -> Array:
    return from_storage(dtype, np.frombuffer(data, storage_dtype(dtype)).reshape(shape))


def _agree(node: UOp, old: bytes, new: bytes) -> bool:
    if node.dtype.kind != FLOAT:
        return old == new
    x, y = (_as_array(node.dtype, data, (-1,)) for data in (old, new))
    return _are_close(node.dtype, x, y)


def _are_close(dtype: DType, x: Array, y: Array) -> bool:
    if dtype.kind != FLOAT:
        return bool(np.array_equal(x, y))
    pair = x.astype(np.float64), y.astype(np.float64)
    return bool(np.allclose(*pair, equal_nan=True, **_TOLERANCE))
