"""What files compute of sizes: the host follows it, so that one trace runs all sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

from weft import ShapeError  # noqa: E402
from weft.onnx import load  # noqa: E402

Node = helper.make_node
SIZES = (3, 5, 4, 8, 1, 70, 64, 63, 65, 2)


def make(nodes: list[Any], weights: dict[str, Any], outputs: str, columns: int = 9) -> Any:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", columns])
    results = [helper.make_empty_tensor_value_info(name) for name in outputs]
    arrays = [numpy_helper.from_array(np.asarray(each), name) for name, each in weights.items()]
    graph = helper.make_graph(nodes, "g", [x], results, arrays)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def traces(proto: Any, counts: Any = SIZES, columns: int = 9) -> int:
    """How many traces there are for these numbers of rows, whose results are the reference's."""
    model, reference = load(proto), ReferenceEvaluator(proto)
    for count in counts:
        x = np.random.default_rng(count).standard_normal((count, columns)).astype(np.float32)
        wanted = reference.run(None, {"x": x})
        for name, ours, theirs in zip(model.outputs, model.run({"x": x}).values(), wanted,
                                      strict=True):  # fmt: skip
            found = ours.numpy()
            assert found.dtype == theirs.dtype, name.name
            np.testing.assert_allclose(found, theirs, rtol=1e-5, err_msg=f"{name.name} of {count}")
    assert not model.is_eager
    return int(model._traced.traces)


ENDS = [(2, 2**62, 1), (0, 64, 1), (-64, 2**62, 1), (-3, -1, 1), (1, 64, 2), (0, 64, 3)]


@pytest.mark.parametrize(("start", "end", "step"), ENDS)
def test_slices_are_clamped_to_the_axis(start: int, end: int, step: int) -> None:
    """Rows that are not there are left out, for all sizes in one trace."""
    weights = {"start": [start], "end": [end], "axes": [0], "step": [step]}
    nodes = [
        Node("Slice", ["x", *weights], ["part"]),
        Node("Relu", ["part"], ["y"]),
        Node("ReduceSum", ["part", "axes"], ["z"]),
    ]
    assert traces(make(nodes, {name: np.array(each) for name, each in weights.items()}, "yz")) == 2


def test_rows_are_rolled() -> None:
    weights = {"two": np.array([2]), "end": np.array([2**62]), "zero": np.array([0])}
    nodes = [
        Node("Slice", ["x", "two", "end", "zero"], ["later"]),
        Node("Slice", ["x", "zero", "two", "zero"], ["first"]),
        Node("Concat", ["later", "first"], ["y"], axis=0),
    ]
    assert traces(make(nodes, weights, "y")) == 2


def test_slices_that_would_be_turned_around_need_more_rows() -> None:
    """Without the first three and the last two: one trace from 8 rows on, others alone."""
    weights = {"start": np.array([3]), "end": np.array([-2]), "axes": np.array([0])}
    nodes = [Node("Slice", ["x", *weights], ["y"])]
    assert traces(make(nodes, weights, "y"), (10, 12, 8, 9, 64, 4)) == 3


def test_a_diagonal_is_a_size() -> None:
    """As the mask of a decoder with a cache, which begins at the number of rows before."""
    nodes = [
        Node("Shape", ["x"], ["shape"]),
        Node("Gather", ["shape", "zero"], ["count"]),
        Node("Trilu", ["x", "count"], ["y"], upper=0),
        Node("Neg", ["count"], ["less"]),
        Node("Trilu", ["x", "less"], ["z"]),
    ]
    assert traces(make(nodes, {"zero": np.array(0)}, "yz")) == 2


def test_counts_are_sizes() -> None:
    """The number of elements, a product of sizes, and as many classes as rows."""
    weights = {"zero": np.array(0), "axis": np.array([0]), "ends": np.array([0.5, 2], np.float32),
               "of": np.array([0, 0, 1]), "flat": np.array([-1])}  # fmt: skip
    nodes = [
        Node("Size", ["x"], ["size"]),
        Node("Unsqueeze", ["size", "axis"], ["all"]),
        Node("Reshape", ["x", "all"], ["y"]),
        Node("Shape", ["x"], ["shape"]),
        Node("ReduceProd", ["shape"], ["product"]),
        Node("Reshape", ["x", "product"], ["z"]),
        Node("Gather", ["shape", "zero"], ["count"]),
        Node("OneHot", ["of", "count", "ends"], ["w"]),
    ]
    assert traces(make(nodes, weights, "yzw"), (3, 5, 4, 8, 2)) == 2


def test_quotients_of_sizes() -> None:
    """A quotient is one size where it is exact; what can be below 0 is rounded towards 0."""
    weights = {"zero": np.array([0]), "one": np.ones(1, np.float32), "two": np.array([2]),
               "five": np.array([5]), "many": np.array([70])}  # fmt: skip
    count = [Node("Shape", ["x"], ["shape"]), Node("Gather", ["shape", "zero"], ["n"])]
    square = [Node("Mul", ["n", "n"], ["a"]), Node("Add", ["a", "n"], ["b"]),
              Node("Div", ["b", "n"], ["k"])]  # fmt: skip
    below = [Node("Sub", ["n", "five"], ["a"]), Node("Div", ["a", "two"], ["b"]),
             Node("Add", ["b", "many"], ["k"])]  # fmt: skip
    under = [Node("Div", ["many", "n"], ["k"])]
    for nodes, least, most in ((square, 2, 2), (below, 3, 10), (under, 3, 10)):
        proto = make([*count, *nodes, Node("Expand", ["one", "k"], ["y"])], weights, "y")
        assert least <= traces(proto) <= most


