"""`onnx.save`: saved functions give the same numbers in onnxruntime and when loaded again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

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
