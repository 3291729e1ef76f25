"""Named dimensions are symbolic by themselves: one trace for all sizes, where the graph allows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from weft import ArgumentError, NotSupported, ShapeError, Tensor, jit  # noqa: E402
from weft.onnx import info, load  # noqa: E402
from weft.onnx.named_sizes import MOST  # noqa: E402

FLOAT = TensorProto.FLOAT


def make(nodes: list[Any], inputs: dict[str, Any], outputs: int, weights: Any = None) -> Any:
    """A model of nodes whose last outputs, as many as said, are those of the graph."""
    said = [helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in inputs.items()]
    names = [node.output[0] for node in nodes[-outputs:]]
    results = [helper.make_empty_tensor_value_info(name) for name in names]
    arrays = [numpy_helper.from_array(each, name) for name, each in (weights or {}).items()]
    graph = helper.make_graph(nodes, "g", said, results, arrays)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def scaled() -> Any:
    """A softmax over features, and a mean over rows that depends on how many there are."""
    nodes = [
        helper.make_node("Softmax", ["x"], ["s"], axis=1),
        helper.make_node("ReduceMean", ["s", "axes"], ["m"], keepdims=0),
    ]
    return make(nodes, {"x": ["rows", 5]}, 2, {"axes": np.array([0])})


def rows(count: int) -> Any:
    return np.random.default_rng(count).standard_normal((count, 5)).astype(np.float32)


def test_one_trace_for_the_first_sizes_and_one_for_all_others() -> None:
    model = load(scaled())
    for count in (3, 5, 1, 64, 1000, 2, 3, 7):
        x = rows(count)
        found, mean = model(x)
        wanted = np.exp(x) / np.exp(x).sum(1, keepdims=True)
        assert found.shape == (count, 5) and mean.shape == (5,)
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-5)
        np.testing.assert_allclose(mean.numpy(), wanted.mean(0), rtol=1e-5)
    assert model._traced.traces == 2
    assert model.sizes.limits == {"rows": (1, MOST, 1)}


def test_results_are_ordinary_tensors() -> None:
    """What a symbolic call returns has ints for its sizes, and memory of its own."""
    model = load(scaled())
    model(rows(2))
    kept = [model(rows(count))[0] for count in (4, 6, 4)]
    assert [each.shape for each in kept] == [(4, 5), (6, 5), (4, 5)]
    assert kept[0].numpy().tolist() == kept[2].numpy().tolist()
    kept[0][0] = 9.0
    assert kept[0].numpy()[0].tolist() == [9.0] * 5 and kept[2].numpy()[0].max() < 1
    assert (kept[0] + kept[2]).reshape(20).shape == (20,)


def test_an_input_that_comes_back_is_the_input() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Identity", ["x"], ["same"])]
    model = load(make(nodes, {"x": ["rows", 5]}, 2))
    model(rows(2))
    x = Tensor(rows(3))
    relu, same = model(x)
    assert same.numpy().tolist() == x.numpy().tolist()
    same[0] = 1.0  # a write to it is one to the input, as in a call of the first sizes
    assert relu.numpy().tolist() == np.maximum(rows(3), 0).tolist()
    assert model._traced.traces == 2


def test_a_limit_is_found_where_a_table_ends() -> None:
    """A slice of a table of 12 rows: one trace up to 8, then one for each size, or an error."""
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Slice", ["shape", "zero", "one"], ["count"]),
        helper.make_node("Slice", ["table", "zero", "count"], ["part"]),
        helper.make_node("Add", ["x", "part"], ["y"]),
    ]
    table = np.arange(60, dtype=np.float32).reshape(12, 5)
    weights = {"table": table, "zero": np.array([0]), "one": np.array([1])}
    model = load(make(nodes, {"x": ["rows", 5]}, 1, weights))
    for count in (2, 4, 8, 5, 12):
        np.testing.assert_allclose(model(rows(count)).numpy(), rows(count) + table[:count])
    assert model.sizes.limits == {"rows": (1, 8, 1)}
    assert model._traced.traces == 3
    with pytest.raises(ShapeError, match="Add"):
        model(rows(13))


def test_what_cannot_be_symbolic_has_a_trace_for_each_size() -> None:
    """An axis that is split into a known number of parts; the batch stays symbolic."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], name="first", pads=[1, 1, 1, 1]),
        helper.make_node("Split", ["c"], ["y", "z"], name="halves", axis=2, num_outputs=2),
    ]
    w = np.random.default_rng(0).standard_normal((4, 2, 3, 3)).astype(np.float32)
    proto = make(nodes, {"x": ["batch", 2, "high", 8]}, 1, {"w": w})
    model, alone = load(proto), load(proto, sizes={})
    for batch, high in ((1, 7), (2, 7), (3, 7), (2, 5), (5, 5)):
        x = np.random.default_rng(batch).standard_normal((batch, 2, high, 8)).astype(np.float32)
        np.testing.assert_allclose(model(x).numpy(), alone(x).numpy(), rtol=1e-4, atol=1e-5)
    assert model.sizes.limits == {"batch": (1, MOST, 1)}
    assert "Split 'halves'" in model.sizes.problems["high"]
    assert model._traced.traces == 3 and alone._traced.traces == 5
    found = info(proto)
    assert found.symbolic == {"batch": (1, MOST, 1)} and "'halves'" in found.traced_alone["high"]


