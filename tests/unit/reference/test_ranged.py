"""The interpreter of ranged graphs: memory, stages, order edges, calls."""

import pytest

import weft
from weft.ir.build import index_of, load, param, range_, sink, store, true
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.stage import stage
from weft.ir.text import parse
from weft.ir.uop import UOp, make
from weft.reference.memory import ElementMemory
from weft.reference.ranged import run_ranged

i32 = dtypes.int32


def memory(*values: int) -> ElementMemory:
    return ElementMemory(i32, len(values), values)


def empty(size: int) -> ElementMemory:
    return ElementMemory(i32, size)


def run(text: str, *memories: ElementMemory, **variables: int) -> list[list[int | None]]:
    run_ranged(parse(text), memories, variables)
    return [part.values for part in memories]


def test_a_stage_is_computed_once_and_read_anywhere():
    text = """
sink:
  p0 = param 0: int32[3]
  r0 < 3
  v0 = stage global[r0 of 3] = load p0[r0] * 2 for r0
  v0
  p1 = param 1: int32[3]
  store p1[r0] = read v0[-r0 + 2] + read v0[r0] for r0
"""
    assert run(text, memory(1, 2, 3), empty(3))[1] == [8, 8, 8]


def test_a_mask_keeps_iterations_out():
    text = """
sink:
  p0 = param 0: int32[5]
  r0 < 2
  r1 < 3
  v0 = stage global[r0 * 3 + r1 of 5 if r0 * 3 + r1 < 5] = int32(r1) for r0, r1
  v0
  r0_5 < 5
  store p0[r0_5] = read v0[r0_5] for r0_5
"""
    assert run(text, empty(5)) == [[0, 1, 2, 0, 1]]


def test_symbolic_sizes_have_the_values_of_the_run():
    text = """
sink:
  n = variable "n" 1..8
  r0 < n
  v0 = stage global[r0 of n] = int32(r0) for r0
  v0
  p0 = param 0: int32[n]
  store p0[r0] = read v0[n - 1 - r0] for r0
"""
    assert run(text, empty(3), n=3) == [[2, 1, 0]]


def test_fused_outputs_see_what_was_there_before_all_of_them():
    text = """
sink:
  p0 = param 0: int32[2]
  p1 = param 1: int32[2]
  r0 < 2
  v0 = store p0[r0] = load p1[r0] for r0
  v1 = store p1[r0] = load p0[r0] for r0
  tuple(v0, v1)
"""
    assert run(text, memory(1, 2), memory(3, 4)) == [[3, 4], [1, 2]]


def test_iterations_of_an_ordered_store_see_each_other():
    text = """
sink:
  p0 = param 0: int32[1]
  r0 < 4
  store p0[0] = load p0[0] + int32(r0) for r0 ordered
"""
    assert run(text, memory(10)) == [[16]]


OVERWRITE = """
sink:
  p0 = param 0: int32[2]
  r0 < 2
  p1 = param 1: int32[2]
  v0 = store p1[r0] = load p0[r0] for r0
  v0
  {version}
  store {memory}[r0] = 7 for r0
"""


def test_an_order_edge_keeps_a_write_behind_a_read():
    text = OVERWRITE.format(version="v1 = p0.after(v0)", memory="v1")
    assert run(text, memory(1, 2), empty(2)) == [[7, 7], [1, 2]]


def test_an_order_edge_that_is_missing_shows():
    """Independent members run in another order than `split` gives them."""
    text = OVERWRITE.format(version="p2 = param 2: int32[2]", memory="p0")
    assert run(text, memory(1, 2), empty(2), empty(2))[1] != [1, 2]


def test_a_call_fills_the_memory_of_its_result():
    body = param(0, i32, (2,)) * 2
    call = make(Op.CALL, i32, (param(0, i32, (2,)),), body)
    memories = [memory(3, 4), empty(2)]
    run_ranged(sink(store(param(1, i32, (2,)), call)), memories)
    assert memories[1].values == [6, 8]


def test_results_of_a_call_are_read_like_stages():
    x = param(0, i32, (2,))
    body = make(Op.TUPLE, dtypes.void, (x + 1, x * x))
    call = make(Op.CALL, dtypes.void, (x,), body)
    r0 = range_(0, 2)
    items = [make(Op.ITEM, i32, (call,), number) for number in range(2)]
    total = [make(Op.READ, i32, (each, true(), r0)) for each in items]
    result = store(index_of(param(1, i32, (2,)), (r0,)), total[0] + total[1], (r0,))
    memories = [memory(3, 4), empty(2)]
    run_ranged(sink(call, result), memories)
    assert memories[1].values == [13, 21]


def test_a_kernel_is_called_on_memory():
    kernel = parse(
        'kernel "f" r0 loop:\n  p0 = param 0: int32[2]\n  p1 = param 1: int32[2]\n  r0 < 2\n'
        "  store p1[r0] = load p0[r0] + 1 for r0"
    )
    call = make(Op.CALL, dtypes.void, (param(0, i32, (2,)), param(1, i32, (2,))), kernel)
    memories = [memory(3, 4), empty(2)]
    run_ranged(sink(call), memories)
    assert memories[1].values == [4, 5]


def wrong_graphs() -> dict[str, tuple[UOp, str]]:
    r0 = range_(0, 2)
    p0 = param(0, i32, (2,))
    short = stage("global", load(index_of(p0, (r0,))), (r0 + 1,), (2,), (r0,))
    half = stage("global", load(index_of(p0, (r0,))), (r0,), (4,), (r0,))
    r1 = range_(0, 4)
    reader = store(index_of(param(1, i32, (4,)), (r1,)), make(Op.READ, i32, (half, true(), r1)))
    return {
        "not a SINK": (p0, "expected a SINK"),
        "outside the stage": (sink(short), "out of bounds"),
        "never written": (sink(half, make(Op.STORE, dtypes.void, (*reader.src, r1))), "before it"),
        "no memory": (
            sink(store(index_of(param(9, i32, (2,)), (r0,)), r0.cast(i32), (r0,))),
            "no",
        ),
    }


@pytest.mark.parametrize("case", wrong_graphs())
def test_faults(case: str):
    root, words = wrong_graphs()[case]
    with pytest.raises(weft.InternalError, match=words):
        run_ranged(root, [memory(1, 2), empty(4)])
