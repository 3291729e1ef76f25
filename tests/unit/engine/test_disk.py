"""Files as tensors: views without reading, copies of what is needed, writes in order."""

import gc
import os
import pathlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.opencl import require_opencl
from weft import DeviceError, GlobalCounters, NotSupported, ShapeError
from weft.engine.disk import try_view
from weft.tensor import Tensor

ROOT = Path(__file__).resolve().parents[3]


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
    gc.collect()  # what other tests left would go meanwhile
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
    with pytest.raises(ShapeError, match="not a whole number of float32"):
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


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.__setitem__(0, 7),
        lambda x: x.__setitem__(slice(0, 2), [7, 8]),
        lambda x: x[0:3].assign(Tensor([7, 8, 9], dtype="uint8")),
        lambda x: x.assign(Tensor.full((x.numel(),), 7, dtype="uint8")),
        lambda x: x.bitcast("uint16")[0:1].assign(Tensor([7], dtype="uint16")),
    ],
)
def test_a_write_is_in_the_file_when_it_returns(write, path: Path):
    write(Tensor.empty(path.stat().st_size, dtype="uint8", device=f"disk:{path}"))
    assert path.read_bytes()[0] == 7


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


OPENINGS = {
    "all": lambda name: Tensor.empty(64, dtype="uint8", device=name),
    "the first": lambda name: Tensor.empty(10, dtype="uint8", device=name),
    "as floats": lambda name: Tensor.empty(4, 4, device=name),
    "more than there is": lambda name: Tensor.empty(100, dtype="uint8", device=name),
    "nothing": lambda name: Tensor.empty(0, dtype="uint8", device=name),
    "like": lambda name: Tensor.empty(64, dtype="uint8").empty_like(device=name),
    "twice": lambda name: [Tensor.empty(64, dtype="uint8", device=name) for _ in range(2)][1],
}


@pytest.mark.parametrize("name", OPENINGS)
@pytest.mark.parametrize("use", ["none", "read", "write"])
def test_opening_a_file_destroys_nothing(name: str, use: str, path: Path):
    """Whatever is opened of it: it is as before, until it is written, and then where it is."""
    tensor = OPENINGS[name](f"disk:{path}")
    expected = bytes(range(64))
    size = tensor.nbytes()
    if use == "read" and size > 64:
        with pytest.raises(DeviceError, match=r"shorter than its tensor[^$]*100 bytes[^$]*64"):
            tensor.numpy()
    elif use == "read":
        assert tensor.numpy().tobytes() == expected[:size]
    elif use == "write" and size:
        tensor[:1] = 0
        tensor.realize()
        row = tensor[0].nbytes()
        expected = (bytes(row) + expected[row:]).ljust(size, b"\0")
        assert tensor.numpy().tobytes() == expected[:size]
    assert path.read_bytes() == expected


@pytest.mark.parametrize("value", [lambda: Tensor.ones(3), lambda: Tensor.arange(3) * 2.0])
def test_a_copy_of_what_has_no_memory(value, tmp_path: Path):
    copy = value().to(f"disk:{tmp_path}/x").realize()
    assert np.fromfile(tmp_path / "x", np.float32).tolist() == value().tolist() == copy.tolist()


def test_a_copy_to_a_file_replaces_it_as_a_whole(path: Path):
    copy = Tensor([1, 2], dtype="uint8").to(f"disk:{path}").realize()
    assert path.read_bytes() == b"\1\2"
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    assert copy.tolist() == [1, 2]


def test_a_file_in_use_is_found_whoever_else_used_it(path: Path):
    tensor = Tensor(path)
    Tensor(path)  # which goes
    with pytest.raises(DeviceError, match="is in use"):
        Tensor([1]).to(tensor.device).realize()


def test_a_new_file_has_room_on_the_disk(tmp_path: Path):
    Tensor.empty(1 << 20, dtype="uint8", device=f"disk:{tmp_path}/new")
    status = (tmp_path / "new").stat()
    assert status.st_size == 1 << 20
    assert status.st_blocks * 512 >= 1 << 20


def test_what_is_written_has_room_on_the_disk(tmp_path: Path):
    with open(tmp_path / "sparse", "wb") as file:
        file.truncate(1 << 20)
    tensor = Tensor(tmp_path / "sparse").reshape(1024, 1024)
    tensor[100:200].assign(1)
    tensor.realize()
    blocks = (tmp_path / "sparse").stat().st_blocks * 512
    assert 100 * 1024 <= blocks < 200 * 1024
    tensor[::-1, ::-1][0:4, 0:1].assign(2)
    tensor.realize()
    assert tensor[1023, 1023].item() == 2 and tensor[1020, 1023].item() == 2


FULL = """
import sys
from pathlib import Path
from weft import DeviceError, Tensor
folder = Path(sys.argv[1])
def attempt(what):
    try:
        what()
    except DeviceError as error:
        print(str(error).splitlines()[0].rpartition(": ")[2])
    else:
        print("done")
(folder / "old").write_bytes(bytes(range(100)))
with open(folder / "sparse", "wb") as file:
    file.truncate(1 << 20)
many = Tensor.ones(1 << 20, dtype="uint8")
attempt(lambda: Tensor.empty(1 << 20, device=f"disk:{folder}/new"))
attempt(lambda: many.to(f"disk:{folder}/copy").realize())
attempt(lambda: many.to(f"disk:{folder}/old").realize())
larger = Tensor.empty(1 << 20, dtype="uint8", device=f"disk:{folder}/old")
attempt(lambda: larger.assign(1).realize())
attempt(lambda: Tensor(folder / "sparse").assign(1).realize())
attempt(lambda: Tensor(folder / "sparse")[:10].assign(1).realize())
print((folder / "old").read_bytes() == bytes(range(100)))
print(*sorted(each.name for each in folder.iterdir()))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="mounts a small disk")
def test_a_full_disk_raises_and_leaves_what_was_there(tmp_path: Path):
    """With a disk of 200 kB: an error for each way to write, and never a signal."""
    mount = f"mount -t tmpfs -o size=200k tmpfs {tmp_path} && exec "
    command = [sys.executable, "-c", FULL, str(tmp_path)]
    if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode:
        pytest.skip("mounting is not allowed here")
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", mount + '"$@"', "sh", *command],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    full = "No space left on device"
    assert done.stdout.splitlines() == [full] * 5 + ["done", "True", "old sparse"]


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
        with pytest.raises(DeviceError, match="cannot be written"):
            tensor.realize()


ERRORS = {
    "compute": (NotSupported, "DISK computes nothing", lambda t: (t + 1).realize()),
    "host data": (DeviceError, "data of the host", lambda t: t + np.ones(64, np.uint8)),
    "in use": (DeviceError, "is in use", lambda t: Tensor([1]).to(t.device).realize()),
    "missing": (DeviceError, "cannot be opened", lambda t: Tensor(Path("/no/such/file"))),
    "no path": (DeviceError, "needs a path", lambda t: Tensor.empty(1, device="DISK")),
    "scattered": (DeviceError, "data of the host", lambda t: t.__setitem__([1, 5], 0)),
    "gaps": (
        NotSupported,
        "expected a write of a box",
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
        require_opencl()
    copy = (Tensor(path).reshape(8, 8).T[2:4].to(name).cast("int32") + 1).to("CPU")
    np.testing.assert_array_equal(copy.numpy(), BYTES.reshape(8, 8).T[2:4].astype(int) + 1)
    tensor = Tensor(path)
    tensor[:2] = Tensor([40, 41], device=name, dtype="uint8") + 2
    assert tensor[:3].tolist() == [42, 43, 2]
