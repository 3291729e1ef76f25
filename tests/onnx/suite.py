"""The cases of the ONNX backend suite, and what it means to pass one."""

from __future__ import annotations

import os
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from weft.onnx import load
from weft.tensor.tensor import Tensor

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator", "real")


@cache
def cases() -> dict[str, Any]:
    """All cases by `kind/name`."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            f"{kind}/{case.name}": case for kind in KINDS for case in load_model_tests(kind=kind)
        }


def operators_of(case: Any) -> set[str]:
    """The operators of a case's model, with those of graphs inside."""
    model = case.model or onnx.load(_model_path(case), load_external_data=False)
    names: set[str] = set()

    def walk(nodes: Any) -> None:
        for node in nodes:
            names.add(f"{node.domain}.{node.op_type}" if node.domain else node.op_type)
            for attribute in node.attribute:
                walk(attribute.g.node)

    walk(model.graph.node)
    return names


def _model_path(case: Any) -> Path:
    if case.model_dir is None:  # the light copies of the models that the suite names by address
        import onnx.backend.test.data as data

        return (
            Path(next(iter(data.__path__)))
            / "light"
            / f"light_{case.model_name.removeprefix('test_')}.onnx"
        )
    return Path(case.model_dir) / "model.onnx"


def run_case(case: Any, device: str | None) -> None:
    """Raise unless every data set gives what the suite wants."""
    model = load(case.model if case.model is not None else _model_path(case), device, jit=False)
    for inputs, wanted in _data_sets(case, model):
        names = [each.name for each in model.graph.inputs if each.name not in model.graph.weights]
        if len(inputs) > len(names):
            names = [each.name for each in model.graph.inputs]
        inputs, wanted = ([_plain(value) for value in side] for side in (inputs, wanted))
        results = list(model.run(dict(zip(names, inputs, strict=False))).values())
        assert len(results) == len(wanted), f"{len(results)} outputs, wanted {len(wanted)}"
        for value, expected in zip(results, wanted, strict=True):
            require_similar(value, expected, case.rtol, case.atol)


def _plain(value: Any) -> Any:
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def _data_sets(case: Any, model: Any) -> Any:
    if case.data_sets is not None:
        return case.data_sets
    folder = _model_path(case).parent if case.model_dir else None
    if folder is None:
        return _light_data(case)
    sets = []
    for data in sorted(folder.glob("test_data_set_*")):
        sides = []
        for side, described in (("input", model.graph.inputs), ("output", model.graph.outputs)):
            count = len(list(data.glob(f"{side}_*.pb")))
            sides.append([_value(data / f"{side}_{n}.pb", described[n]) for n in range(count)])
        sets.append(tuple(sides))
    return sets


def _value(path: Path, described: Any) -> Any:
    content = path.read_bytes()
    if described.kind == "sequence":
        return numpy_helper.to_list(onnx.SequenceProto.FromString(content))
    if described.kind == "optional":
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(content))
    return numpy_helper.to_array(onnx.TensorProto.FromString(content))


def _light_data(case: Any) -> Any:
    path = _model_path(case)
    wanted = path.with_name(path.stem + "_output_0.pb")
    model = onnx.load(path)
    weights = {each.name for each in model.graph.initializer}
    (said,) = [each for each in model.graph.input if each.name not in weights]
    shape = [dim.dim_value for dim in said.type.tensor_type.shape.dim]
    size = int(np.prod(shape))
    ramp = (np.arange(size, dtype=np.float32) / size).reshape(shape)
    return [([ramp], [numpy_helper.to_array(onnx.TensorProto.FromString(wanted.read_bytes()))])]


def require_similar(value: Any, wanted: Any, rtol: float, atol: float) -> None:
    """Raise unless a result is the one that is wanted, in kind, type, shape and numbers."""
    if wanted is None or value is None:
        assert wanted is None and value is None
        return
    if isinstance(wanted, list):
        assert isinstance(value, list) and len(value) == len(wanted)
        for one, other in zip(value, wanted, strict=True):
            require_similar(one, other, rtol, atol)
        return
    wanted = np.asarray(wanted)
    if wanted.dtype.kind in "OUS":
        np.testing.assert_array_equal(np.asarray(value, dtype=object), wanted.astype(object))
        return
    tensor = value if isinstance(value, Tensor) else value.tensor
    if isinstance(value, Tensor):
        name = tensor.dtype.name.replace("fp8e", "float8_e").replace("e4m3", "e4m3fn")
        name = name.replace("e4m3fnfnuz", "e4m3fnuz").replace("__", "_")
        assert name == wanted.dtype.name, f"dtype {name}, wanted {wanted.dtype.name}"
    array = tensor.numpy()
    assert array.shape == wanted.shape, f"shape {array.shape}, wanted {wanted.shape}"
    if wanted.dtype.name == "bfloat16":
        rtol = max(rtol, 2**-6)  # as the suite's own runner has it: two units in the last place
    if wanted.dtype.kind not in "iufb":
        wanted = wanted.astype(np.float32)
        array = array.astype(np.float32)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(array, wanted, rtol=rtol, atol=atol)


DEVICE = os.environ.get("WEFT_ONNX_DEVICE", "PYTHON")
