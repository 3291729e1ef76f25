"""Weights go to a file and back under the names of `nn.state`."""

from pathlib import Path

import numpy as np

from weft import Tensor, nn


def test_weights_survive_a_file(tmp_path: Path) -> None:
    model = nn.Linear(3, 2)
    nn.state.safe_save(nn.state.get_state_dict(model), str(tmp_path / "weights.safetensors"))
    other = nn.Linear(3, 2)
    nn.state.load_state_dict(other, nn.state.safe_load(tmp_path / "weights.safetensors"))
    x = Tensor([[1.0, 2.0, 3.0]])
    np.testing.assert_array_equal(model(x).numpy(), other(x).numpy())