@pytest.mark.parametrize("columns", [9, 300])
def test_the_greatest_of_each_row(columns: int) -> None:
    """TopK sorts along an axis that is known; how many rows there are is not."""
    nodes = [Node("TopK", ["x", "k"], ["y", "z"], largest=0)]
    assert traces(make(nodes, {"k": np.array([4])}, "yz", columns), SIZES, columns) == 2


def test_values_of_constants_decide_shapes() -> None:
    """Also where no function of the host computes them."""
    nodes = [
        Node("Constant", [], ["c"], value_floats=[1.1]),
        Node("Exp", ["c"], ["e"]),
        Node("Round", ["e"], ["r"]),
        Node("Cast", ["r"], ["k"], to=TensorProto.INT64),
        Node("Concat", ["k", "rest"], ["sizes"], axis=0),
        Node("Reshape", ["x", "sizes"], ["y"]),
        Node("Constant", [], ["side"], value_float=9.0),
        Node("Constant", [], ["half"], value_float=0.5),
        Node("Pow", ["side", "half"], ["root"]),
        Node("Cast", ["root"], ["size"], to=TensorProto.INT64),
        Node("Unsqueeze", ["size", "zero"], ["sizes of z"]),
        Node("Concat", ["rest", "sizes of z"], ["both"], axis=0),
        Node("Reshape", ["x", "both"], ["z"]),
    ]
    assert traces(make(nodes, {"rest": np.array([-1]), "zero": np.array([0])}, "yz"), (3, 6)) == 2


def test_inputs_that_are_refused_say_nothing_of_others() -> None:
    """A call that fails is not the one that decides which sizes are symbolic."""
    nodes = [Node("Reshape", ["x", "sizes"], ["y"])]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", "columns"])
    y = helper.make_empty_tensor_value_info("y")
    sizes = numpy_helper.from_array(np.array([0, 3, 2]), "sizes")
    model = load(helper.make_model(helper.make_graph(nodes, "g", [x], [y], [sizes])))
    for rows, columns in ((2, 6), (3, 7), (3, 6), (4, 6), (5, 6)):
        values = np.ones((rows, columns), np.float32)
        if columns == 7:
            with pytest.raises(ShapeError, match="Reshape"):
                model(values)
        else:
            assert model(values).shape == (rows, 3, 2)
    assert "rows" in model.sizes.limits and model._traced.traces == 2


def test_rows_are_rolled_by_a_remainder() -> None:
    """A number modulo a size is that number where the size is greater."""
    weights = {"two": np.array([2]), "zero": np.array([0])}
    nodes = [
        Node("Shape", ["x"], ["shape"], end=1),
        Node("Mod", ["two", "shape"], ["by"]),
        Node("Slice", ["x", "zero", "by", "zero"], ["first"]),
        Node("Slice", ["x", "by", "shape", "zero"], ["later"]),
        Node("Concat", ["later", "first"], ["y"], axis=0),
    ]
    assert traces(make(nodes, weights, "y"), (8, 5, 4, 7, 64)) == 2
    assert traces(make(nodes, weights, "y"), (3, 2, 1, 8)) > 2


def test_attention_takes_symbolic_sizes() -> None:
    """Queries and keys of any length under a mask of both; and a grid of as many points."""
    said = {
        "q": (TensorProto.FLOAT, ["batch", 2, "rows", 4]),
        "k": (TensorProto.FLOAT, ["batch", 2, "columns", 4]),
        "mask": (TensorProto.BOOL, ["rows", "columns"]),
        "theta": (TensorProto.FLOAT, [1, 2, 3]),
    }
    weights = {"ones": np.array([1, 1])}
    nodes = [
        Node("Attention", ["q", "k", "k", "mask"], ["y"]),
        Node("Shape", ["mask"], ["points"]),
        Node("Concat", ["ones", "points"], ["size"], axis=0),
        Node("AffineGrid", ["theta", "size"], ["grid"], align_corners=1),
    ]
    inputs = [helper.make_tensor_value_info(name, *kind) for name, kind in said.items()]
    results = [helper.make_empty_tensor_value_info(name) for name in ("y", "grid")]
    arrays = [numpy_helper.from_array(each, name) for name, each in weights.items()]
    graph = helper.make_graph(nodes, "g", inputs, results, arrays)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    model, reference = load(proto), ReferenceEvaluator(proto)
    for batch, rows, columns in ((2, 3, 5), (1, 4, 4), (3, 2, 9), (2, 6, 2)):
        rng = np.random.default_rng(rows)
        feeds = {
            "q": rng.standard_normal((batch, 2, rows, 4)).astype(np.float32),
            "k": rng.standard_normal((batch, 2, columns, 4)).astype(np.float32),
            "mask": rng.random((rows, columns)) < 0.7,
            "theta": rng.standard_normal((1, 2, 3)).astype(np.float32),
        }
        feeds["mask"][:, 0] = True
        for ours, theirs in zip(model.run(feeds).values(), reference.run(None, feeds),
                                strict=True):  # fmt: skip
            np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-4, atol=1e-5)
    assert model._traced.traces == 2
