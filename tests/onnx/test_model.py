"""`onnx.load`: a model as a function: names, dtypes, traces, sizes, weights, messages."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from weft import (  # noqa: E402
    ArgumentError,
    ArgumentTypeError,
    FileFormatError,
    MissingFile,
    NotSupported,
    ShapeError,
    Tensor,
)
from weft.onnx import info, load  # noqa: E402

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def make(
    nodes: list[Any],
    inputs: dict[str, tuple[int, Any]],
    outputs: dict[str, tuple[int, Any]],
    weights: dict[str, Any] | None = None,
    opset: int = 18,
    functions: list[Any] | None = None,
    domains: tuple[str, ...] = (),
) -> Any:
    """A model of nodes; inputs and outputs have an element type and a shape."""
    sides = [
        [helper.make_tensor_value_info(name, *said) for name, said in side.items()]
        for side in (inputs, outputs)
    ]
    kept = [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()]
    graph = helper.make_graph(nodes, "graph", *sides, kept)
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(name, 1) for name in domains)]
    return helper.make_model(graph, opset_imports=opsets, functions=functions or [])


def linear(**changes: Any) -> Any:
    weights = {"w": np.array([[1.0, 2.0], [3.0, 4.0]], np.float32), "b": np.ones(2, np.float32)}
    node = helper.make_node("Gemm", ["x", "w", "b"], ["y"], name="layer")
    shape = ["batch", 2]
    return make([node], {"x": (FLOAT, shape)}, {"y": (FLOAT, shape)}, weights, **changes)


def test_a_model_is_called_by_position_and_by_name() -> None:
    """Arrays, tensors and keywords give the same output; `run` names it."""
    model, x = load(linear()), np.array([[1.0, 1.0]], np.float32)
    assert model(x).tolist() == [[5.0, 7.0]]
    assert model(x=Tensor(x)).tolist() == [[5.0, 7.0]]
    assert {name: value.tolist() for name, value in model.run({"x": x}).items()} == {
        "y": [[5.0, 7.0]]
    }
    assert [(each.name, each.shape) for each in model.inputs] == [("x", ("batch", 2))]


def test_bytes_and_paths_are_loaded(tmp_path: Path) -> None:
    """The source of a model may be bytes, a path, or a protobuf."""
    path = tmp_path / "m.onnx"
    path.write_bytes(linear().SerializeToString())
    x = np.array([[1.0, 1.0]], np.float32)
    for source in (path, str(path), path.read_bytes(), linear()):
        assert load(source)(x).tolist() == [[5.0, 7.0]]


def test_one_trace_for_each_shape_and_one_for_symbolic_sizes() -> None:
    """A named dimension with limits is symbolic: all of its values run one trace."""
    plain, symbolic = load(linear()), load(linear(), sizes={"batch": (1, 8)})
    for rows in (1, 3, 8):
        x = np.arange(2 * rows, dtype=np.float32).reshape(rows, 2)
        wanted = x @ np.array([[1.0, 2.0], [3.0, 4.0]], np.float32) + 1
        np.testing.assert_allclose(plain(x).numpy(), wanted)
        np.testing.assert_allclose(symbolic(x).numpy(), wanted)
    assert plain._traced.traces == 2  # one of the first size, and one of all others
    assert symbolic._traced.traces == 1
    with pytest.raises(ShapeError, match="size 9 of 'batch'"):
        symbolic(np.zeros((9, 2), np.float32))


def test_symbolic_batches_of_images() -> None:
    """Convolution, resizing and a shape that is computed of the batch: one trace."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Resize", ["c", "", "scales"], ["r"], mode="nearest"),
        helper.make_node("Shape", ["r"], ["s"]),
        helper.make_node("Slice", ["s", "zero", "one"], ["n"]),
        helper.make_node("Concat", ["n", "rest"], ["target"], axis=0),
        helper.make_node("Reshape", ["r", "target"], ["y"]),
    ]
    rng = np.random.default_rng(0)
    weights = {
        "w": rng.standard_normal((2, 3, 3, 3)).astype(np.float32),
        "scales": np.array([1, 1, 2, 2], np.float32),
        "zero": np.array([0]),
        "one": np.array([1]),
        "rest": np.array([-1]),
    }
    said = ({"x": (FLOAT, ["n", 3, 4, 4])}, {"y": (FLOAT, ["n", 128])})
    plain, symbolic = (load(make(nodes, *said, weights), sizes=s) for s in (None, {"n": (1, 4)}))
    for rows in (1, 4):
        x = rng.standard_normal((rows, 3, 4, 4)).astype(np.float32)
        np.testing.assert_allclose(symbolic(x).numpy(), plain(x).numpy(), rtol=1e-5, atol=1e-6)
    assert symbolic._traced.traces == 1
    assert not symbolic.is_eager


