"""Batching of graphs: every op has a rule or a reason, and calls are batched once."""

import numpy as np
import pytest

from weft.gradient.batch import BATCH_RULES, WITHOUT_BATCH, batch
from weft.ir.build import buffer, call, param, store
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op, name
from weft.ir.shapes import shape_of
from weft.ir.spec.spec import verify
from weft.ir.spec.tensor import TENSOR_SPEC
from weft.ir.uop import UOp, make
from weft.support.errors import NotSupported
from weft.tensor import Tensor

ONE = buffer(0, dtypes.float32, (3,), "CPU")
MANY = buffer(1, dtypes.float32, (5, 3), "CPU")


def test_every_op_has_a_rule_or_a_reason():
    known = BATCH_RULES.keys() | WITHOUT_BATCH.keys()
    assert {name(op) for op in TENSOR_SPEC.ops - known} == set()
    assert not BATCH_RULES.keys() & WITHOUT_BATCH.keys()


def test_what_does_not_depend_is_left_alone():
    other = buffer(2, dtypes.float32, (3,), "CPU")
    (sum_of,) = batch([other * 2 + ONE], {ONE: MANY}, 5)
    assert any(node is other * 2 for part in sum_of.src for node in _below(part))


def _below(node: UOp) -> list[UOp]:
    return [node, *(part for source in node.src for part in _below(source))]


def test_a_body_is_batched_once():
    body = param(0, dtypes.float32, (3,)) * 2
    made = batch([call(body, ONE) + call(body, ONE * 3)], {ONE: MANY}, 5)[0]
    bodies = {node.arg for node in _below(made) if node.op == Op.CALL}
    assert len(bodies) == 1 and shape_of(next(iter(bodies))) == (5, 3)
    verify(made, TENSOR_SPEC)


def test_a_body_that_ignores_the_batch_still_gives_one():
    body = make(
        Op.TUPLE, dtypes.void, (param(1, dtypes.float32, (3,)), param(0, dtypes.float32, (3,)))
    )
    done = call(body, ONE, ONE * 0 + 1)
    made = batch([make(Op.ITEM, dtypes.float32, (done,), 0)], {ONE: MANY}, 5)[0]
    assert shape_of(made) == (5, 3)
    verify(made, TENSOR_SPEC)


def test_memory_has_one_value():
    version = make(Op.AFTER, dtypes.float32, (MANY, store(MANY, MANY * 2)))
    x = param(9, dtypes.float32, (5, 3))
    written = make(Op.AFTER, dtypes.float32, (version, store(version, x)))
    with pytest.raises(NotSupported, match="STORE"):
        batch([written], {x: buffer(3, dtypes.float32, (2, 5, 3), "CPU")}, 2)


@pytest.mark.parametrize("addresses", ["memory", "indices", "both"])
def test_gathers(addresses: str):
    rows = np.arange(24.0).reshape(2, 4, 3)
    numbers = np.array([[3, 0], [1, 1]])
    memory, index = Tensor(rows[0]), Tensor(numbers[0])
    grown = {}
    if addresses != "indices":
        grown[memory.uop] = Tensor(rows).uop
    if addresses != "memory":
        grown[index.uop] = Tensor(numbers).uop
    made = Tensor(batch([memory[index].uop], grown, 2)[0]).numpy()
    for example in range(2):
        x = rows[example if addresses != "indices" else 0]
        i = numbers[example if addresses != "memory" else 0]
        np.testing.assert_array_equal(made[example], x[i])
