"""The text form: every graph comes back identical, programs read well, mistakes are pointed at."""

import math
import pickle
import random
import subprocess
import sys

import pytest

from weft.ir.build import (
    bind,
    buffer,
    call,
    index_of,
    load,
    param,
    range_,
    reduce_axes,
    reduce_ranges,
    scan_axis,
    scatter,
    sink,
    store,
    variable,
)
from weft.ir.dtypes import SCALARS, dtypes
from weft.ir.ops import COMPARE, COUNT, ELEMENTWISE, INFO, Op, name
from weft.ir.text import dump, parse, show
from weft.ir.uop import UOp, bool_like, complex_from, const, make

f32, i32, index, void = dtypes.float32, dtypes.int32, dtypes.index, dtypes.void


def assert_round_trip(root: UOp) -> str:
    text = dump(root)
    back = parse(text)
    assert back is root, f"{text}\n\ncame back as\n\n{dump(back)}"
    return text


# One legal node of each op, and further ones that fit no short form.

x, y, z = (param(slot, f32, (4, 8)) for slot in range(3))
r0, r1, r2 = range_(0, 64), range_(1, 64), range_(2, 64)
n = variable("n", 1, 64)
true = const(dtypes.bool, True)
address = index_of(x, (r0, r1))
staged = make(Op.STAGE, f32, (load(address), r1, r0, r1), ("local", (64,)))
condition = r0 < 4
pair = make(Op.TUPLE, void, (x, r0))
vector = make(Op.VECTOR, f32.vector(2), (load(address), load(address)))

EXAMPLES: dict[int, UOp] = {
    Op.CONST: const(f32, 2.5),
    Op.RANGE: r0,
    Op.VARIABLE: n,
    Op.NOT: ~condition,
    Op.WHERE: condition.where(load(address), 0.0),
    Op.CAST: r0.cast(f32),
    Op.COMPLEX: complex_from(x, y),
    Op.REAL: complex_from(x, y).real,
    Op.IMAG: complex_from(x, y).imag,
    Op.BITCAST: make(Op.BITCAST, i32, (x,)),
    Op.BUFFER: buffer(7, f32, (4, n), "CPU:1"),
    Op.PARAM: param(3, f32, (n, 4, n * 2)),
    Op.IOTA: make(Op.IOTA, i32, (), (8,)),
    Op.RESHAPE: make(Op.RESHAPE, f32, (x, n), (2, None, 16)),
    Op.EXPAND: make(Op.EXPAND, f32, (x,), (4, 8)),
    Op.PERMUTE: make(Op.PERMUTE, f32, (x,), (1, 0)),
    Op.PAD: make(Op.PAD, f32, (x, n), ((0, 1), (None, 0))),
    Op.SHRINK: make(Op.SHRINK, f32, (x, n), ((0, 2), (0, None))),
    Op.FLIP: make(Op.FLIP, f32, (x,), (1,)),
    Op.DETACH: make(Op.DETACH, f32, (x,)),
    Op.INLINE: make(Op.INLINE, f32, (x,)),
    Op.COPY: make(Op.COPY, f32, (x,), "CUDA:1"),
    Op.SHARD: make(Op.SHARD, f32, (x,), (("CPU", "CPU:1"), 0, (3, 1))),
    Op.BIND: bind(n, 5),
    Op.REDUCE: reduce_axes(x, Op.MAX, (0, 1)),
    Op.SCAN: scan_axis(x, Op.ADD, 1),
    Op.SCATTER: scatter(x, x, const(dtypes.bool, True), (n,), Op.ADD),
    Op.INDEX: address,
    Op.LOAD: load(address),
    Op.STORE: store(address, load(address), (r0, r1)),
    Op.STAGE: staged,
    Op.READ: make(Op.READ, f32, (staged, condition, r2)),
    Op.MEMORY: make(Op.MEMORY, f32, (), ("acc", "register", 4)),
    Op.AFTER: make(Op.AFTER, f32, (x, store(address, load(address), (r0, r1)))),
    Op.VECTOR: vector,
    Op.LANES: make(Op.LANES, f32, (vector,), (1,)),
    Op.SPECIAL: make(Op.SPECIAL, index, (n,), ("group", 0)),
    Op.END: make(Op.END, void, (r0,)),
    Op.BARRIER: make(Op.BARRIER, void, ()),
    Op.TUPLE: pair,
    Op.ITEM: make(Op.ITEM, index, (pair,), 1),
    Op.SINK: sink(store(address, load(address)), x),
    Op.KERNEL: make(Op.KERNEL, void, (store(address, load(address)),), ("k", ((0, "grid"),))),
    Op.LINEAR: make(Op.LINEAR, void, (r0, x, make(Op.END, void, (r0,)))),
    Op.CALL: call(x + y, z, x),
    Op.PROGRAM: make(Op.PROGRAM, void, (x, n), ("k", "C:C:any", 'a\n"b"', "", (0,), (n,), (1,))),
    Op.CUSTOM_GRADIENT: make(
        Op.CUSTOM_GRADIENT, f32, (x, y), (make(Op.TUPLE, void, (x,)), 1, (0,))
    ),
}


