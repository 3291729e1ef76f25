"""Constants are folded, and who reads memory that was just written sees what was written."""

from weft.ir.build import global_stage, param, sink, store
from weft.ir.dtypes import dtypes
from weft.ir.movement import reshape, shrink
from weft.ir.ops import Op
from weft.ir.uop import UOp, const, make
from weft.ir.walk import topological
from weft.schedule.context import Body, ScheduleContext
from weft.schedule.normalize import normalize
from weft.target.cpu import cpu_target

F32 = dtypes.float32
TARGET = cpu_target("x86_64", ("avx2",))
m, w, x, g = (param(slot, F32, (4,)) for slot in range(4))


def after(memory: UOp, *effects: UOp) -> UOp:
    return make(Op.AFTER, memory.dtype, (memory, *effects))


def never(body: UOp) -> Body:
    raise AssertionError("nothing here calls")


def normal(*stores: UOp) -> tuple[UOp, ...]:
    root = sink(*stores)
    return normalize(root, ScheduleContext(root, TARGET, never)).src


def test_constants_are_folded():
    two = const(F32, 2.0)
    value = make(Op.MUL, F32, (two, const(F32, 3.0)))
    memory = param(0, F32, ())
    assert normal(store(memory, value)) == (store(memory, const(F32, 6.0)),)


def test_gradients_leave_no_trace():
    other = x + g
    detached = make(Op.DETACH, F32, (other,))
    custom = make(Op.CUSTOM_GRADIENT, F32, (detached * 2.0, x))
    assert normal(store(m, custom)) == (store(m, other * 2.0),)


def test_a_value_of_a_tuple_is_taken_where_it_stands():
    values = make(Op.TUPLE, dtypes.void, (x + 1.0, x * 2.0))
    item = make(Op.ITEM, F32, (values,), 1)
    assert normal(store(m, item)) == (store(m, x * 2.0),)


def test_a_reader_sees_the_value_that_was_written():
    version = after(m, store(m, g + 1.0))
    assert normal(store(w, version * 2.0), version) == (store(w, (g + 1.0) * 2.0), version)


def test_a_number_that_fills_memory_is_broadcast_to_its_readers():
    version = after(m, store(m, const(F32, 3.0)))
    written, _ = normal(store(w, version * x), version)
    assert written.src[1].src[0].op == Op.EXPAND
    assert not any(node.op == Op.AFTER for node in topological(written))


def test_memory_that_was_written_in_part_is_read():
    part = store(shrink(m, [(0, 2)]), shrink(g, [(0, 2)]))
    version = after(m, part)
    assert normal(store(w, version * 2.0), version) == (store(w, version * 2.0), version)


def test_what_two_writes_make_is_read():
    version = after(m, store(m, g), store(m, x))
    assert normal(store(w, version + 1.0), version) == (store(w, version + 1.0), version)


def test_the_target_of_a_write_stays_memory():
    """A write into a version writes its memory, not the value that stands for it."""
    version = after(m, store(m, g))
    second = store(shrink(version, [(1, 3)]), reshape(shrink(x, [(0, 2)]), (2,)))
    (found,) = normal(second)
    assert found.src[0].src[0] is version


def test_a_stage_with_one_reader_is_stored_directly():
    stage = global_stage(x + g)
    assert normal(store(m, stage)) == (store(m, x + g),)
    both = store(m, stage), store(w, stage * 2.0)
    assert normal(*both) == both
