"""Images with labels: MNIST, Fashion-MNIST, CIFAR-10, and small digits that come with Weft.

Each function returns (training images, training labels, test images, test labels), all uint8, the
images as (count, channels, height, width).
"""

from __future__ import annotations

import gzip
import io
import os
import tarfile
from pathlib import Path
from typing import Any

import numpy as np

from weft.nn.datasets.files import DataFile, read
from weft.support.errors import ArgumentError, FileFormatError
from weft.tensor.tensor import Tensor

Folder = str | os.PathLike[str] | None
Split = tuple[Tensor, Tensor, Tensor, Tensor]

_MNIST = "https://storage.googleapis.com/cvdf-datasets/mnist/"
_FASHION = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"
_NAMES = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
_DIGESTS = {
    "mnist": (
        "f68b3c2dcbeaaa9fbdd348bbdeb94873",
        "d53e105ee54ea40749a09fcbcd1e9432",
        "9fb629c4189551a2d022fa330f9573f3",
        "ec29112dd5afa0611ce80d1b7f02629c",
    ),
    "fashion": (
        "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
        "25c81989df183df01b3e8a0aad5dffbe",
        "bef4ecab320f06d8554ea6380940ec79",
        "bb300cfdad3c16e7a12a480ee83cd310",
    ),
}
_CIFAR = DataFile(
    "cifar",
    "cifar-10-binary.tar.gz",
    "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    "md5:c32a1d4ab5d03f1284b67883e8d87530",
)


def mnist(device: str | None = None, fashion: bool = False, path: Folder = None) -> Split:
    """Return 60,000 and 10,000 handwritten digits, or pieces of clothing, of 28 × 28 pixels.

    The four idx files come from the folder `path`, from that of `WEFT_DATA`, from the cache, or
    from the network.
    """
    dataset, base = ("fashion", _FASHION) if fashion else ("mnist", _MNIST)
    arrays = []
    for name, digest in zip(_NAMES, _DIGESTS[dataset], strict=True):
        file = DataFile(dataset, f"{name}-ubyte.gz", f"{base}{name}-ubyte.gz", f"md5:{digest}")
        array = idx_array(read(file, path), file.name)
        arrays.append(array[:, None] if array.ndim == 3 else array)
    return _tensors(arrays, device)


def idx_array(data: bytes, name: str) -> Any:
    """The array of an idx file: a magic number with the rank, sizes, then bytes."""
    rank = data[3] if len(data) > 3 and data[:3] == b"\0\0\x08" else 0
    start = 4 + 4 * rank
    sizes = [int.from_bytes(data[i : i + 4], "big") for i in range(4, start, 4)]
    if not rank or len(data) != start + int(np.prod(sizes)):
        raise FileFormatError(
            f"{name}: not an idx file of bytes",
            facts=[("bytes", len(data)), ("sizes", tuple(sizes))],
            rule="an idx file is 0 0 8 rank, a size of four bytes for each axis, and the elements",
        )
    return np.frombuffer(data, np.uint8, offset=start).reshape(sizes)


def cifar(device: str | None = None, path: Folder = None) -> Split:
    """Return 50,000 and 10,000 photographs of 32 × 32 pixels in three colors (CIFAR-10).

    The archive cifar-10-binary.tar.gz comes from where `mnist` looks too.
    """
    members: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(read(_CIFAR, path))) as archive:
            for member in archive:
                opened = archive.extractfile(member)
                if member.name.endswith(".bin") and opened is not None:
                    members[Path(member.name).name] = opened.read()
        train = b"".join(members[f"data_batch_{number}.bin"] for number in range(1, 6))
        parts = [np.frombuffer(each, np.uint8) for each in (train, members["test_batch.bin"])]
        rows = [each.reshape(-1, 3073) for each in parts]
    except (tarfile.TarError, KeyError, ValueError) as failure:
        raise FileFormatError(
            "cifar: the archive does not have the six batches of CIFAR-10",
            facts=[("reason", failure), ("found", ", ".join(sorted(members)))],
        ) from failure
    arrays = [array for each in rows for array in (each[:, 1:].reshape(-1, 3, 32, 32), each[:, 0])]
    return _tensors(arrays, device)


def digits(device: str | None = None, test: int = 360) -> Split:
    """Return 1,797 handwritten digits of 8 × 8 pixels with values 0 … 16; they come with Weft.

    The last `test` of them are the test part.

    >>> [each.shape for each in digits()]
    [(1437, 1, 8, 8), (1437,), (360, 1, 8, 8), (360,)]
    """
    packed = Path(__file__).with_name("digits.csv.gz").read_bytes()
    text = gzip.decompress(packed).decode("ascii")
    rows = np.array([line.split(",") for line in text.splitlines()], np.uint8)
    if not 0 <= test <= len(rows):
        raise ArgumentError(f"digits: test is {test}", rule=f"test is from 0 to {len(rows)}")
    images, labels = rows[:, :64].reshape(-1, 1, 8, 8), rows[:, 64]
    cut = len(rows) - test
    return _tensors([images[:cut], labels[:cut], images[cut:], labels[cut:]], device)


def _tensors(arrays: list[Any], device: str | None) -> Split:
    first, second, third, fourth = (
        Tensor(np.ascontiguousarray(each), device=device) for each in arrays
    )
    return first, second, third, fourth