def test_names_that_do_not_agree_are_no_sizes() -> None:
    """A file may call two sizes by one name; then nothing is built on it."""
    nodes = [
        helper.make_node("ReduceSum", ["a"], ["s"], keepdims=0),
        helper.make_node("Add", ["b", "s"], ["y"]),
    ]
    model = load(make(nodes, {"a": ["n"], "b": ["n"]}, 1))
    for first, second in ((2, 2), (3, 3), (3, 5), (1, 4)):
        a, b = np.ones(first, np.float32), np.ones(second, np.float32)
        assert model(a, b).tolist() == [first + 1] * second


def test_names_have_any_letters() -> None:
    nodes = [helper.make_node("MatMul", ["a", "b"], ["y"])]
    model = load(make(nodes, {"a": ["n.x", 3], "b": [3, "n x"]}, 1))
    for left, right in ((1, 2), (4, 3), (2, 7)):
        a, b = np.ones((left, 3), np.float32), np.ones((3, right), np.float32)
        assert model(a, b).tolist() == [[3.0] * right] * left
    assert model._traced.traces == 2


def test_sizes_that_come_often_get_a_trace() -> None:
    model = load(scaled())
    model(rows(2))
    for _ in range(40):
        model(rows(3))
    model(rows(4))
    assert model._traced.traces == 3


def test_models_are_called_in_jitted_functions() -> None:
    """The trace around has the sizes; gradients are taken inside of it, and refused behind it."""
    model = load(scaled())

    @jit
    def step(x: Tensor) -> tuple[Tensor, Tensor]:
        loss = (model(x)[1] * Tensor.arange(5)).sum()
        return loss, loss.gradient(x)[0]

    for count in (2, 3, 4):
        model(rows(count))
        x = Tensor(rows(count), requires_grad=True)
        other = Tensor(rows(count), requires_grad=True)
        wanted = (other.softmax(1).mean(0) * Tensor.arange(5)).sum()
        loss, gradient = step(x)
        np.testing.assert_allclose(loss.numpy(), wanted.numpy(), rtol=1e-5)
        np.testing.assert_allclose(gradient.numpy(), wanted.gradient(other)[0].numpy(), atol=1e-6)
        with pytest.raises(NotSupported, match="computed by a jitted function"):
            model(Tensor(rows(count + 1), requires_grad=True))[1].sum().backward()


def test_empty_inputs_are_traced_alone() -> None:
    model = load(make([helper.make_node("Relu", ["x"], ["y"])], {"x": ["rows", 5]}, 1))
    for count in (2, 0, 3, 0, 4):
        assert model(np.ones((count, 5), np.float32)).shape == (count, 5)
    assert model._traced.traces == 3


def test_indices_that_are_known_are_checked() -> None:
    """Past the end of a table there is nothing: constants, and ranges of a size."""
    table = np.arange(10, dtype=np.float32)
    outside = make([helper.make_node("Gather", ["t", "i"], ["y"], name="pick")], {"x": [1]}, 1,
                   {"t": table, "i": np.array([3, 10])})  # fmt: skip
    with pytest.raises(ArgumentError, match=r"pick.*indices from 3 to 10 of an axis of size 10"):
        load(outside)(np.ones(1, np.float32))
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Squeeze", ["shape"], ["count"]),
        helper.make_node("Range", ["zero", "count", "one"], ["steps"]),
        helper.make_node("Gather", ["t", "steps"], ["y"]),
    ]
    weights = {"t": table, "zero": np.array(0), "one": np.array(1)}
    model = load(make(nodes, {"x": ["n"]}, 1, weights))
    for count in (3, 5, 10):
        assert model(np.ones(count, np.float32)).tolist() == list(range(count))
    with pytest.raises(ArgumentError, match="indices from 0 to 10"):
        model(np.ones(11, np.float32))
