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

import llvmlite.binding as llvm
import numpy as np

float32, index, boolean = "float32", "index", "bool"  # `index` is for loop counters and addresses
INFIX = {"ADD": "+", "MUL": "*", "DIV": "//", "MOD": "%", "LESS": "<"}
ELEMENTWISE = {*INFIX, "MAX", "EXP", "RECIPROCAL", "WHERE"}
NODES: dict[tuple, UOp] = {}  # every node there is
TRACE: list[tuple[str, UOp, UOp]] = []  # every rewrite there was: rule, before, after
MEMORY: dict[UOp, np.ndarray] = {}  # what each BUFFER holds; the graph itself holds no numbers
Shape, Index = tuple[int, ...], tuple["UOp", ...]  # per axis: a size; an index expression


# ---- 1. Nodes. A whole program, from tensors down to loops, is one graph of UOps. ---------------
class UOp:
    """A node: op, dtype, src, arg. Equal nodes are the same object, so `is` compares programs."""

    def __new__(cls, op: str, dtype: str, src: tuple[UOp, ...] = (), arg: object = None) -> UOp:
        key = (op, dtype, src, repr(arg))  # repr, because 0.0 == -0.0 and nan != nan
        if key not in NODES:
            shape, node = shape_of(op, src, arg), super().__new__(cls)
            # REDUCE and STORE own loops: the RANGEs in src. `free`: the loops it must sit in.
            ranges = dict.fromkeys(s for s in src if op in ("REDUCE", "STORE") and s.op == "RANGE")
            free = {node} if op == "RANGE" else {r for s in src for r in s.free} - ranges.keys()
            vars(node).update(op=op, dtype=dtype, src=src, arg=arg)
            vars(node).update(shape=shape, ranges=tuple(ranges), free=free)
            NODES[key] = node
        return NODES[key]

    def __repr__(self) -> str:
        src = [repr(s) for s in self.src]
        if not src:
            return str(self.arg[0] if isinstance(self.arg, tuple) else self.arg)
        if self.op in INFIX:
            return f"({src[0]} {INFIX[self.op]} {src[1]})"
        if self.op == "INDEX":
            return f"{src[0]}[{src[1]}]"
        return f"acc_{self.ranges[0]}" if self.ranges else f"{self.op.lower()}({', '.join(src)})"

    def elementwise(self, op: str, *others: UOp | float) -> UOp:  # broadcasts as NumPy does
        kind = index if self.dtype == index else float32
        nodes = [self, *(o if isinstance(o, UOp) else UOp("CONST", kind, (), o) for o in others)]
        shape = np.broadcast_shapes(*(node.shape for node in nodes))
        src = tuple(node if node.shape == shape else node.expand(*shape) for node in nodes)
        return UOp(op, boolean if op == "LESS" else kind, src)

    def unary(self, op: str, *arg: object) -> UOp:
        return UOp(op, self.dtype, (self,), arg)

    __setattr__ = None  # immutable: only __new__ writes, through vars()
    method = partial(partialmethod, elementwise)  # from an op to its method
    __add__, __mul__, __floordiv__, __mod__, __lt__ = map(method, INFIX)
    maximum, exp, reciprocal, where = map(method, ("MAX", "EXP", "RECIPROCAL", "WHERE"))
    reshape, permute = partialmethod(unary, "RESHAPE"), partialmethod(unary, "PERMUTE")
    sum, max = partialmethod(unary, "REDUCE", "ADD"), partialmethod(unary, "REDUCE", "MAX")

    def expand(self, *shape: int) -> UOp:  # axes of size 1 are repeated; new ones come in front
        ones = (1,) * (len(shape) - len(self.shape))
        return self.reshape(*ones, *self.shape).unary("EXPAND", *shape)

    def __sub__(self, other: UOp | float) -> UOp:
        return self + other * -1.0

    def __matmul__(self, other: UOp) -> UOp:  # (m, k) @ (k, n): expand, multiply, sum
        (m, k), n = self.shape, other.shape[1]
        return (self.reshape(m, k, 1) * other.reshape(1, k, n)).sum(1).reshape(m, n)


