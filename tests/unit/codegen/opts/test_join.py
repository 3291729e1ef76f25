"""Reductions that need each other, joined over blocks: what they mean, and what is refused."""

import math
import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.unit.codegen.kernel_parts import Case, at, exp, kernel, put, total
from tests.unit.codegen.kernels import CASES
from tests.unit.codegen.opts.test_random_opts import random_schedule
from tests.unit.codegen.oracle import arguments, check, is_close
from tests.unit.machines import machine
from weft.codegen.analysis.loops import extent_of, nodes_of, own_ranges
from weft.codegen.generate import before_opts
from weft.codegen.opts.table import Bind, Join, Opt, Split, Unroll, Vectorize, apply_opts
from weft.ir.build import param, range_, reduce_ranges, variable, where
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.reduction.joined import is_joined
from weft.ir.spec.kernel import KERNEL_SPEC
from weft.ir.spec.spec import verify
from weft.ir.text import dump, parse
from weft.ir.uop import UOp, const, make
from weft.ir.walk import substitute
from weft.reference.kernel import run_kernel
from weft.support.errors import InternalError, OptRefused
from weft.target.compute import Simt

MACHINE = machine(group_threads=64)
F32, I32 = dtypes.float32, dtypes.int32


def attention_row(keys: int = 12) -> Case:
    """Softmax of scores times values: the sum and the product refer to the same maximum."""
    out, score, value = param(0, F32, (2, 3)), param(1, F32, (2, keys)), param(2, F32, (keys, 3))
    i, d, k, s, m = range_(0, 2), range_(1, 3), range_(2, keys), range_(3, keys), range_(4, keys)
    top = reduce_ranges(at(score, i, m), Op.MAX, [m])
    weights = exp(at(score, i, k) - top) / total(exp(at(score, i, s) - top), s)
    done = total(weights * at(value, k, d), k)
    return Case(kernel("attention_row", put(out, [i, d], done, [i, d])))


def uneven_argmax() -> Case:
    out, best, x = param(0, I32, (3,)), param(1, F32, (3,)), param(2, F32, (3, 11))
    r, k, m = range_(0, 3), range_(1, 11), range_(2, 11)
    top = reduce_ranges(at(x, r, k), Op.MAX, [k])
    indices = where(at(x, r, m).equal(top), m.cast(I32), const(I32, 99))
    chosen = reduce_ranges(indices, Op.MIN, [m])
    return Case(kernel("argmax", put(out, [r], chosen, [r]), put(best, [r], top, [r])), exact=True)


def uneven_variance() -> Case:
    out, x = param(0, F32, (3,)), param(1, F32, (3, 11))
    r, k, q = range_(0, 3), range_(1, 11), range_(2, 11)
    off = at(x, r, q) - total(at(x, r, k), k) / 11.0
    return Case(kernel("variance", put(out, [r], total(off * off, q), [r])))


def masked_argmax(is_masked: bool) -> Case:
    """Where the greatest of some elements is found, among these or among all."""
    out, x, y = param(0, I32, (3,)), param(1, F32, (3, 12)), param(2, F32, (3, 12))
    r, k, m = range_(0, 3), range_(1, 12), range_(2, 12)
    low, nothing = x.const_like(-math.inf), const(I32, 2**31 - 1)
    top = reduce_ranges(where(at(y, r, k) < 0.0, at(x, r, k), low), Op.MAX, [k])
    indices = where(at(x, r, m).equal(top), m.cast(I32), nothing)
    indices = where(at(y, r, m) < 0.0, indices, nothing) if is_masked else indices
    return Case(kernel("argmax", put(out, [r], reduce_ranges(indices, Op.MIN, [m]), [r])))


def symbolic_softmax() -> Case:
    n = variable("n", 1, 20)
    out, x = param(0, F32, (3,)), param(1, F32, (3, n))
    r, k, q = range_(0, 3), range_(1, n), range_(2, n)
    top = reduce_ranges(at(x, r, k), Op.MAX, [k])
    return Case(
        kernel("sums", put(out, [r], total(exp(at(x, r, q) - top), q), [r])), variables={"n": 13}
    )


