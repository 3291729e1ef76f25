"""The loop tree: which loops there are, and which store runs in which of them."""

import gc
from weakref import ref

import pytest

from tests.unit.codegen.kernel_parts import F32, at, exp, kernel, put, read, stage, total
from tests.unit.machines import machine
from weft.codegen.context import CodegenContext
from weft.codegen.generate import before_opts
from weft.codegen.linear.place_stores import LoopBody, StoreGroup, place_stores
from weft.codegen.lower.flatten_memory import flatten_memory
from weft.codegen.lower.lower_reductions import lower_reductions
from weft.ir.build import index_of, load, param, range_, scan_range, store
from weft.ir.ops import Op
from weft.ir.uop import UOp, make
from weft.support.errors import InternalError

MACHINE = machine()


def lowered(root: UOp) -> UOp:
    context = CodegenContext(MACHINE)
    return lower_reductions(flatten_memory(before_opts(root, MACHINE), context), context)


def tree(root: UOp) -> list[object]:
    """The blocks as lists with the number of their loop, the tasks by the memory they write."""
    return _shown(place_stores(lowered(root)))[1:]


def _shown(block: LoopBody) -> list[object]:
    shown: list[object] = [None if block.range is None else block.range.arg]
    for item in block.items:
        shown.append(_shown(item) if isinstance(item, LoopBody) else _written(item))
    return shown


def _written(task: StoreGroup) -> str:
    names: list[str] = []
    for each in task.stores:
        memory = each.src[0].src[0]
        while memory.op == Op.AFTER:
            memory = memory.src[0]
        names.append(memory.arg[0] if memory.op == Op.MEMORY else f"p{memory.arg[0]}")
    return " ".join(names)


out, x = param(0, F32, (3, 8)), param(1, F32, (3, 8))
i, j, k, s = range_(0, 3), range_(1, 8), range_(2, 8), range_(3, 8)


def test_stores_over_the_same_loops_are_one_task():
    other = param(2, F32, (3, 8))
    both = kernel(
        "both", put(out, [i, j], at(x, i, j), [i, j]), put(other, [i, j], exp(at(x, i, j)), [i, j])
    )
    assert tree(both) == [[0, [1, "p0 p2"]]]


def test_a_reduction_stands_in_the_loops_that_it_depends_on():
    root = kernel("softmax", put(out, [i, j], at(x, i, j) / total(at(x, i, k), k), [i, j]))
    assert tree(root) == [[0, "acc0", [2, "acc0"], [1, "p0"]]]


def test_a_reduction_of_all_stands_before_all_loops():
    root = kernel("share", put(out, [i, j], at(x, i, j) / total(at(x, s - s, k), k), [i, j]))
    assert tree(root)[0] == "acc0"


def test_reductions_over_one_range_share_its_loop():
    both = total(at(x, i, k), k) + total(exp(at(x, i, k)), k)
    root = kernel("sums", put(out, [i, j], both, [i, j]))
    assert tree(root) == [[0, "acc0", "acc1", [2, "acc0", "acc1"], [1, "p0"]]]


def test_a_reduction_that_needs_another_has_a_loop_after_it():
    top = total(at(x, i, k), k)
    root = kernel("two", put(out, [i, j], total(exp(at(x, i, s) - top), s), [i, j]))
    assert tree(root) == [[0, "acc0", [2, "acc0"], "acc1", [3, "acc1"], [1, "p0"]]]


def test_a_stage_is_filled_in_the_loops_that_it_depends_on():
    kept = stage(exp(at(x, i, k)), (8,), [k], [k])
    root = kernel("rows", put(out, [i, j], read(kept, 7 - j), [i, j]))
    assert tree(root) == [[0, [2, "stage0"], [1, "p0"]]]


def test_a_scan_begins_before_its_loop():
    ordered = kernel("scan", put(out, [i, j], scan_range(at(x, i, j), Op.ADD, j), [i, j]))
    assert tree(ordered) == [[0, "acc0", [1, "acc0", "p0"]]]


def test_what_reads_old_contents_comes_first():
    other = param(2, F32, (8, 3))
    reads = put(other, [k, i], at(out, i, k), [k, i])
    writes = put(out, [i, j], at(x, i, j), [i, j])
    assert tree(kernel("order", writes, reads)) == tree(kernel("order", reads, writes))
    assert _last(tree(kernel("order", writes, reads))) == "p0"


def _last(items: object) -> object:
    return _last(items[-1]) if isinstance(items, list) else items


def test_stores_that_overwrite_what_each_other_reads_are_refused():
    first, second = param(0, F32, (3, 8)), param(2, F32, (8, 3))
    one = put(first, [i, j], at(second, j, i), [i, j])
    other = put(second, [k, i], at(first, i, k), [k, i])
    with pytest.raises(InternalError, match="overwrite what each other's loops still read"):
        tree(kernel("swap", one, other))


def test_a_late_read_of_what_is_written_before_is_refused():
    written = put(out, [i, k], at(x, i, k), [i, k])
    version = make(Op.AFTER, F32, (out, written))
    value = load(index_of(version, [i, j])) + at(out, i, j)
    result = param(2, F32, (3, 8))
    with pytest.raises(InternalError, match="reads the old contents of memory"):
        tree(kernel("late", store(index_of(result, [i, j]), value, [i, j])))


def test_a_loop_tree_is_freed_without_the_collector():
    """What compiles thousands of kernels leaves nothing behind that only the collector finds."""
    softmax = put(out, [i, j], at(x, i, j) / total(at(x, i, k), k), [i, j])
    root = lowered(kernel("softmax", softmax))
    gc.disable()
    try:
        block = place_stores(root)
        ends = [ref(block), *map(ref, block.items)]
        del block
        assert all(end() is None for end in ends)
    finally:
        gc.enable()
