"""Operators that the backend suite lacks, beside onnxruntime: com.microsoft, ai.onnx.ml."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from weft.onnx import load  # noqa: E402

MICROSOFT, ML = "com.microsoft", "ai.onnx.ml"


def f32(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def u8(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(0, 255, shape).astype(np.uint8)


def i8(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(-127, 127, shape).astype(np.int8)


def number(value: Any, dtype: Any = np.float32) -> Any:
    return np.array(value, dtype=dtype)


def run(
    operator: str, domain: str, inputs: list[Any], outputs: int = 1, **attributes: Any
) -> tuple[list[Any], list[Any]]:
    """What onnxruntime and Weft make of one node."""
    names = [f"i{n}" if value is not None else "" for n, value in enumerate(inputs)]
    results = [f"o{n}" for n in range(outputs)]
    node = helper.make_node(operator, names, results, domain=domain, **attributes)
    given = {name: value for name, value in zip(names, inputs, strict=True) if name}
    sides = [
        helper.make_tensor_value_info(
            name, numpy_helper.from_array(value).data_type, list(value.shape)
        )
        for name, value in given.items()
    ]
    said = [helper.make_empty_tensor_value_info(name) for name in results]
    graph = helper.make_graph([node], "g", sides, said)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(MICROSOFT, 1)]
    opsets.append(helper.make_opsetid(ML, 3))
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    session = runtime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    wanted = session.run(results, given)
    ours = load(model, device="PYTHON", jit=False).run(given)
    return wanted, [each.numpy() if hasattr(each, "numpy") else each for each in ours.values()]


B, T, H, S = 2, 3, 2, 4  # batch, time, heads, size of a head
WIDTH = H * S

CASES: dict[str, tuple[Any, ...]] = {
    "gelu": ("Gelu", [f32(2, 5)], 1, {}),
    "fast-gelu": ("FastGelu", [f32(2, 5), f32(5)], 1, {}),
    "bias-gelu": ("BiasGelu", [f32(2, 5), f32(5)], 1, {}),
    "quick-gelu": ("QuickGelu", [f32(2, 5)], 1, {"alpha": 1.5}),
    "skip-layer-norm": (
        "SkipLayerNormalization",
        [f32(B, T, 8), f32(B, T, 8, seed=1), f32(8, seed=2), f32(8, seed=3), f32(8, seed=4)],
        1,
        {"epsilon": 1e-5},
    ),
    "skip-simplified": (
        "SkipSimplifiedLayerNormalization",
        [f32(B, T, 8), f32(B, T, 8, seed=1), f32(8, seed=2)],
        1,
        {"epsilon": 1e-5},
    ),
    "embed-layer-norm": (
        "EmbedLayerNormalization",
        [
            number([[1, 2, 3]], np.int32),
            number([[0, 1, 0]], np.int32),
            f32(6, 8),
            f32(5, 8, seed=1),
            f32(2, 8, seed=2),
            f32(8, seed=3),
            f32(8, seed=4),
            number([[1, 1, 0]], np.int32),
        ],
        2,
        {"epsilon": 1e-5},
    ),
    "fused-matmul": (
        "FusedMatMul",
        [f32(2, 4, 3), f32(2, 4, 5)],
        1,
        {"transA": 1, "alpha": 0.5},
    ),
    "fused-conv": (
        "FusedConv",
        [f32(1, 2, 5, 5), f32(3, 2, 3, 3), f32(3)],
        1,
        {"activation": "Relu", "pads": [1, 1, 1, 1]},
    ),
    "attention": (
        "Attention",
        [f32(B, T, 6), f32(6, 3 * WIDTH, seed=1), f32(3 * WIDTH, seed=2)],
        1,
        {"num_heads": H},
    ),
    "attention-causal": (
        "Attention",
        [f32(B, T, 6), f32(6, 3 * WIDTH, seed=1), f32(3 * WIDTH, seed=2)],
        1,
        {"num_heads": H, "unidirectional": 1},
    ),
    "attention-mask": (
        "Attention",
        [
            f32(B, T, 6),
            f32(6, 3 * WIDTH, seed=1),
            f32(3 * WIDTH, seed=2),
            number([[1, 1, 0], [1, 1, 1]], np.int32),
        ],
        1,
        {"num_heads": H},
    ),
    "attention-lengths": (
        "Attention",
        [
            f32(B, T, 6),
            f32(6, 3 * WIDTH, seed=1),
            f32(3 * WIDTH, seed=2),
            number([2, 3], np.int32),
        ],
        1,
        {"num_heads": H},
    ),
    "multi-head": (
        "MultiHeadAttention",
        [f32(B, T, WIDTH), f32(B, 5, WIDTH, seed=1), f32(B, 5, WIDTH, seed=2)],
        1,
        {"num_heads": H},
    ),
    "multi-head-bias": (
        "MultiHeadAttention",
        [
            f32(B, T, WIDTH),
            f32(B, T, WIDTH, seed=1),
            f32(B, T, WIDTH, seed=2),
            f32(3 * WIDTH, seed=3),
            None,
            f32(1, H, T, T, seed=4),
        ],
        1,
        {"num_heads": H},
    ),
    "group-query": (
        "GroupQueryAttention",
        [
            f32(B, T, 4 * 8),
            f32(B, T, 2 * 8, seed=1),
            f32(B, T, 2 * 8, seed=2),
            np.zeros((B, 2, 0, 8), np.float32),
            np.zeros((B, 2, 0, 8), np.float32),
            number([T - 1] * B, np.int32),
            number(T, np.int32),
        ],
        3,
        {"num_heads": 4, "kv_num_heads": 2},
    ),
    "group-query-rotary": (
        "GroupQueryAttention",
        [
            f32(1, 1, 2 * 16),
            f32(1, 1, 16, seed=1),
            f32(1, 1, 16, seed=2),
            f32(1, 1, 4, 16, seed=3),
            f32(1, 1, 4, 16, seed=4),
            number([4], np.int32),
            number(5, np.int32),
            f32(8, 8, seed=5),
            f32(8, 8, seed=6),
        ],
        3,
        {"num_heads": 2, "kv_num_heads": 1, "do_rotary": 1},
    ),
    "rotary": (
        "RotaryEmbedding",
        [
            f32(B, H, T, S),
            number([[0, 1, 2], [1, 2, 3]], np.int64),
            f32(6, S // 2, seed=1),
            f32(6, S // 2, seed=2),
        ],
        1,
        {},
    ),
    "rotary-interleaved": (
        "RotaryEmbedding",
        [
            f32(B, T, WIDTH),
            number([1], np.int64),
            f32(6, S // 2, seed=1),
            f32(6, S // 2, seed=2),
        ],
        1,
        {"interleaved": 1},
    ),
    "matmul-4-bits": (
        "MatMulNBits",
        [f32(3, 64), u8(5, 2, 16), f32(10, seed=1)],
        1,
        {"K": 64, "N": 5, "bits": 4, "block_size": 32},
    ),
    "matmul-4-bits-zeros": (
        "MatMulNBits",
        [f32(3, 64), u8(5, 2, 16), f32(10, seed=1), u8(5, seed=2)],
        1,
        {"K": 64, "N": 5, "bits": 4, "block_size": 32},
    ),
    "matmul-8-bits": (
        "MatMulNBits",
        [f32(3, 64), u8(5, 2, 32), f32(10, seed=1)],
        1,
        {"K": 64, "N": 5, "bits": 8, "block_size": 32},
    ),
    "dynamic-quantize-matmul": (
        "DynamicQuantizeMatMul",
        [f32(3, 8), i8(8, 5), number(0.02), number(0, np.int8), f32(5)],
        1,
        {},
    ),
    "matmul-integer-to-float": (
        "MatMulIntegerToFloat",
        [
            u8(3, 8),
            i8(8, 5),
            number(0.1),
            f32(5) ** 2,
            number(7, np.uint8),
            np.zeros(5, np.int8),
        ],
        1,
        {},
    ),
    "qlinear-add": (
        "QLinearAdd",
        [
            *(u8(3, 4), number(0.1), number(120, np.uint8)),
            *(u8(3, 4, seed=1), number(0.2), number(100, np.uint8)),
            *(number(0.3), number(110, np.uint8)),
        ],
        1,
        {},
    ),
    "qlinear-mul": (
        "QLinearMul",
        [
            *(u8(3, 4), number(0.1), number(120, np.uint8)),
            *(u8(3, 4, seed=1), number(0.2), number(100, np.uint8)),
            *(number(0.9), number(110, np.uint8)),
        ],
        1,
        {},
    ),
    "qlinear-sigmoid": (
        "QLinearSigmoid",
        [u8(3, 4), number(0.05), number(120, np.uint8), number(0.004), number(3, np.uint8)],
        1,
        {},
    ),
    "qlinear-leaky-relu": (
        "QLinearLeakyRelu",
        [u8(3, 4), number(0.05), number(120, np.uint8), number(0.04), number(100, np.uint8)],
        1,
        {"alpha": 0.1},
    ),
    "qlinear-concat": (
        "QLinearConcat",
        [
            *(number(0.1), number(100, np.uint8)),
            *(u8(2, 3), number(0.1), number(90, np.uint8)),
            *(u8(2, 2, seed=1), number(0.2), number(120, np.uint8)),
        ],
        1,
        {"axis": 1},
    ),
    "qlinear-global-average-pool": (
        "QLinearGlobalAveragePool",
        [u8(1, 3, 4, 4), number(0.1), number(90, np.uint8), number(0.05), number(80, np.uint8)],
        1,
        {},
    ),
    "qgemm": (
        "QGemm",
        [
            *(u8(3, 8), number(0.1), number(120, np.uint8)),
            *(i8(8, 5), number(0.02), number(0, np.int8)),
            np.arange(5, dtype=np.int32),
            *(number(0.8), number(100, np.uint8)),
        ],
        1,
        {},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_com_microsoft(name: str) -> None:
    """An operator of com.microsoft gives onnxruntime's numbers."""
    operator, inputs, outputs, attributes = CASES[name]
    wanted, ours = run(operator, MICROSOFT, inputs, outputs, **attributes)
    for result, other in zip(ours, wanted, strict=True):
        assert result.shape == other.shape and result.dtype == other.dtype
        if other.dtype.kind in "iu":  # rounded halves may differ by one
            assert np.abs(result.astype(int) - other.astype(int)).max() <= 1
        else:
            np.testing.assert_allclose(result, other, rtol=2e-4, atol=2e-4)


