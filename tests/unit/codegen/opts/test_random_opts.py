"""Random legal opts never change what a kernel means."""

import random

import pytest

from tests.unit.codegen.kernels import CASES
from tests.unit.codegen.oracle import check
from tests.unit.machines import machine
from weft.codegen.analysis.loops import extent_of, ranges_of
from weft.codegen.analysis.verify_in_bounds import verify_in_bounds
from weft.codegen.generate import before_opts
from weft.codegen.opts.table import (
    Accumulate,
    Bind,
    Merge,
    Nest,
    Opt,
    Order,
    Split,
    Stage,
    Unroll,
    Vectorize,
)
from weft.ir.spec.kernel import KERNEL_SPEC
from weft.ir.spec.spec import verify
from weft.ir.uop import UOp
from weft.support.errors import OptRefused

MACHINE = machine(group_threads=64)
ROUNDS = 8
MOST_COPIES = 64


def random_opt(rng: random.Random, kernel: UOp) -> Opt:
    ranges = ranges_of(kernel)
    number = rng.choice(sorted(ranges))
    extent = extent_of(ranges[number]) or 4
    kind = rng.randrange(12)
    if kind < 2:
        return Split(number, rng.randrange(2, max(extent, 3)), rng.choice(("clamp", "mask")))
    if kind == 2:
        return Merge(number, rng.choice(sorted(ranges)))
    if kind == 3:
        return Order(tuple(rng.sample(sorted(ranges), len(ranges))))
    if kind == 4:
        return Bind(number, rng.choice(("grid", "thread")))
    if kind == 5:
        return Stage(("again", number, rng.choice(sorted(ranges))), (number,))
    if kind == 6:
        some = tuple(rng.sample(sorted(ranges), rng.randint(1, min(2, len(ranges)))))
        window = (some[-1], rng.choice(sorted(ranges)))
        over = (*some[:-1], window) if rng.random() < 0.5 else some
        space = rng.choice(("local", "register"))
        factor = Stage(("factor", number, rng.randrange(2)), over, space, random_layout(rng, over))
        reduction = Stage(("reduction", number), some, space, random_layout(rng, some))
        return rng.choice((factor, reduction, Accumulate(number)))
    if kind == 7:
        return Unroll(number, sequential=True)
    if kind == 8:
        return Nest(number)
    return rng.choice((Vectorize, Unroll))(number)


def random_layout(rng: random.Random, ranges: tuple[object, ...]) -> tuple[str, ...]:
    """In the order of the ranges, across, or with each row rotated by another number."""
    if len(ranges) < 2 or rng.random() < 0.5:
        return ()
    return rng.choice((("i1", "i0"), ("i0", "i0 ^ i1"), ("i0", "(i0 + i1) % 64")))


def random_schedule(rng: random.Random, kernel: UOp) -> list[Opt]:
    """Opts that are legal one after the other, and the kernel checked after each."""
    opts: list[Opt] = []
    if not ranges_of(kernel):
        return opts
    for _ in range(rng.randrange(1, 16)):
        opt = random_opt(rng, kernel)
        try:
            after = opt.apply(kernel)
        except OptRefused:
            continue
        if is_too_large(after):
            continue
        verify(after, KERNEL_SPEC)
        verify_in_bounds(after, str(opt))
        kernel = after
        opts.append(opt)
    return opts


def is_too_large(kernel: UOp) -> bool:
    """Whether the interpreter would take too long: many copies, or many threads."""
    copies = threads = 1
    for number, kind in kernel.arg[1]:
        extent = extent_of(ranges_of(kernel)[number]) or 1
        copies *= extent if kind in ("vector", "unroll", "sequential") else 1
        threads *= extent if kind == "thread" else 1
    axes = [kind for _, kind in kernel.arg[1] if kind == "thread"]
    return copies > MOST_COPIES or threads > 32 or len(axes) > 3


@pytest.mark.parametrize("name", CASES)
def test_random_opts(name: str, seed: int):
    rng = random.Random(seed)
    case = CASES[name]()
    kernel = before_opts(case.kernel, MACHINE)
    for iteration in range(ROUNDS):
        opts = random_schedule(rng, kernel)
        print(name, iteration, opts)
        check(case, MACHINE, opts, seed + iteration)
