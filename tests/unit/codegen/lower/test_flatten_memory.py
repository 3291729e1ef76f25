"""Stages become memory that stores fill, and every address gets one flat index."""

import pytest

from tests.unit.codegen.kernel_parts import F32, at, kernel, put, read, stage
from tests.unit.codegen.kernels import CASES
from tests.unit.machines import machine
from weft.codegen.analysis.loops import with_loops
from weft.codegen.context import CodegenContext
from weft.codegen.generate import before_opts
from weft.codegen.lower.flatten_memory import flat_index, flatten_memory
from weft.ir.build import index, param, range_, variable
from weft.ir.ops import Op
from weft.ir.text import dump
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.support.errors import InternalError

CONTEXT = CodegenContext(machine())


def flattened(root: UOp, kinds: dict[int, str] | None = None) -> UOp:
    loops = [(number, (kinds or {}).get(number, kind)) for number, kind in root.arg[1]]
    return flatten_memory(with_loops(root, loops), CONTEXT)


def nodes(root: UOp, op: int) -> list[UOp]:
    return [node for node in topological(root) if node.op == op]


def row_of_a_stage(space: str = "local") -> UOp:
    """Rows of x through a stage, backwards."""
    out, x = param(0, F32, (3, 8)), param(1, F32, (3, 8))
    i, j, k = range_(0, 3), range_(1, 8), range_(2, 8)
    kept = stage(at(x, i, k), (8,), [k], [k], space)
    return kernel("rows", put(out, [i, j], read(kept, 7 - j), [i, j]))


def test_addresses_are_row_major():
    out, x = param(0, F32, (2, 3, 4)), param(1, F32, (2, 3, 4))
    i, j, k = range_(0, 2), range_(1, 3), range_(2, 4)
    root = flattened(kernel("copy", put(out, [i, j, k], at(x, i, j, k), [i, j, k])))
    assert {len(node.src) for node in nodes(root, Op.INDEX)} == {3}
    assert "v0 = r0 * 12 + r1 * 4 + r2\n  store p0[v0] = load p1[v0]" in dump(root)


def test_symbolic_sizes_are_factors():
    n = variable("n", 1, 9)
    i, j = range_(0, 4), range_(1, n)
    assert flat_index([i, j], (4, n)) is flat_index([i * n + j], (4 * 9,))
    assert flat_index([], ()) is index(0)


def test_a_stage_is_a_store_that_its_readers_wait_for():
    root = flattened(row_of_a_stage())
    assert not root.ops & (1 << Op.STAGE | 1 << Op.READ)
    (memory,) = nodes(root, Op.MEMORY)
    assert memory.arg == ("stage0", "local", 8)
    (after,) = nodes(root, Op.AFTER)
    fill = after.src[1]
    assert [r.arg for r in fill.src[2:]] == [2]
    assert {r.arg for r in root.src[0].src[2:]} == {0, 1}


def test_each_stage_has_memory_of_its_own():
    root = flattened(before_opts(CASES["softmax"]().kernel, CONTEXT.target))
    names = [node.arg[0] for node in nodes(root, Op.MEMORY)]
    assert len(names) == len(set(names)) >= 1


def test_what_one_thread_fills_is_its_own():
    """No thread helps, so the stage is not shared memory, which would need barriers."""
    root = flattened(row_of_a_stage(), {0: "thread"})
    (memory,) = nodes(root, Op.MEMORY)
    assert memory.arg == ("stage0", "register", 8)


def test_what_threads_fill_together_is_shared():
    root = flattened(row_of_a_stage(), {1: "thread", 2: "thread"})
    (memory,) = nodes(root, Op.MEMORY)
    assert memory.arg == ("stage0", "local", 8)


def test_threads_on_which_a_shared_stage_depends_have_a_part_each():
    root = flattened(row_of_a_stage(), {0: "thread", 1: "thread", 2: "thread"})
    (memory,) = nodes(root, Op.MEMORY)
    assert memory.arg == ("stage0", "local", 24)


def test_the_first_thread_stores_for_those_that_have_nothing_to_do():
    out, x = param(0, F32, (3,)), param(1, F32, (3, 8))
    total_out = param(2, F32, (3, 8))
    i, j = range_(0, 3), range_(1, 8)
    one = put(out, [i], at(x, i, index(0)), [i])
    many = put(total_out, [i, j], at(x, i, j), [i, j])
    root = flattened(kernel("both", one, many), {1: "thread"})
    masks = [node.src[0].src[1] for node in root.src]
    assert [mask.ranges for mask in masks] == [1 << 1, 0]


def test_a_stage_in_global_memory_is_refused():
    with pytest.raises(InternalError, match="a stage in global memory is a kernel of its own"):
        flattened(row_of_a_stage("global"))
