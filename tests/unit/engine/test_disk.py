"""Files as tensors: views without reading, copies of what is needed, writes in order."""

import os
import pathlib
from pathlib import Path

import numpy as np
import pytest

from weft import DeviceError, GlobalCounters, NotSupported, ShapeError
from weft.engine.disk import try_view
from weft.tensor import Tensor


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "numbers.bin"
    made.write_bytes(bytes(range(64)))
    return made


BYTES = np.arange(64, dtype=np.uint8)


def test_a_path_is_a_tensor_of_bytes(path: Path):
    tensor = Tensor(path)
    assert (tensor.shape, tensor.dtype.name, tensor.device) == ((64,), "uint8", f"DISK:{path}")
    assert tensor.numpy().tolist() == list(range(64))


VIEWS = {
    "slice": lambda x: x[3:9],
    "stride": lambda x: x.reshape(16, 4)[:, 1],
    "backwards": lambda x: x[5:2:-1],
    "row": lambda x: x.reshape(8, 8)[2],
    "box": lambda x: x.reshape(8, 8)[2:5, 1:4],
    "box, split": lambda x: x.reshape(8, 8)[:, 2:6].reshape(8, 2, 2),
    "transposed box": lambda x: x.reshape(4, 16).T[3:7],
    "last axis gone": lambda x: x.reshape(2, 4, 8)[:, :, 5],
    "scalar": lambda x: x[5],
    "empty": lambda x: x[4:4],
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_read_what_they_show(name: str, path: Path):
    view = VIEWS[name](Tensor(path))
    expected = VIEWS[name](BYTES)
    assert try_view(view.uop).shape == expected.shape
    before = GlobalCounters.mem_used_by.get("CPU", 0)
    copy = view.to("CPU").realize()
    assert GlobalCounters.mem_used_by.get("CPU", 0) - before == expected.size
    np.testing.assert_array_equal(copy.numpy(), expected)
    np.testing.assert_array_equal(view.numpy(), expected)


def test_a_reshape_of_gaps_is_computed_where_the_copy_goes(path: Path):
    flat = Tensor(path).reshape(8, 8)[:, 2:6].reshape(32)
    assert try_view(flat.uop) is None
    np.testing.assert_array_equal(flat.to("CPU").numpy(), BYTES.reshape(8, 8)[:, 2:6].reshape(32))


def test_what_stands_before_the_copy_runs_after_it(path: Path):
    value = (Tensor(path)[:4].cast("int32") * 2 + 1).to("CPU")
    GlobalCounters.reset()
    assert value.tolist() == [1, 3, 5, 7]
    assert GlobalCounters.kernel_count == 1


@pytest.mark.parametrize("dtype", ["uint16", "int32", "float32", "float64", "bfloat16", "bool"])
def test_bitcasts_are_views(dtype: str, path: Path):
    before = dict(GlobalCounters.mem_used_by)
    view = Tensor(path)[8:24].bitcast(dtype)
    assert view.device == f"DISK:{path}"
    assert dict(GlobalCounters.mem_used_by) == before
    assert view.nbytes() == 16
    if dtype not in ("bfloat16", "bool"):
        np.testing.assert_array_equal(view.to("CPU").numpy(), BYTES[8:24].view(dtype))


def test_a_bitcast_needs_whole_elements_side_by_side(path: Path):
    with pytest.raises(ShapeError, match="no whole float32s"):
        Tensor(path)[:6].bitcast("float32")
    with pytest.raises(NotSupported, match="one run of bytes"):
        Tensor(path).reshape(8, 8)[:, :4].bitcast("float32")


def test_writes_reach_the_file_in_order(path: Path):
    tensor = Tensor(path)
    before = tensor[:4].to("CPU")
    tensor[0:4] = 7
    tensor[2:4].assign(Tensor([1, 2], dtype="uint8"))
    middle = tensor[:4].to("CPU")
    tensor[4:6] = tensor[1:3].to("CPU") + 1  # reads what was written a line before
    tensor.reshape(8, 8).T[7].assign(np.zeros(8))
    assert before.tolist() == [0, 1, 2, 3]
    assert middle.tolist() == [7, 7, 1, 2]
    assert tensor[:8].tolist() == [7, 7, 1, 2, 8, 2, 6, 0]
    assert path.read_bytes()[:16] == bytes([7, 7, 1, 2, 8, 2, 6, 0, 8, 9, 10, 11, 12, 13, 14, 0])


def test_a_view_from_before_a_write_shows_the_present(path: Path):
    tensor = Tensor(path)
    view = tensor[0:2]
    tensor[0:1] = 99
    assert view.to("CPU").tolist() == [99, 1]
    assert view.tolist() == [99, 1]


def test_a_copy_reads_a_write_that_waits(path: Path):
    tensor = Tensor(path)
    tensor[1:3] = 5
    total = tensor[:4].to("CPU").cast("int32").sum()
    assert total.item() == 13
    assert tensor._storage.is_realized
    tensor[0:1] = 1
    assert tensor[:4].tolist() == [1, 5, 5, 3]


def test_new_files(tmp_path: Path):
    name = f"disk:{tmp_path}/new.bin"
    tensor = Tensor.empty(2, 3, device=name)
    tensor.assign(Tensor.arange(6).reshape(2, 3))
    tensor.realize()
    data = np.fromfile(tmp_path / "new.bin", np.float32)
    assert data.tolist() == [0, 1, 2, 3, 4, 5]
    copy = (Tensor([1.5, 2.5]) * 2).to(f"DISK:{tmp_path}/copy.bin").realize()
    assert copy.tolist() == [3, 5]
    assert (tmp_path / "copy.bin").stat().st_size == 8


def test_a_device_has_the_path_it_had_in_its_folder(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x").write_bytes(b"ab")
    tensor = Tensor(pathlib.Path("x"))
    monkeypatch.chdir("/")
    assert tensor.device == f"DISK:{tmp_path / 'x'}"
    assert tensor.tolist() == [97, 98]


def test_an_empty_file(tmp_path: Path):
    (tmp_path / "x").write_bytes(b"")
    assert Tensor(tmp_path / "x").to("CPU").tolist() == []


def test_a_file_that_may_not_be_written_is_read(path: Path):
    path.chmod(0o400)
    tensor = Tensor(path)
    assert tensor[:2].to("CPU").tolist() == [0, 1]
    if os.geteuid():
        tensor[0:1] = 1
        with pytest.raises(DeviceError, match="cannot be opened"):
            tensor.realize()


ERRORS = {
    "compute": (NotSupported, "DISK computes nothing", lambda t: (t + 1).realize()),
    "host data": (DeviceError, "data of the host", lambda t: t + np.ones(64, np.uint8)),
    "in use": (DeviceError, "is in use", lambda t: Tensor([1]).to(t.device).realize()),
    "in use, empty": (DeviceError, "is in use", lambda t: t.empty_like()),
    "missing": (DeviceError, "cannot be opened", lambda t: Tensor(Path("/no/such/file"))),
    "no path": (DeviceError, "needs a path", lambda t: Tensor.empty(1, device="DISK")),
    "scattered": (DeviceError, "data of the host", lambda t: t.__setitem__([1, 5], 0)),
    "gaps": (
        NotSupported,
        "no box",
        lambda t: t.reshape(8, 8)[:, 2:6].reshape(32).assign(0).realize(),
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str, path: Path):
    error, text, act = ERRORS[name]
    with pytest.raises(error, match=text):
        act(Tensor(path))
    assert path.read_bytes() == bytes(range(64))


def test_a_file_that_became_shorter_is_an_error(path: Path):
    tensor = Tensor(path)
    os.truncate(path, 10)
    with pytest.raises(DeviceError, match="shorter"):
        tensor.to("CPU").realize()


@pytest.mark.parametrize("name", ["CPU", "PYTHON", "OPENCL"])
def test_every_device_reads_files(name: str, path: Path):
    if name == "OPENCL":
        pytest.importorskip("pyopencl")
    copy = (Tensor(path).reshape(8, 8).T[2:4].to(name).cast("int32") + 1).to("CPU")
    np.testing.assert_array_equal(copy.numpy(), BYTES.reshape(8, 8).T[2:4].astype(int) + 1)
    tensor = Tensor(path)
    tensor[:2] = Tensor([40, 41], device=name, dtype="uint8") + 2
    assert tensor[:3].tolist() == [42, 43, 2]
