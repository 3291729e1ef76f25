"""Each thread has all its elements of a tile at once, in registers."""

import pytest

from tests.unit.codegen.products import product
from weft.codegen.context import CodegenContext
from weft.codegen.lower.fragments import fill_fragments
from weft.codegen.opts.table import TensorCore
from weft.codegen.phases import CODEGEN
from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.support.errors import InternalError
from weft.target.cuda import cuda_target

TILE = 64, 64, 128
THREADS = 128  # of a group that multiplies


def flat(epilogue: str = "v0") -> tuple[UOp, CodegenContext]:
    """A product of tiles as the passes before this one leave it."""
    case = product(64, 64, 128, epilogue=epilogue)
    context = CodegenContext(cuda_target("sm_90a"), (TensorCore(0, 1, 2, TILE, 2),))
    kernel = case.kernel
    for step in CODEGEN.passes:
        if step.name == "fill-fragments":
            return kernel, context
        kernel = step.run(kernel, context)
    raise AssertionError("the list has no such pass")


def nodes(root: UOp, op: int) -> list[UOp]:
    return [node for node in topological(root) if node.op == op]


def test_a_product_is_a_vector_of_a_threads_elements():
    before, context = flat()
    (element,) = nodes(before, Op.CONTRACT)
    assert element.dtype.lanes == 1
    after = fill_fragments(before, context)
    (whole,) = nodes(after, Op.CONTRACT)
    assert whole.dtype.lanes == 64 * 64 // THREADS
    assert whole.dtype.scalar is element.dtype


def test_the_vector_is_stored_once_and_read_element_by_element():
    after = fill_fragments(*flat())
    (memory,) = [node for node in nodes(after, Op.MEMORY) if node.arg[0] == "tile0"]
    assert memory.arg == ("tile0", "register", 64 * 64 // THREADS)
    (filled,) = [node for node in nodes(after, Op.STORE) if node.src[1].op == Op.CONTRACT]
    (read,) = [
        node
        for node in nodes(after, Op.LOAD)
        if node.src[0].src[0].op == Op.AFTER and node.src[0].src[0].src[0] is memory
    ]
    assert read.src[0].src[0].src[1] is filled


def test_a_product_that_is_used_twice_is_multiplied_once():
    after = fill_fragments(*flat("v0 * v0 + v0"))
    assert len(nodes(after, Op.CONTRACT)) == 1


def test_only_threads_that_are_left_have_an_axis():
    before, context = flat()
    after = fill_fragments(before, context)
    assert set(context.thread_axes) <= {number for number, _ in after.arg[1]}


def test_positions_that_are_not_those_of_threads_are_refused():
    before, context = flat()
    context.thread_axes = {number: axis + 1 for number, axis in context.thread_axes.items()}
    with pytest.raises(InternalError, match="expected 4 threads along axis 0"):
        fill_fragments(before, context)
