"""Sums of products of 8-bit integers, beside NumPy's, for all signs and zero points."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import helper, numpy_helper  # noqa: E402

from weft import Tensor  # noqa: E402
from weft.onnx import load  # noqa: E402

KINDS = ("uint8", "int8")
PAIRS = list(itertools.product(KINDS, KINDS))
# No zero point, one that the file has, one that is an input, and one for each row or channel.
ZEROS = ("none", "weight", "input", "each")


def drawn(kind: str, shape: tuple[int, ...], seed: int) -> Any:
    limits = np.iinfo(kind)
    rng = np.random.default_rng(seed)
    return rng.integers(limits.min, limits.max + 1, shape).astype(kind)


def model_of(operator: str, values: list[Any], weights: set[int], **attributes: Any) -> Any:
    """A model of one node, some of whose inputs are weights."""
    names = [f"v{n}" if value is not None else "" for n, value in enumerate(values)]
    node = helper.make_node(operator, names, ["y"], **attributes)
    protos = {
        n: numpy_helper.from_array(value, f"v{n}")
        for n, value in enumerate(values)
        if value is not None
    }
    inputs = [
        helper.make_tensor_value_info(proto.name, proto.data_type, list(proto.dims))
        for n, proto in protos.items()
        if n not in weights
    ]
    graph = helper.make_graph(
        [node],
        "g",
        inputs,
        [helper.make_tensor_value_info("y", onnx.TensorProto.INT32, None)],
        [proto for n, proto in protos.items() if n in weights],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def zero_of(how: str, kind: str, count: int, seed: int) -> Any:
    if how == "none":
        return None
    return drawn(kind, (count,) if how == "each" else (), seed)


def less(x: Any, zero: Any, axis: int) -> Any:
    if zero is None or not zero.ndim:
        return x.astype(np.int64) - (0 if zero is None else int(zero))
    shape = [1] * x.ndim
    shape[axis] = -1
    return x.astype(np.int64) - zero.astype(np.int64).reshape(shape)


@pytest.mark.parametrize("kinds", PAIRS)
@pytest.mark.parametrize("zeros", list(itertools.product(ZEROS, ZEROS)))
def test_products(kinds: tuple[str, str], zeros: tuple[str, str]) -> None:
    x, y = drawn(kinds[0], (5, 10), 1), drawn(kinds[1], (10, 7), 2)
    points = zero_of(zeros[0], kinds[0], 5, 3), zero_of(zeros[1], kinds[1], 7, 4)
    wanted = less(x, points[0], 0) @ less(y, points[1], 1)
    weights = {1, *(n + 2 for n, how in enumerate(zeros) if how in ("weight", "each"))}
    values = [x, y, *points]
    for known in (weights, set()):  # the second factor may be an input, too
        model = load(model_of("MatMulInteger", values, known))
        given = {f"v{n}": v for n, v in enumerate(values) if v is not None and n not in known}
        np.testing.assert_array_equal(model.run(given)["y"].numpy(), wanted)
        assert not model.is_eager


@pytest.mark.parametrize("kinds", PAIRS)
@pytest.mark.parametrize(
    "zeros", [*itertools.product(ZEROS[:3], ZEROS[:3]), ("none", "each"), ("weight", "each")]
)
@pytest.mark.parametrize("channels", (3, 8))
def test_convolutions(kinds: tuple[str, str], zeros: tuple[str, str], channels: int) -> None:
    """Padding is the zero point, whatever the bytes are made of."""
    x, w = drawn(kinds[0], (2, channels, 6, 5), 1), drawn(kinds[1], (4, channels, 3, 2), 2)
    points = zero_of(zeros[0], kinds[0], 1, 3), zero_of(zeros[1], kinds[1], 4, 4)
    wide, weight = less(x, points[0], 1), less(w, points[1], 0)
    padded = np.pad(wide, ((0, 0), (0, 0), (1, 2), (1, 0)))
    views = np.lib.stride_tricks.sliding_window_view(padded, (3, 2), (2, 3))[:, :, ::2]
    wanted = np.einsum("ncyxij,ocij->noyx", views, weight)
    known = {1, *(n + 2 for n, how in enumerate(zeros) if how in ("weight", "each"))}
    values = [x, w, *points]
    proto = model_of("ConvInteger", values, known, pads=[1, 1, 2, 0], strides=[2, 1])
    given = {f"v{n}": v for n, v in enumerate(values) if v is not None and n not in known}
    np.testing.assert_array_equal(load(proto).run(given)["y"].numpy(), wanted)


@pytest.mark.parametrize(("channels", "groups"), ((8, 2), (6, 2), (4, 4)))
def test_groups(channels: int, groups: int) -> None:
    """Words do not reach from one group into another."""
    x, w = drawn("uint8", (1, channels, 5, 5), 1), drawn("int8", (4, channels // groups, 3, 3), 2)
    model = load(model_of("ConvInteger", [x, w, np.uint8(7)], {1, 2}, group=groups))
    wide = Tensor(x.astype(np.int32) - 7).conv2d(Tensor(w.astype(np.int32)), groups=groups)
    np.testing.assert_array_equal(model.run({"v0": x})["y"].numpy(), wide.numpy())


def test_words_follow_the_weight_that_they_are_made_of() -> None:
    x, y = drawn("uint8", (8, 128), 1), drawn("int8", (128, 64), 2)
    model = load(model_of("MatMulInteger", [x, y], {1}))
    for weight in (y, drawn("int8", (128, 64), 3)):
        model.load_state_dict({"v1": Tensor(weight)})
        wanted = x.astype(np.int32) @ weight.astype(np.int32)
        np.testing.assert_array_equal(model.run({"v0": x})["y"].numpy(), wanted)
