"""Edges of operators where files of different opsets, and hosts and tensors, could differ."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

from onnx import helper, numpy_helper  # noqa: E402

from weft import ArgumentError, ShapeError  # noqa: E402
from weft.onnx import load  # noqa: E402


def both(
    op: str, x: Any, rest: list[Any], opset: int, is_known: bool, **attributes: Any
) -> tuple[Any, Any]:
    """onnxruntime's result and Weft's; of a known x the host computes where it can."""
    names = ["x", *(f"r{number}" for number in range(len(rest)))]
    node = helper.make_node(op, names, ["y"], **attributes)
    weights = [
        numpy_helper.from_array(each, name) for each, name in zip(rest, names[1:], strict=True)
    ]
    kind = numpy_helper.from_array(x).data_type
    inputs = [] if is_known else [helper.make_tensor_value_info("x", kind, list(x.shape))]
    weights += [numpy_helper.from_array(x, "x")] if is_known else []
    said = [helper.make_empty_tensor_value_info("y")]
    graph = helper.make_graph([node], "g", inputs, said, weights)
    opsets = [helper.make_opsetid("", opset)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    session = runtime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    feeds = {} if is_known else {"x": x}
    return session.run(None, feeds)[0], load(model, device="PYTHON", jit=False).run(feeds)["y"]


@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.parametrize("start", [-100, -6, -5, -1, 0, 3, 9])
def test_slices_are_clamped_as_the_specification_says(start: int, is_known: bool) -> None:
    """Also backward from before the first element, which is not what NumPy does."""
    x = np.arange(5, dtype=np.int64)
    for end in (-100, -6, -2, 0, 4, 7):
        for step in (1, 2, -1, -2):
            rest = [np.array([number], np.int64) for number in (start, end, 0, step)]
            wanted, found = both("Slice", x, rest, 17, is_known)
            assert found.tolist() == wanted.tolist(), (start, end, step)


def test_the_sign_of_nan_is_nan() -> None:
    x = np.array([np.nan, -2, 0, 3, -np.inf], np.float32)
    wanted, found = both("Sign", x, [], 17, False)
    np.testing.assert_array_equal(found.numpy(), wanted)


@pytest.mark.parametrize("scale", [0.4, 0.6, 1.5, 2.0])
def test_resize_of_opset_10_rounds_by_the_scale(scale: float) -> None:
    x = np.arange(7, dtype=np.float32).reshape(1, 1, 1, 7)
    scales = np.array([1, 1, 1, scale], np.float32)
    wanted, found = both("Resize", x, [scales], 10, False, mode="nearest")
    np.testing.assert_array_equal(found.numpy(), wanted)


def test_windows_that_do_not_fit_into_the_least_size_say_so() -> None:
    """What cannot be traced for all sizes is an error that says how it runs."""
    node = helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2])
    sides = [helper.make_tensor_value_info(name, 1, [1, 1, "n"]) for name in "xy"]
    graph = helper.make_graph([node], "g", sides[:1], sides[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    x = np.ones((1, 1, 5), np.float32)
    with pytest.raises(ArgumentError, match="a window of 2 on an axis of n") as caught:
        load(model, sizes=8)(x)
    assert "greater least sizes" in str(caught.value)
    assert load(model, sizes={"n": (2, 8)})(x).shape == (1, 1, 4)
    assert load(model)(x).shape == (1, 1, 4)


def test_a_branch_that_is_not_chosen_may_be_impossible() -> None:
    """Both branches of a condition on tensors are built only where both can be."""
    empty = helper.make_empty_tensor_value_info
    branches = {
        side: helper.make_graph(
            [helper.make_node("Reshape", ["x", side], ["r"])], side, [], [empty("r")]
        )
        for side in ("then_branch", "else_branch")
    }
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["total"], keepdims=0),
        helper.make_node("Greater", ["total", "zero"], ["is_above"]),
        helper.make_node("If", ["is_above"], ["y"], **branches),
    ]
    weights = [
        numpy_helper.from_array(np.array([2, 3]), "then_branch"),
        numpy_helper.from_array(np.array([4, 2]), "else_branch"),
        numpy_helper.from_array(np.array(0, np.float32), "zero"),
    ]
    x = helper.make_tensor_value_info("x", 1, [6])
    graph = helper.make_graph(nodes, "g", [x], [empty("y")], weights)
    model = load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))
    assert model(np.ones(6, np.float32)).shape == (2, 3)
    with pytest.raises(ShapeError, match="cannot become"):
        model(-np.ones(6, np.float32))
