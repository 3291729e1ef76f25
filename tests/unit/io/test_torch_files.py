"""PyTorch's files: both formats, views where there can be some, and nothing that runs."""

import os
import pickle
import warnings
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
    "call of a value": (text("x") + numbers(1) + b"R", "not a function"),
    "no mark": (number(1) + b"t", "no mark"),
    "empty": (b"", "damaged"),
    "unknown memo": (b"h\x07", "damaged"),
    "setting attributes": (text("x") + b"}b", "sets attributes"),
    "key": (b"}(]\x85" + number(1) + b"u", "text or a number"),
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


# Small files that describe values without end. Each is refused at once.

DOUBLED = b"K\x012\x86" + b"2\x86" * 45
BOMBS = {
    "doubled": (DOUBLED, "too large or too deep"),
    "doubled in a dict": (b"}" + text("a") + DOUBLED + b"s", "too large or too deep"),
    "doubled list": (b"]2e2e"[:1] + b"q\x00" + DOUBLED + b"a", "too large or too deep"),
    "doubled key": (b"}" + DOUBLED + b"K\x01s", "text or a number"),
    "doubled device": (b"ctorch\ndevice\n" + DOUBLED + b"\x85R", "a name and a number"),
    "doubled size": (b"ctorch\nSize\n" + DOUBLED + b"\x85R", "counts"),
    "deep list": (b"]" * 100_000 + b"a" * 99_999, "too large or too deep"),
    "deep tuple": (b")" + b"\x85" * 100_000, "too large or too deep"),
    "a value in itself": (b"]q\x00h\x00a", "holds itself"),
    "huge number": (b"\x8b" + (10**6).to_bytes(4, "little") + b"\x7f" * 10**6, "128 bits"),
    "huge text": (b"X\xff\xff\xff\xffabc", "outside of the file"),
    "huge bytes": (b"\x8e" + b"\xff" * 8 + b"abc", "outside of the file"),
    "huge long": (b"\x8b\xff\xff\xff\x7fabc", "outside of the file"),
    "negative long": (b"\x8b\xff\xff\xff\xffabc", "negative"),
    "a text again and again": (
        b"c_codecs\nencode\nq\x000" + text("a" * 100_000) + b"q\x010"
        + b"h\x00h\x01\x85R0" * 5000 + b"N",
        "more of its texts",
    ),
    "a list again and again": (
        b"ctorch\nSize\nq\x000(" + b"K\x01" * 50_000 + b"lq\x010"
        + b"h\x00h\x01\x85R0" * 5000 + b"N",
        "more of its texts",
    ),
    "too many elements": (torch_tensor("0", 6, 0, (2**31 - 1,) * 3, (0,) * 3), "can be counted"),
    "a key with a hash that others have": (
        b"}\x8a\x09" + (2**61 - 1 << 4).to_bytes(9, "little") + b"Ns", "64 bits"
    ),
    "a long tuple as a key": (b"}(" + b"K\x01" * 17 + b"tNs", "16 parts"),
    "a long text as a key, again and again": (
        b"}" + text("a" * 100_000) + b"q\x00Ns" + b"h\x00Ns" * 5000, "more of its texts"
    ),
    "an escape that Python warns about": (b"S'\\d'\n", "unknown escape"),
    "an octal that Python warns about": (b"S'\\777'\n", "unknown escape"),
}  # fmt: skip


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", BOMBS)
def test_values_without_end(name: str, format: str):
    value, message = BOMBS[name]
    if format == "legacy" and message == "can be counted":
        message = "a storage is not used"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(FileFormatError, match=message):
            torch_load(Tensor(FORMATS[format](state_of(value))))


def test_one_storage_is_not_copied_without_end(monkeypatch):
    from weft.io import torch_files

    monkeypatch.setattr(torch_files, "_GATHERED_ALWAYS", 1000)
    monkeypatch.setattr(torch_files, "_GATHERED_RATIO", 0)
    gaps = torch_tensor("1", 8, 1, (3,), (2,))
    few, many = (Tensor(torch_zip(state_of(b"(" + gaps * n + b"l"))) for n in (3, 4000))
    assert [each.tolist() for each in torch_load(few)] == [[1, 3, 5]] * 3
    with pytest.raises(FileFormatError, match="absurd size"):
        torch_load(many)


@pytest.mark.parametrize("where", ["dict", "set", "frozenset", "memo"])
def test_keys_that_are_numbers_are_counted(where: str, monkeypatch):
    from weft.io import safe_pickle

    def keys(count: int) -> bytes:
        numbers = [(7 * number).to_bytes(4, "little") for number in range(1, count + 1)]
        if where == "memo":
            return b"N" + b"".join(b"r" + number for number in numbers)
        value = b"N" if where == "dict" else b""
        items = b"".join(b"J" + number + value for number in numbers)
        before, after = {
            "dict": (b"}(", b"u"), "set": (b"\x8f(", b"\x90"), "frozenset": (b"(", b"\x91")
        }[where]  # fmt: skip
        return before + items + after

    monkeypatch.setattr(safe_pickle, "_LARGE_TABLE", 100)
    monkeypatch.setattr(safe_pickle, "_MOST_NUMBERS", 50)
    torch_load(Tensor(torch_zip(state_of(keys(150)))))
    with pytest.raises(FileFormatError, match="more than 50 keys are numbers"):
        torch_load(Tensor(torch_zip(state_of(keys(151)))))


def test_steps_are_counted(monkeypatch):
    from weft.io import safe_pickle

    monkeypatch.setattr(safe_pickle, "_MOST_STEPS", 1000)
    with pytest.raises(FileFormatError, match="more than 1000 instructions"):
        torch_load(Tensor(torch_zip(state_of(b"]0" * 1000 + b"N"))))


@pytest.mark.parametrize("protocol", range(2, 6))
def test_every_protocol_is_read_as_python_reads_it(protocol: int):
    value = {
        "numbers": [0, -1, 255, 65535, 2**31, -(2**40), 2**100, 1.5, float("inf"), True, None],
        "texts": ("", "a", "ä" * 300, "x" * 70_000, "line\nend", "\ud800"),
        "nest": [{1: (2, [3]), "s": {}}],
    }
    if protocol > 2:  # before, these are calls
        value["bytes"] = [b"", b"ab" * 200]
    if protocol > 3:
        value["sets"] = [{"t"}, frozenset((1, "a"))]
    if protocol > 4:
        value["bytearray"] = bytearray(b"xy")
    assert torch_load(Tensor(torch_zip(pickle.dumps(value, protocol)))) == value


def test_a_missing_file():
    with pytest.raises(FileNotFoundError):
        torch_load("no-such-file.pth")
