"""`weft run` and `weft onnx info`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx")

from weft import Tensor
from weft.cli.main import main
from weft.onnx import save


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "double.onnx"
    save(lambda x: (x * 2).exp(), path, [Tensor([[1.0, 2.0]])], names=["x"])
    return path


def test_run_writes_and_prints_outputs(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Inputs by position and by name; outputs as a file of arrays."""
    x = tmp_path / "x.npy"
    np.save(x, np.array([[0.0, 1.0]], np.float32))
    out = tmp_path / "out.npz"
    assert main(["run", str(model), "--input", str(x), "--output", str(out), "--times", "2"]) == 0
    assert "output_0: float32 (1, 2)" in capsys.readouterr().out
    np.testing.assert_allclose(np.load(out)["output_0"], [[1.0, np.e**2]], rtol=1e-6)
    assert main(["run", str(model), "--input", f"x={x}"]) == 0


def test_run_says_what_is_missing(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A missing input and a missing file are errors, not tracebacks."""
    assert main(["run", str(model)]) == 1
    assert "'x' are missing" in capsys.readouterr().err
    assert main(["run", str(model), "--input", "nothing.npy"]) == 1
    assert "nothing.npy" in capsys.readouterr().err


def test_info_prints_what_a_model_is(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Opsets, shapes, operators, and whether everything is supported."""
    assert main(["onnx", "info", str(model)]) == 0
    text = capsys.readouterr().out
    assert all(
        words in text for words in ("ai.onnx 26", "x: float (1, 2)", "Exp 1", "every operator")
    )


def test_info_counts_with_sizes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The cost has the sizes that are named; quantized products count, unknown ones are said."""
    from onnx import TensorProto, helper

    nodes = [
        helper.make_node("MatMulInteger", ["x", "w"], ["y"]),
        helper.make_node("NonZero", ["y"], ["z"]),
        helper.make_node("Cast", ["z"], ["c"], to=TensorProto.INT8),
        helper.make_node("MatMulInteger", ["c", "c"], ["d"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.INT8, ["batch", 4])],
        [helper.make_empty_tensor_value_info("d")],
        [helper.make_tensor("w", TensorProto.INT8, [4, 1000], [1] * 4000)],
    )
    path = tmp_path / "sized.onnx"
    path.write_bytes(helper.make_model(graph).SerializeToString())
    assert main(["onnx", "info", str(path), "--size", "batch=1000"]) == 0
    text = capsys.readouterr().out
    assert "4.0 million multiplications at batch 1000, and 1 products" in text
    assert main(["onnx", "info", str(path), "--size", "batch"]) == 1
