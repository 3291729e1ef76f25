"""Values of variables: taken out of graphs, and given to a schedule that is ready to run."""

import numpy as np
import pytest

from weft.engine.bindings import bound_values, give_bindings, require_values, take_bindings
from weft.engine.buffer_nodes import new_buffer
from weft.engine.buffers import buffer_of
from weft.engine.compile import CompileStatistics
from weft.engine.contents import buffer_from, read_bytes
from weft.engine.devices import device
from weft.engine.run import Prepared
from weft.ir.build import bind, call, param, sink, store, variable
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.walk import bodies, topological
from weft.schedule.schedule import make_schedule
from weft.support.errors import ArgumentError
from weft.support.settings import Context
from weft.tensor import Tensor

n = variable("n", 1, 8)


def test_graphs_that_differ_in_values_are_the_same_node():
    x = Tensor.empty(8, 4, device="NULL")
    graphs = [take_bindings(x[: bind(n, value)].sum(0).uop) for value in (2, 5)]
    assert graphs[0][0] is graphs[1][0]
    assert [values for _, values in graphs] == [{"n": 2}, {"n": 5}]


def test_called_bodies_are_entered():
    inner = param(0, dtypes.float32, (bind(n, 3),))
    body = call(Tensor(inner).exp().uop, Tensor.zeros(bind(n, 3), device="NULL").uop)
    graph, values = take_bindings(body)
    assert values == {"n": 3} == bound_values(body)
    assert not any(node.op == Op.BIND for node in topological(graph, *bodies(graph)))
    assert shape_of(graph) == (n,)


def test_a_variable_has_one_value():
    with pytest.raises(ArgumentError, match="Variable 'n' is bound to 2 and to 3"):
        take_bindings(bind(n, 2) + bind(n, 3))


def test_values_are_asked_for_and_checked():
    require_values([n], {"n": 8})
    with pytest.raises(ArgumentError, match="Variable 'n' has no value"):
        require_values([n], {"m": 3})
    with pytest.raises(ArgumentError, match="Variable 'n': 9 is out of its range"):
        require_values([n], {"n": 9})


def test_a_prepared_schedule_takes_values_by_name():
    cpu = device("CPU")
    source, result = param(1, dtypes.float32, (8, 4)), param(0, dtypes.float32, (n, 4))
    body = sink(store(result, (Tensor(source)[:n] + 1).uop))
    prepared = Prepared.of(make_schedule(body, cpu.target), cpu, body)
    data = np.arange(32, dtype=np.float32).reshape(8, 4)
    memory = buffer_from(dtypes.float32, (8, 4), "CPU", memoryview(data.tobytes()))
    made = CompileStatistics.generated
    for value in (1, 8, 5):
        out = new_buffer(dtypes.float32, (bind(n, value), 4), "CPU")
        prepared.run([buffer_of(out), buffer_of(memory)], {"n": value})
        found = np.frombuffer(read_bytes(out), np.float32).reshape(value, 4)
        np.testing.assert_array_equal(found, data[:value] + 1)
    assert CompileStatistics.generated == made
    with pytest.raises(ArgumentError, match="out of its range"):
        prepared.run([buffer_of(memory), buffer_of(memory)], {"n": 9})


@pytest.mark.parametrize("size", [0, 1, 200])
def test_grids_of_symbolic_size_run_on_every_thread(size):
    rows = variable("rows", 0, 200)
    x = np.random.default_rng(0).standard_normal((200, 64)).astype(np.float32)
    found = (Tensor(x, device="CPU")[: rows.bind(size)].exp().softmax(-1)).numpy()
    wanted = np.exp(np.exp(x[:size]))
    np.testing.assert_allclose(found, wanted / wanted.sum(-1, keepdims=True), rtol=1e-4)


@pytest.mark.parametrize("size", [1, 3, 8])
def test_every_level_agrees(size):
    x = Tensor(np.arange(32, dtype=np.float32).reshape(8, 4), device="CPU").realize()
    bound = bind(n, size)
    with Context(CHECK="levels"):
        y = (x[:bound].softmax(0) @ x[:bound].T).realize()
        x[:bound] = y.sum(0, keepdim=True).T * 2
        x.realize()
    assert y.numpy().shape == (size, size)


def test_nothing_is_stored_on_the_device_that_only_counts():
    x = Tensor.empty(8, 4, device="NULL")
    made = set()
    for value in (1, 5, 8):
        (x[: bind(n, value)].softmax(0) @ x[: bind(n, value)].T).realize()
        made.add(CompileStatistics.generated)
    assert len(made) == 1


def test_values_are_given_to_called_bodies_too():
    inner = param(0, dtypes.float32, (n,))
    body = call(Tensor(inner).exp().uop, Tensor.zeros(8, device="NULL")[: bind(n, 2)].uop)
    graph, _ = take_bindings(body)
    bound = give_bindings(graph, {n: bind(n, 3)})
    assert take_bindings(bound) == (graph, {"n": 3})
    assert give_bindings(graph, {}) is graph