TREE = {
    "nodes_treeids": [0, 0, 0, 1, 1, 1],
    "nodes_nodeids": [0, 1, 2, 0, 1, 2],
    "nodes_featureids": [0, 0, 0, 1, 0, 0],
    "nodes_values": [0.1, 0.0, 0.0, -0.2, 0.0, 0.0],
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF", "BRANCH_LT", "LEAF", "LEAF"],
    "nodes_truenodeids": [1, 0, 0, 1, 0, 0],
    "nodes_falsenodeids": [2, 0, 0, 2, 0, 0],
}

LEARNED: dict[str, tuple[Any, ...]] = {
    "linear-regressor": (
        "LinearRegressor",
        [f32(4, 3)],
        1,
        {"coefficients": [0.5, -1.0, 2.0], "intercepts": [0.25], "targets": 1},
    ),
    "linear-classifier": (
        "LinearClassifier",
        [f32(4, 2)],
        2,
        {
            "coefficients": [0.5, -1.0, 2.0, 1.0, 0.1, 0.2],
            "intercepts": [0.1, 0.2, 0.3],
            "classlabels_ints": [3, 5, 9],
            "post_transform": "SOFTMAX",
            "multi_class": 1,
        },
    ),
    "normalizer": ("Normalizer", [f32(4, 3)], 1, {"norm": "L2"}),
    "scaler": ("Scaler", [f32(4, 3)], 1, {"offset": [1.0, 2.0, 3.0], "scale": [2.0, 0.5, 1.0]}),
    "imputer": (
        "Imputer",
        [np.array([[1.0, np.nan], [np.nan, 4.0]], np.float32)],
        1,
        {"imputed_value_floats": [7.0, 8.0], "replaced_value_float": float("nan")},
    ),
    "one-hot": (
        "OneHotEncoder",
        [number([[1, 2], [3, 9]], np.int64)],
        1,
        {"cats_int64s": [1, 2, 3]},
    ),
    "feature-vectorizer": (
        "FeatureVectorizer",
        [f32(2, 2), f32(2, 3, seed=1)],
        1,
        {"inputdimensions": [2, 3]},
    ),
    "svm-regressor": (
        "SVMRegressor",
        [f32(4, 2)],
        1,
        {
            "coefficients": [0.5, -0.5, 1.0],
            "support_vectors": [0.0, 1.0, 1.0, 0.0, 0.5, 0.5],
            "kernel_type": "RBF",
            "kernel_params": [0.5, 0.0, 3.0],
            "n_supports": 3,
            "rho": [0.1],
        },
    ),
    "tree-regressor": (
        "TreeEnsembleRegressor",
        [f32(5, 2)],
        1,
        {
            **TREE,
            "target_treeids": [0, 0, 1, 1],
            "target_nodeids": [1, 2, 1, 2],
            "target_ids": [0, 0, 0, 0],
            "target_weights": [1.0, 2.0, 10.0, 20.0],
            "n_targets": 1,
        },
    ),
    "tree-classifier": (
        "TreeEnsembleClassifier",
        [f32(5, 2)],
        2,
        {
            **TREE,
            "class_treeids": [0, 0, 1, 1],
            "class_nodeids": [1, 2, 1, 2],
            "class_ids": [0, 1, 2, 0],
            "class_weights": [1.0, 2.0, 1.5, 2.5],
            "classlabels_int64s": [10, 20, 30],
        },
    ),
}


