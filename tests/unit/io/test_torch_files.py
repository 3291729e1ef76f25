"""PyTorch's files: both formats, views where there can be some, and nothing that runs."""

import os
from pathlib import Path

import numpy as np
import pytest

from fuzz.file_samples import (
    EVIL,
    evil,
    number,
    numbers,
    text,
    torch_legacy,
    torch_tensor,
    torch_zip,
)
from weft import FileFormatError
from weft.io import torch_load
from weft.tensor import Tensor

FORMATS = {"zip": torch_zip, "legacy": torch_legacy}


@pytest.mark.parametrize("format", FORMATS)
def test_a_state_dict(format: str, tmp_path: Path):
    (tmp_path / "x.pth").write_bytes(FORMATS[format]())
    state = torch_load(tmp_path / "x.pth")
    assert list(state) == ["weight", "turned", "every", "step"]
    assert state["weight"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert state["turned"].tolist() == [[0, 3], [1, 4], [2, 5]]
    assert state["every"].tolist() == [1, 3, 5]
    assert state["step"] == 7
    assert state["weight"].device.startswith("DISK")
    assert state["turned"].device.startswith("DISK")


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", EVIL)
def test_nothing_is_run(name: str, format: str, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileFormatError, match="wants to call"):
        torch_load(Tensor(FORMATS[format](evil(*EVIL[name]))))
    assert not list(tmp_path.iterdir())


def state_of(value: bytes) -> bytes:
    return b"\x80\x02" + value + b"."


DAMAGED = {
    "outside": (torch_tensor("0", 6, 4, (3,), (1,)), "outside of its storage"),
    "storage too long": (torch_tensor("0", 7, 0, (7,), (1,)), "too short"),
    "no storage": (torch_tensor("9", 6, 0, (6,), (1,)), "no member"),
    "strides": (torch_tensor("0", 6, 0, (2, 3), (1,)), "do not fit"),
    "negative": (torch_tensor("0", 6, 0, (2,), (-1,)), "are counts"),
    "overlap": (torch_tensor("0", 6, 0, (4, 2), (1, 2)), "overlap"),
    "absurd": (torch_tensor("0", 6, 0, (2**30, 2**30), (0, 0)), None),
    "call of a value": (text("x") + numbers(1) + b"R", "no function"),
    "no mark": (number(1) + b"t", "no mark"),
    "empty": (b"", "damaged"),
    "unknown memo": (b"h\x07", "damaged"),
    "setting attributes": (text("x") + b"}b", "sets attributes"),
    "key": (b"}(]\x85" + number(1) + b"u", "no text and no number"),
    "storage by call": (b"ctorch\nFloatStorage\n)R", "not made by a call"),
    "instance": (b"(ios\nsystem\n", "is not read"),
    "a huge memo": (number(1) + b"r\xff\xff\xff\xff", None),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_pickles(name: str):
    value, message = DAMAGED[name]
    file = Tensor(torch_zip(state_of(value)))
    if message is None:
        torch_load(file)
        return
    with pytest.raises(FileFormatError, match=message):
        torch_load(file)


def test_other_files():
    for data in (b"", b"hello, this is text", b"PK\3\4 but no archive", b"\x80\x02K\x01."):
        with pytest.raises(FileFormatError):
            torch_load(Tensor(data, dtype="uint8"))


def test_a_cut_file_is_found():
    for whole in (torch_zip(), torch_legacy()):
        for size in range(0, len(whole) - 1, 37):
            with pytest.raises(FileFormatError):
                torch_load(Tensor(whole[:size], dtype="uint8"))


@pytest.mark.peers("torch")
@pytest.mark.parametrize("is_zip", [True, False])
def test_files_of_torch(is_zip: bool, tmp_path: Path):
    import torch

    state = {
        "matrix": torch.randn(3, 4),
        "turned": torch.randn(4, 5).T,
        "every": torch.arange(10)[::3],
        "repeated": torch.ones(2, 1).expand(2, 5),
        "bfloat16": torch.randn(4).bfloat16(),
        "fp8": torch.randn(4).to(torch.float8_e4m3fn),
        "uint16": torch.tensor([1, 2], dtype=torch.uint16),
        "parameter": torch.nn.Parameter(torch.randn(2)),
        "bool": torch.tensor([True, False]),
        "none": torch.zeros(0, 3),
    }
    whole = {
        **state,
        "nest": [1, 2.5, "text", (torch.tensor(3), None), {1: b"raw"}],
        "module": torch.nn.Linear(3, 2).state_dict(),
        "size": torch.Size([1, 2]),
        "dtype": torch.float32,
    }
    torch.save(whole, tmp_path / "x", _use_new_zipfile_serialization=is_zip)
    loaded = torch_load(tmp_path / "x")
    assert list(loaded) == list(whole)
    for name, tensor in state.items():
        wide = tensor.detach().float() if name in ("bfloat16", "fp8") else tensor.detach()
        np.testing.assert_array_equal(loaded[name].to("CPU").numpy(), wide.numpy(), name)
    assert loaded["nest"][:3] == [1, 2.5, "text"]
    assert (loaded["nest"][3][0].item(), loaded["nest"][4]) == (3, {1: b"raw"})
    assert loaded["module"]["weight"].shape == (2, 3)
    assert (loaded["size"], loaded["dtype"].name) == ((1, 2), "float32")


@pytest.mark.peers("torch")
def test_an_object_of_torch_is_refused(tmp_path: Path):
    import torch

    class Caller:
        def __reduce__(self):
            return os.system, ("touch weft_was_here",)

    torch.save({"a": Caller()}, tmp_path / "x")
    with pytest.raises(FileFormatError, match="system"):
        torch_load(tmp_path / "x")
    torch.save(torch.nn.Linear(1, 1), tmp_path / "y")
    with pytest.raises(FileFormatError, match=r"torch\.nn\.modules"):
        torch_load(tmp_path / "y")
