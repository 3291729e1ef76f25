"""Image files: pixels in the order that is asked for, and errors that say what is missing."""

from __future__ import annotations

import io
import sys
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper  # noqa: E402

from weft import ArgumentError, NotSupported  # noqa: E402
from weft.onnx import load  # noqa: E402


def decoder(pixel_format: str) -> Any:
    """A model that reads a file, and doubles its pixels as floats."""
    nodes = [
        helper.make_node("ImageDecoder", ["x"], ["pixels"], pixel_format=pixel_format),
        helper.make_node("Cast", ["pixels"], ["floats"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["floats", "floats"], ["y"]),
    ]
    said = helper.make_tensor_value_info("x", TensorProto.UINT8, ["bytes"])
    graph = helper.make_graph(nodes, "g", [said], [helper.make_empty_tensor_value_info("y")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def png(pixels: Any) -> Any:
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    content = io.BytesIO()
    image.fromarray(pixels).save(content, "PNG")
    return np.frombuffer(content.getvalue(), np.uint8)


@pytest.mark.parametrize("height", [3, 5])
def test_channels_come_in_the_order_that_is_asked_for(height: int) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (height, 4, 3)).astype(np.uint8)
    for order, wanted in (("RGB", pixels), ("BGR", pixels[:, :, ::-1])):
        model = load(decoder(order))
        assert np.array_equal(model(png(pixels)).numpy(), wanted.astype(np.float32) * 2)
        assert model.is_eager  # a file has a size of its own
    gray = np.arange(12, dtype=np.uint8).reshape(3, 4)
    assert load(decoder("Grayscale"))(png(gray)).numpy()[:, :, 0].tolist() == (gray * 2.0).tolist()


def test_what_is_no_image_is_an_error() -> None:
    pytest.importorskip("PIL", reason="Pillow is not installed")
    model = load(decoder("RGB"))
    with pytest.raises(ArgumentError, match="7 bytes are not an image"):
        model(np.arange(7, dtype=np.uint8))
    content = png(np.zeros((64, 64, 3), np.uint8))
    with pytest.raises(ArgumentError, match="cannot be read"):
        model(content[: len(content) // 2])


def test_without_pillow_the_error_says_what_to_install(monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(NotSupported, match=r'pip install "weft\[images\]"'):
        load(decoder("RGB"))(np.zeros(4, np.uint8))
