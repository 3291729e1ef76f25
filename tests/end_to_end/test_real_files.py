"""Files that others wrote, from packages of PyPI; skipped where they cannot be had."""

import zipfile

import numpy as np
import pytest
from package_file import NotAvailable, package_file

from weft import FileFormatError
from weft.io import torch_load

RESEMBLYZER = (
    "Resemblyzer",
    "0.1.4",
    "8f12eb2f1a9982d32e8db7856de754709b59c93a77bcf0ff536584b619a9dd1f",
    "resemblyzer/pretrained.pt",
)
WHISPERX = (
    "whisperx",
    "3.8.6",
    "cb6d4fcd3fb6c42305cb8b222a33a0b78f6b657e9db3b714345fe43dc0a69c1f",
    "whisperx/assets/pytorch_model.bin",
)


def path_of(package: tuple[str, str, str, str]) -> str:
    try:
        return str(package_file(*package))
    except NotAvailable as reason:
        pytest.skip(str(reason))


def test_a_state_dict_of_an_lstm():
    state = torch_load(path_of(RESEMBLYZER))
    weights = state["model_state"]
    assert weights["lstm.weight_hh_l0"].shape == (1024, 256)
    assert weights["lstm.weight_hh_l0"].device.startswith("DISK")
    values = weights["linear.bias"].numpy()
    assert values.dtype == np.float32
    assert np.isfinite(values).all()


@pytest.mark.peers("torch")
def test_a_state_dict_like_torch():
    import torch

    path = path_of(RESEMBLYZER)
    wanted = torch.load(path, map_location="cpu", weights_only=True)["model_state"]
    loaded = torch_load(path)["model_state"]
    assert list(loaded) == list(wanted)
    for name, tensor in wanted.items():
        np.testing.assert_array_equal(loaded[name].to("CPU").numpy(), tensor.numpy())


def test_a_checkpoint_with_objects_is_refused():
    path = path_of(WHISPERX)
    assert zipfile.is_zipfile(path)
    with pytest.raises(FileFormatError, match="wants to call omegaconf"):
        torch_load(path)