def shape_of(op: str, src: tuple[UOp, ...], arg: object) -> Shape:
    if op == "RESHAPE" and prod(arg) != prod(src[0].shape):
        raise ValueError(f"{src[0].shape} has no reshape to {arg}: the sizes differ")
    if op in ("BUFFER", "RESHAPE", "EXPAND"):
        return arg[1] if op == "BUFFER" else arg
    if op == "PERMUTE":
        return tuple(src[0].shape[axis] for axis in arg)
    if op == "REDUCE" and not {*arg[1:]} <= {*range(len(src[0].shape))}:
        raise ValueError(f"{src[0].shape} has no axes {arg[1:]}")
    if op == "REDUCE":  # arg is the op, then the axes; a reduced axis stays, with size 1
        return tuple(1 if axis in arg else size for axis, size in enumerate(src[0].shape))
    return src[0].shape if op in ELEMENTWISE else ()


@cache  # every node below the roots, once, sources first
def toposort(*roots: UOp) -> tuple[UOp, ...]:
    return tuple(dict.fromkeys(n for root in roots for n in (*toposort(*root.src), root)))


# ---- 2. Rules. A rule is data: a pattern with holes, what replaces it, and when it holds. -------
def rule(name: str, pattern: str, replacement: str, when: str = "True") -> tuple:
    return name, eval(pattern, HOLES), replacement, when  # each is Python; names are holes


def match(pattern: UOp, node: UOp, bound: dict[str, object]) -> bool:
    """Does the node fit? Fills `bound`: a hole holds a node, a constant hole holds a number."""
    if pattern.op == "ANY":
        return bound.setdefault(pattern.arg, node) is node
    if pattern.op == "ANY_CONST":
        return node.op == "CONST" and bound.setdefault(pattern.arg, node.arg) == node.arg
    same = (pattern.op, pattern.dtype, pattern.arg) == (node.op, node.dtype, node.arg)
    return same and all(match(p, n, bound) for p, n in zip(pattern.src, node.src, strict=True))


@cache  # equal nodes are one object and rules are pure, so a result holds for ever
def rewrite(node: UOp, rules: tuple[tuple, ...]) -> UOp:  # sources first, until no rule fits
    node = UOp(node.op, node.dtype, tuple(rewrite(s, rules) for s in node.src), node.arg)
    for name, pattern, replacement, when in rules:
        bound: dict[str, object] = {}
        if match(pattern, node, bound) and eval(when, globals(), bound):
            new = eval(replacement, globals(), bound)
            TRACE.append((name, node, new))
            return rewrite(new, rules)
    return node


