"""Loops over updates that are left out where a condition of their store is false."""

import textwrap

import pytest

from tests.unit.codegen.kernel_parts import Case
from tests.unit.codegen.oracle import check
from weft.codegen.analysis.loops import THREAD, kinds_of
from weft.codegen.choose.heuristic import choose_opts
from weft.codegen.generate import before_opts
from weft.codegen.lower.skip_updates import skip_updates
from weft.ir.text import dump, parse
from weft.target.cuda import cuda_target

CUDA = cuda_target("sm_90a")
OWNED = """
    p0 = param 0: int32[4, {lanes}]
    p1 = param 1: int32[4, 3, 1]
    p2 = param 2: int32[96, {lanes}]
    r0 < 4
    r1 < 3
    r2 < 32
    r3 < {lanes}
    v0 = load p1[r0, r1, 0]
    v1 = p0[r0, r3 if ~(v0 == 0) & ~(uint32(v0) >> uint32(r2) & 1 == 0)]
    kernel "k" r0 loop, r3 loop, r1 ordered, r2 ordered:
      store v1 = load v1 + load p2[r1 * 32 + r2, r3] for r0, r1, r2, r3
"""


def owned(lanes: int) -> str:
    return textwrap.dedent(OWNED.format(lanes=lanes))


def test_the_condition_ends_the_innermost_loop() -> None:
    text = dump(skip_updates(parse(owned(3))))
    assert "r2 < where(v0 == 0, 0, 32)" in text or "r2 < where(~(v0 == 0), 32, 0)" in text
    assert text.count("v0 == 0") == 1


def test_what_the_loop_changes_or_the_store_writes_stays() -> None:
    changing = owned(3).replace("p1[r0, r1, 0]", "p1[r0, r2 % 3, 0]")
    written = owned(3).replace("load p1[r0, r1, 0]", "load p0[r0, r1]")
    for text in (changing, written):
        kernel = parse(text)
        assert skip_updates(kernel) is kernel


@pytest.mark.parametrize("lanes", [1, 3, 8, 130])
def test_programs_of_threads(lanes: int) -> None:
    kernel = parse(owned(lanes))
    program = check(Case(kernel), CUDA, None)
    assert lanes == 1 or program.threads


def test_threads_lie_along_memory() -> None:
    _, kernel = choose_opts(before_opts(parse(owned(512)), CUDA), CUDA)
    threads = [number for number, kind in kinds_of(kernel).items() if kind == THREAD]
    stores = [store.src[0].src[3] for store in kernel.src]
    assert all(each.ranges >> threads[-1] & 1 for each in stores)