def example(op: int) -> UOp:
    if op in EXAMPLES:
        return EXAMPLES[op]
    sources = ((x, y, z) * 4)[: INFO[op].least]
    return make(op, bool_like(x) if op in COMPARE else f32, sources)


@pytest.mark.parametrize("op", range(COUNT), ids=name)
def test_every_op_comes_back(op: int):
    node = example(op)
    assert node.op == op
    assert_round_trip(node)
    assert_round_trip(sink(node, node))
    assert show(node)


@pytest.mark.parametrize("op", range(COUNT), ids=name)
def test_uniform_form_holds_an_unusual_node(op: int):
    node = example(op)
    if op not in (Op.CONST, Op.STAGE, Op.KERNEL, Op.REDUCE, Op.SCAN, Op.SCATTER):
        assert_round_trip(make(op, dtypes.uint8, node.src, node.arg))
    if op not in (Op.CONST, Op.RANGE, Op.STAGE, Op.CALL):
        odd = make(op, node.dtype, node.src, ("odd", (1, None, ()), -2, node.dtype, x))
        assert_round_trip(odd)


def test_nodes_that_break_invariants_come_back():
    for root in (
        make(Op.ADD, f32, (x, r0)),
        make(Op.ADD, f32, (load(address), const(index, 2))),
        make(Op.ADD, f32, (const(index, 2), const(f32, 2))),
        make(Op.LESS, f32, (x, y)),
        make(Op.REDUCE, f32, (x, r0), (Op.ADD, (1,))),
        make(Op.REDUCE, f32, (x,), (Op.ADD, ())),
        make(Op.SCAN, f32, (load(address), r0), (Op.ADD, ())),
        make(Op.SCAN, f32, (x, r0), (Op.ADD, (1,))),
        make(Op.STAGE, f32, (x, r0), ("local", (1, 2, 3))),
        make(Op.PARAM, f32, (), (0, (None, 4))),
        make(Op.PARAM, f32, (n,), (0, (4,))),
        make(Op.RESHAPE, f32, (x, const(index, 8)), (4, None)),
        make(Op.KERNEL, void, (x,), ("k", ((-1, "grid"),))),
        make(Op.KERNEL, void, (x,), None),
        make(Op.ITEM, f32, (x,), 0),
        make(Op.INDEX, f32, (const(f32, 1), const(i32, 1))),
        make(Op.RANGE, i32, (const(index, 4),), 0),
        make(Op.CAST, f32, (const(index, 4),)),
        range_(0, 4) + range_(0, 5),
        sink(range_(0, 4), range_(0, 5), make(Op.RANGE, i32, (const(i32, 4),), 1)),
        sink(const(f32, 1), const(index, -1), r0 < 5, r0, condition),
        sink(),
        make(Op.LINEAR, void, ()),
    ):
        assert_round_trip(root)


def test_names_never_clash():
    names = ("n", "p0", "r0", "b0", "v0", "v1", "max", "float32", "float32x4", "load", "x y", "é")
    total = const(index, 0)
    for text in (*names, "true", "ADD", "sink", "inf", "let", 'a"b\\c\nd\u2028'):
        total = total + variable(text, -3, 5) * variable(text, -3, 6)
    other = load(index_of(param(0, f32, (9,)), (total + range_(0, 9),)))
    assert_round_trip(sink(other + load(index_of(buffer(0, f32, (9,), "CPU"), (total,)))))


def edge_values(dtype):
    if dtype.kind == dtypes.bool.kind:
        return [True, False]
    if not dtype.is_float:
        least, most = (-(10**30), 10**30) if dtype is index else (dtype.min, dtype.max)
        return [0, 1, -1, 7, least, most]
    info = dtypes.finfo(dtype)
    return [0.0, -0.0, 1.0, -1.5, 0.1, math.inf, -math.inf, math.nan, info.max, info.min]


@pytest.mark.parametrize("dtype", [d for d in SCALARS.values() if d is not void], ids=repr)
def test_constants_are_exact(dtype):
    for kind in (dtype, dtype.vector(4)):
        other = make(Op.LANES, kind, (vector,), (0,))
        for value in edge_values(dtype):
            c = const(kind, value)
            assert_round_trip(c)
            for root in (other + c, c + other, c * c, c + -c, -c, other.equal(c), c.cast(f32)):
                assert_round_trip(root)
            for op in (Op.MAX, Op.POW, Op.WHERE):
                src = (c, other, c)[-INFO[op].least :]
                assert_round_trip(make(op, kind, src))
                assert_round_trip(make(op, kind, (c, c, c)[-INFO[op].least :]))
            assert_round_trip(store(make(Op.INDEX, kind, (x, true, r0)), c))


