"""NumPy's files: `.npy`, one array, and `.npz`, a zip archive of them.

An array of a file becomes a view of the file. Arrays of Python objects are pickles, and refused.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any, Final

import numpy as np

from weft.io.archives import unzip
from weft.io.npy_header import parse_header
from weft.io.source import FileLike, Source
from weft.io.write import require_names, write_whole
from weft.ir.arrays.values import is_emulated
from weft.ir.dtypes import DType, dtypes
from weft.support.errors import DTypeError
from weft.tensor.tensor import Tensor

_MAGIC: Final = b"\x93NUMPY"
_MOST_HEADER: Final = 10_000
_SIZES: Final = {1: "H", 2: "I", 3: "I"}  # of the header's length, by version


def npy_load(fn: FileLike) -> Tensor:
    """Load an array.

    >>> import tempfile, os
    >>> from weft.tensor import Tensor
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, "x.npy")
    >>> npy_save(path, Tensor([[1, 2], [3, 4]]))
    >>> npy_load(path).numpy().tolist()
    [[1, 2], [3, 4]]
    >>> folder.cleanup()
    """
    return _read(Source(fn, "npy file"))


def npz_load(fn: FileLike) -> dict[str, Tensor]:
    """Load the arrays of an archive, by name."""
    source = Source(fn, "npz file")
    files = unzip(source).items()
    return {name.removesuffix(".npy"): _read(Source(part, "npy file")) for name, part in files}


def npy_save(fn: str | Path, tensor: Tensor) -> None:
    """Save a tensor as an array."""
    write_whole(fn, [_written(tensor)])


def npz_save(fn: str | Path, tensors: dict[str, Tensor]) -> None:
    """Save tensors as the arrays of an archive, by name."""
    names = require_names("npz file", tensors)
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_STORED) as archive:
        for name in names:
            archive.writestr(f"{name}.npy", _written(tensors[name]))
    write_whole(fn, [data.getvalue()])


def _written(tensor: Tensor) -> bytes:
    if is_emulated(tensor.dtype):
        raise DTypeError(
            f"npy file: NumPy has no {tensor.dtype.name}",
            rule="arrays hold bools, integers, float16, float32 and float64",
            fix="cast it, or save it with safe_save",
        )
    data = io.BytesIO()
    np.lib.format.write_array(data, tensor.numpy(), allow_pickle=False)
    return data.getvalue()


def _read(source: Source) -> Tensor:
    offset, header = _header(source)
    kind, shape = header["descr"], header["shape"]
    dtype = _dtype(source, kind)
    count = source.elements(shape, "the array")
    source.require_inside(offset, count * dtype.itemsize, "the array")
    if kind[0] == ">":  # the bytes of numbers stand the other way round
        raw = source.read(offset, count * dtype.itemsize, "the array")
        found = Tensor(np.frombuffer(raw, kind).astype(dtype.name))
    else:
        found = source.tensor_at(offset, dtype, (count,), "the array")
    if header["fortran_order"] and len(shape) > 1:
        return found.reshape(shape[::-1]).permute(*range(len(shape))[::-1])
    return found.reshape(shape)


def _header(source: Source) -> tuple[int, dict[str, Any]]:
    """Where the elements start, and what the header says of them."""
    start = source.read(0, 8, "the beginning")
    if start[:6] != _MAGIC or start[6] not in _SIZES:
        raise source.fault("expected an npy file", 0, "an npy file begins with \\x93NUMPY")
    layout = _SIZES[start[6]]
    (size,) = source.unpack(layout, 8, "the length of the header")
    offset = 8 + (2 if layout == "H" else 4)
    if size > _MOST_HEADER:
        raise source.fault(f"the header would have {size} bytes", 8, "headers are short")
    text = source.read(offset, size, "the header")
    try:
        header = parse_header(text.decode("latin1" if start[6] < 3 else "utf8"))
        right = set(header) == {"descr", "fortran_order", "shape"}
        right = right and isinstance(header["shape"], tuple)
        right = right and type(header["fortran_order"]) is bool
    except ValueError:
        right = False
    if not right:
        raise source.fault(
            "the header is damaged", offset, "a header has descr, fortran_order and shape"
        )
    return offset + size, header


def _dtype(source: Source, kind: Any) -> DType:
    known = {"b1": dtypes.bool}
    known |= {f"{k}{d.itemsize}": d for k, d in _numbers()}
    name = kind[1:] if isinstance(kind, str) and kind[:1] in "<>|=" else None
    if name not in known:
        what = "Python objects, which are never run" if "O" in str(kind) else f"{kind!r}"[:100]
        raise source.fault(
            f"the array holds {what}", rule="arrays hold bools, integers and floats"
        )
    return known[name]


def _numbers() -> list[tuple[str, DType]]:
    signed = [dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64]
    unsigned = [dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64]
    floats = [dtypes.float16, dtypes.float32, dtypes.float64]
    groups = (("i", signed), ("u", unsigned), ("f", floats))
    return [(letter, dtype) for letter, group in groups for dtype in group]