JOINED: dict[str, Callable[[], Case]] = {
    **{name: CASES[name] for name in ("softmax_inline", "argmax", "mean_variance", "layernorm")},
    "attention_row": attention_row,
    "uneven_argmax": uneven_argmax,
    "uneven_variance": uneven_variance,
    "symbolic_softmax": symbolic_softmax,
    "masked_argmax": lambda: masked_argmax(True),
}


def reductions(kernel: UOp) -> list[int]:
    """The ranges of all reductions over one range."""
    found = [node for node in nodes_of(kernel) if node.op == Op.REDUCE]
    return [own_ranges(node)[0].arg for node in found if len(own_ranges(node)) == 1]


def joins(case: Case, size: int, tail: str = "mask") -> list[Opt]:
    numbers = reductions(before_opts(case.kernel, MACHINE))
    return [*[Split(number, size, tail) for number in numbers], Join(tuple(numbers))]


@pytest.mark.parametrize("name", JOINED)
def test_blocks_give_what_the_whole_gives(name: str) -> None:
    case = JOINED[name]()
    for size in (2, 3, 4, 5):
        check(case, MACHINE, joins(case, size))


@pytest.mark.parametrize("name", JOINED)
def test_random_opts_behind_a_join(name: str, seed: int) -> None:
    rng = random.Random(seed)
    case = JOINED[name]()
    shaped = before_opts(case.kernel, MACHINE)
    for trial in range(6):
        opts = joins(case, rng.choice((2, 3, 4)), rng.choice(("mask", "clamp")))
        opts += random_schedule(rng, apply_opts(shaped, opts))
        print(name, trial, opts)
        check(case, MACHINE, opts, seed + trial)


@pytest.mark.parametrize("then", [Vectorize, Unroll])
def test_lanes_and_copies_of_the_outer_loop_are_joined(then: type[Opt]) -> None:
    for name in ("softmax_inline", "argmax", "mean_variance"):
        case = JOINED[name]()
        numbers = reductions(before_opts(case.kernel, MACHINE))
        shaped = apply_opts(before_opts(case.kernel, MACHINE), joins(case, 2))
        outer = next(own_ranges(n)[0] for n in nodes_of(shaped) if is_joined(n))
        if extent_of(outer) in (2, 4):
            check(case, MACHINE, [*joins(case, 2), then(outer.arg)])
        assert numbers


@pytest.mark.parametrize("name", ["softmax_inline", "argmax", "mean_variance", "symbolic_softmax"])
@pytest.mark.parametrize("has_shuffles", [True, False])
def test_threads_share_a_joined_loop(name: str, has_shuffles: bool) -> None:
    """By shuffles inside of a warp, and by local memory beyond."""
    case = JOINED[name]()
    target = replace(MACHINE, compute=Simt(warp=2, has_shuffles=has_shuffles))
    opts = joins(case, 2)
    shaped = apply_opts(before_opts(case.kernel, target), opts)
    outer = next(own_ranges(n)[0] for n in nodes_of(shaped) if is_joined(n))
    if extent_of(outer) is not None:
        check(case, target, [*opts, Bind(outer.arg, "thread")])
    inner = 1 + max(n for n, _ in shaped.arg[1])
    for count in (2, 3):
        if count < (extent_of(outer) or 9):
            check(case, target, [*opts, Split(outer.arg, count, "mask"), Bind(inner, "thread")])


def test_outer_ranges_may_be_loops_and_threads() -> None:
    case = attention_row(keys=24)
    target = replace(MACHINE, compute=Simt(warp=2, has_shuffles=True))
    opts: list[Opt] = []
    outer: list[int] = []
    fresh = 1 + max(n for n, _ in before_opts(case.kernel, target).arg[1])
    for number in reductions(before_opts(case.kernel, target)):
        opts += [Split(number, 12), Split(fresh, 3), Bind(fresh, "thread"), Unroll(fresh + 1)]
        outer += [number, fresh]
        fresh += 2
    check(case, target, [*opts, Join(tuple(outer))])


