"""Loops that a mask ends: none too soon, most of them exactly, and results as before."""

import itertools
import math
import random

import numpy as np
import pytest

from tests.unit.codegen.kernel_parts import Case, at, exp, kernel, put, total
from tests.unit.codegen.oracle import check
from tests.unit.machines import machine
from weft import Tensor
from weft.codegen.analysis.loops import nodes_of, own_ranges, ranges_of
from weft.codegen.choose.choose_opts import choose_opts
from weft.codegen.context import CodegenContext
from weft.codegen.generate import before_opts
from weft.codegen.lower.trim_loops import trim_loops
from weft.codegen.opts.table import Join, Split, Unroll, Vectorize, apply_opts
from weft.ir.build import param, range_, reduce_ranges, sink, store, where
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.reduction.joined import is_joined
from weft.ir.scalar import evaluate
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.schedule.schedule import make_schedule
from weft.target.cpu import cpu_target
from weft.target.cuda import cuda_target
from weft.target.target import Target

F32, I32 = dtypes.float32, dtypes.int32
MACHINE = machine()
N = 40


def value(root: UOp, at: dict[UOp, int]) -> int:
    known = dict(at)
    for node in topological(root):
        if node.op == Op.CONST:
            known[node] = node.arg
        elif node not in known:
            src = tuple(known[source] for source in node.src)
            known[node] = evaluate(node.op, node.dtype, src, node.src[-1].dtype)
    return int(known[root])


def random_condition(rng: random.Random, i: UOp, k: UOp) -> UOp:
    a, b, c = rng.choice((1, 1, 2, 3)), rng.choice((-2, -1, 1, 1, 2)), rng.randrange(-6, 30)
    x, y = (each.cast(I32) if rng.random() < 0.5 else each for each in (k, i))
    left, right = x.cast(I32) * a, y.cast(I32) * b + c
    return rng.choice((left < right, left <= right, ~(right < left), right > left))


def test_no_iteration_that_counts_is_left_out(seed: int) -> None:
    rng = random.Random(seed)
    exact = 0
    for _ in range(60):
        i, ko, ki = range_(0, 16), range_(1, 12), range_(2, 4)
        out, x = param(0, F32, (16,)), param(1, F32, (16, 48))
        k = ko * 4 + ki
        condition = random_condition(rng, i, k)
        body = where(condition, at(x, i, k), x.const_like(-math.inf))
        made = kernel("k", put(out, [i], reduce_ranges(body, Op.MAX, [ko, ki]), [i]))
        end = ranges_of(trim_loops(before_opts(made, MACHINE))).get(1)
        for row in range(16):
            wanted = [
                block
                for block in range(12)
                if any(value(condition, {i: row, ko: block, ki: n}) for n in range(4))
            ]
            last = value(end.src[0], {i: row}) if end is not None else 0
            assert last > max(wanted, default=-1) or end is None
            exact += last == max(wanted, default=-1) + 1
    assert exact > 60 * 16 // 2


def window_case(shift: int, width: int) -> Case:
    """The greatest element of a window of each row, and the sum of it, in blocks of four."""
    out, x = param(0, F32, (2, 16)), param(1, F32, (16, 48))
    i, ko, ki = range_(0, 16), range_(1, 12), range_(2, 4)
    k, zero, one = ko * 4 + ki, *(i.const_like(n) for n in range(2))
    seen = (k < i + (shift + 1)) & (i + (shift - width) < k)
    most = reduce_ranges(where(seen, at(x, i, k), x.const_like(-math.inf)), Op.MAX, [ko, ki])
    added = reduce_ranges(where(seen, at(x, i, k), x.const_like(0.0)), Op.ADD, [ko, ki])
    return Case(kernel("k", put(out, [zero, i], most, [i]), put(out, [one, i], added, [i])))


