"""What a value costs that is computed again and again: all of its parts, each once."""

from weft.ir.build import param
from weft.ir.dtypes import dtypes
from weft.ir.ops import ELEMENTWISE, Op
from weft.ir.uop import UOp, make
from weft.schedule.fuse.cost import ElementCost
from weft.schedule.fuse.kernel import Kernel
from weft.target.target import Target

TARGET = Target("TEST", "NONE", "any", ELEMENTWISE, frozenset(), frozenset())
COSTS = TARGET.costs
LOAD = 4 * TARGET.caches[0].cost


def p(slot: int, *shape: int) -> UOp:
    return param(slot, dtypes.float32, shape)


def close(x: float, y: float) -> bool:
    return abs(x - y) < 1e-9


def test_shared_parts_count_once():
    x = p(1, 8)
    for _ in range(50):
        x = x * x + x
    assert close(ElementCost(TARGET).in_full(x), LOAD + 100 * COSTS.op)


def test_views_and_casts_are_free():
    x = make(Op.RESHAPE, dtypes.float32, (p(1, 8) + 1.0,), (2, 4)).cast(dtypes.float64)
    assert close(ElementCost(TARGET).in_full(x), LOAD + COSTS.op)


def test_what_is_repeated_often_costs_the_same_whoever_was_asked_before():
    x = make(Op.EXP, dtypes.float32, (p(1, 8) + 1.0,))
    kernel = Kernel(0, (32, 8))
    uses = [(kernel, tuple(kernel.order), 32 * 8)]
    work = ElementCost(TARGET)
    first = work.compare(x, uses, [], 32)
    work.of(x * 2.0)
    assert work.compare(x, uses, [], 32) == first
    assert close(first.recompute, 32 * 8 * (COSTS.transcendental + COSTS.op + LOAD))
