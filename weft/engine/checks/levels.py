"""`CHECK=levels`: a graph evaluated after each pass, and the first pass that changes the result.

The oracle evaluates the tensor graph, then what each pass of the schedule makes of it, the kernels
after each pass of codegen and their programs, all on the same memory; the device's own result
comes last. A called function is scheduled by itself, so it is evaluated by itself too, on what its
first call was given. It is for finding bugs: every element is computed many times in plain Python,
so graphs with more than `MOST_ELEMENTS` are refused. A pass that changes nothing is not evaluated
again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Final

import numpy as np

from weft.codegen.generate import generate
from weft.engine.checks.rules import wrong_rewrite
from weft.engine.contents import read_bytes
from weft.ir.arrays.values import (
    Array,
    from_storage,
    storage_dtype,
    to_storage,
    value_dtype,
)
from weft.ir.build import param
from weft.ir.dtypes import FLOAT, DType, dtypes
from weft.ir.layouts import Layout, layout_of
from weft.ir.ops import Op
from weft.ir.results import FILLING
from weft.ir.shapes import largest_size, shape_of
from weft.ir.sizes import shape_value
from weft.ir.spec.ranged import RANGED_SPEC
from weft.ir.text import dump, show
from weft.ir.uop import UOp, make
from weft.ir.walk import bodies, topological
from weft.reference.kernel import run_kernel
from weft.reference.lanes import size_value
from weft.reference.memory import ElementMemory, reinterpreted
from weft.reference.program import run_program
from weft.reference.ranged import run_ranged
from weft.reference.schedule import is_schedule, run_schedule
from weft.reference.tensor import Calls, Value, evaluate, evaluate_stores
from weft.rewrite.phase import Pass
from weft.rewrite.trace import active, tracing
from weft.rewrite.trace_file import current
from weft.schedule.context import next_slot
from weft.schedule.schedule import graph_of_body, make_schedule, watch_body
from weft.support.errors import InternalError, NotSupported
from weft.target.target import Target

MOST_ELEMENTS: Final = 200_000
# Reductions add in another order on a device, and the oracle rounds only once.
_TOLERANCE: Final = {"rtol": 2e-3, "atol": 1e-4}

Contents = list[bytes]


class LevelCheck:
    """What the memory of a graph must hold after it ran, level by level.

    `body` is a SINK over PARAMs, which stand for `memory`, of which `before` are the contents.
    """

    def __init__(
        self,
        body: UOp,
        memory: Sequence[UOp],
        variables: Mapping[str, int],
        before: Contents | None = None,
    ) -> None:
        _require_small(memory)
        self.body = body
        self.memory = list(memory)
        self.variables = variables
        self.before = [bytes(read_bytes(n)) for n in memory] if before is None else before
        self.right_until = "tensor"
        self.calls: Calls = {}
        self.expected = self._from_tensors(body)
        self._last = body

    def run_passes(self, target: Target) -> None:
        """Evaluate what each pass of the schedule and of codegen gives."""
        with nullcontext() if active() else tracing(remembers=True):  # to name the rule
            self._run_passes(target)

    def _run_passes(self, target: Target) -> None:
        for body in bodies(self.body, has_gradients=False):
            if body.op not in FILLING and body.op != Op.SINK and body in self.calls:
                watch_body(body, target, _of_body(body, *self.calls[body]).watch)
        schedule = make_schedule(self.body, target, self.watch)
        self._run_codegen(schedule.kernels, target)

    def watch(self, step: Pass, root: UOp) -> None:
        """Evaluate what one pass of the schedule gives, where it is another graph."""
        if root is not self._last:
            self.compare(step.name, lambda: self._interpreted(step, root), root)
            self._last = root

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
        memory = self._seen(root)
        arrays = [
            _as_array(node.dtype, data, shape_value(shape_of(node)))
            for node, data in zip(memory, self.before, strict=True)
        ]
        for node in self._temporaries(root):
            sizes = [self._size(size) for size in shape_of(node)]
            arrays.append(np.zeros(sizes, value_dtype(node.dtype)))
        after = evaluate_stores(root, arrays, self.variables, self.calls)
        pairs = zip(memory, after, strict=False)
        return [to_storage(node.dtype, now).tobytes() for node, now in pairs]

    def _arguments(self, calls: UOp) -> list[ElementMemory]:
        """The memory of a schedule or a ranged graph before it runs."""
        arguments = [
            ElementMemory.from_bytes(node.dtype, data)
            for node, data in zip(self._seen(calls), self.before, strict=True)
        ]
        temporaries = self._temporaries(calls)
        return arguments + [ElementMemory(n.dtype, largest_size(shape_of(n))) for n in temporaries]

    def _seen(self, root: UOp) -> list[UOp]:
        """The memory as a graph sees it: complex numbers are pairs once they are lowered."""
        forms = {node.arg[0]: node.dtype for node in topological(root) if node.op == Op.PARAM}
        seen: list[UOp] = []
        for slot, node in enumerate(self.memory):
            is_paired = node.dtype.is_complex and not forms.get(slot, node.dtype).is_complex
            shape = (*shape_of(node), 2)
            seen.append(param(slot, node.dtype.part, shape) if is_paired else node)
        return seen

    def _temporaries(self, root: UOp) -> list[UOp]:
        """The PARAMs of a graph beyond its memory, by slot."""
        found = {node.arg[0]: node for node in topological(root) if node.op == Op.PARAM}
        first, last = len(self.memory), 1 + max(found, default=-1)
        unused = make(Op.PARAM, dtypes.bool, (), (0, (1,)))
        return [found.get(slot, unused) for slot in range(first, last)]

    def _size(self, size: int | UOp) -> int:
        return size_value(size, self.variables) if isinstance(size, UOp) else size


def _of_body(body: UOp, given: list[Value], variables: dict[str, int]) -> LevelCheck:
    """The check of a called function on these arguments; its results are stored behind them."""
    graph = graph_of_body(body)
    slots = {node.arg[0]: node for node in topological(graph) if node.op == Op.PARAM}
    memory: list[UOp] = []
    contents: Contents = []
    for slot in range(1 + max(slots)):
        if slot not in slots:  # an argument that the function does not use
            memory.append(param(slot, dtypes.bool, (1,)))
            contents.append(bytes(1))
            continue
        node = slots[slot]
        shape = [size_value(n, variables) if isinstance(n, UOp) else n for n in shape_of(node)]
        memory.append(param(slot, node.dtype, shape))
        is_given = slot < next_slot(body)
        value = given[slot] if is_given else np.zeros(shape, value_dtype(node.dtype))
        contents.append(to_storage(node.dtype, np.ascontiguousarray(value)).tobytes())
    return LevelCheck(graph, memory, variables, contents)


class _KernelCheck:
    """One call of a kernel, run as each pass of codegen leaves it; its arguments stay as given."""

    def __init__(
        self, kernel: UOp, given: Sequence[ElementMemory], variables: Mapping[str, int]
    ) -> None:
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

    def _run(self, form: UOp) -> list[ElementMemory]:
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
        found = InternalError(
            f"what pass {name} gives cannot be run: {error.what}",
            pass_name=name,
            facts=[("right until", right_until)],
            ir_text=dump(shown),
        )
        _record(found, name, shown)
        raise found from error


def _changed(name: str, right_until: str, shown: UOp, where: str) -> InternalError:
    facts = [("memory", where), ("right until", right_until)]
    wrong = wrong_rewrite(name)
    rule = None if wrong is None else wrong.rule.name
    if wrong is not None:
        facts.append(("wrong", f"{show(wrong.before)} -> {show(wrong.after)}"))
    found = InternalError(
        f"the result changes in pass {name}",
        pass_name=name,
        rewrite_rule=rule,
        facts=facts,
        ir_text=dump(shown),
    )
    _record(found, name, shown, rule)
    return found


def _record(found: InternalError, name: str, shown: UOp, rule: str | None = None) -> None:
    """Say in the trace, if there is one, which pass is wrong, and show the graph that it gives."""
    trace = current()
    if trace is not None:
        where = {"pass": name, "phase": trace.thread.phase, "root": trace.graph(shown)}
        text = found.what if rule is None else f"{found.what}, by the rule {rule}"
        trace.write("check", check="levels", text=text, at=trace.now(), **where)


def _hold_the_same(old: ElementMemory, new: ElementMemory) -> bool:
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
            rule=f"it takes at most {MOST_ELEMENTS} elements of memory",
            fix="run a smaller case, or without CHECK",
        )


def _as_array(dtype: DType, data: bytes, shape: tuple[int, ...]) -> Array:
    return from_storage(dtype, np.frombuffer(data, storage_dtype(dtype)).reshape(shape))


def _agree(node: UOp, old: bytes, new: bytes) -> bool:
    part = node.dtype.part
    if part.kind != FLOAT:
        return old == new
    x, y = (_as_array(part, data, (-1,)) for data in (old, new))
    return _are_close(part, x, y)


def _are_close(dtype: DType, x: Array, y: Array) -> bool:
    if dtype.kind != FLOAT:
        return bool(np.array_equal(x, y))
    with np.errstate(invalid="ignore"):  # memory that nobody wrote may hold signaling NaNs
        pair = x.astype(np.float64), y.astype(np.float64)
    return bool(np.allclose(*pair, equal_nan=True, **_TOLERANCE))
