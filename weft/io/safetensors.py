"""Safetensors: a header in JSON, then the bytes of the tensors.

`safe_load` reads the header alone; its tensors are views of the file. The header is not believed:
every tensor's offset, shape and dtype are checked, and the tensors tile the data without gaps.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from weft.io.source import FileLike, Source
from weft.io.write import Bytes, realized, require_names, stored_bytes, write_whole
from weft.ir.dtypes import DType, dtypes
from weft.support.errors import ArgumentTypeError
from weft.tensor.tensor import Tensor

_FORMAT: Final = "safetensors"
_MOST_HEADER: Final = 100_000_000
_ALIGNMENT: Final = 8  # of the data, so that elements of every dtype are aligned
_DTYPES: Final[dict[str, DType]] = {
    "BOOL": dtypes.bool,
    "U8": dtypes.uint8,
    "I8": dtypes.int8,
    "U16": dtypes.uint16,
    "I16": dtypes.int16,
    "U32": dtypes.uint32,
    "I32": dtypes.int32,
    "U64": dtypes.uint64,
    "I64": dtypes.int64,
    "F8_E4M3": dtypes.fp8e4m3,
    "F8_E5M2": dtypes.fp8e5m2,
    "F8_E4M3FNUZ": dtypes.fp8e4m3fnuz,
    "F8_E5M2FNUZ": dtypes.fp8e5m2fnuz,
    "F16": dtypes.float16,
    "BF16": dtypes.bfloat16,
    "F32": dtypes.float32,
    "F64": dtypes.float64,
}
_NAMES: Final = {dtype: name for name, dtype in _DTYPES.items()}


def safe_load(fn: FileLike) -> dict[str, Tensor]:
    """Load a safetensors file, or the files of a `*.index.json`, as tensors on DISK.

    Nothing but the header is read; `x.to("CPU")` reads a tensor.

    >>> from weft.tensor import Tensor
    >>> import tempfile, os
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, "model.safetensors")
    >>> safe_save({"weight": Tensor([1.0, 2.0])}, path)
    >>> safe_load(path)["weight"].numpy()
    array([1., 2.], dtype=float32)
    >>> folder.cleanup()
    """
    if isinstance(fn, (str, Path)) and str(fn).endswith(".index.json"):
        return _load_shards(Path(fn))
    source = Source(fn, _FORMAT)
    start, header = _read_header(source)
    header.pop("__metadata__", None)
    return {name: _tensor(source, start, name, entry) for name, entry in header.items()}


def safe_load_metadata(t: FileLike) -> tuple[Tensor, int, dict[str, Any]]:
    """The bytes of a safetensors file, where its data starts, and its header.

    What was saved as metadata is under `"__metadata__"`.
    """
    source = Source(t, _FORMAT)
    start, header = _read_header(source)
    return source.tensor, start, header


def safe_save(
    tensors: dict[str, Tensor], fn: str | Path, metadata: dict[str, str] | None = None
) -> None:
    """Save tensors by name, and strings by name as metadata.

    The file is there whole or not at all, so tensors of the same file may be among those saved.
    """
    names = require_names(_FORMAT, tensors)
    if "__metadata__" in tensors:
        raise ArgumentTypeError(
            "safetensors: a tensor cannot be called '__metadata__'",
            rule="this name belongs to the metadata of the file",
        )
    ready = realized(tensors[name] for name in names)
    header: dict[str, Any] = {}
    if metadata:
        header["__metadata__"] = {str(key): str(value) for key, value in metadata.items()}
    offset = 0
    for name, tensor in zip(names, ready, strict=True):
        end = offset + tensor.nbytes()
        header[name] = {
            "dtype": _NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [offset, end],
        }
        offset = end
    write_whole(fn, _parts(header, ready))


def _parts(header: dict[str, Any], tensors: list[Tensor]) -> Iterator[Bytes]:
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    yield len(text).to_bytes(8, "little")
    yield text
    yield from map(stored_bytes, tensors)


def _read_header(source: Source) -> tuple[int, dict[str, Any]]:
    (size,) = source.unpack("Q", 0, "the length of the header")
    if size > _MOST_HEADER:
        raise source.fault(
            f"the header would have {size} bytes", 0, f"a header has at most {_MOST_HEADER}"
        )
    header = parse_json(source, source.read(8, size, "the header"), "the header")
    if not isinstance(header, dict):
        raise source.fault(
            "expected a header that is a table", 8, "a header maps names to tensors"
        )
    metadata = header.get("__metadata__", {})
    if not isinstance(metadata, dict):
        raise source.fault(
            "expected metadata that is a table", 8, "metadata maps strings to strings"
        )
    start = 8 + size
    _require_tiles(source, start, header)
    return start, header


def parse_json(source: Source, data: bytes, what: str) -> Any:
    """JSON in which no name stands twice."""

    def table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) != len(pairs):
            raise ValueError("a name appears twice")
        return made

    try:
        return json.loads(data, object_pairs_hook=table)
    except (ValueError, RecursionError) as failure:
        reason = "it is nested too deeply" if isinstance(failure, RecursionError) else failure
        raise source.fault(f"{what} is not valid JSON: {reason}") from None


def _require_tiles(source: Source, start: int, header: dict[str, Any]) -> None:
    """The tensors cover the data, each its own part."""
    offsets = []
    for name, entry in header.items():
        if name != "__metadata__":
            dtype, shape, first, last = _entry(source, name, entry)
            wanted = source.elements(shape, f"the tensor {name!r}") * dtype.itemsize
            if last - first != wanted:
                raise source.fault(
                    f"the tensor {name!r} has {last - first} bytes and needs {wanted}", 8
                )
            offsets.append((first, last))
    end = 0
    for first, last in sorted(offsets):
        if first != end:
            raise source.fault(
                "tensors overlap or leave a gap", start + end, "tensors follow each other"
            )
        end = last
    if start + end != source.size:
        raise source.fault(
            f"the tensors need {start + end} bytes",
            rule="the file ends where its last tensor ends",
        )


def _entry(source: Source, name: str, entry: Any) -> tuple[DType, list[Any], int, int]:
    """What the header says of a tensor, as far as its types go."""
    try:
        dtype, shape, (first, last) = entry["dtype"], entry["shape"], entry["data_offsets"]
    except (TypeError, KeyError, ValueError):
        raise source.fault(
            f"the entry of {name!r} is incomplete",
            8,
            "an entry has dtype, shape and two data_offsets",
        ) from None
    if not isinstance(dtype, str) or dtype not in _DTYPES:
        raise source.fault(
            f"the tensor {name!r} has the unknown dtype {dtype!r}"[:200],
            8,
            "the dtypes are " + ", ".join(_DTYPES),
        )
    numbers = type(first) is int and type(last) is int and 0 <= first <= last <= source.size
    if not isinstance(shape, list) or not numbers:
        raise source.fault(f"the entry of {name!r} is wrong", 8, "sizes and offsets are counts")
    return _DTYPES[dtype], shape, first, last


def _tensor(source: Source, start: int, name: str, entry: Any) -> Tensor:
    dtype, shape, first, _ = _entry(source, name, entry)
    return source.tensor_at(start + first, dtype, shape, f"the tensor {name!r}")


def _load_shards(index: Path) -> dict[str, Tensor]:
    """The tensors of several files, by the list that says which is where."""
    source = Source(index, "safetensors index")
    found = parse_json(source, bytes(source.bytes), "the index")
    table = found.get("weight_map") if isinstance(found, dict) else None
    if not isinstance(table, dict):
        raise source.fault("there is no weight_map", rule="an index maps names to files")
    shards: dict[str, dict[str, Tensor]] = {}
    tensors = {}
    for name, file in table.items():
        if not isinstance(file, str) or Path(file).name != file or file in ("", ".", ".."):
            raise source.fault(
                f"expected the name of a file, got {file!r}"[:200],
                rule="the files are in the index's folder",
            )
        if file not in shards:
            shards[file] = safe_load(index.parent / file)
        if name not in shards[file]:
            raise source.fault(f"the tensor {name!r} is not in {file}")
        tensors[name] = shards[file][name]
    return tensors