def attention() -> Any:
    """Embeddings, positions and attention of two heads, with shapes computed as exporters do."""
    rng = np.random.default_rng(0)
    weights = {f"w{each}": rng.standard_normal((8, 8)).astype(np.float32) * 0.3 for each in "qkv"}
    weights["table"] = rng.standard_normal((32, 8)).astype(np.float32)
    numbers = {"zero": 0, "one": 1, "axis": [0], "heads": [2], "size": [4], "width": [8]}
    weights |= {name: np.array(value, np.int64) for name, value in numbers.items()}
    node = helper.make_node
    nodes = [
        node("Gather", ["table", "ids"], ["words"]),
        node("Shape", ["ids"], ["shape"]),
        node("Gather", ["shape", "zero"], ["b"]),
        node("Gather", ["shape", "one"], ["t"]),
        node("Unsqueeze", ["b", "axis"], ["b1"]),
        node("Unsqueeze", ["t", "axis"], ["t1"]),
        node("Range", ["zero", "t", "one"], ["steps"]),
        node("Gather", ["table", "steps"], ["positions"]),
        node("Add", ["words", "positions"], ["x"]),
        node("Concat", ["b1", "t1", "heads", "size"], ["apart"], axis=0),
        node("Concat", ["b1", "t1", "width"], ["together"], axis=0),
    ]
    for each, order in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
        nodes += [
            node("MatMul", ["x", f"w{each}"], [f"{each}0"]),
            node("Reshape", [f"{each}0", "apart"], [f"{each}1"]),
            node("Transpose", [f"{each}1"], [each], perm=order),
        ]
    nodes += [
        node("MatMul", ["q", "k"], ["scores"]),
        node("Softmax", ["scores"], ["shares"], axis=-1),
        node("MatMul", ["shares", "v"], ["mixed"]),
        node("Transpose", ["mixed"], ["moved"], perm=[0, 2, 1, 3]),
        node("Reshape", ["moved", "together"], ["y"]),
    ]
    said = {"ids": (INT64, ["batch", "time"])}, {"y": (FLOAT, ["batch", "time", 8])}
    return make(nodes, *said, weights)


