"""Models of images with named heights and widths: one trace, with onnxruntime's results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from weft.onnx import info, load  # noqa: E402
from weft.onnx.model_info import report  # noqa: E402

FLOAT, INT = TensorProto.FLOAT, TensorProto.INT64
RANDOM = np.random.default_rng(0)
# Batches, heights and widths; the first have a trace of their own.
SIZES = ((1, 32, 32), (1, 48, 64), (2, 33, 47), (3, 96, 35), (1, 37, 38))
MULTIPLES = ((1, 32, 32), (1, 48, 64), (2, 32, 96), (3, 96, 16))


def node(op: str, inputs: str, outputs: str, **attributes: Any) -> Any:
    """A node by the names of its inputs, `-` for none, and of its outputs."""
    names = [name.replace("-", "") for name in inputs.split()]
    return helper.make_node(op, names, outputs.split(), name=f"{op} {outputs}", **attributes)


def weights(**shapes: Any) -> dict[str, Any]:
    return {
        name: (RANDOM.standard_normal(shape) * 0.2).astype(np.float32)
        for name, shape in shapes.items()
    }


def numbers(**values: Any) -> dict[str, Any]:
    return {
        name: np.array(value, np.float32 if "." in str(value) else np.int64)
        for name, value in values.items()
    }


def model_of(nodes: list[Any], held: dict[str, Any], opset: int = 18, shape: Any = None) -> Any:
    """A model of an image of four channels; the last node gives its outputs."""
    said = shape or ["batch", 4, "height", "width"]
    results = [
        helper.make_tensor_value_info(name, FLOAT if kind == FLOAT else kind, None)
        for name, kind in zip(nodes[-1].output, (FLOAT, INT), strict=False)
    ]
    arrays = [numpy_helper.from_array(each, name) for name, each in held.items()]
    inputs = [helper.make_tensor_value_info("x", FLOAT, said)]
    graph = helper.make_graph(nodes, "g", inputs, results, arrays)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


BATCH_NORM = {
    **weights(scale=(6,), shift=(6,), mean=(6,)),
    "variance": np.abs(RANDOM.standard_normal(6)).astype(np.float32) + 0.5,
}
REPEATED = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
CASES: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "a residual network": (
        [
            node("Conv", "x w b", "c", pads=[1, 1, 1, 1], strides=[2, 2]),
            node("BatchNormalization", "c scale shift mean variance", "n"),
            node("Relu", "n", "r"),
            node("MaxPool", "r", "p", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
            node("Conv", "p w3", "d", pads=[1, 1, 1, 1], strides=[2, 2]),
            node("Conv", "p w1", "e", strides=[2, 2]),
            node("Add", "d e", "s"),
            node("GlobalAveragePool", "s", "g"),
            node("Flatten", "g", "f"),
            node("Gemm", "f head", "y"),
        ],
        {
            **weights(w=(6, 4, 3, 3), b=(6,), w3=(8, 6, 3, 3), w1=(8, 6, 1, 1), head=(8, 5)),
            **BATCH_NORM,
        },
    ),
    "automatic padding": (
        [
            node("Conv", "x w", "c", auto_pad="SAME_UPPER", strides=[2, 3]),
            node("MaxPool", "c", "m", kernel_shape=[3, 2], auto_pad="SAME_LOWER", strides=[2, 2]),
            node("Conv", "m v", "y", auto_pad="VALID", dilations=[2, 1]),
        ],
        weights(w=(5, 4, 5, 4), v=(3, 5, 3, 3)),
    ),
    "pools that round up": (
        [
            node("MaxPool", "x", "m", kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1),
            node("AveragePool", "m", "a", kernel_shape=[2, 2], strides=[3, 3], ceil_mode=1),
            node(
                "AveragePool",
                "a",
                "y",
                kernel_shape=[3, 3],
                pads=[1, 1, 1, 1],
                count_include_pad=1,
            ),
        ],
        {},
    ),
    "where the greatest were": (
        [node("MaxPool", "x", "y z", kernel_shape=[3, 3], strides=[2, 2], pads=[0, 1, 1, 0])],
        {},
    ),
    "a transposed convolution": (
        [
            node(
                "ConvTranspose",
                "x w b",
                "t",
                strides=[2, 2],
                pads=[1, 1, 1, 1],
                output_padding=[1, 1],
            ),
            node("ConvTranspose", "t v", "y", group=2, dilations=[2, 2]),
        ],
        weights(w=(4, 6, 3, 3), b=(6,), v=(6, 2, 2, 2)),
    ),
    "nearest, twice as large": (
        [node("Resize", "x - s", "y", mode="nearest", **REPEATED)],
        numbers(s=[1.0, 1.0, 2.0, 2.0]),
    ),
    "nearest, smaller": (
        [node("Resize", "x - s", "y", mode="nearest")],
        numbers(s=[1.0, 1.0, 0.5, 0.75]),
    ),
    "linear": (
        [node("Resize", "x - s", "y", mode="linear")],
        numbers(s=[1.0, 1.0, 2.0, 1.5]),
    ),
    "linear, corners kept": (
        [
            node(
                "Resize",
                "x - s",
                "y",
                mode="linear",
                coordinate_transformation_mode="align_corners",
            )
        ],
        numbers(s=[1.0, 1.0, 2.0, 3.0]),
    ),
    "cubic, of pixels": (
        [
            node(
                "Resize",
                "x - s",
                "y",
                mode="cubic",
                coordinate_transformation_mode="pytorch_half_pixel",
                cubic_coeff_a=-0.5,
            )
        ],
        numbers(s=[1.0, 1.0, 3.0, 1.25]),
    ),
    "as large as the image": (
        [
            node("MaxPool", "x", "m", kernel_shape=[2, 2], strides=[2, 2]),
            node("Shape", "x", "all"),
            node("Slice", "all two four", "sizes"),
            node("Shape", "m", "own"),
            node("Slice", "own zero two", "lead"),
            node("Concat", "lead sizes", "wanted", axis=0),
            node(
                "Resize",
                "m - - wanted",
                "r",
                mode="linear",
                coordinate_transformation_mode="half_pixel",
            ),
            node("Concat", "r x", "y", axis=1),
        ],
        numbers(zero=[0], two=[2], four=[4]),
    ),
    "sizes that are computed as floats": (
        [
            node("Shape", "x", "all"),
            node("Gather", "all two", "height"),
            node("Gather", "all three", "width"),
            node("Cast", "height", "h", to=FLOAT),
            node("Cast", "width", "w", to=FLOAT),
            node("Mul", "h half", "h2"),
            node("Mul", "w double", "w2"),
            node("Floor", "h2", "h3"),
            node("Floor", "w2", "w3"),
            node("Cast", "h3", "h4", to=INT),
            node("Cast", "w3", "w4", to=INT),
            node("Slice", "all zero two", "lead"),
            node("Concat", "lead h4 w4", "wanted", axis=0),
            node("Resize", "x - - wanted", "y", mode="nearest", **REPEATED),
        ],
        {**numbers(zero=[0], two=[2], three=[3], half=1.5, double=2.0)},
    ),
    "padding": (
        [
            node("Pad", "x amounts", "p", mode="reflect"),
            node("Pad", "p amounts", "q", mode="edge"),
            node("Pad", "q amounts seven", "y"),
        ],
        {**numbers(amounts=[0, 0, 3, 1, 0, 0, 2, 4]), "seven": np.array(7, np.float32)},
    ),
    "flat, and back": (
        [
            node("Shape", "x", "all"),
            node("Conv", "x w", "c", pads=[1, 1, 1, 1]),
            node("Slice", "all zero one", "batch"),
            node("Concat", "batch three rest", "flat", axis=0),
            node("Reshape", "c flat", "f"),
            node("Softmax", "f", "s", axis=-1),
            node("Slice", "all two four", "sizes"),
            node("Concat", "batch three sizes", "image", axis=0),
            node("Reshape", "s image", "y"),
        ],
        {
            **weights(w=(3, 4, 3, 3)),
            **numbers(zero=[0], one=[1], two=[2], three=[3], four=[4], rest=[-1]),
        },
    ),
    "a grid of the centers of cells": (
        [
            node("Conv", "x w", "c", strides=[2, 2], pads=[1, 1, 1, 1]),
            node("Shape", "c", "all"),
            node("Gather", "all three", "width"),
            node("Cast", "width", "float", to=FLOAT),
            node("Range", "zero float one", "steps"),
            node("Add", "steps half", "centers"),
            node("Add", "c centers", "y"),
        ],
        {**weights(w=(3, 4, 3, 3)), **numbers(three=3, zero=0.0, one=1.0, half=0.5)},
    ),
    "every second pixel": (
        [
            node("Slice", "x starts ends axes steps", "a"),
            node("Conv", "a w", "y", pads=[1, 1, 1, 1]),
        ],
        {
            **weights(w=(3, 4, 3, 3)),
            **numbers(starts=[1, 0], ends=[1 << 62, 1 << 62], axes=[2, 3], steps=[2, 2]),
        },
    ),
}


def image(batch: int, height: int, width: int) -> Any:
    return (
        np.random.default_rng(height).standard_normal((batch, 4, height, width)).astype(np.float32)
    )


def assert_like_onnxruntime(proto: Any, sizes: Any, traces: int) -> Any:
    session = runtime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    model = load(proto)
    for each in sizes:
        x = image(*each)
        wanted = session.run(None, {"x": x})
        found = list(model.run({"x": x}).values())
        for got, right in zip(found, wanted, strict=True):
            np.testing.assert_allclose(got.numpy(), right, rtol=1e-3, atol=1e-4)
    assert not model.is_eager
    assert model._traced.traces == traces, model.sizes.problems
    return model


@pytest.mark.parametrize("name", CASES)
def test_one_trace_for_the_first_sizes_and_one_for_all_others(name: str) -> None:
    nodes, held = CASES[name]
    assert_like_onnxruntime(model_of(nodes, held), SIZES, 2)


def unet() -> Any:
    """Halved, doubled, and joined with what there was."""
    nodes = [
        node("Conv", "x w", "c", pads=[1, 1, 1, 1]),
        node("MaxPool", "c", "m", kernel_shape=[2, 2], strides=[2, 2]),
        node("MaxPool", "m", "n", kernel_shape=[2, 2], strides=[2, 2]),
        node("ConvTranspose", "n v", "u", strides=[2, 2]),
        node("Add", "m u", "s"),
        node("Resize", "s - twice", "t", mode="nearest", **REPEATED),
        node("Concat", "c t", "y", axis=1),
    ]  # fmt: skip
    held = {**weights(w=(6, 4, 3, 3), v=(6, 6, 2, 2)), **numbers(twice=[1.0, 1.0, 2.0, 2.0])}
    return model_of(nodes, held)


def test_sizes_that_are_halved_and_doubled_are_multiples() -> None:
    model = assert_like_onnxruntime(unet(), MULTIPLES, 2)
    assert model.sizes.limits["height"].multiple == model.sizes.limits["width"].multiple == 4
    assert model.sizes.limits["batch"].multiple == 1
    text = report(info(unet()))
    assert "height: symbolic, one trace for all multiples of 4 from 4 up to 65536" in text
    assert model(image(1, 40, 44)).shape == (1, 12, 40, 44)
    assert model._traced.traces == 2
    with pytest.raises(Exception, match="Add s"):
        model(image(1, 42, 44))


def test_least_sizes_are_found() -> None:
    """Two convolutions without padding need seven pixels; the batch needs one."""
    nodes = [node("Conv", "x w", "c"), node("MaxPool", "c", "y", kernel_shape=[3, 3])]
    model = assert_like_onnxruntime(model_of(nodes, weights(w=(3, 4, 5, 5))), SIZES, 2)
    limits = model.sizes.limits
    assert limits["batch"].least == 1 and 7 <= limits["height"].least <= 8
    assert model(image(1, 7, 7)).shape == (1, 3, 1, 1)


def test_dimensions_without_names() -> None:
    nodes, held = CASES["a residual network"]
    assert_like_onnxruntime(model_of(nodes, held, shape=[None, 4, None, None]), SIZES, 2)