def vmax(node: UOp) -> int:  # of an index; the least is never below 0, as nothing subtracts
    if node.op in ("CONST", "RANGE"):
        return node.arg if node.op == "CONST" else node.arg[1] - 1
    a, b = (vmax(s) for s in node.src)
    return {"ADD": a + b, "MUL": a * b, "DIV": a // (b or 1), "MOD": min(a, b - 1)}[node.op]


# These rules hold for integers. For floats even x + 0 -> x is false: -0.0 + 0.0 is 0.0.
zero = UOp("CONST", index, (), 0)
HOLES = {"zero": zero} | {name: UOp("ANY", index, (), name) for name in "xyz"}
HOLES |= {name: UOp("ANY_CONST", index, (), name) for name in ("c0", "c1")}
INDEX_RULES = (
    rule("add-zero", "x + 0", "x"),
    rule("zero-add", "zero + x", "x"),
    rule("zero-mul", "zero * x", "zero"),
    rule("mul-one", "x * 1", "x"),
    rule("div-one", "x // 1", "x"),
    rule("mod-one", "x % 1", "zero"),
    rule("add-leans-right", "(x + y) + z", "x + (y + z)"),
    rule("mul-merges-mul", "(x * c0) * c1", "x * (c0 * c1)"),
    rule("mul-distributes", "(x + y) * c0", "x * c0 + y * c0"),
    rule("div-of-small", "x // c0", "zero", when="vmax(x) < c0"),
    rule("mod-of-small", "x % c0", "x", when="vmax(x) < c0"),
    rule("div-cancels-mul", "(x * c0) // c1", "x * (c0 // c1)", when="c0 % c1 == 0"),
    rule("mod-cancels-mul", "(x * c0) % c1", "zero", when="c0 % c1 == 0"),
    rule("div-of-sum", "(x * c0 + y) // c1", "x * (c0 // c1) + y // c1", when="c0 % c1 == 0"),
    rule("mod-of-sum", "(x * c0 + y) % c1", "y % c1", when="c0 % c1 == 0"),
    rule("div-mod-rejoin", "(x // c0) * c0 + x % c0", "x"),
)


# ---- 3. Phase tensor. A tensor is a node (Weft wraps it); its methods only build the graph. -----
def tensor(data: object, name: str = "input") -> UOp:
    array = np.array(data, np.float32, order="C")
    if not array.size:
        raise ValueError(f"shape {array.shape} is empty, and loops here run at least once")
    buffer = UOp("BUFFER", float32, (), (name, array.shape, len(MEMORY)))
    MEMORY[buffer] = array
    return buffer


# ---- 4. Phase gradient. One rule per op: from the gradient of its output to those of its sources.
def reduce_gradient(g: UOp, out: UOp, x: UOp) -> UOp:
    top = (x < out).where(0.0, 1.0)  # of a MAX, equal largest elements share the gradient
    return g.expand(*x.shape) if "ADD" in out.arg else top * g * top.sum(*out.arg[1:]).reciprocal()


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


def gradient(loss: UOp, *parameters: UOp) -> list[UOp]:  # the result is just more graph
    grads = {loss: UOp("CONST", float32, (), 1.0).expand(*loss.shape)}
    for node in reversed(toposort(loss)):
        if node in grads and node.op in GRADIENT:
            shares = GRADIENT[node.op](grads[node], node, *node.src)
            for source, share in zip(node.src, shares, strict=True):
                grads[source] = grads[source] + share if source in grads else share
    return [grads[parameter] for parameter in parameters]


# ---- 5. Phase schedule. Shapes become loops; loops are grouped into kernels. --------------------
def flatten(at: Index, shape: Shape) -> UOp:  # row-major: [i, j] of shape (3, 4) is i * 4 + j
    return rewrite(sum((i * prod(shape[d + 1 :]) for d, i in enumerate(at)), zero), INDEX_RULES)


class Schedule:
    """In: tensor nodes. Out: `kernels`, one STORE each, in order; the `outputs`, as buffers."""

    def __init__(self, *wanted: UOp) -> None:
        numbers, self.kernels, self.buffers = count(), list[UOp](), dict[UOp, UOp]()
        self.fresh = lambda n: UOp("RANGE", index, (), (f"r{next(numbers)}", n)) if n > 1 else zero
        for name in ("source_index", "lower"):  # the same arguments always give the same result
            setattr(self, name, cache(getattr(self, name)))
        # Split: what is STAGEd in global memory is a kernel that stores it, producers first.
        for node, at in reversed(self.fuse(wanted).items()):
            value, own = self.lower(node, at), (i for i in at if i is not zero)
            out = self.buffers[node] = tensor(np.zeros(node.shape), f"s{len(self.kernels)}")
            self.kernels.append(UOp("STORE", float32, (out, flatten(at, node.shape), value, *own)))
        self.outputs = [self.buffers[node] for node in wanted]

    def source_index(self, node: UOp, at: Index) -> Index:
        """Rangeify: where a node reads its sources when the node itself is read at `at`."""
        shape = node.src[0].shape
        if node.op == "RESHAPE":
            flat = flatten(at, node.shape)
            split = (flat // prod(shape[d + 1 :]) % n for d, n in enumerate(shape))
            return tuple(rewrite(i, INDEX_RULES) for i in split)
        if node.op == "PERMUTE":
            return tuple(at[node.arg.index(d)] for d in range(len(at)))
        if node.op == "EXPAND":
            return tuple(zero if n == 1 else at[d] for d, n in enumerate(shape))
        if node.op == "REDUCE":  # a reduction over fresh ranges
            return tuple(self.fresh(n) if d in node.arg else at[d] for d, n in enumerate(shape))
        return at

    def fuse(self, wanted: tuple[UOp, ...]) -> dict[UOp, Index]:
        """Consumers first, decide what to STAGE in memory; all else melts into its users.
        A use is an index and the loops around it, down to the deepest one the index depends on:
        there codegen computes the value. So one question decides for every reduction: would its
        uses compute it more often than it has elements? Then store it once and read it back."""
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

    def lower(self, node: UOp, at: Index) -> UOp:
        """The value of a node at an index: only arithmetic, reductions and loads."""
        if node.op in ("BUFFER", "CONST"):
            load = UOp("INDEX", float32, (node, flatten(at, node.shape)))
            return load if node.op == "BUFFER" else node
        inner = self.source_index(node, at)
        src = [self.lower(self.buffers.get(s, s), inner) for s in node.src]
        ranges = [i for i in inner if node.op == "REDUCE" and i.op == "RANGE" and i not in at]
        if node.op in ELEMENTWISE or ranges:
            return UOp(node.op, node.dtype, (*src, *ranges), node.arg and node.arg[:1])
        return src[0]

    def run(self) -> list[np.ndarray]:
        for kernel in self.kernels:
            jit(kernel)()
        return [MEMORY[buffer] for buffer in self.outputs]


# ---- 6. Phases codegen and render. Loops and values are put in order; a table gives them words. -
# fmt: off
PSEUDO = {
    "INIT ADD": "{u} = 0.0", "REDUCE ADD": "{u} = {u} + {0}", "LOOP index": "for {u} < {size}:",
    "INIT MAX": "{u} = -inf", "REDUCE MAX": "{u} = max({u}, {0})",
    "STORE float32": "{0}[{1}] = {2}"}
OLD, NEW = "{u}.old = load float, ptr {u}.acc\n{u} = ", "\nstore float {u}, ptr {u}.acc"
LLVM = {
    "ADD index": "{u} = add i64 {0}, {1}", "ADD float32": "{u} = fadd float {0}, {1}",
    "MUL index": "{u} = mul i64 {0}, {1}", "MUL float32": "{u} = fmul float {0}, {1}",
    "DIV index": "{u} = udiv i64 {0}, {1}", "RECIPROCAL float32": "{u} = fdiv float 1.0, {0}",
    "MOD index": "{u} = urem i64 {0}, {1}", "LESS bool": "{u} = fcmp olt float {0}, {1}",
    "WHERE float32": "{u} = select i1 {0}, float {1}, float {2}",
    "EXP float32": "{u} = call float @llvm.exp.f32(float {0})",
    "MAX float32": "{u} = call float @llvm.maximum.f32(float {0}, float {1})",
    "INDEX float32": "{u}.p = getelementptr float, ptr {0}, i64 {1}\n{u} = load float, ptr {u}.p",
    "STORE float32": "{u}.p = getelementptr float, ptr {0}, i64 {1}\nstore float {2}, ptr {u}.p",
    "INIT ADD": "store float 0.0, ptr {u}.acc",
    "INIT MAX": "store float 0xfff0000000000000, ptr {u}.acc",  # minus infinity
    "REDUCE ADD": OLD + "fadd float {u}.old, {0}" + NEW,
    "REDUCE MAX": OLD + "call float @llvm.maximum.f32(float {u}.old, float {0})" + NEW,
    "LOOP index": "br label {u}.pre\n{name}.pre:\nbr label {u}.body\n{name}.body:\n"
                  "{u} = phi i64 [0, {u}.pre], [{u}.next, {u}.end]",
    "END index": "br label {u}.end\n{name}.end:\n{u}.next = add i64 {u}, 1\n"
                 "{u}.more = icmp ult i64 {u}.next, {size}\n"
                 "br i1 {u}.more, label {u}.body, label {u}.exit\n{name}.exit:",
}
# fmt: on


def render(kernel: UOp, table: dict[str, str], name: Callable[[UOp], str] = repr) -> str:
    """Emit every value once, at the depth of the deepest loop that it depends on."""
    done, levels = set(), [(None, [])]  # what is emitted; the open loops and their lines

    def put(step: str, u: UOp, depth: int = -1) -> None:  # what the table lacks is left out
        if text := table.get(f"{step} {u.arg[0] if u.op == 'REDUCE' else u.dtype}"):
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
        put(u.op, u)
        for r in reversed(u.ranges):
            body = levels.pop()[1]
            put("LOOP", r)
            levels[-1][1].extend("  " + line for line in body)
            put("END", r)
        levels.extend(inner)

    emit(kernel)
    return "\n".join(levels[0][1])


# ---- 7. Phase run. LLVM makes machine code in memory; ctypes calls it on the buffers. -----------
@cache
def jit(kernel: UOp) -> Callable[[], None]:
    names = {u: f"%v{i}" for i, u in enumerate(toposort(kernel))}
    for u in (u for u in names if u.op == "CONST"):  # LLVM writes a float as the bits of a double
        names[u] = hex(np.float64(np.float32(u.arg)).view("u8")) if u.dtype == float32 else u.arg
    buffers = [u for u in names if u.op == "BUFFER"]
    accs = "".join(f"{names[u]}.acc = alloca float\n" for u in names if u.op == "REDUCE")
    ir = f"""declare float @llvm.exp.f32(float)\ndeclare float @llvm.maximum.f32(float, float)
    define void @kernel({", ".join("ptr " + names[u] for u in buffers)}) {{
    {accs}{render(kernel, LLVM, names.__getitem__)}\nret void\n}}"""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(opt=2)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(ir), machine)
    signature = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(buffers))
    function = signature(engine.get_function_address("kernel"))
    function.engine = engine  # the code lives as long as its engine
    return partial(function, *(MEMORY[u].ctypes.data for u in buffers))


