"""Values beside their own extremes: of equal elements a difference is 0, in every kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

from weft.engine.counters import GlobalCounters  # noqa: E402
from weft.onnx import load  # noqa: E402

Node = helper.make_node
SCALED = [
    Node("Mul", ["x", "by"], ["scaled"]),
    Node("ReduceMin", ["scaled"], ["low"], axes=[1], keepdims=1),
    Node("Sub", ["scaled", "low"], ["above"]),
]


def make(nodes: list[Any], result: str) -> Any:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 300])
    y = helper.make_empty_tensor_value_info(result)
    weights = {"by": np.float32(0.43429446), "zero": np.float32(0)}
    arrays = [numpy_helper.from_array(np.asarray(each), name) for name, each in weights.items()]
    graph = helper.make_graph(nodes, "g", [x], [y], arrays)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


@pytest.mark.parametrize("value", [0.1, 0.3, 1e-10, -7.7])
def test_equal_elements_have_no_span(value: float) -> None:
    """A normalization that guards its division, as TensorFlow exports it, on silence."""
    nodes = [
        *SCALED,
        Node("ReduceMax", ["above"], ["span"], axes=[1], keepdims=1),
        Node("Equal", ["span", "zero"], ["is_flat"]),
        Node("Div", ["above", "span"], ["share"]),
        Node("Where", ["is_flat", "zero", "share"], ["y"]),
    ]
    proto, x = make(nodes, "y"), np.full((4, 300), value, np.float32)
    for jit in (True, False):
        model = load(proto, jit=jit)
        for _ in range(2):
            assert not model(x).numpy().any()
    x[:, 7] += 1
    (wanted,) = ReferenceEvaluator(proto).run(None, {"x": x})
    np.testing.assert_allclose(load(proto)(x).numpy(), wanted, rtol=1e-5, atol=1e-6)


def test_a_softmax_that_is_written_out_is_not_stored_for_it() -> None:
    greatest = Node("ReduceMax", ["scaled"], ["low"], axes=[1], keepdims=1)
    nodes = [SCALED[0], greatest, SCALED[2], Node("Exp", ["above"], ["y"])]
    x = np.random.default_rng(0).standard_normal((4, 300)).astype(np.float32)
    counts = []
    for chain in (nodes, [*nodes[:3], Node("Relu", ["above"], ["y"])]):
        model = load(make(chain, "y"), jit=False)
        before = GlobalCounters.kernel_count
        model(x).realize()
        counts.append(GlobalCounters.kernel_count - before)
    assert counts[0] < counts[1]
