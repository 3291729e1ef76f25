"""Programs of every level read well: the exact texts of `dump`, `show` and `mark`."""

import pytest

from weft.ir.build import (
    buffer,
    call,
    index_of,
    load,
    param,
    range_,
    reduce_axes,
    reduce_ranges,
    sink,
    store,
    variable,
)
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.text import dump, locate, mark, parse, show
from weft.ir.uop import UOp, const, make
from weft.support.errors import InternalError

f32, i32, index, void = dtypes.float32, dtypes.int32, dtypes.index, dtypes.void
r0, r1, r2 = range_(0, 64), range_(1, 64), range_(2, 64)
n = variable("n", 1, 64)
true = const(dtypes.bool, True)
x, y, z = (param(slot, f32, (4, 8)) for slot in range(3))
address = index_of(x, (r0, r1))


def softmax() -> UOp:
    b = buffer(0, f32, (4, 8), "CPU")
    e = make(Op.EXP, f32, (b - make(Op.EXPAND, f32, (reduce_axes(b, Op.MAX, (1,)),), (4, 8)),))
    return sink(e / make(Op.EXPAND, f32, (reduce_axes(e, Op.ADD, (1,)),), (4, 8)))


def matmul_kernel() -> UOp:
    c, a, b = (param(slot, f32, (64, 64)) for slot in range(3))
    product = load(index_of(a, (r0, r2))) * load(index_of(b, (r2, r1)))
    total = reduce_ranges(product, Op.ADD, (r2,))
    written = store(index_of(c, (r0, r1)), total.maximum(0.0), (r0, r1))
    return make(Op.KERNEL, void, (written,), ("matmul", ((0, "grid"), (1, "grid"), (2, "loop"))))


def staged_kernel() -> UOp:
    out, source = param(0, f32, (1024,)), param(1, f32, (1024,))
    i, j, k = range_(0, 16), range_(1, 64), range_(2, 64)
    value = load(index_of(source, (i * 64 + j,), j < 60))
    tile = make(Op.STAGE, f32, (value, j, j), ("local", (65,)))
    read = make(Op.READ, f32, (tile, true, 63 - k))
    written = store(index_of(out, (i * 64 + k,)), read - 1.0, (i, k))
    return make(
        Op.KERNEL, void, (written,), ("iteration", ((0, "grid"), (1, "thread"), (2, "thread")))
    )


def linear_program() -> UOp:
    memory, loop = param(0, f32, (64,)), make(Op.RANGE, i32, (const(i32, 16),), 0)
    wide = f32.vector(4)
    spot = make(Op.INDEX, wide, (memory, true, loop * 4))
    value = make(Op.LOAD, wide, (spot,))
    doubled = value * 2.0
    listed = (loop, loop * 4, spot, value, doubled, store(spot, doubled))
    return make(Op.LINEAR, void, (*listed, make(Op.END, void, (loop,))))


def schedule() -> UOp:
    p, q = param(0, f32, (8, n)), param(1, f32, (8, n))
    add = sink(store(p, p + q.cast(dtypes.float16).cast(f32)))
    a, b = (buffer(i, f32, (8, n), "CPU") for i in range(2))
    return make(Op.LINEAR, void, (call(add, a, b), call(add, b, a)))


GOLDEN = {
    softmax: """\
sink:
  b0 = buffer 0 "CPU": float32[4, 8]
  v0 = exp(b0 - b0.reduce(MAX, 1).expand(4, 8))
  v0 / v0.reduce(ADD, 1).expand(4, 8)""",
    matmul_kernel: """\
kernel "matmul" r0 grid, r1 grid, r2 loop:
  p0 = param 0: float32[64, 64]
  p1 = param 1: float32[64, 64]
  p2 = param 2: float32[64, 64]
  r0 < 64
  r1 < 64
  r2 < 64
  v0 = reduce ADD over r2: load p1[r0, r2] * load p2[r2, r1]
  store p0[r0, r1] = max(v0, 0.0) for r0, r1""",
    staged_kernel: """\
kernel "iteration" r0 grid, r1 thread, r2 thread:
  p0 = param 0: float32[1024]
  p1 = param 1: float32[1024]
  r0 < 16
  r1 < 64
  r2 < 64
  v0 = stage local[r1 of 65] = load p1[r0 * 64 + r1 if r1 < 60] for r1
  store p0[r0 * 64 + r2] = read v0[63 - r2] - 1.0 for r0, r2""",
    linear_program: """\
p0 = param 0: float32[64]
linear:
  for r0 < int32(16):
    v0 = r0 * 4
    v1 = p0[v0: float32x4]
    v2 = load v1
    v3 = v2 * 2.0
    store v1 = v3
  end r0""",
    schedule: """\
def f0:
  sink:
    n = variable "n" 1..64
    p0 = param 0: float32[8, n]
    p1 = param 1: float32[8, n]
    store p0 = p0 + float32(float16(p1))

n = variable "n" 1..64
b0 = buffer 0 "CPU": float32[8, n]
b1 = buffer 1 "CPU": float32[8, n]
linear:
  call f0(b0, b1)
  call f0(b1, b0)""",
}


@pytest.mark.parametrize("program", GOLDEN, ids=lambda program: program.__name__)
def test_programs_read_well(program):
    assert dump(program()) == GOLDEN[program]
    assert parse(GOLDEN[program]) is program()


def test_show_is_short():
    assert show(r0 * 8 // 4) == "((r0 * 8) // 4)"
    assert show(load(index_of(x, (r0, r1 - 1), r0 < 4))) == "load p0[r0, (r1 - 1) if (r0 < 4)]"
    assert show(param(0, f32, (4,))) == "p0"
    assert show(const(f32, 2.5)) == "float32(2.5)"
    assert show(matmul_kernel()).startswith("KERNEL[void]((store p0[r0, r1] = max(")
    assert show(sink(*[r0 + i for i in range(100)])) == "SINK(...)"
    assert repr(call(x + y, z, x)) == "call body(p2, p0)"
    assert show(make(Op.COPY, f32, (x,), frozenset())) == "COPY(...)"


def test_arg_without_a_text_is_our_mistake():
    with pytest.raises(InternalError, match="an arg of type frozenset has no text form"):
        dump(make(Op.COPY, f32, (x,), frozenset()))


def test_mark_puts_the_node_on_a_line_of_its_own():
    root = matmul_kernel()
    product = root.src[0].src[1].src[0].src[0]
    assert mark(root, product).splitlines()[7:] == [
        ">   v0 = load p1[r0, r2] * load p2[r2, r1]",
        "    v1 = reduce ADD over r2: v0",
        "    store p0[r0, r1] = max(v1, 0.0) for r0, r1",
    ]
    assert mark(root, root).startswith('> kernel "matmul"')
    assert ">" not in mark(root, const(f32, 77)).replace(">>", "")


def test_mark_finds_nodes_in_bodies_and_in_lists():
    assert "\n>     p1 = " in mark(schedule(), param(1, f32, (8, n)))
    assert "\n>     store v1 = v3" in mark(linear_program(), linear_program().src[5])


def test_mark_shows_only_the_lines_around():
    chain = [load(address)]
    for _ in range(200):
        chain.append(make(Op.SIN, f32, (chain[-1] * chain[-1],)))
    lines = mark(chain[-1], chain[100]).splitlines()
    assert len(lines) == 19
    assert lines[0] == lines[-1] == "  ..."
    assert lines[9].startswith("> v")
    text, line = locate(chain[-1], chain[100])
    assert lines[9] == "> " + text.splitlines()[line]
