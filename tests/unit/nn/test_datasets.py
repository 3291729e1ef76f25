"""Datasets: files from a folder, from the cache, and over HTTP from a server of this test."""

import gzip
import hashlib
import http.server
import io
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from weft.nn import datasets
from weft.nn.datasets import files, images
from weft.nn.datasets.files import DataFile, read
from weft.support.errors import ArgumentError, FileFormatError, UsageError
from weft.support.settings import Context, settings

CONTENT = b"some data " * 100


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path) -> Iterator[Path]:
    """Every test has a cache of its own and no folder of data."""
    with Context(CACHE_DIR=str(tmp_path / "cache"), DATA=""):
        yield tmp_path / "cache"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, list[str]]]:
    """A server of the folder `tmp_path/www`; its address, and the paths it was asked for."""
    folder, asked = tmp_path / "www", []
    folder.mkdir()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args: object) -> None:
            super().__init__(*args, directory=str(folder))

        def log_message(self, *args: object) -> None:
            asked.append(self.path)

    serving = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=serving.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{serving.server_port}/", asked
    serving.shutdown()
    thread.join()
    serving.server_close()


def file_at(base: str, data: bytes, kind: str = "md5") -> DataFile:
    digest = hashlib.new(kind, data).hexdigest()
    return DataFile("things", "thing.gz", f"{base}thing.gz", f"{kind}:{digest}")


@pytest.mark.parametrize("kind", ["md5", "sha256"])
def test_a_file_is_downloaded_once(server, tmp_path, own_cache, kind):
    base, asked = server
    packed = gzip.compress(CONTENT)
    (tmp_path / "www" / "thing.gz").write_bytes(packed)
    file = file_at(base, packed, kind)
    assert read(file) == CONTENT
    assert read(file) == CONTENT
    assert asked == ["/thing.gz"]
    (folder,) = own_cache.glob("user*")
    assert [each.name for each in (folder / "datasets" / "things").iterdir()] == ["thing.gz"]


def test_a_wrong_file_is_refused_and_not_kept(server, tmp_path, own_cache):
    base, _ = server
    (tmp_path / "www" / "thing.gz").write_bytes(b"something else")
    with pytest.raises(FileFormatError, match="is not the file that is wanted"):
        read(file_at(base, CONTENT))
    assert not own_cache.exists()


def test_an_absent_file_says_what_to_do(server):
    base, _ = server
    with pytest.raises(UsageError, match="cannot download") as caught:
        read(file_at(base, CONTENT))
    assert "404" in str(caught.value)
    assert "WEFT_DATA=folder" in str(caught.value)


def test_nothing_is_kept_where_the_cache_is_off_or_the_disk_refuses(server, tmp_path, own_cache):
    base, asked = server
    (tmp_path / "www" / "thing.gz").write_bytes(CONTENT)
    with Context(CACHE=0):
        assert read(file_at(base, CONTENT)) == CONTENT
    assert not own_cache.exists()
    own_cache.write_bytes(b"a file where the folder should be")
    assert read(file_at(base, CONTENT)) == CONTENT
    assert len(asked) == 2


@pytest.mark.parametrize("inner", ["", "things"])
@pytest.mark.parametrize("is_packed", [True, False])
def test_a_folder_comes_before_the_network(tmp_path, inner, is_packed):
    folder = tmp_path / inner
    folder.mkdir(exist_ok=True)
    name, data = ("thing.gz", gzip.compress(CONTENT)) if is_packed else ("thing", CONTENT)
    (folder / name).write_bytes(data)
    file = DataFile("things", "thing.gz", "http://127.0.0.1:1/", "md5:")
    assert read(file, tmp_path) == CONTENT
    with Context(DATA=str(tmp_path)):
        assert read(file) == CONTENT
    with pytest.raises(UsageError, match=r"things: no file other\.gz in"):
        read(file._replace(name="other.gz"), tmp_path)


def idx(array: np.ndarray) -> bytes:
    sizes = b"".join(size.to_bytes(4, "big") for size in array.shape)
    return bytes([0, 0, 8, array.ndim]) + sizes + array.tobytes()


def test_mnist_from_a_folder(tmp_path):
    draw = np.random.default_rng(0).integers
    arrays = [draw(0, 256, shape, np.uint8) for shape in ((6, 28, 28), (6,), (2, 28, 28), (2,))]
    for name, array in zip(images._NAMES, arrays, strict=True):
        (tmp_path / f"{name}-ubyte.gz").write_bytes(gzip.compress(idx(array)))
    loaded = datasets.mnist(path=tmp_path)
    for tensor, array in zip(loaded, arrays, strict=True):
        assert tensor.dtype.name == "uint8"
        np.testing.assert_array_equal(tensor.numpy().reshape(array.shape), array)
    assert loaded[0].shape == (6, 1, 28, 28)
    assert datasets.mnist(path=tmp_path, fashion=True)[1].shape == (6,)


@pytest.mark.parametrize(
    "data", [b"", b"\0\0\x08", b"\1\0\x08\1\0\0\0\0", idx(np.zeros(3, np.uint8))[:-1]]
)
def test_damaged_idx_files_are_refused(data):
    with pytest.raises(FileFormatError, match="labels: not an idx file of bytes"):
        images.idx_array(data, "labels")


def archive(names: list[str]) -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w:gz") as opened:
        for number, name in enumerate(names):
            row = bytes([number]) + bytes(range(256)) * 12
            info = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            info.size = len(row)
            opened.addfile(info, io.BytesIO(row))
    return written.getvalue()


def test_cifar_from_a_folder(tmp_path):
    names = [*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"]
    (tmp_path / "cifar-10-binary.tar.gz").write_bytes(archive(names))
    x_train, y_train, x_test, y_test = datasets.cifar(path=tmp_path)
    assert x_train.shape == (5, 3, 32, 32)
    assert y_train.tolist() == [0, 1, 2, 3, 4]
    assert x_test.numpy().reshape(-1)[:4].tolist() == [0, 1, 2, 3]
    assert y_test.tolist() == [5]
    (tmp_path / "cifar-10-binary.tar.gz").write_bytes(archive(names[1:]))
    with pytest.raises(FileFormatError, match="six batches"):
        datasets.cifar(path=tmp_path)


def test_digits_come_with_weft():
    x_train, y_train, x_test, y_test = datasets.digits(test=97)
    assert x_train.shape == (1700, 1, 8, 8)
    assert len(x_test) == len(y_test) == 97
    assert x_train.max().item() == 16
    assert np.bincount(y_train.numpy(), minlength=10).min() > 150
    with pytest.raises(ArgumentError, match="test is 1798"):
        datasets.digits(test=1798)


def test_shakespeare_from_a_folder(tmp_path):
    (tmp_path / "shakespeare").mkdir()
    (tmp_path / "shakespeare" / "input.txt").write_text("To be")
    assert datasets.shakespeare(tmp_path) == "To be"


DATA = settings.DATA


@pytest.mark.skipif(not DATA, reason="WEFT_DATA names no folder with datasets")
def test_the_real_files():
    with Context(DATA=DATA):
        if files._find(Path(DATA), DataFile("mnist", "train-labels-idx1-ubyte.gz", "", "")):
            shapes = [each.shape for each in datasets.mnist()]
            assert shapes == [(60000, 1, 28, 28), (60000,), (10000, 1, 28, 28), (10000,)]
        if files._find(Path(DATA), DataFile("shakespeare", "input.txt", "", "")):
            assert len(datasets.shakespeare()) == 1_115_394
