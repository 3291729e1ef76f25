"""Names of graphs: equal graphs share one in every process, others do not."""

import subprocess
import sys

import pytest

from weft.ir.build import call, param, sink, store
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.text.digest import digest
from weft.ir.uop import UOp, const, make, sweep

PROGRAM = """
from tests.unit.ir.text.test_digest import graph
from weft.ir.text.digest import digest
print(digest(graph()))
"""


def graph(value: float = 2.0, size: int = 8, op: int = Op.ADD) -> UOp:
    x, y = (param(slot, dtypes.float32, (size,)) for slot in (1, 2))
    half = make(op, dtypes.float32, (x, y))
    return sink(store(param(0, dtypes.float32, (size,)), half * value))


def test_another_process_gives_the_same_name():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == digest(graph())


def test_a_graph_that_is_made_again_has_its_name():
    name = digest(graph())
    sweep()
    assert digest(graph()) == name


OTHERS = {
    "a constant": graph(3.0),
    "the sign of zero": graph(-0.0),
    "a size": graph(size=9),
    "an op": graph(op=Op.MUL),
    "an order": graph(op=Op.DIV),
    "a dtype": sink(store(param(0, dtypes.int32, (8,)), param(1, dtypes.int32, (8,)))),
}


@pytest.mark.parametrize("what", OTHERS)
def test_other_graphs_have_other_names(what: str):
    names = [digest(graph()), digest(graph(0.0)), *map(digest, OTHERS.values())]
    assert names.count(digest(OTHERS[what])) == 1


def test_shared_nodes_are_told_from_each_other():
    x, y = (param(slot, dtypes.float32, (8,)) for slot in (0, 1))
    assert digest(x + y) != digest(x + x) != digest(y + y)
    assert digest((x + y) * x) != digest((x + y) * y)


def test_bodies_of_calls_are_in_the_name():
    def called(value: float) -> UOp:
        x = param(0, dtypes.float32, (4,))
        return call(x + const(dtypes.float32, value), param(3, dtypes.float32, (4,)))

    assert digest(called(1.0)) == digest(called(1.0)) != digest(called(2.0))
