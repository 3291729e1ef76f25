"""`.npy` and `.npz`, from and to NumPy."""

import io
import warnings
from pathlib import Path

import numpy as np
import pytest

from weft import DTypeError, FileFormatError, dtypes
from weft.io import npy_load, npy_save, npz_load, npz_save
from weft.tensor import Tensor

ARRAYS = {
    "matrix": np.random.default_rng(0).standard_normal((3, 4)),
    "columns first": np.asfortranarray(np.arange(24, dtype=np.int16).reshape(2, 3, 4)),
    "big-endian": np.arange(5, dtype=">f4"),
    "scalar": np.array(3, np.uint8),
    "empty": np.zeros((0, 2), np.float16),
    "bool": np.array([True, False]),
}


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_arrays_of_numpy(name: str, version, tmp_path: Path):
    array = ARRAYS[name]
    with open(tmp_path / "x.npy", "wb") as file:
        np.lib.format.write_array(file, array, version)
    loaded = npy_load(tmp_path / "x.npy")
    assert loaded.dtype.name == array.dtype.newbyteorder("=").name
    np.testing.assert_array_equal(loaded.to("CPU").numpy(), array)


def test_saved_arrays(tmp_path: Path):
    tensor = Tensor([[1.5, 2.5]]) * 2
    npy_save(tmp_path / "x.npy", tensor)
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), [[3, 5]])
    npz_save(tmp_path / "x.npz", {"a": tensor, "b": Tensor([1])})
    with np.load(tmp_path / "x.npz") as archive:
        assert sorted(archive) == ["a", "b"]
    loaded = npz_load(tmp_path / "x.npz")
    assert loaded["a"].device.startswith("DISK")
    assert loaded["a"].tolist() == [[3, 5]]
    with pytest.raises(DTypeError, match="NumPy has no bfloat16"):
        npy_save(tmp_path / "y.npy", Tensor([1.0]).cast(dtypes.bfloat16))


def test_compressed_archives(tmp_path: Path):
    np.savez_compressed(tmp_path / "x.npz", x=np.arange(1000), y=ARRAYS["matrix"])
    loaded = npz_load(tmp_path / "x.npz")
    np.testing.assert_array_equal(loaded["x"].numpy(), np.arange(1000))
    np.testing.assert_array_equal(loaded["y"].numpy(), ARRAYS["matrix"])


def file_with(header: str, data: bytes = b"", size: int | None = None) -> Tensor:
    text = header.encode("latin1")
    length = (len(text) if size is None else size).to_bytes(2, "little")
    return Tensor(b"\x93NUMPY\x01\x00" + length + text + data)


GOOD = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}"
WRONG = {
    "text": (Tensor(b"hello, world"), "expected an npy file"),
    "version": (Tensor(b"\x93NUMPY\x09\x00aaaa"), "expected an npy file"),
    "long header": (file_with(GOOD, size=60_000), "would have"),
    "cut header": (file_with(GOOD, size=500), "lies outside"),
    "cut": (file_with(GOOD, b"1234567"), "the array lies outside"),
    "call": (file_with(GOOD.replace("(2,)", "exit()"), b"12345678"), "damaged"),
    "shape": (file_with(GOOD.replace("(2,)", "[2]"), b"12345678"), "damaged"),
    "negative": (file_with(GOOD.replace("(2,)", "(-2,)"), b"12345678"), "size of -2"),
    "absurd": (file_with(GOOD.replace("(2,)", "(2**40, 2**40)"), b"12345678"), "damaged"),
    "keys": (file_with("{'descr': '<f4'}"), "damaged"),
    "deep": (file_with("(" * 5000), "damaged"),
    "deep braces": (file_with("{'a':" * 1500), "damaged"),
    "minus": (file_with("-" * 9000 + "1"), "damaged"),
    "escape": (file_with(GOOD.replace("<f4", "\\d")), "damaged"),
    "keyword": (file_with(GOOD.replace("(2,)", "(2or 3,)")), "damaged"),
    "endless": (file_with(GOOD.replace("(2,)", f"({'9' * 5000},)")), "damaged"),
    "objects": (file_with(GOOD.replace("<f4", "|O"), b"12345678"), "Python objects"),
    "text elements": (file_with(GOOD.replace("<f4", "<U4"), b"12345678"), "holds '<U4'"),
    "complex": (file_with(GOOD.replace("<f4", "<c8"), b"12345678"), "holds '<c8'"),
    "records": (file_with(GOOD.replace("'<f4'", "[('a', '<f4')]"), b"12345678"), "holds"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_files(name: str):
    tensor, text = WRONG[name]
    with warnings.catch_warnings(), pytest.raises(FileFormatError, match=text):
        warnings.simplefilter("error")
        npy_load(tensor)


def test_pickled_arrays_are_refused():
    data = io.BytesIO()
    np.save(data, np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(FileFormatError, match="Python objects"):
        npy_load(Tensor(data.getvalue()))
