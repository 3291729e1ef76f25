"""What stores wait for, and the order in which a block opens its loops."""

import pytest

from tests.unit.codegen.kernel_parts import F32, at, put
from weft.codegen.linear.store_order import (
    LoopNest,
    NestOrder,
    Waits,
    carried_by,
    in_order,
    starts_of,
    stores_of,
)
from weft.ir.build import index, index_of, load, param, range_, store
from weft.ir.ops import Op
from weft.ir.uop import UOp, const, make
from weft.ir.walk import topological
from weft.support.errors import InternalError

i, j, k = range_(0, 4), range_(1, 4), range_(2, 4)
a, b, c = (param(slot, F32, (4,)) for slot in range(3))


def memory(name: str) -> UOp:
    return make(Op.MEMORY, F32, (), (name, "register", 4))


def after(source: UOp, *effects: UOp) -> UOp:
    return make(Op.AFTER, F32, (source, *effects))


def fill(name: str, value: UOp, loop: UOp = k) -> tuple[UOp, UOp]:
    """A store over a loop, and the memory once it has happened."""
    target = memory(name)
    effect = store(index_of(target, [loop]), value, [loop])
    return effect, after(target, effect)


def read(version: UOp, at: UOp) -> UOp:
    return load(index_of(version, [at]))


def waits_of(*stores: UOp, follows: dict[UOp, list[UOp]] | None = None) -> Waits:
    nodes = topological(*stores)
    return Waits(nodes, [node for node in nodes if node.op == Op.AFTER], follows or {})


def groups(waits: Waits, *nests: LoopNest) -> list[list[UOp]]:
    level = NestOrder(nests, waits, 0)
    return [[nest.stores[0] for nest in group] for group in level.groups()]


first, first_done = fill("first", at(a, k))
second, second_done = fill("second", read(first_done, k), j)
last = put(b, [i], read(second_done, i), [i])


def test_needs_are_direct_and_in_the_end():
    waits = waits_of(last)
    assert waits.needs_of(last) == [second]
    assert waits.needs_of(second) == [first]
    assert waits.all_needs(last) == waits.bit[first] | waits.bit[second]
    assert waits.needed_inside([last], waits.bit[second]) == 0


def test_the_first_value_of_an_accumulator_comes_with_its_update():
    target = memory("acc")
    start = store(index_of(target, [index(0)]), const(F32, 0.0))
    begun = after(target, start)
    update = store(index_of(begun, [index(0)]), read(begun, index(0)) + at(a, k), [k])
    assert starts_of(update) == (start,)
    assert starts_of(start) == ()
    result = put(b, [i], read(after(target, update), index(0)), [i])
    waits = waits_of(result)
    assert waits.needs_of(update) == []
    assert waits.needs_of(result) == [update]


def test_a_loop_that_carries_memory_is_no_store():
    target = memory("acc")
    start = store(index_of(target, [index(0)]), const(F32, 0.0))
    version = after(target, start, i)
    update = store(index_of(version, [index(0)]), read(version, index(0)) + at(a, i))
    assert stores_of(version) == (start,)
    assert carried_by(update) == (i,)
    assert carried_by(start) == ()


def test_a_nest_runs_after_those_that_it_needs():
    waits = waits_of(last)
    nests = (
        LoopNest((last,), (i,), False),
        LoopNest((second,), (j,), True),
        LoopNest((first,), (k,), True),
    )
    assert groups(waits, *nests) == [[first], [second], [last]]


def test_nests_that_enter_the_same_loop_are_together():
    other, other_done = fill("other", at(b, k))
    both = put(c, [i], read(first_done, i) + read(other_done, i), [i])
    waits = waits_of(both)
    nests = (
        LoopNest((first,), (k,), True),
        LoopNest((other,), (k,), True),
        LoopNest((both,), (i,), False),
    )
    assert groups(waits, *nests) == [[first, other], [both]]


def test_a_nest_that_needs_another_does_not_share_its_loop():
    again, again_done = fill("again", read(first_done, index(3) - k))
    end = put(c, [i], read(again_done, i), [i])
    waits = waits_of(end)
    nests = (
        LoopNest((first,), (k,), True),
        LoopNest((again,), (k,), True),
        LoopNest((end,), (i,), False),
    )
    assert groups(waits, *nests) == [[first], [again], [end]]


def test_groups_that_read_old_contents_come_first():
    reads, writes = put(b, [i], at(a, index(3) - i), [i]), put(a, [j], at(c, j), [j])
    ordered, follows = in_order([[writes], [reads]])
    assert ordered == [[reads], [writes]]
    assert follows == {writes: [reads]}
    assert in_order([[reads], [writes]])[0] == [[reads], [writes]]


def test_one_group_waits_for_nobody():
    writes = put(a, [i], at(a, i), [i])
    assert in_order([[writes]]) == ([[writes]], {})


def test_a_circle_is_refused():
    one, other = put(a, [i], at(b, i), [i]), put(b, [j], at(a, j), [j])
    with pytest.raises(InternalError, match="overwrite what each other's loops still read"):
        in_order([[one], [other]])


def test_readers_of_an_argument_come_before_the_store_that_is_waited_for():
    """A store into an argument is waited for, and another fill reads what was there before."""
    written = store(index_of(a, [j]), at(c, j), [j])
    version = after(a, written)
    end = put(b, [i], read(version, i) + read(first_done, i), [i])  # `first` reads a
    waits = waits_of(end)
    assert waits.readers == {written: [first]}
    assert waits.read_before([end]) == waits.bit[first]
