"""The interpreter finds what a GPU would do wrong now and then: races beside the arithmetic."""

import pytest

from tests.unit.codegen.products import memories, product
from weft.codegen.generate import generate
from weft.codegen.opts.table import TensorCore
from weft.ir.ops import Op
from weft.ir.uop import UOp, make
from weft.ir.walk import map_graph
from weft.reference.program import run_program
from weft.support.errors import InternalError
from weft.target.cuda import cuda_target

CASE = product(64, 64, 192)
PROGRAM = generate(CASE.kernel, cuda_target("sm_90a"), (TensorCore(0, 1, 2, (64, 64, 128), 2),))


def changed(op: int, arg: object, new: object) -> UOp:
    """The program with the arg of some instructions replaced; without a new one, they go."""

    def edited(node: UOp, made: dict[UOp, UOp]) -> UOp:
        if not node.src:
            return node
        if node is PROGRAM.instructions:
            lines = [made[line] for line in node.src if new is not None or not is_meant(line)]
            return make(node.op, node.dtype, tuple(lines))
        if is_meant(node):
            if new is None:
                return made[node.src[-1]]
            return make(node.op, node.dtype, tuple(made[s] for s in node.src), new)
        return make(node.op, node.dtype, tuple(made[s] for s in node.src), node.arg)

    def is_meant(node: UOp) -> bool:
        return node.op == op and node.arg == arg

    return map_graph(PROGRAM.instructions, edited)


BYTES = 2 * 64 * 128
FAULTS = {
    "too many bytes": (
        *(Op.MBARRIER, ("expect", BYTES), ("expect", BYTES + 16)),
        "wait for 16 bytes that nobody copies",
    ),
    "too few bytes": (
        *(Op.MBARRIER, ("expect", BYTES), ("expect", BYTES - 16)),
        "wait for -16 bytes that nobody copies",
    ),
    "no wait for bytes": (
        *(Op.MBARRIER, ("wait",), None),
        "multiplied at 0 before it is there",
    ),
    "no fence": (Op.MMA_GROUP, ("fence",), None, "without a fence"),
    "tiles are overwritten while they are read": (
        *(Op.MMA_GROUP, ("wait", 1), ("wait", 2)),
        "overwritten while it is multiplied",
    ),
    "sums are read too soon": (
        *(Op.MMA_GROUP, ("wait", 0), ("wait", 3)),
        "sums0 is read at 0 before it is written",
    ),
    "barriers that nobody made": (
        *(Op.MBARRIER, ("init", 2, 1), ("init", 1, 1)),
        "barriers0 is read at 1 before it is written",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults(name: str):
    op, arg, new, message = FAULTS[name]
    with pytest.raises(InternalError, match=message):
        run_program(changed(op, arg, new), memories(CASE, PROGRAM.instructions))