def test_infix_keeps_the_tree():
    a, b, c = r0, r1, r2
    for root in (
        a + (b + c),
        a + b + c,
        a * (b + c),
        a // (b // c),
        a % b * c,
        -(a + b) * c,
        -a * b,
        a - (b - c),
        a - b - c,
        a - -b,
        a + -(a * b),
        a - 3,
        a - (-3),
        a + const(index, -3),
        const(f32, 1) - const(f32, 2),
        const(f32, 1) - const(f32, -2),
        const(index, 1) - const(index, -2),
        make(Op.ADD, index, (a, -const(i32, 2))),
        make(Op.ADD, f32, (const(f32, 1), -const(i32, 2))),
        -3 + a,
        make(Op.NEG, index, (-a,)),
        ~(a < b) & (b < c) | (a <= c),
        (a < b).equal(b < c),
        make(Op.LESS, dtypes.bool, (a < b, b < c)),
        (a << b) >> (c << a),
        a ^ (b & c | a),
        (a + b).cast(i32) + (a + b).cast(i32),
        (a - b) * (a - b) + -b,
        a + -b + (c + -b) * -b,
    ):
        assert_round_trip(root)
    assert dump(a - b - 3).splitlines()[-1] == "return r0 - r1 - 3"
    assert dump(a + const(index, -3)).splitlines()[-1] == "return r0 + -3"


def test_calls_nest_and_share_bodies():
    p, q = param(0, f32, (4,)), param(1, f32, (4,))
    inner = p * 2.0
    outer = call(inner, p) + call(inner, q)
    root = call(outer, x, y) + call(outer, y, call(inner, x))
    assert assert_round_trip(root).count("def ") == 2
    deep = inner
    for _ in range(3000):
        deep = call(deep, p) + p
    assert_round_trip(deep)


def test_a_deep_chain_comes_back():
    chain = load(address)
    for i in range(100_000):
        chain = make(Op.EXP2, f32, (chain,)) if i % 2 else chain * chain
    assert_round_trip(chain)
    nested = sink(x)
    for _ in range(2000):
        nested = sink(nested)
    assert_round_trip(nested)
    assert len(show(chain)) < 150


def test_dump_is_the_same_in_every_process():
    program = (
        "from weft.ir.build import *; from weft.ir.text import dump\n"
        "x = range_(0, 8) * variable('n', 1, 9)\n"
        "print(dump(sink(call(x, x), x // 4, x % 4)), end='')"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
        ).stdout
        for seed in ("1", "2")
    }
    v = range_(0, 8) * variable("n", 1, 9)
    assert texts == {dump(sink(call(v, v), v // 4, v % 4))}


def test_nodes_pickle_through_the_text():
    root = call(x + y, z, x)
    assert pickle.loads(pickle.dumps(root)) is root


# Random graphs.


def random_graph(rng: random.Random) -> UOp:
    values = [load(address), const(f32, 0.5), load(index_of(y, (r1, r0 * 4 % 8), condition))]
    indices = [r0, r1, n, const(index, 3), make(Op.SPECIAL, index, (n,), ("local", 0))]
    effects = [store(address, values[0])]
    same = [Op.ADD, Op.MUL, Op.FLOORDIV, Op.FLOORMOD, Op.MAX, Op.MIN, Op.NEG, Op.TRUNCDIV]
    for _ in range(rng.randrange(1, 60)):
        pool = rng.choice((values, indices))
        some = [rng.choice(pool[-8:]) for _ in range(3)]
        kind = rng.randrange(10)
        if kind < 6:
            op = rng.choice(same)
            pool.append(make(op, some[0].dtype, tuple(some[: INFO[op].least])))
        elif kind == 6:
            op = rng.choice(sorted(COMPARE))
            mask = make(op, dtypes.bool, (some[0], some[1]))
            pool.append(make(Op.WHERE, some[1].dtype, (mask, some[1], some[2])))
        elif kind == 7:
            spot = index_of(x, (rng.choice(indices), rng.choice(indices)), rng.choice(indices) < 3)
            values.append(load(spot))
            effects.append(store(spot, rng.choice(values), (r0,)))
        elif kind == 8:
            values.append(reduce_ranges(rng.choice(values), Op.ADD, (r2, r1)))
        else:
            values.append(call(rng.choice(values), rng.choice(values)))
    picked = [rng.choice(values + indices + effects) for _ in range(rng.randrange(1, 6))]
    op = rng.choice((Op.SINK, Op.LINEAR, Op.KERNEL, Op.TUPLE))
    root = make(op, void, tuple(picked), ("k", ()) if op == Op.KERNEL else None)
    return rng.choice((root, picked[0], sink(root, root), make(Op.LINEAR, void, (root, *picked))))


def test_random_graphs_come_back(seed: int):
    rng = random.Random(seed)
    for _ in range(500):
        assert_round_trip(random_graph(rng))


def test_random_lists_of_instructions_come_back(seed: int):
    rng = random.Random(seed)
    pool = [*(make(Op.END, void, (node,)) for node in (r0, r1)), r0, r1, r0 * 4, true]
    for _ in range(500):
        chosen = [rng.choice(pool) for _ in range(rng.randrange(1, 10))]
        inner = make(Op.LINEAR, void, tuple(chosen))
        assert_round_trip(rng.choice((inner, make(Op.LINEAR, void, (inner, *chosen, x)))))


def test_elementwise_ops_have_short_forms():
    for op in sorted(ELEMENTWISE):
        assert name(op) not in dump(sink(example(op)))
