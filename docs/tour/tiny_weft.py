"""Tiny Weft: a deep-learning compiler in 400 lines. Read it from top to bottom, then run it.

Weft has one idea: one immutable graph, one rewrite engine, one set of loop ops. This file shows it
in the order in which a value travels: nodes, rules, then the phases tensor, gradient, schedule
(rangeify, fuse, split), codegen, render, run. Weft has the same words, and does more at each step.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache, partial, partialmethod
from itertools import count
from math import prod
from typing import Any

import llvmlite.binding as llvm
import numpy as np

float32, index, boolean = "float32", "index", "bool"  # `index` is for loop counters and addresses
INFIX = {"ADD": "+", "MUL": "*", "DIV": "//", "MOD": "%", "LESS": "<"}
ELEMENTWISE = {*INFIX, "MAX", "EXP", "RECIPROCAL", "WHERE"}
NODES: dict[tuple, UOp] = {}  # every node there is
TRACE: list[tuple[str, UOp, UOp]] = []  # every rewrite there was: rule, before, after
MEMORY: dict[UOp, np.ndarray] = {}  # what each BUFFER holds; the graph itself holds no numbers
Shape, Index = tuple[int, ...], tuple["UOp", ...]  # a size, or an index expression, per axis


# ---- 1. Nodes. A whole program, from tensors down to loops, is one graph of UOps. ---------------
class UOp:
    """A node: op, dtype, src, arg. Equal nodes are the same object, so `is` compares programs."""

    def __new__(cls, op: str, dtype: str, src: tuple[UOp, ...] = (), arg: Any = None) -> UOp:
        key = (op, dtype, src, repr(arg))  # repr, because 0.0 == -0.0 and nan != nan
        if key not in NODES:
            node = NODES[key] = super().__new__(cls)
            # REDUCE and STORE own loops, the RANGEs in src. `free`: the loops that must be around.
            ranges = dict.fromkeys(s for s in src if op in ("REDUCE", "STORE") and s.op == "RANGE")
            free = {node} if op == "RANGE" else {r for s in src for r in s.free} - ranges.keys()
            facts = {"shape": shape_of(op, src, arg), "ranges": tuple(ranges), "free": free}
            vars(node).update(op=op, dtype=dtype, src=src, arg=arg, **facts)
        return NODES[key]

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("a UOp is immutable: build another one")

    def __repr__(self) -> str:
        src = [repr(s) for s in self.src]
        if not src:
            return str(self.arg[0] if isinstance(self.arg, tuple) else self.arg)
        if self.op in INFIX:
            return f"({src[0]} {INFIX[self.op]} {src[1]})"
        if self.op == "INDEX":
            return f"{src[0]}[{src[1]}]"
        args = ", ".join(src if self.arg is None else [*src, str(self.arg)])
        return f"acc_{self.ranges[0]}" if self.ranges else f"{self.op.lower()}({args})"

    def elementwise(self, op: str, *others: UOp | float) -> UOp:
        kind = index if self.dtype == index else float32
        nodes = [self, *(const(other, kind) for other in others)]
        shape = np.broadcast_shapes(*(node.shape for node in nodes))
        src = tuple(node if node.shape == shape else node.expand(*shape) for node in nodes)
        return UOp(op, boolean if op == "LESS" else kind, src)

    def unary(self, op: str, *arg: Any) -> UOp:
        return UOp(op, self.dtype, (self,), arg)

    method = partial(partialmethod, elementwise)
    __add__, __mul__, __floordiv__, __mod__, __lt__ = map(method, INFIX)
    maximum, exp, reciprocal, where = map(method, ("MAX", "EXP", "RECIPROCAL", "WHERE"))
    reshape, permute = partialmethod(unary, "RESHAPE"), partialmethod(unary, "PERMUTE")
    sum, max = partialmethod(unary, "REDUCE", "ADD"), partialmethod(unary, "REDUCE", "MAX")

    def expand(self, *shape: int) -> UOp:  # as NumPy's broadcast_to
        ones = (1,) * (len(shape) - len(self.shape))
        return self.reshape(*ones, *self.shape).unary("EXPAND", *shape)

    def __sub__(self, other: UOp) -> UOp:
        return self + other * -1.0

    def __matmul__(self, other: UOp) -> UOp:  # (m, k) @ (k, n): expand, multiply, sum
        (m, k), n = self.shape, other.shape[1]
        return (self.reshape(m, k, 1) * other.reshape(1, k, n)).sum(1).reshape(m, n)


def const(value: UOp | float, dtype: str = index) -> UOp:
    return value if isinstance(value, UOp) else UOp("CONST", dtype, (), value)


def shape_of(op: str, src: tuple[UOp, ...], arg: Any) -> Shape:
    if op == "RESHAPE" and prod(arg) != prod(src[0].shape):
        raise ValueError(f"{src[0].shape} has no reshape to {arg}: the sizes differ")
    if op in ("BUFFER", "RESHAPE", "EXPAND"):
        return arg[1] if op == "BUFFER" else arg
    if op == "PERMUTE":
        return tuple(src[0].shape[axis] for axis in arg)
    if op == "REDUCE":  # arg is the fold and the axes; a reduced axis stays, with size 1
        return tuple(1 if axis in arg else size for axis, size in enumerate(src[0].shape))
    return src[0].shape if op in ELEMENTWISE else ()


@cache
def toposort(*roots: UOp) -> tuple[UOp, ...]:
    """Every node below the roots, once, sources first."""
    return tuple(dict.fromkeys(n for root in roots for n in (*toposort(*root.src), root)))


zero = const(0)


# ---- 2. Rules. A law is data: a pattern with holes, what replaces it, and when it holds. --------
def rule(name: str, pattern: str, replacement: str, when: str = "True") -> tuple:
    """Each side is a Python expression; it is read once. Names stand for the holes.""" return
    name, eval(pattern, HOLES), compile(replacement, name, "eval"), compile(when, name, "eval")


def match(pattern: UOp, node: UOp, bound: dict[str, Any]) -> bool:
    """Does the node fit? Fills `bound`: a hole holds a node, a constant hole holds a number."""
    if pattern.op == "ANY":
        return bound.setdefault(pattern.arg, node) is node
    if pattern.op == "ANY_CONST":
        return node.op == "CONST" and bound.setdefault(pattern.arg, node.arg) == node.arg
    same = (pattern.op, pattern.dtype, pattern.arg) == (node.op, node.dtype, node.arg)
    return same and all(match(p, n, bound) for p, n in zip(pattern.src, node.src, strict=True))


@cache  # equal nodes are one object and rules are pure, so an answer holds for ever
def rewrite(node: UOp, rules: tuple[tuple, ...]) -> UOp:
    """Apply the rules, sources first, until none fits."""
    node = UOp(node.op, node.dtype, tuple(rewrite(s, rules) for s in node.src), node.arg)
    for name, pattern, replacement, when in rules:
        bound: dict[str, Any] = {}
        if match(pattern, node, bound) and eval(when, globals(), bound):
            new = const(eval(replacement, globals(), bound))
            TRACE.append((name, node, new))
            return rewrite(new, rules)
    return node


def vmax(node: UOp) -> int:
    """The largest value of an index. The smallest is never below 0: nothing here subtracts."""
    if node.op in ("CONST", "RANGE"):
        return node.arg if node.op == "CONST" else node.arg[1] - 1
    a, b = (vmax(s) for s in node.src)
    return {"ADD": a + b, "MUL": a * b, "DIV": a // (b or 1), "MOD": min(a, b - 1)}[node.op]


# These laws hold for integers. For floats even x + 0 -> x is false: -0.0 + 0.0 is 0.0.
HOLES = {name: UOp("ANY", index, (), name) for name in "xyz"}
HOLES |= {name: UOp("ANY_CONST", index, (), name) for name in ("c0", "c1")}
INDEX_RULES = (
    rule("fold-mul", "c0 * c1", "c0 * c1"),
    rule("zero-add", "c0 + x", "x", when="c0 == 0"),
    rule("add-zero", "x + 0", "x"),
    rule("mul-one", "x * 1", "x"),
    rule("div-one", "x // 1", "x"),
    rule("mod-one", "x % 1", "0"),
    rule("add-leans-right", "(x + y) + z", "x + (y + z)"),
    rule("mul-merges-mul", "(x * c0) * c1", "x * (c0 * c1)"),
    rule("mul-distributes", "(x + y) * c0", "x * c0 + y * c0"),
    rule("div-of-small", "x // c0", "0", when="vmax(x) < c0"),
    rule("mod-of-small", "x % c0", "x", when="vmax(x) < c0"),
    rule("div-cancels-mul", "(x * c0) // c1", "x * (c0 // c1)", when="c0 % c1 == 0"),
    rule("mod-cancels-mul", "(x * c0) % c1", "0", when="c0 % c1 == 0"),
    rule("div-of-sum", "(x * c0 + y) // c1", "x * (c0 // c1) + y // c1", when="c0 % c1 == 0"),
    rule("mod-of-sum", "(x * c0 + y) % c1", "y % c1", when="c0 % c1 == 0"),
    rule("div-mod-rejoin", "(x // c0) * c0 + x % c0", "x"),
)


# ---- 3. Phase tensor. The user's calls build the graph; nothing is computed yet. ----------------
def tensor(data: Any, name: str = "input") -> UOp:
    array = np.array(data, np.float32, order="C")
    buffer = UOp("BUFFER", float32, (), (name, array.shape, len(MEMORY)))
    MEMORY[buffer] = array
    return buffer


# ---- 4. Phase gradient. One rule per op: from the gradient of its output to those of its sources.
def reduce_gradient(g: UOp, out: UOp, x: UOp) -> UOp:
    largest = (x < out).where(0.0, 1.0)  # equal largest elements share the gradient
    shared = largest * g * largest.sum(*out.arg[1:]).reciprocal()
    return g.expand(*x.shape) if out.arg[0] == "ADD" else shared


GRADIENT: dict[str, Callable[..., list[UOp]]] = {
    "ADD": lambda g, out, x, y: [g, g],
    "MUL": lambda g, out, x, y: [g * y, g * x],
    "MAX": lambda g, out, x, y: [(y < x).where(g, 0.0), (y < x).where(0.0, g)],
    "EXP": lambda g, out, x: [g * out],
    "RECIPROCAL": lambda g, out, x: [g * out * out * -1.0],
    "RESHAPE": lambda g, out, x: [g.reshape(*x.shape)],
    "PERMUTE": lambda g, out, x: [g.permute(*map(out.arg.index, range(len(x.shape))))],
    "EXPAND": lambda g, out, x: [g.sum(*(d for d, n in enumerate(x.shape) if n < out.shape[d]))],
    "REDUCE": lambda g, out, x: [reduce_gradient(g, out, x)],
}


def gradient(loss: UOp, *parameters: UOp) -> list[UOp]:
    """Walk from the loss to its sources, handing gradients on. The result is just more graph."""
    grads = {loss: const(1.0, float32).expand(*loss.shape)}
    for node in reversed(toposort(loss)):
        if node in grads and node.op in GRADIENT:
            shares = GRADIENT[node.op](grads[node], node, *node.src)
            for source, share in zip(node.src, shares, strict=True):
                grads[source] = grads[source] + share if source in grads else share
    return [grads[parameter] for parameter in parameters]


# ---- 5. Phase schedule. Shapes become loops; loops are grouped into kernels. --------------------
def flatten(at: Index, shape: Shape) -> UOp:
    """Row-major: [i, j] of shape (3, 4) is element i * 4 + j."""
    return rewrite(sum((i * prod(shape[d + 1 :]) for d, i in enumerate(at)), zero), INDEX_RULES)


class Schedule:
    """In: tensor nodes. Out: `kernels`, one STORE each, in order; the `outputs`, as buffers."""

    def __init__(self, *wanted: UOp) -> None:
        self.numbers, self.kernels = count(), list[UOp]()
        for name in ("source_index", "lower", "stage"):  # the same question gets the same answer
            setattr(self, name, cache(getattr(self, name)))
        self.staged = self.fuse(wanted)
        self.outputs = [self.stage(node) for node in wanted]

    def fresh(self, size: int) -> UOp:
        return UOp("RANGE", index, (), (f"r{next(self.numbers)}", size)) if size > 1 else zero

    def source_index(self, node: UOp, at: Index) -> Index:
        """Rangeify: where a node reads its sources when the node itself is read at `at`."""
        shape = node.src[0].shape
        if node.op == "RESHAPE":
            flat = flatten(at, node.shape)
            index = (flat // prod(shape[d + 1 :]) % n for d, n in enumerate(shape))
            return tuple(rewrite(i, INDEX_RULES) for i in index)
        if node.op == "PERMUTE":
            return tuple(at[node.arg.index(d)] for d in range(len(at)))
        if node.op == "EXPAND":
            return tuple(zero if n == 1 else at[d] for d, n in enumerate(shape))
        if node.op == "REDUCE":  # a fold over fresh ranges
            return tuple(self.fresh(n) if d in node.arg else at[d] for d, n in enumerate(shape))
        return at

    def fuse(self, wanted: tuple[UOp, ...]) -> dict[UOp, Index]:
        """Consumers first, decide what to STAGE in memory; all else melts into its users.

        A use is an index and the loops around it, down to the deepest one the index depends on:
        there codegen computes the value. So one question decides for every reduction: would its
        uses compute it more often than it has elements? Then store it once and read it back.
        """
        staged: dict[UOp, Index] = {}
        uses: dict[UOp, dict] = {node: {} for node in toposort(*wanted)}  # (kernel, index): loops
        for node in reversed(uses):
            times = sum(prod(r.arg[1] for r in loops) for loops in uses[node].values())
            if node in wanted or (node.op == "REDUCE" and times > prod(node.shape)):
                at = staged[node] = tuple(self.fresh(size) for size in node.shape)
                uses[node] = {(node, at): [i for i in at if i is not zero]}
            for (kernel, at), loops in uses[node].items() if node.src else ():
                inner = self.source_index(node, at)
                path = loops + [i for i in inner if i.op == "RANGE" and i not in loops]
                needed = [d + 1 for d, r in enumerate(path) if any(r in i.free for i in inner)]
                for source in node.src:
                    uses[source][kernel, inner] = path[: max(needed, default=0)]
        return staged

    def stage(self, node: UOp) -> UOp:
        """Split: a STAGE in global memory is a kernel that stores it and a buffer to read."""
        at = self.staged[node]
        value = self.lower(node, at)  # stages what it reads first, so kernels come out in order
        buffer = tensor(np.zeros(node.shape), f"s{len(self.kernels)}")
        src = (buffer, flatten(at, node.shape), value, *(i for i in at if i is not zero))
        self.kernels.append(UOp("STORE", float32, src))
        return buffer

    def lower(self, node: UOp, at: Index) -> UOp:
        """The value of a node at an index: no movement ops, only arithmetic, folds and loads."""
        if node.op in ("BUFFER", "CONST"):
            load = UOp("INDEX", float32, (node, flatten(at, node.shape)))
            return load if node.op == "BUFFER" else node
        inner = self.source_index(node, at)
        sources = (self.stage(s) if s in self.staged else s for s in node.src)
        src = [self.lower(s, inner) for s in sources]
        ranges = [i for i in inner if i.op == "RANGE" and i not in at]
        if node.op in ELEMENTWISE or ranges:
            return UOp(node.op, node.dtype, (*src, *ranges), node.arg and node.arg[:1])
        return src[0]


# ---- 6. Phases codegen and render. Loops and values are put in order; a table gives them words. -
# fmt: off
PSEUDO = {
    "INIT ADD": "{u} = 0.0", "FOLD ADD": "{u} = {u} + {0}", "LOOP index": "for {u} < {size}:",
    "INIT MAX": "{u} = -inf", "FOLD MAX": "{u} = max({u}, {0})", "STORE float32": "{0}[{1}] = {2}",
}
OLD, NEW = "{u}.old = load float, ptr {u}.acc\n{u} = ", "\nstore float {u}, ptr {u}.acc"
DECLARE = "declare float @llvm.exp.f32(float)\ndeclare float @llvm.maximum.f32(float, float)\n"
AT = "{u}.at = getelementptr float, ptr {0}, i64 {1}\n"
LLVM = {
    "ADD index": "{u} = add i64 {0}, {1}", "ADD float32": "{u} = fadd float {0}, {1}",
    "MUL index": "{u} = mul i64 {0}, {1}", "MUL float32": "{u} = fmul float {0}, {1}",
    "DIV index": "{u} = udiv i64 {0}, {1}", "RECIPROCAL float32": "{u} = fdiv float 1.0, {0}",
    "MOD index": "{u} = urem i64 {0}, {1}", "LESS bool": "{u} = fcmp olt float {0}, {1}",
    "WHERE float32": "{u} = select i1 {0}, float {1}, float {2}",
    "EXP float32": "{u} = call float @llvm.exp.f32(float {0})",
    "MAX float32": "{u} = call float @llvm.maximum.f32(float {0}, float {1})",
    "INDEX float32": AT + "{u} = load float, ptr {u}.at",
    "STORE float32": AT + "store float {2}, ptr {u}.at",
    "INIT ADD": "store float 0.0, ptr {u}.acc",
    "INIT MAX": "store float 0xfff0000000000000, ptr {u}.acc",  # minus infinity
    "FOLD ADD": OLD + "fadd float {u}.old, {0}" + NEW,
    "FOLD MAX": OLD + "call float @llvm.maximum.f32(float {u}.old, float {0})" + NEW,
    "LOOP index": "br label {u}.pre\n{name}.pre:\nbr label {u}.body\n{name}.body:\n"
                  "{u} = phi i64 [0, {u}.pre], [{u}.next, {u}.end]",
    "END index": "br label {u}.end\n{name}.end:\n{u}.next = add i64 {u}, 1\n"
                 "{u}.more = icmp ult i64 {u}.next, {size}\n"
                 "br i1 {u}.more, label {u}.body, label {u}.exit\n{name}.exit:",
}
# fmt: on


def render(kernel: UOp, table: dict[str, str], name: Callable[[UOp], str] = repr) -> str:
    """Emit every value once, at the depth of the deepest loop that it depends on."""
    levels: list[tuple[UOp | None, list[str]]] = [(None, [])]  # the open loops and their lines
    done = set()

    def put(step: str, u: UOp, depth: int = -1) -> None:
        kind = u.arg[0] if u.op == "REDUCE" else u.dtype
        if text := table.get(f"{step} {kind}"):  # what the table leaves out is not shown
            words = {"u": name(u), "name": name(u)[1:], "size": u.arg and u.arg[-1]}
            levels[depth][1].append(text.format(*map(name, u.src), **words))

    def emit(u: UOp) -> None:
        done.add(u)
        depth = max((d for d, (r, _) in enumerate(levels) if r in u.free), default=0)
        inner = levels[depth + 1 :]  # set aside: where u belongs, these are not open yet
        levels[depth + 1 :] = [(r, []) for r in u.ranges]
        put("INIT", u, depth)
        for source in u.src:
            if source.src and source not in done:
                emit(source)
        put("FOLD" if u.op == "REDUCE" else u.op, u)
        for r in reversed(u.ranges):
            body = levels.pop()[1]
            put("LOOP", r)
            levels[-1][1].extend("  " + line for line in body)
            put("END", r)
        levels.extend(inner)

    emit(kernel)
    return "\n".join(levels[0][1])


def render_llvm(kernel: UOp) -> str:
    names = {u: f"%v{i}" for i, u in enumerate(toposort(kernel))}
    for u in names:
        if u.op == "CONST":  # LLVM wants the exact bits of a float
            bits = np.float64(np.float32(u.arg)).view(np.uint64)
            names[u] = f"0x{bits:016x}" if u.dtype == float32 else str(u.arg)
    params = ", ".join(f"ptr {names[u]}" for u in names if u.op == "BUFFER")
    accs = "".join(f"{names[u]}.acc = alloca float\n" for u in names if u.op == "REDUCE")
    body = render(kernel, LLVM, names.__getitem__)
    return DECLARE + f"define void @kernel({params}) {{\n{accs}{body}\nret void\n}}"


# ---- 7. Phase run. LLVM makes machine code in memory; ctypes calls it on the buffers. -----------
def jit(kernel: UOp) -> Callable[[], None]:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(opt=2)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(render_llvm(kernel)), machine)
    engine.finalize_object()
    pointers = [MEMORY[u].ctypes.data for u in toposort(kernel) if u.op == "BUFFER"]
    signature = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(pointers))
    function = signature(engine.get_function_address("kernel"))
    function.engine = engine  # the code lives as long as its engine
    return partial(function, *pointers)


def evaluate(*nodes: UOp) -> list[np.ndarray]:
    schedule = Schedule(*nodes)
    for kernel in schedule.kernels:
        jit(kernel)()
    return [MEMORY[buffer] for buffer in schedule.outputs]
