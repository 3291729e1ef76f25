"""Tiles that are loaded one iteration ahead: what changes in the list, and what must not."""

import pytest

from tests.unit.codegen.choose.simt.test_choose_for_threads import SMALL, product
from tests.unit.codegen.oracle import check
from tests.unit.render.llvm_programs import (
    after,
    argument,
    at,
    barrier,
    counter,
    end,
    get,
    memory,
    number,
    program,
    put,
    special,
)
from weft.codegen.choose.simt import tiles
from weft.codegen.context import CodegenContext
from weft.codegen.linear.prefetch_tiles import prefetch_tiles
from weft.ir.ops import Op
from weft.ir.program import AHEAD
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.target.cpu import cpu_target

CPU = cpu_target("x86_64", ("avx2",))


def ahead(root: UOp) -> int:
    """How many registers hold what the next iteration needs."""
    memories = [node for node in topological(root) if node.op == Op.MEMORY]
    return sum(node.arg[2] for node in memories if node.arg[0].startswith(AHEAD))


@pytest.mark.parametrize(("depth", "words"), [(9, 16), (8, 16), (40, 16)])
def test_products_mean_the_same(depth: int, words: int, seed: int, monkeypatch):
    monkeypatch.setattr(tiles, "TILES", (tiles.Tile(8, 8, 2, 4, 1.0),))
    found = check(product(9, 10, depth), SMALL, None, seed)
    assert ahead(found.instructions) == words


def filled(extent: int, is_read: bool = True, is_stored: bool = False) -> UOp:
    """A loop that fills a tile from an argument, and keeps or stores what it reads there."""
    me = special("thread", 8)
    tile, source = memory("tile", "local", 8), argument(1, size=64)
    out = argument(0, size=64) if is_stored else memory("sum", "register", 1)
    k = counter(0, extent)
    first = barrier(k)
    value = get(at(source, k * 8 + me)) if is_read else get(at(source, me))
    fill = put(at(tile, me), value)
    second = barrier(fill)
    use = put(
        at(out, me if is_stored else 0), get(at(after(tile, fill, second), number(7) + me * -1))
    )
    return program(k, first, fill, second, use, end(k), threads=(8,)).instructions


def test_the_load_moves_behind_the_second_barrier():
    lines = prefetch_tiles(filled(4), CodegenContext(SMALL)).src
    start, *_ = (i for i, line in enumerate(lines) if line.op == Op.RANGE)
    barriers = [i for i, line in enumerate(lines) if line.op == Op.BARRIER]
    loads = [
        i
        for i, line in enumerate(lines)
        if line.op == Op.LOAD and line.src[0].src[0].op == Op.PARAM
    ]
    assert len(loads) == 2 and loads[0] < start and loads[1] > barriers[1]


@pytest.mark.parametrize(
    ("extent", "is_read", "is_stored"), [(1, True, False), (4, False, False), (4, True, True)]
)
def test_what_stays(extent: int, is_read: bool, is_stored: bool):
    """One iteration, what does not change between iterations, and a loop that stores results."""
    root = filled(extent, is_read, is_stored)
    assert prefetch_tiles(root, CodegenContext(SMALL)) is root


def test_only_for_threads_with_scalars():
    root = filled(4)
    assert prefetch_tiles(root, CodegenContext(CPU)) is root
