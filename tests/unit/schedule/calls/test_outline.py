"""Values that are equal but for their memory are calls of one body."""

import numpy as np
import pytest

from weft import Tensor
from weft.ir.build import param, sink, store
from weft.ir.dtypes import dtypes
from weft.ir.movement import iota
from weft.ir.ops import Op
from weft.ir.uop import UOp, make
from weft.ir.walk import topological
from weft.schedule import schedule
from weft.schedule.calls.outline import outline
from weft.schedule.context import ScheduleContext
from weft.schedule.schedule import make_schedule
from weft.target.cpu import cpu_target

AVX2 = cpu_target("x86_64", ("avx2",))


def p(slot: int, *shape: int) -> UOp:
    return param(slot, dtypes.float32, shape or (8,))


def outlined(*effects: UOp) -> list[UOp]:
    root = sink(*effects)
    made = outline(
        root, ScheduleContext(root, AVX2, lambda body: pytest.fail("nothing is scheduled"))
    )
    return [node for node in topological(made) if node.op == Op.CALL]


def sine(x: UOp) -> UOp:
    return make(Op.SIN, x.dtype, (x,))


def test_equal_parts_are_calls_of_one_body() -> None:
    first, second = outlined(store(p(2), sine(p(0)) * 2), store(p(3), sine(p(1)) * 2))
    assert first.arg is second.arg
    assert [first.src, second.src] == [(p(0),), (p(1),)]


def test_what_shares_memory_is_one_part() -> None:
    stores = [store(p(slot + 9), value) for slot, value in enumerate((p(0) * 2, p(0) + p(1)))]
    others = [store(p(slot + 19), value) for slot, value in enumerate((p(2) * 2, p(2) + p(3)))]
    first, second = outlined(*stores, *others)
    assert first.arg is second.arg and first.arg.op == Op.TUPLE
    assert outlined(*stores) == []


def test_unlike_parts_stay() -> None:
    assert outlined(store(p(2), sine(p(0))), store(p(3), p(1) * 2)) == []
    assert outlined(store(p(2), sine(p(0))), store(p(3, 9), sine(p(1, 9)))) == []


def test_memory_that_is_read_and_written_stays() -> None:
    assert outlined(store(p(0), p(0) * 2), store(p(1), p(1) * 2)) == []
    versions = [make(Op.AFTER, p(n).dtype, (p(n), store(p(n), p(n + 5) * 2))) for n in (0, 1)]
    assert outlined(*versions) == []


def test_work_that_two_parts_share_is_done_once() -> None:
    table = sine(iota(8).cast(dtypes.float32))
    assert outlined(store(p(2), p(0) * table), store(p(3), p(1) * table)) == []
    steps = iota(8).cast(dtypes.float32) * 3
    assert len(outlined(store(p(2), p(0) * steps), store(p(3), p(1) * steps))) == 2


def test_many_equal_values_are_scheduled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    bodies: list[UOp] = []
    real = schedule._make_schedule

    def counted(phase, root, *rest):
        bodies.append(root)
        return real(phase, root, *rest)

    monkeypatch.setattr(schedule, "_make_schedule", counted)
    count = 50
    stores = [store(p(count + n, 30, 7), sine(p(n, 30, 7)) * 5 + 1) for n in range(count)]
    made = make_schedule(sink(*stores), AVX2)
    assert len(bodies) == 2  # the whole, and the body
    assert len(made.kernels.src) == count and len({each.arg for each in made.kernels.src}) == 1


def test_values_of_many_draws() -> None:
    Tensor.manual_seed(5)
    alone = [Tensor.randn(3, 4).numpy() for _ in range(6)]
    Tensor.manual_seed(5)
    together = [Tensor.randn(3, 4) for _ in range(6)]
    Tensor.realize(*together)
    for x, y in zip(alone, together, strict=True):
        np.testing.assert_array_equal(x, y.numpy())
    assert len({x.tobytes() for x in alone}) == 6
