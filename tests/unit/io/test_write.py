"""Saving: every writer goes through the one atomic writer, and says what is wrong."""

import os
import stat
import threading
from pathlib import Path

import pytest

from weft import DeviceError, UsageError, jit, save_function
from weft.io import npy_save, npz_save, safe_load, safe_save, save_training_state
from weft.tensor import Tensor

WRITERS = {
    "safetensors": lambda path, x: safe_save({"x": x}, path),
    "npy": npy_save,
    "npz": lambda path, x: npz_save(path, {"x": x}),
    "training state": lambda path, x: save_training_state(path, {"x": x}),
    "function": lambda path, x: save_function(jit(lambda y: y + x), path, Tensor([1.0])),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_missing_folder_is_a_missing_file(name: str, tmp_path: Path):
    with pytest.raises(FileNotFoundError, match="cannot be written") as error:
        WRITERS[name](tmp_path / "no" / "x", Tensor([1.0]))
    assert isinstance(error.value, UsageError)


@pytest.mark.parametrize("name", WRITERS)
def test_the_mode_and_the_link_of_a_file_stay(name: str, tmp_path: Path):
    path, link = tmp_path / "x", tmp_path / "link"
    path.write_bytes(b"old")
    path.chmod(0o600)
    link.symlink_to(path)
    WRITERS[name](link, Tensor([1.0]))
    assert link.is_symlink() and path.read_bytes() != b"old"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(os.listdir(tmp_path)) == ["link", "x"]


@pytest.mark.parametrize("name", WRITERS)
def test_a_folder_is_not_replaced(name: str, tmp_path: Path):
    (tmp_path / "x").mkdir()
    with pytest.raises(DeviceError, match="cannot be written"):
        WRITERS[name](tmp_path / "x", Tensor([1.0]))
    assert os.listdir(tmp_path) == ["x"]


def test_threads_that_save_to_one_path(tmp_path: Path):
    path = tmp_path / "x"
    failures = []

    def save(value: int):
        try:
            for _ in range(10):
                safe_save({"x": Tensor([value] * 1000).realize()}, path)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=save, args=(value,)) for value in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    values = safe_load(path)["x"].tolist()
    assert failures == [] and len(values) == 1000 and len(set(values)) == 1
    assert os.listdir(tmp_path) == ["x"]