def test_symbolic_batches_and_lengths_of_attention() -> None:
    """One trace for all batches and lengths: ranges, reshapes and softmaxes of symbolic sizes."""
    plain = load(attention(), device="PYTHON", jit=False)
    symbolic, every = (
        load(attention(), sizes=sizes) for sizes in ({"batch": (1, 4), "time": (2, 16)}, 16)
    )
    for shape in ((2, 5), (1, 9), (3, 16)):
        ids = np.random.default_rng(1).integers(0, 32, shape)
        np.testing.assert_allclose(symbolic(ids).numpy(), plain(ids).numpy(), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(every(ids).numpy(), plain(ids).numpy(), rtol=1e-4, atol=1e-5)
    assert symbolic._traced.traces == every._traced.traces == 1
    assert not symbolic.is_eager


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float64"])
def test_all_floats_become_another_dtype(kind: str) -> None:
    """Weights, constants, casts and inputs: nothing widens what a model computes in."""
    nodes = [
        helper.make_node("Constant", [], ["two"], value_floats=[2.0, 4.0]),
        helper.make_node("Cast", ["n"], ["f"], to=FLOAT),
        helper.make_node("Mul", ["x", "w"], ["a"]),
        helper.make_node("Div", ["a", "two"], ["b"]),
        helper.make_node("Constant", [], ["least"], value_float=-3.4028234e38),
        helper.make_node("Mul", ["least", "nothing"], ["none"]),  # a mask that hides nothing
        helper.make_node("Sum", ["b", "f", "none"], ["y"]),
        helper.make_node("Shape", ["y"], ["s"]),
    ]
    said = {"x": (FLOAT, [3, 2]), "n": (INT64, [2])}, {"y": (FLOAT, [3, 2]), "s": (INT64, [2])}
    weights = {"w": np.array([0.5, 1.5], np.float32), "nothing": np.zeros(2, np.float32)}
    for uses_jit in (False, True):
        model = load(make(nodes, *said, weights), jit=uses_jit).to(kind)
        x, n = np.arange(6, dtype=np.float32).reshape(3, 2), np.array([1, 2])
        y, shape = model(x, n)
        assert (y.dtype.name, shape.dtype.name) == (kind, "int64")
        np.testing.assert_allclose(y.float().numpy(), x * [0.25, 0.375] + n, rtol=2e-2)


def test_weights_are_an_ordinary_state_dict() -> None:
    """Weights are read, replaced, and cast to another dtype."""
    model, x = load(linear()), np.array([[1.0, 1.0]], np.float32)
    state = model.state_dict()
    assert {name: value.shape for name, value in state.items()} == {"w": (2, 2), "b": (2,)}
    model.load_state_dict({"b": Tensor([10.0, 10.0])})
    assert model(x).tolist() == [[14.0, 16.0]]
    with pytest.raises(ArgumentError, match="no weight 'c'"):
        model.load_state_dict({"c": Tensor([1.0])})
    half = load(linear()).to("float16")
    assert half(x.astype(np.float16)).dtype.name == "float16"


def test_shape_arithmetic_is_done_while_tracing() -> None:
    """Reshape to sizes computed of a shape: the model is traced, and no kernel computes them."""
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["n"]),
        helper.make_node("Unsqueeze", ["n", "zeros"], ["n1"]),
        helper.make_node("Concat", ["n1", "rest"], ["target"], axis=0),
        helper.make_node("Reshape", ["x", "target"], ["y"]),
    ]
    weights = {
        "zero": np.array(0, np.int64),
        "zeros": np.array([0], np.int64),
        "rest": np.array([-1], np.int64),
    }
    proto = make(nodes, {"x": (FLOAT, ["n", 2, 3])}, {"y": (FLOAT, ["n", 6])}, weights)
    model = load(proto)
    assert model(np.zeros((4, 2, 3), np.float32)).shape == (4, 6)
    assert not model.is_eager


def test_an_input_that_shapes_come_from_is_static() -> None:
    """Sizes that are an input make a trace for each of their values."""
    node = helper.make_node("Reshape", ["x", "shape"], ["y"])
    proto = make([node], {"x": (FLOAT, [6]), "shape": (INT64, [2])}, {"y": (FLOAT, None)})
    model, x = load(proto), np.arange(6, dtype=np.float32)
    assert model(x, np.array([2, 3])).shape == (2, 3)
    assert model(x, np.array([3, 2])).shape == (3, 2)
    assert not model.is_eager
    assert model._traced.traces >= 2


def test_what_depends_on_values_runs_eagerly() -> None:
    """The number of nonzero elements is a value: the model still runs."""
    node = helper.make_node("NonZero", ["t"], ["y"])
    first = helper.make_node("Relu", ["x"], ["t"])
    proto = make([first, node], {"x": (FLOAT, [4])}, {"y": (INT64, None)})
    model = load(proto)
    assert model(np.array([1, -1, 0, 2], np.float32)).tolist() == [[0, 3]]
    assert model.is_eager


def test_a_condition_of_tensors_is_chosen_by_elements() -> None:
    """An If whose branches are alike is traced: both are computed."""
    branches = {
        f"{name}_branch": helper.make_graph(
            [helper.make_node(operator, ["x"], [name])],
            name,
            [],
            [helper.make_tensor_value_info(name, FLOAT, [2])],
        )
        for name, operator in (("then", "Neg"), ("else", "Abs"))
    }
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["total"], keepdims=0),
        helper.make_node("Greater", ["total", "zero"], ["flag"]),
        helper.make_node("If", ["flag"], ["y"], **branches),
    ]
    weights = {"zero": np.array(0, np.float32)}
    model = load(make(nodes, {"x": (FLOAT, [2])}, {"y": (FLOAT, [2])}, weights))
    assert model(np.array([1.0, 2.0], np.float32)).tolist() == [-1.0, -2.0]
    assert model(np.array([-1.0, -2.0], np.float32)).tolist() == [1.0, 2.0]
    assert not model.is_eager


