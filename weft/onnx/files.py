"""Bytes of models: the protobuf, tensors inside of it, and tensors in files beside it.

External data is read when a tensor is asked for, and only from files inside of the model's folder;
a path that leads out of it, through `..`, a link or an absolute name, is refused.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import TensorProto, numpy_helper

from weft.onnx.attributes import text
from weft.onnx.elements import element_name
from weft.support.errors import ArgumentTypeError, FileFormatError, file_error
from weft.support.source_line import NOWHERE

_MOST_ELEMENTS = 1 << 40
# Elements that NumPy has, as files have them.
_PLAIN = {
    TensorProto.FLOAT: "<f4",
    TensorProto.DOUBLE: "<f8",
    TensorProto.FLOAT16: "<f2",
    TensorProto.INT8: "i1",
    TensorProto.INT16: "<i2",
    TensorProto.INT32: "<i4",
    TensorProto.INT64: "<i8",
    TensorProto.UINT8: "u1",
    TensorProto.UINT16: "<u2",
    TensorProto.UINT32: "<u4",
    TensorProto.UINT64: "<u8",
}


def parse(source: Any) -> tuple[Any, Path | None]:
    """The protobuf of a model, and the folder that it lies in."""
    if isinstance(source, onnx.ModelProto):
        return source, None
    if isinstance(source, (bytes, bytearray, memoryview)):
        return _parsed(bytes(source), "bytes"), None
    if not isinstance(source, (str, os.PathLike)):
        raise ArgumentTypeError(
            f"onnx: cannot be read from {type(source).__name__}",
            rule="a model is given by its path, as bytes or as a ModelProto",
        )
    path = Path(source)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise file_error(f"onnx: {path}", error) from None
    return _parsed(content, str(path)), path.resolve().parent


def _parsed(content: bytes, name: str) -> Any:
    try:
        model = onnx.ModelProto.FromString(content)
    except (DecodeError, RecursionError, ValueError, RuntimeError) as error:
        raise fault(f"{name} is not an ONNX model", str(error)) from None
    if not model.HasField("graph") or not model.opset_import:
        raise fault(f"{name} is not an ONNX model", "a model has a graph and names its opsets")
    return model


def fault(what: str, rule: str = "", **facts: object) -> FileFormatError:
    """The error for a model that breaks the rules of the format."""
    return FileFormatError(f"onnx: {what}", facts=list(facts.items()), rule=rule, where=NOWHERE)


def array_of(proto: Any, folder: Path | None) -> Any:
    """The array of a tensor, whose bytes are as many as its shape needs."""
    shape = tuple(int(size) for size in proto.dims)
    if any(size < 0 for size in shape) or np.prod(shape, dtype=object) > _MOST_ELEMENTS:
        raise fault(f"tensor {proto.name!r} has the shape {shape}")
    if proto.data_type == TensorProto.STRING:
        return _strings(proto, shape)
    if proto.data_location == TensorProto.EXTERNAL:
        if proto.data_type in _PLAIN:  # without the protobuf, which is at most 2 GB
            return _plain_array(proto, shape, _external_bytes(proto, folder))
        inside = TensorProto()
        inside.CopyFrom(proto)
        inside.data_location = TensorProto.DEFAULT
        del inside.external_data[:]
        inside.raw_data = _external_bytes(proto, folder)
        proto = inside
    try:
        array = numpy_helper.to_array(proto)
    except Exception as error:  # whatever NumPy says of bytes that do not fit
        raise fault(
            f"tensor {proto.name!r} cannot be read",
            "the data has as many elements as the shape says",
            shape=shape,
            elements=element_name(proto.data_type),
            reason=str(error).splitlines()[0] if str(error) else type(error).__name__,
        ) from None
    return np.asarray(array).reshape(shape)


def _plain_array(proto: Any, shape: tuple[int, ...], content: bytes) -> Any:
    dtype = np.dtype(_PLAIN[proto.data_type])
    wanted = dtype.itemsize * int(np.prod(shape, dtype=object))
    if len(content) != wanted:
        raise fault(
            f"tensor {proto.name!r} cannot be read",
            "the data has as many elements as the shape says",
            shape=shape,
            elements=element_name(proto.data_type),
            reason=f"{len(content)} bytes, not {wanted}",
        )
    return np.frombuffer(content, dtype).reshape(shape)


def _strings(proto: Any, shape: tuple[int, ...]) -> Any:
    cells = [text(raw) for raw in proto.string_data]
    if len(cells) != np.prod(shape, dtype=object):
        raise fault(f"tensor {proto.name!r} has {len(cells)} strings for the shape {shape}")
    array = np.empty(len(cells), dtype=object)
    array[:] = cells
    return array.reshape(shape)


def require_inside(proto: Any, folder: Path | None) -> None:
    """Raise for a tensor whose data is outside of the model's folder; nothing is read."""
    if proto.data_location == TensorProto.EXTERNAL:
        entries = {entry.key: entry.value for entry in proto.external_data}
        _inside(folder, entries.get("location", ""), proto.name)


def _external_bytes(proto: Any, folder: Path | None) -> bytes:
    """The bytes of a tensor in another file of the model's folder."""
    entries = {entry.key: entry.value for entry in proto.external_data}
    location = entries.get("location", "")
    path = _inside(folder, location, proto.name)
    try:
        offset, length = int(entries.get("offset") or 0), int(entries.get("length") or -1)
    except ValueError:
        raise fault(f"tensor {proto.name!r}: offset or length is not a number") from None
    try:
        size = path.stat().st_size
    except OSError as error:
        raise file_error(f"onnx: external data of {proto.name!r}, {location}", error) from None
    length = size - offset if length < 0 else length
    if offset < 0 or length < 0 or offset + length > size:
        raise fault(
            f"tensor {proto.name!r} lies outside of {location}",
            "offset and length lie inside of the file",
            offset=offset,
            length=length,
            size=size,
        )
    with path.open("rb") as file:
        file.seek(offset)
        return file.read(length)


def _inside(folder: Path | None, location: str, name: str) -> Path:
    """The path of external data, which is a plain file under the model's folder."""
    rule = "external data lies inside of the model's folder"
    if folder is None:
        raise fault(
            f"tensor {name!r} is in the file {location!r}, and a model of bytes has no folder",
            rule,
        )
    try:
        path = (folder / location).resolve()
        is_inside = bool(location) and not os.path.isabs(location) and path.is_relative_to(folder)
    except (OSError, ValueError, RuntimeError):  # a NUL byte, a loop of links
        is_inside = False
    if not is_inside:
        raise fault(f"tensor {name!r} is at {location!r}, outside of the model's folder", rule)
    if path.exists() and not path.is_file():
        raise fault(f"tensor {name!r} is at {location!r}, which is not a file", rule)
    return path
