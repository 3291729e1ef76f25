"""`onnx.save`: saved functions give the same numbers in onnxruntime and when loaded again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

import weft  # noqa: E402
from tests.onnx.save_functions import FUNCTIONS  # noqa: E402
from weft import NotSupported, Tensor, jit  # noqa: E402
from weft.onnx import load, save  # noqa: E402
from weft.tensor.trees import tensors_in  # noqa: E402


def _require_equal(results: list[Any], wanted: list[Any]) -> None:
    assert len(results) == len(wanted)
    for result, other in zip(results, wanted, strict=True):
        assert result.dtype == other.dtype
        assert result.shape == other.shape
        np.testing.assert_allclose(result, other, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_round_trip(name: str, tmp_path: Path) -> None:
    """A function, its file in onnxruntime, and its file in Weft agree."""
    function, inputs = FUNCTIONS[name]
    wanted = [each.numpy() for each in tensors_in(function(*map(Tensor, inputs)))]
    path = tmp_path / "model.onnx"
    save(function, path, inputs)
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    feeds = {each.name: value for each, value in zip(session.get_inputs(), inputs, strict=True)}
    _require_equal(session.run(None, feeds), wanted)
    again = load(path, device="PYTHON", jit=False).run(
        {f"input_{number}": value for number, value in enumerate(inputs)}
    )
    _require_equal([each.numpy() for each in again.values()], wanted)


def test_at_least_sixty_functions() -> None:
    """The sample is as large as it was."""
    assert len(FUNCTIONS) >= 60


def test_jitted_functions_and_names(tmp_path: Path) -> None:
    """A jitted function is saved as the function is, under names that are given."""
    weight = Tensor([[1.0, 2.0], [3.0, 4.0]])
    model = save(jit(lambda x: x @ weight), None, [np.ones((1, 2), np.float32)], names=["x"])
    assert [each.name for each in model.graph.input] == ["x"]
    assert load(model)(np.array([[1.0, 1.0]], np.float32)).tolist() == [[4.0, 6.0]]


def test_writes_are_refused() -> None:
    """A function that changes what it captures has no file."""
    total = Tensor.zeros(2).contiguous().realize()

    def adds(x: Tensor) -> Tensor:
        total.assign(total + x)
        return total + 0

    with pytest.raises(NotSupported, match="writes to tensors"):
        save(adds, None, [np.ones(2, np.float32)])


def test_large_weights_lie_beside_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What one protobuf cannot hold is external data, which onnxruntime and Weft read."""
    from weft.onnx.write import builder

    monkeypatch.setattr(builder, "MOST_INSIDE", 1000)
    weights = [Tensor(np.full((20, 20), value, np.float32)) for value in (0.5, 0.25)]
    small = Tensor(np.ones(20, np.float32))
    path, x = tmp_path / "large.onnx", np.ones((2, 20), np.float32)
    save(lambda x: x @ weights[0] @ weights[1] + small, path, [x])
    assert (tmp_path / "large.onnx.data").stat().st_size == 2 * 1600
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(session.run(None, {"input_0": x})[0], np.full((2, 20), 51.0))
    np.testing.assert_allclose(load(path)(x).numpy(), np.full((2, 20), 51.0))


def test_complex_numbers_stand_between_real_ones() -> None:
    """Transforms inside of a function are written in pairs; complex results are refused."""
    with pytest.raises(NotSupported, match="complex inputs and outputs"):
        save(weft.fft.fft, None, [np.ones(8, np.float32)])


def test_nothing_is_written_that_nobody_reads() -> None:
    """Every weight of a file is an input of a node, here or in a graph inside."""
    model = save(lambda x: x.cumprod(0) * x[:, :2].sum(), None, [np.ones((3, 3), np.float32)])
    nodes = list(model.graph.node)
    for node in nodes:
        nodes += [inner for each in node.attribute for inner in each.g.node]
    read = {name for node in nodes for name in node.input}
    assert {each.name for each in model.graph.initializer} <= read