def test_functions_of_the_model_are_called() -> None:
    """A node may call a function of nodes, with attributes."""
    body = [
        helper.make_node("Constant", [], ["c"], value_float=2.0),
        helper.make_node("Mul", ["a", "c"], ["d"]),
        helper.make_node("Softmax", ["d"], ["b"]),
    ]
    reference = onnx.AttributeProto(
        name="axis", ref_attr_name="along", type=onnx.AttributeProto.INT
    )
    body[2].attribute.append(reference)
    function = helper.make_function(
        "own", "Sharp", ["a"], ["b"], body, [helper.make_opsetid("", 18)], ["along"]
    )
    node = helper.make_node("Sharp", ["x"], ["y"], domain="own", along=0)
    proto = make(
        [node], {"x": (FLOAT, [2, 2])}, {"y": (FLOAT, [2, 2])}, None, 18, [function], ("own",)
    )
    x = np.array([[0.0, 1.0], [1.0, 0.0]], np.float32)
    wanted = np.exp(2 * x) / np.exp(2 * x).sum(0)
    np.testing.assert_allclose(load(proto)(x).numpy(), wanted, rtol=1e-6)


def test_all_unsupported_operators_are_named() -> None:
    """One message names each operator that is missing, with the nodes that need it."""
    nodes = [
        helper.make_node("Nothing", ["x"], ["a"], name="first", domain="own"),
        helper.make_node("Nobody", ["a"], ["y"], name="second", domain="own"),
    ]
    proto = make(nodes, {"x": (FLOAT, [1])}, {"y": (FLOAT, [1])}, domains=("own",))
    with pytest.raises(NotSupported) as caught:
        load(proto)
    text = str(caught.value)
    assert all(word in text for word in ("Nothing", "Nobody", "'first'", "'second'"))
    assert set(info(proto).unsupported) == {"own.Nobody (opset 1)", "own.Nothing (opset 1)"}


def test_inputs_are_checked() -> None:
    """Names, dtypes and shapes of inputs are those that the model says."""
    model = load(linear())
    with pytest.raises(ArgumentError, match="no input 'z'"):
        model(z=np.zeros((1, 2), np.float32))
    with pytest.raises(ArgumentError, match="'x' are missing"):
        model()
    with pytest.raises(ArgumentTypeError, match="float64"):
        model(np.zeros((1, 2)))
    with pytest.raises(ShapeError, match=r"\(1, 3\)"):
        model(np.zeros((1, 3), np.float32))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda g: g.node[0].input.__setitem__(0, "nothing"), "nothing makes it"),
        (lambda g: g.node[0].output.__setitem__(0, "x"), "there already"),
        (lambda g: g.node.append(helper.make_node("Relu", ["y", "y"], ["z"])), "has 2 inputs"),
        (lambda g: g.initializer[0].dims.__setitem__(0, 7), "cannot be read"),
        (lambda g: g.node[0].attribute.append(helper.make_attribute("transB", "x")), "kind INT"),
        (lambda g: g.output.append(helper.make_tensor_value_info("q", FLOAT, [1])), "by no node"),
    ],
)
def test_malformed_models_are_named(change: Any, words: str) -> None:
    """What is wrong with a model is said when it is loaded or run."""
    proto = linear()
    change(proto.graph)
    with pytest.raises(FileFormatError, match=words):
        load(proto)(np.zeros((1, 2), np.float32))


def test_files_that_are_not_models(tmp_path: Path) -> None:
    """Other bytes, an empty file and a missing one are errors of their kinds."""
    for content in (b"", b"hello, world", b"\xff" * 100):
        with pytest.raises(FileFormatError, match="not an ONNX model"):
            load(content)
    with pytest.raises(MissingFile):
        load(tmp_path / "nothing.onnx")


