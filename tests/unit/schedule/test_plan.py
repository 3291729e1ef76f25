"""Temporaries that live at the same time are apart in the arena; others share it."""

import math
import random

import numpy as np

from weft import Tensor
from weft.ir.build import param, sink, store, variable
from weft.ir.dtypes import DType, dtypes
from weft.ir.ops import Op
from weft.ir.shapes import Shape, largest_size, shape_of
from weft.ir.uop import UOp
from weft.schedule.plan import ALIGNMENT, Plan, plan_arena, plan_of
from weft.schedule.schedule import make_schedule
from weft.target.cpu import cpu_target

FIRST = 10  # slots below belong to the caller


def temporary(number: int, *shape: int | UOp, dtype: DType = dtypes.float32) -> UOp:
    return param(FIRST + number, dtype, shape)


def planned(*kernels: list[UOp], count=largest_size) -> Plan:
    return plan_arena(kernels, FIRST, count)


def test_a_value_that_is_done_with_gives_its_memory_to_the_next():
    a, b, c = (temporary(number, 100) for number in range(3))
    plan = planned([a], [a, b], [b, c], [c])
    assert plan.offsets[FIRST] == plan.offsets[FIRST + 2] != plan.offsets[FIRST + 1]
    assert plan.size == 2 * 512  # of 400 bytes each


def test_memory_of_the_caller_takes_no_room():
    assert planned([param(0, dtypes.float32, (100,))], []) == Plan({}, 0)


def test_each_offset_is_aligned_and_an_empty_value_has_one_of_its_own():
    a, b = temporary(0, 0), temporary(1, dtype=dtypes.int8)
    plan = planned([a, b])
    assert sorted(plan.offsets.values()) == [0, ALIGNMENT]
    assert plan.size == 2 * ALIGNMENT


def test_a_symbolic_size_has_room_for_its_largest_value_or_for_that_of_now():
    n = variable("n", 1, 1000)
    kernels = [[temporary(0, n, 4)]]
    assert planned(*kernels).size == 16128  # 1,000 rows of 16 bytes, in whole units

    def now(shape: Shape) -> int:
        return math.prod(10 if isinstance(size, UOp) else size for size in shape)

    assert planned(*kernels, count=now).size == ALIGNMENT


def test_no_two_that_live_together_overlap(seed: int):
    rng = random.Random(seed)
    for _ in range(60):
        length = rng.randrange(1, 12)
        kernels: list[list[UOp]] = [[] for _ in range(length)]
        spans = {}
        for number in range(rng.randrange(1, 16)):
            born = rng.randrange(length)
            dies = rng.randrange(born, length)
            value = temporary(number, rng.choice((0, 1, 64, 65, 1000, 4096)))
            spans[FIRST + number] = born, dies, shape_of(value)[0] * 4
            kernels[born].append(value)
            kernels[dies].append(value)
        plan = planned(*kernels)
        assert set(plan.offsets) == set(spans)
        for slot, (born, dies, size) in spans.items():
            start = plan.offsets[slot]
            assert start % ALIGNMENT == 0 and start + size <= plan.size
            for other, (first, last, room) in spans.items():
                if other != slot and born <= last and first <= dies:
                    at = plan.offsets[other]
                    assert at + room <= start or start + size <= at


def test_a_schedule_says_what_its_temporaries_take():
    x = Tensor(param(0, dtypes.float32, (64, 64)))
    deep = x
    for _ in range(4):
        deep = (deep @ x).contiguous()
    root = sink(store(param(1, dtypes.float32, (64, 64)), deep.uop))
    schedule = make_schedule(root, cpu_target("x86_64", ("avx2",))).kernels
    plan = plan_of(schedule)
    assert schedule.op == Op.LINEAR and len(schedule.src) == 4
    assert len(plan.offsets) == 3  # the last product is the caller's
    assert plan.size == 2 * 64 * 64 * 4
    assert np.unique(list(plan.offsets.values())).tolist() == [0, 64 * 64 * 4]
