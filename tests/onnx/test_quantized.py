"""Quantized networks beside onnxruntime: the same integers, and where they differ, why."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from weft.onnx import load  # noqa: E402

RNG = np.random.default_rng(5)


class Network:
    """A graph whose values are integers between pairs of QuantizeLinear and DequantizeLinear."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.weights: dict[str, Any] = {}
        self.count = 0

    def weight(self, array: Any) -> str:
        self.count += 1
        self.weights[f"w{self.count}"] = np.asarray(array)
        return f"w{self.count}"

    def node(self, op: str, *inputs: str, **attributes: Any) -> str:
        self.count += 1
        self.nodes.append(helper.make_node(op, list(inputs), [f"v{self.count}"], **attributes))
        return f"v{self.count}"

    def small(self, value: str, scale: float, zero: int) -> str:
        """A float in 8 bits and back."""
        numbers = (self.weight(np.float32(scale)), self.weight(np.uint8(zero)))
        return self.node(
            "DequantizeLinear", self.node("QuantizeLinear", value, *numbers), *numbers
        )

    def conv(self, value: str, x_scale: float, inner: int, outer: int, size: int) -> str:
        """A convolution with a scale for each channel, and a bias of integers."""
        scales = (RNG.random(outer) * 0.02 + 0.005).astype(np.float32)
        kernel = RNG.integers(-127, 128, (outer, inner, size, size)).astype(np.int8)
        zeros = self.weight(np.zeros(outer, np.int8))
        weight = self.node(
            "DequantizeLinear", self.weight(kernel), self.weight(scales), zeros, axis=0
        )
        bias = RNG.integers(-2000, 2000, outer).astype(np.int32)
        wide = self.weight(scales * np.float32(x_scale))
        none = self.weight(np.zeros(outer, np.int32))
        shift = self.node("DequantizeLinear", self.weight(bias), wide, none, axis=0)
        return self.node("Conv", value, weight, shift, pads=[size // 2] * 4)

    def model(self, output: str, shape: list[int]) -> Any:
        graph = helper.make_graph(
            self.nodes,
            "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)],
            [numpy_helper.from_array(array, name) for name, array in self.weights.items()],
        )
        opsets = [helper.make_opsetid("", 17)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def optimized(model: Any, x: Any) -> Any:
    """What onnxruntime makes of it after its own rewrites into quantized operators."""
    session = runtime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"x": x})[0]


def test_a_network_of_pairs_has_the_integers_of_onnxruntime() -> None:
    """Convolutions, gates and products in 8 bits: not one of the integers is another one."""
    net = Network()
    value = net.small("x", 1 / 255, 0)
    value = net.small(net.conv(value, 1 / 255, 3, 8, 3), 0.05, 128)
    gate = net.small(net.node("Sigmoid", value), 1 / 255, 0)
    value = net.small(net.node("Mul", value, gate), 0.03, 10)
    value = net.small(net.conv(value, 0.03, 8, 16, 1), 0.2, 120)
    value = net.small(net.node("MaxPool", value, kernel_shape=[2, 2], strides=[2, 2]), 0.2, 120)
    x = RNG.random((1, 3, 12, 12)).astype(np.float32)
    model = net.model(value, list(x.shape))
    wanted = optimized(model, x)
    assert len(np.unique(wanted)) > 50
    for uses_jit in (False, True):
        np.testing.assert_array_equal(load(model, jit=uses_jit)(x).numpy(), wanted)


def test_a_softmax_between_pairs_is_that_of_the_floats() -> None:
    """Weft rounds the true numbers, as the graph says; onnxruntime's rewrite of it does not."""
    net = Network()
    scale = 0.0061
    value = net.small("x", 0.12, 100)
    value = net.small(net.node("Softmax", value, axis=-1), scale, 0)
    x = (RNG.standard_normal((64, 16)) * 4).astype(np.float32)
    model = net.model(value, list(x.shape))
    rough = np.clip(np.round(x / np.float32(0.12)) + 100, 0, 255) - 100
    powers = np.exp((rough - rough.max(1, keepdims=True)) * np.float64(np.float32(0.12)))
    true = powers / powers.sum(1, keepdims=True) / np.float64(np.float32(scale))
    ours, theirs = (
        each / np.float32(scale) for each in (load(model)(x).numpy(), optimized(model, x))
    )
    assert np.abs(ours - true).max() <= 0.5 + 1e-3
    assert 0.5 + 1e-2 < np.abs(theirs - true).max() <= 2


@pytest.mark.parametrize("kind", [np.uint8, np.int8])
@pytest.mark.parametrize(("axis", "opset"), [(-1, 13), (0, 13), (1, 12)])
def test_a_softmax_of_integers_is_that_of_onnxruntime(kind: Any, axis: int, opset: int) -> None:
    """QLinearSoftmax divides integers; some in a million are one beside, none of these."""
    ends, rng = np.iinfo(kind), np.random.default_rng(7)
    names = ("x", "xs", "xz", "ys", "yz")
    node = helper.make_node(
        "QLinearSoftmax", names, ["y"], domain="com.microsoft", axis=axis, opset=opset
    )
    element = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    sides = [helper.make_tensor_value_info(name, element, None) for name in "xy"]
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    for size, step, unit in ((7, 0.003, 1 / 256), (16, 0.12, 0.0061), (60, 1.3, 1 / 255)):
        x = rng.integers(ends.min, ends.max + 1, (5, size, 3)).astype(kind)
        numbers = (np.float32(step), kind(3), np.float32(unit), kind(ends.min + 2))
        weights = [
            numpy_helper.from_array(np.asarray(value), name)
            for name, value in zip(names[1:], numbers, strict=True)
        ]
        graph = helper.make_graph([node], "g", sides[:1], sides[1:], weights)
        model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
        np.testing.assert_array_equal(load(model)(x).numpy(), optimized(model, x))


def test_floats_of_one_bit_apart_round_to_other_integers() -> None:
    """Why networks quantized while they run differ: equal inputs give equal integers."""
    node = helper.make_node("DynamicQuantizeLinear", ["x"], ["y", "s", "z"])
    sides = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None])]
    outputs = [helper.make_empty_tensor_value_info(name) for name in "ysz"]
    graph = helper.make_graph([node], "g", sides, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session = runtime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    x = (RNG.standard_normal(100_000) * 3).astype(np.float32)
    wanted, scale, zero = session.run(None, {"x": x})
    found = load(model).run({"x": x})
    np.testing.assert_array_equal(found["y"].numpy(), wanted)
    assert found["s"].numpy() == scale and found["z"].numpy() == zero
    edge = np.float32(scale) * np.float32(10.5)  # between two integers
    pair = np.array([x.min(), x.max(), np.nextafter(edge, 0), edge * (1 + 1e-6)], np.float32)
    low, high = load(model).run({"x": pair})["y"].numpy()[2:].astype(int)
    assert high - low == 1