@pytest.mark.parametrize("name", LEARNED)
def test_ai_onnx_ml(name: str) -> None:
    """An operator of ai.onnx.ml gives onnxruntime's numbers."""
    operator, inputs, outputs, attributes = LEARNED[name]
    wanted, ours = run(operator, ML, inputs, outputs, **attributes)
    for result, other in zip(ours, wanted, strict=True):
        assert result.shape == other.shape and result.dtype == other.dtype
        np.testing.assert_allclose(result, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("operator", ["Conv", "MatMul", "Gemm"])
@pytest.mark.parametrize("is_per_channel", [False, True])
def test_dequantized_products(operator: str, is_per_channel: bool) -> None:
    """Quantized values around a product: the integers are those of onnxruntime, or one off."""
    shapes = {
        "Conv": ((1, 3, 6, 6), (4, 3, 3, 3)),
        "MatMul": ((5, 8), (8, 4)),
        "Gemm": ((5, 8), (8, 4)),
    }
    x, w = u8(*shapes[operator][0]), i8(*shapes[operator][1], seed=1)
    axis = 0 if operator == "Conv" else 1
    count = 4 if is_per_channel else 1
    scale = np.linspace(0.01, 0.03, count).astype(np.float32)
    weights = {
        "xs": number(0.05),
        "xz": number(120, np.uint8),
        "w": w,
        "ws": scale if is_per_channel else scale.reshape(()),
        "wz": np.zeros(count if is_per_channel else (), np.int8),
        "b": f32(4),
        "ys": number(0.2),
        "yz": number(100, np.uint8),
    }
    extra = ["b"] if operator != "MatMul" else []
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "xs", "xz"], ["xf"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wf"], axis=axis),
        helper.make_node(operator, ["xf", "wf", *extra], ["yf"]),
        helper.make_node("QuantizeLinear", ["yf", "ys", "yz"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, list(x.shape))],
        [helper.make_empty_tensor_value_info("y")],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session = runtime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (wanted,) = session.run(["y"], {"x": x})
    result = load(model, device="PYTHON", jit=False)(x).numpy()
    assert result.shape == wanted.shape and len(np.unique(wanted)) > 5
    assert np.abs(result.astype(int) - wanted.astype(int)).max() <= 1


def test_strings_pass_through() -> None:
    """Labels that are strings come out as strings."""
    table = {"keys_int64s": [1, 2], "values_strings": ["one", "two"], "default_string": "many"}
    wanted, ours = run("LabelEncoder", ML, [number([1, 2, 3], np.int64)], 1, **table)
    assert ours[0].tolist() == wanted[0].tolist() == ["one", "two", "many"]


def test_element_types() -> None:
    """Every element type has a dtype, a small form, or an error."""
    from weft.onnx.elements import DTYPES, SMALL, dtype_of

    for value in TensorProto.DataType.values():
        if value in DTYPES or value in SMALL:
            assert dtype_of(value) is not None