def test_loops_end() -> None:
    """A loop without a limit stops with an error."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["on"], ["go"]), helper.make_node("Add", ["s", "s"], ["t"])],
        "body",
        [
            helper.make_tensor_value_info("i", INT64, []),
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("s", FLOAT, [1]),
        ],
        [
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("t", FLOAT, [1]),
        ],
    )
    node = helper.make_node("Loop", ["", "yes", "x"], ["y"], body=body)
    proto = make([node], {"x": (FLOAT, [1])}, {"y": (FLOAT, [1])}, {"yes": np.array(True)})
    model = load(proto, device="PYTHON", jit=False, most_iterations=20)
    with pytest.raises(ArgumentError, match="more than 20 iterations"):
        model(np.ones(1, np.float32))


@pytest.mark.parametrize("length", [3, 20])
def test_scans_short_and_long(length: int) -> None:
    """Prefix sums by a Scan: a short one is written out, the body of a long one is traced once."""
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "x"], ["t"]), helper.make_node("Identity", ["t"], ["y"])],
        "body",
        [helper.make_tensor_value_info(name, FLOAT, [2]) for name in ("s", "x")],
        [helper.make_tensor_value_info(name, FLOAT, [2]) for name in ("t", "y")],
    )
    node = helper.make_node("Scan", ["start", "xs"], ["last", "ys"], body=body, num_scan_inputs=1)
    proto = make(
        [node],
        {"start": (FLOAT, [2]), "xs": (FLOAT, [length, 2])},
        {"last": (FLOAT, [2]), "ys": (FLOAT, [length, 2])},
    )
    xs = np.arange(2 * length, dtype=np.float32).reshape(length, 2)
    model = load(proto)
    last, ys = model(np.ones(2, np.float32), xs)
    np.testing.assert_allclose(ys.numpy(), 1 + xs.cumsum(0))
    np.testing.assert_allclose(last.numpy(), 1 + xs.sum(0))
    assert not model.is_eager


class TestExternalData:
    """Tensors in other files, which lie inside of the model's folder."""

    def model(self, folder: Path, location: str, **more: str) -> Path:
        proto = linear()
        weight = proto.graph.initializer[0]
        content = weight.raw_data
        weight.ClearField("raw_data")
        weight.data_location = TensorProto.EXTERNAL
        for key, value in {"location": location, **more}.items():
            entry = weight.external_data.add()
            entry.key, entry.value = key, value
        (folder / "w.bin").write_bytes(b"1234" + content)
        path = folder / "model.onnx"
        path.write_bytes(proto.SerializeToString())
        return path

    def test_is_read_when_it_is_needed(self, tmp_path: Path) -> None:
        path = self.model(tmp_path, "w.bin", offset="4", length="16")
        model = load(path)
        assert model(np.array([[1.0, 1.0]], np.float32)).tolist() == [[5.0, 7.0]]

    @pytest.mark.parametrize("location", ["../w.bin", "/etc/passwd", "a/../../w.bin", "link", ""])
    def test_outside_of_the_folder_is_refused(self, tmp_path: Path, location: str) -> None:
        folder = tmp_path / "model"
        folder.mkdir()
        (tmp_path / "w.bin").write_bytes(b"0" * 64)
        os.symlink(tmp_path / "w.bin", folder / "link")
        with pytest.raises(FileFormatError, match="outside of the model's folder"):
            load(self.model(folder, location))

    def test_beyond_the_end_is_refused(self, tmp_path: Path) -> None:
        path = self.model(tmp_path, "w.bin", offset="16", length="16")
        with pytest.raises(FileFormatError, match=r"lies outside of w\.bin"):
            load(path)(np.ones((1, 2), np.float32))

    def test_bytes_have_no_folder(self, tmp_path: Path) -> None:
        content = self.model(tmp_path, "w.bin").read_bytes()
        with pytest.raises(FileFormatError, match="no folder"):
            load(content)(np.ones((1, 2), np.float32))


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "message"),
    [
        ("LayerNormalization", ("x", "x"), {"axis": 1 << 40}, "axis 1099511627776 of 2 axes"),
        ("GatherElements", ("x", "i"), {"axis": -3}, "axis -3 of 2 axes"),
        ("SoftmaxCrossEntropyLoss", ("x", "t"), {"reduction": "some"}, "reduction 'some'"),
    ],
)
def test_attributes_outside_of_what_there_is_are_refused(
    op: str, inputs: tuple[str, ...], attributes: dict[str, Any], message: str
) -> None:
    """They are not taken for something near."""
    kinds = {"x": (TensorProto.FLOAT, [2, 2]), "i": (7, [2, 2]), "t": (7, [2])}
    names = dict.fromkeys(inputs)
    sides = [helper.make_tensor_value_info(name, *kinds[name]) for name in names]
    node = helper.make_node(op, list(inputs), ["y"], **attributes)
    result = helper.make_empty_tensor_value_info("y")
    graph = helper.make_graph([node], "g", sides, [result])
    model = load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))
    given = {"x": np.ones((2, 2), np.float32), "i": np.zeros((2, 2), np.int64)}
    given["t"] = np.zeros(2, np.int64)
    with pytest.raises(ArgumentError, match=message):
        model.run({name: given[name] for name in names})
