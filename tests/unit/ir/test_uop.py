"""Nodes are interned, constants keep their bits, and dead nodes are swept."""

import gc
import pickle
import threading
import weakref

import pytest

import weft
from weft.ir.build import range_, reduce_ranges, store, variable
from weft.ir.dtypes import dtypes
from weft.ir.ops import INFO, Op, mask_of
from weft.ir.uop import const, live_nodes, make, range_ids, sweep
from weft.rules.simplify import simplify

i, j = range_(0, 8), range_(1, 4)


def test_equal_nodes_are_the_same_object():
    assert i * 4 + j is i * 4 + j
    assert i * 4 + j is not j + i * 4
    assert range_(0, 8) is i
    assert range_(0, 9) is not i


def test_zeros_of_both_signs_are_kept_apart():
    zero, negative = const(dtypes.float32, 0.0), const(dtypes.float32, -0.0)
    assert zero is not negative
    assert str(negative.arg) == "-0.0"
    assert const(dtypes.float32, -0.0) is negative


def test_nan_is_interned():
    nan = const(dtypes.float32, float("nan"))
    assert nan.arg != nan.arg
    assert const(dtypes.float32, float("inf") - float("inf")) is nan
    assert const(dtypes.float64, float("nan")) is not nan


def test_true_and_one_are_kept_apart():
    assert const(dtypes.bool, True) is not const(dtypes.int32, 1)
    assert const(dtypes.bool, 1).arg is True
    assert const(dtypes.int32, True).arg == 1
    assert type(const(dtypes.int32, True).arg) is int
    assert const(dtypes.float32, 1).arg == 1.0
    assert type(const(dtypes.float32, 1).arg) is float


@pytest.mark.parametrize(
    ("dtype", "value", "expected"),
    [
        (dtypes.int8, 130, -126),
        (dtypes.uint8, -1, 255),
        (dtypes.int64, 1 << 63, -(1 << 63)),
        (dtypes.index, 1 << 70, 1 << 70),
        (dtypes.float32, 0.1, 0.10000000149011612),
        (dtypes.float16, 1e6, float("inf")),
        (dtypes.bfloat16, 1.00390625, 1.0),
        (dtypes.fp8e4m3, 17.0, 16.0),
        (dtypes.bool, 7, True),
    ],
)
def test_constants_take_the_value_of_their_dtype(dtype, value, expected):
    assert const(dtype, value).arg == expected


def test_arity_is_checked_when_a_node_is_made():
    with pytest.raises(weft.InternalError, match="ADD cannot take 1 sources"):
        make(Op.ADD, dtypes.index, (i,))


def test_operands_of_unlike_dtypes_are_refused():
    with pytest.raises(weft.DTypeError, match="index and float32"):
        i + const(dtypes.float32, 1.0)


def test_a_node_has_no_truth_value():
    with pytest.raises(weft.DTypeError, match="no truth value"):
        bool(i < 4)


def test_nodes_know_the_ops_below_them():
    node = (i * 4 + j) // 2
    assert node.ops == mask_of(Op.CONST, Op.RANGE, Op.MUL, Op.ADD, Op.FLOORDIV)


def test_closers_hide_their_ranges():
    value = (i * 4 + j).cast(dtypes.float32)
    assert list(range_ids(value.ranges)) == [0, 1]
    reduced = reduce_ranges(value, Op.ADD, [j])
    assert list(range_ids(reduced.ranges)) == [0]
    address = make(
        Op.INDEX, dtypes.float32, (make(Op.PARAM, dtypes.float32, (), (0, (8,))), i < 9, i)
    )
    assert store(address, reduced, [i]).ranges == 0


def test_a_range_depends_on_the_variables_of_its_extent():
    n = variable("n", 1, 10)
    assert range_(3, n).src == (n,)


def test_sweep_drops_dead_nodes_and_keeps_live_ones():
    sweep()
    kept = i + 12345
    before = live_nodes()
    chain = i
    for number in range(1000):
        chain = chain * 3 + number
    assert live_nodes() > before + 1000
    del chain
    assert sweep() >= 1000
    assert live_nodes() <= before + 10
    assert i + 12345 is kept


class Slot:
    __slots__ = ("node",)


HOLDERS = {
    "a variable": lambda node: node,
    "a list": lambda node: [node],
    "a dict": lambda node: {1: node},
    "a slot": lambda node: set_slot(Slot(), node),
    "a closure": lambda node: lambda: node,
    "a default": lambda node: lambda held=node: held,
    "a generator": lambda node: (each for each in (node,)),
    "a user": lambda node: node * 54321,
    "an arg": lambda node: make(Op.CALL, dtypes.void, (), node),
}


def set_slot(slot, node):
    slot.node = node
    return slot


@pytest.mark.parametrize("kind", HOLDERS)
def test_sweep_keeps_what_somebody_holds_and_nothing_else(kind):
    """However an interpreter counts references, and wherever the only one is."""
    weak = weakref.ref(i + 98765)
    holder = HOLDERS[kind](weak())
    sweep()
    assert weak() is not None
    assert i + 98765 is weak()
    del holder
    sweep()
    assert weak() is None


def test_sweep_keeps_the_order_in_which_one_walk_drops_all():
    nodes = [i + 777]
    for number in range(50):
        nodes.append(nodes[-1] * 3 + number)
    weak = [weakref.ref(node) for node in nodes]
    del nodes[:-1]
    sweep()  # all are held, and put back
    del nodes
    sweep()
    assert not any(node() for node in weak)


def test_sweep_is_safe_beside_threads_that_build():
    stop = threading.Event()
    wrong = []

    def build(number):
        while not stop.is_set():
            node = i * 7 + number
            again = i * 7 + number
            if node is not again:
                wrong.append(number)

    threads = [threading.Thread(target=build, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(10):
        sweep()
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong


def test_nodes_form_no_cycles():
    gc.collect()
    node = (i * 4 + j) // 2
    del node
    sweep()
    assert gc.collect() == 0


def test_pickling_gives_the_same_node():
    node = (i * 4 + j) // 2
    assert pickle.loads(pickle.dumps(node)) is node
    assert pickle.loads(pickle.dumps(dtypes.float32.vector(4))) is dtypes.float32.vector(4)


def test_the_op_table_is_complete():
    assert [row.number for row in INFO] == list(range(len(INFO)))
    for row in INFO:
        assert getattr(Op, row.name) == row.number
        assert row.meaning
        assert row.most is None or row.least <= row.most


def test_simplified_nodes_are_swept_too():
    sweep()
    before = live_nodes()
    for number in range(50):
        simplify(((i * 7 + number) // 3) % 5 + (j + number) * 4)
    assert sweep() > 200
    assert live_nodes() <= before + 10
