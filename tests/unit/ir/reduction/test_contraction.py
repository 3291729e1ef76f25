"""What a contraction is, in tensor graphs by expansions and in their kernels by ranges."""

import pytest

from weft import Tensor, dtypes
from weft.ir.build import param, sink, store
from weft.ir.ops import Op
from weft.ir.reduction.contraction import contraction_of, factors_of, reuse_of, with_factor
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.schedule.schedule import make_schedule
from weft.target.cpu import cpu_target

TARGET = cpu_target("x86_64", ("avx2",))


def p(slot: int, *shape: int) -> Tensor:
    return Tensor(param(slot, dtypes.float32, shape))


# A value; how often its less used factor is used; the counts of batch, rows, columns and reduced.
CASES = {
    "matmul": (p(1, 32, 48) @ p(2, 48, 40), 32, (0, 1, 1, 1)),
    "batched": (p(1, 3, 32, 48) @ p(2, 3, 48, 40), 32, (1, 1, 1, 1)),
    "cast": (p(1, 32, 48).half().float() @ p(2, 48, 40), 32, (0, 1, 1, 1)),
    "vector": (p(1, 48) @ p(2, 48, 40), 1, None),
    "sum of squares": ((p(1, 8, 9) * p(1, 8, 9)).sum(1), 1, None),
    "sum": (p(1, 8, 9).sum(1), 0, None),
    "greatest": ((p(1, 8, 9) * p(2, 8, 9)).max(1), 0, None),
    "convolution": (p(1, 2, 3, 12, 12).conv2d(p(2, 16, 3, 3, 3)), 16, (0, 3, 1, 3)),
}


def reductions(root: UOp) -> list[UOp]:
    return [node for node in topological(root) if node.op == Op.REDUCE]


@pytest.mark.parametrize("name", CASES)
def test_reuse_in_a_tensor_graph(name):
    value, reuse, _ = CASES[name]
    (node,) = reductions(value.uop)
    assert reuse_of(node) == reuse


@pytest.mark.parametrize("name", CASES)
def test_ranges_of_a_kernel(name):
    value, _, counts = CASES[name]
    node = value.uop
    graph = sink(store(param(0, node.dtype, shape_of(node)), node))
    call = make_schedule(graph, TARGET).kernels.src[-1]
    (reduction,) = reductions(call.arg)
    found = contraction_of(reduction)
    if counts is None:
        assert found is None
        return
    assert found is not None
    parts = (found.batch, found.rows, found.columns, found.reduced)
    assert tuple(part.bit_count() for part in parts) == counts
    assert sum(parts) == found.left.ranges | found.right.ranges


def test_a_factor_is_replaced_where_it_stands():
    node = CASES["matmul"][0].uop
    (reduction,) = reductions(node)
    assert factors_of(reduction) is not None
    left, right = factors_of(reduction)
    assert factors_of(with_factor(reduction, 1, left)) == (left, left)
    assert with_factor(reduction, 1, right) is reduction