@pytest.mark.parametrize("name", JOINED)
def test_the_interpreter_joins_neighbors_in_any_order(name: str) -> None:
    case = JOINED[name]()
    shaped = apply_opts(before_opts(case.kernel, MACHINE), joins(case, 2))
    expected = arguments(case.kernel, case.variables, 3)
    result = arguments(case.kernel, case.variables, 3)
    run_kernel(case.kernel, expected, case.variables)
    run_kernel(shaped, result, case.variables)
    for want, got in zip(expected, result, strict=True):
        pairs = zip(want.values, got.values, strict=True)
        assert all(is_close(x, y, want.dtype, case.exact) for x, y in pairs)


def broken(node: UOp, kind: str) -> UOp:
    """A joined reduction that is none."""
    join, axes, start, count = node.arg
    value, *refers = node.src[: 1 + count]
    own = node.src[1 + count :]
    if kind == "a reference that is joined itself":
        return make(node.op, node.dtype, (value, node, *own), (join, axes, start, 1))
    if kind == "a reference over other ranges":
        other = reduce_ranges(refers[0].src[0], Op.MAX, (*own, range_(40, 3)))
        return make(node.op, node.dtype, (value, other, *own), node.arg)
    if kind == "a join that reads memory":
        memory = at(param(9, F32, (4,)), join.const_like(0).cast(dtypes.index))
        return make(node.op, node.dtype, node.src, (join + memory, axes, start, count))
    return make(node.op, node.dtype, node.src, (join.cast(dtypes.int32), axes, start, count))


@pytest.mark.parametrize(
    "kind",
    [
        "a reference that is joined itself",
        "a reference over other ranges",
        "a join that reads memory",
        "a join of another dtype",
    ],
)
def test_the_spec_refuses(kind: str) -> None:
    case = JOINED["softmax_inline"]()
    shaped = apply_opts(before_opts(case.kernel, MACHINE), joins(case, 2))
    verify(shaped, KERNEL_SPEC)
    node = next(node for node in nodes_of(shaped) if is_joined(node))
    with pytest.raises(InternalError):
        verify(substitute(shaped, {node: broken(node, kind)}), KERNEL_SPEC)


def test_a_joined_kernel_is_read_back() -> None:
    case = JOINED["layernorm"]()
    shaped = apply_opts(before_opts(case.kernel, MACHINE), joins(case, 2))
    assert any(map(is_joined, nodes_of(shaped)))
    assert parse(dump(shaped)) is shaped


@pytest.mark.parametrize(
    ("opts", "reason"),
    [
        ((Join((1,)),), "two or more ranges"),
        ((Join((0, 1)),), "not that of plain reductions"),
        ((Split(1, 3), Join((1, 2))), "different numbers of iterations"),
        ((Join((1, 7)),), "no range 7"),
    ],
)
def test_what_is_refused(opts: tuple[Opt, ...], reason: str) -> None:
    shaped = before_opts(CASES["argmax"]().kernel, MACHINE)
    with pytest.raises(OptRefused, match=reason):
        apply_opts(shaped, opts)


def test_elements_that_the_maximum_leaves_out_are_not_chosen_from() -> None:
    shaped = before_opts(masked_argmax(False).kernel, MACHINE)
    with pytest.raises(OptRefused, match="no rule joins"):
        apply_opts(shaped, [Join((1, 2))])


def test_reductions_that_no_rule_joins_are_refused() -> None:
    out, x = param(0, F32, (3,)), param(1, F32, (3, 12))
    r, k, q = range_(0, 3), range_(1, 12), range_(2, 12)
    top = reduce_ranges(at(x, r, k), Op.MAX, [k])
    value = total(at(x, r, q) * top, q)
    shaped = before_opts(kernel("k", put(out, [r], value, [r])), MACHINE)
    with pytest.raises(OptRefused, match="no rule joins"):
        apply_opts(shaped, [Join((1, 2))])