def main() -> None:
    rng = np.random.default_rng(3)
    a, b = tensor([1, 2, 3], "a"), tensor([10, 20, 30], "b")
    print("1. a + b is a graph; run, it is", Schedule(a + b).run()[0])
    print(*(f"   {u.op:7} {u.dtype} {u.shape} {u}" for u in toposort(a + b)), sep="\n")
    i, j = (UOp("RANGE", index, (), arg) for arg in (("i", 3), ("j", 4)))
    TRACE.clear()
    print("2. Rules simplify an index to", rewrite((i * 4 + j) // 4 % 3, INDEX_RULES))
    print(*(f"   {name:13} {before!r:20} -> {after}" for name, before, after in TRACE), sep="\n")
    x = tensor(rng.normal(size=(4, 5)), "x")
    e = (x - x.max(1)).exp()
    softmax = Schedule(e * e.sum(1).reciprocal())
    wanted = np.exp(MEMORY[x]) / np.exp(MEMORY[x]).sum(1, keepdims=True)
    error = abs(softmax.run()[0] - wanted).max()
    print(f"3. Softmax is within {error:.0e} of NumPy; number of kernels: {len(softmax.kernels)}")
    print(*(render(kernel, PSEUDO) for kernel in softmax.kernels), sep="\n")
    train(rng)


def train(rng: np.random.Generator) -> None:
    x = tensor(rng.uniform(-1, 1, size=(64, 2)), "x")
    y = tensor(MEMORY[x].prod(1, keepdims=True) > 0, "y")  # are the signs of the two equal?
    parameters = [tensor(rng.normal(size=shape), "w") for shape in ((2, 16), (16,), (16, 1))]

    def loss_of(w1: UOp, b1: UOp, w2: UOp) -> UOp:
        error = (x @ w1 + b1).maximum(0.0) @ w2 - y
        return (error * error).sum(0, 1) * (1 / 64)

    grads = gradient(loss := loss_of(*parameters), *parameters)
    pairs = list(zip(parameters, grads, strict=True))
    there, back, better = ([p + g * rate for p, g in pairs] for rate in (1e-4, -1e-4, -0.1))
    up, down, *slopes = Schedule(loss_of(*there), loss_of(*back), *grads).run()
    w1, b1, w2 = (MEMORY[p] for p in parameters)
    numpy_loss = np.square(np.maximum(MEMORY[x] @ w1 + b1, 0) @ w2 - MEMORY[y]).mean()
    print(f"4. MLP: NumPy's loss is {numpy_loss:.4f}, the slope along the gradient", end=" ")
    print(f"{sum((g * g).sum() for g in slopes):.2f}, measured {(up - down).item() / 2e-4:.2f}")
    step = Schedule(loss, *better)
    print(f"5. Training; number of kernels per step: {len(step.kernels)}")
    for number in range(1001):
        value, *updated = step.run()
        for parameter, new in zip(parameters, updated, strict=True):
            MEMORY[parameter][:] = new
        if number % 200 == 0:
            print(f"   step {number:4}  loss {value.item():.4f}")


if __name__ == "__main__":
    main()