@pytest.mark.parametrize("shift", [-9, 0, 20, 40])
@pytest.mark.parametrize("width", [1, 5, 30])
def test_windows_begin_and_end_where_something_counts(shift: int, width: int) -> None:
    case = window_case(shift, width)
    check(case, MACHINE, ())
    i = range_(0, 16)
    extent = ranges_of(trim_loops(before_opts(case.kernel, MACHINE)))[1].src[0]
    for row in range(16):
        inside = [k for k in range(48) if row + shift - width < k <= row + shift]
        blocks = len({k // 4 for k in inside})
        assert blocks <= value(extent, {i: row}) <= max(blocks, 1)


def causal_sums() -> Case:
    out, x = param(0, F32, (N,)), param(1, F32, (N, N))
    i, k, m = range_(0, N), range_(1, N), range_(2, N)
    low = x.const_like(-math.inf)

    def scores(j: UOp) -> UOp:
        return where(j.cast(I32) < i.cast(I32) + 1, at(x, i, j) * 0.5, low)

    top = reduce_ranges(scores(m), Op.MAX, [m])
    return Case(kernel("causal", put(out, [i], total(exp(scores(k) - top), k), [i])))


@pytest.mark.parametrize(
    "opts",
    [
        (),
        (Split(1, 4), Split(2, 4), Vectorize(3), Vectorize(4)),
        (Split(0, 4), Unroll(3)),
        (Split(1, 3), Split(2, 3), Join((1, 2))),
        (Split(1, 5, "mask"), Split(2, 5, "mask"), Join((1, 2))),
    ],
)
def test_trimmed_kernels_mean_the_same(opts) -> None:
    case = causal_sums()
    check(case, MACHINE, opts)
    shaped = apply_opts(before_opts(case.kernel, MACHINE), opts)
    extents = [r.src[0] for r in ranges_of(trim_loops(shaped)).values()]
    assert any(extent.ranges for extent in extents)


def test_the_extent_of_a_shared_loop_is_the_greatest() -> None:
    out, x = param(0, F32, (2, N)), param(1, F32, (N, N))
    i, k = range_(0, N), range_(1, N)
    low = x.const_like(-math.inf)
    near = reduce_ranges(where(k < i + 1, at(x, i, k), low), Op.MAX, [k])
    far = reduce_ranges(where(k < i + 3, at(x, i, k), low), Op.MAX, [k])
    zero, one = (i.const_like(n) for n in range(2))
    stores = [put(out, [zero, i], near, [i]), put(out, [one, i], far, [i])]
    shaped = before_opts(kernel("k", *stores), MACHINE)
    check(Case(kernel("k", *stores)), MACHINE, ())
    end = ranges_of(trim_loops(shaped))[1].src[0]
    assert [value(end, {i: row}) for row in (0, 5, 39)] == [3, 8, 40]


def test_a_sum_without_a_mask_keeps_its_loop() -> None:
    out, x = param(0, F32, (N,)), param(1, F32, (N, N))
    i, k = range_(0, N), range_(1, N)
    plain = before_opts(kernel("k", put(out, [i], total(at(x, i, k), k), [i])), MACHINE)
    assert trim_loops(plain) is plain


def test_a_softmax_computes_its_exponentials_once() -> None:
    x = Tensor(param(0, F32, (8, 64, 64)))
    i, j = Tensor.arange(64).reshape(64, 1), Tensor.arange(64).reshape(1, 64)
    target = cpu_target("x86_64", ("avx512f",))
    scores = (j <= i).where(x, -math.inf).softmax(-1).uop
    (call,) = make_schedule(sink(store(param(1, F32, scores.shape), scores)), target).kernels.src
    shaped = choose_opts(before_opts(call.arg, target), CodegenContext(target, None))
    assert sum(node.op == Op.EXP for node in topological(shaped)) == 1


SIZE = 1024
MASKS = {
    "causal": lambda i, j: j <= i,
    "window": lambda i, j: (j <= i) & (j > i - 128),
    "both sides": lambda i, j: (j < i + 64) & (i < j + 64),
    "ahead": lambda i, j: j >= i,
    "some keys": lambda i, j: (j < 300) & (j <= i + 1000),
}
GUARDS = {
    "zeros": lambda seen, q, k, v: q.scaled_dot_product_attention(k, v, attn_mask=seen),
    "NaN": lambda seen, q, k, v: (
        seen.where((q @ k.transpose(-1, -2)).float() / 8, -math.inf).softmax(-1).cast(q.dtype) @ v
    ),
}
TARGETS = {"CPU": cpu_target("x86_64", ("avx512f",)), "GPU": cuda_target("sm_90a")}


def blocks_of_keys(target: Target, result: Tensor) -> list[int]:
    """How many blocks of keys each block of queries walks."""
    out = param(3, dtypes.bfloat16, (1, 2, SIZE, 64))
    (call,) = make_schedule(sink(store(out, result.uop)), target).kernels.src
    shaped = choose_opts(before_opts(call.arg, target), CodegenContext(target, None))
    (loop,) = {r for node in nodes_of(shaped) if is_joined(node) for r in own_ranges(node)}
    around = [r for number, r in ranges_of(shaped).items() if loop.src[0].ranges >> number & 1]
    points = itertools.product(*(range(r.src[0].arg) for r in around))
    return [value(loop.src[0], dict(zip(around, point, strict=True))) for point in points]


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("machine", TARGETS)
def test_attention_walks_the_blocks_that_a_mask_shows(machine: str, guard: str) -> None:
    """Whatever rows are that see no key."""
    q, k, v = (Tensor(param(slot, dtypes.bfloat16, (1, 2, SIZE, 64))) for slot in range(3))
    i, j = np.arange(SIZE)[:, None], np.arange(SIZE)[None, :]
    ti, tj = Tensor.arange(SIZE).reshape(SIZE, 1), Tensor.arange(SIZE).reshape(1, SIZE)
    blocks = max(blocks_of_keys(TARGETS[machine], GUARDS["NaN"](tj >= ti, q, k, v)))
    for name, mask in MASKS.items():
        walked = blocks_of_keys(TARGETS[machine], GUARDS[guard](mask(ti, tj), q, k, v))
        shown = float(np.mean(mask(i, j)))
        assert sum(walked) <= (shown * blocks + 2) * len(walked), name


@pytest.mark.parametrize("size", [5, 63, 130])
def test_masked_rows_have_the_same_results(size: int) -> None:
    rng = np.random.default_rng(size)
    x = rng.standard_normal((size, size)).astype(np.float32)
    x[size // 2, 0] = np.nan
    x[1, :2] = -np.inf
    i, j = np.arange(size)[:, None], np.arange(size)[None, :]
    ti, tj = Tensor.arange(size).reshape(size, 1), Tensor.arange(size).reshape(1, size)
    masks = {
        "causal": (j <= i, tj <= ti),
        "strictly": (j < i, tj < ti),
        "window": ((j <= i) & (j > i - 4), (tj <= ti) & (tj > ti - 4)),
        "ahead": (j >= i, tj >= ti),
    }
    for mask, ours in masks.values():
        low = np.where(mask, x, -np.inf)
        with np.errstate(all="ignore"):
            power = np.exp(low - low.max(1, keepdims=True))
            wanted = np.logaddexp.reduce(low, axis=1)
        t = ours.where(Tensor(x), -math.inf)
        np.testing.assert_array_equal(t.max(1).numpy(), low.max(1))
        got = (t - t.max(1, keepdim=True)).exp()
        np.testing.assert_allclose(got.sum(1).numpy(), power.sum(1), rtol=1e-5)
        np.testing.assert_allclose(
            t.softmax(1).numpy(), power / power.sum(1, keepdims=True), rtol=1e-5
        )
        np.testing.assert_allclose(
            ours.where(Tensor(x), 0).sum(1).numpy(),
            np.where(mask, x, 0).sum(1),
            rtol=1e-5,
            atol=1e-5,
        )
        np.testing.assert_allclose(t.logsumexp(1).numpy(), wanted, rtol=1e-5, atol=1e-5)
