"""Attributes of nodes as Python values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import AttributeProto

from weft.support.errors import FileFormatError, NotSupported
from weft.support.source_line import NOWHERE


def text(raw: bytes) -> str:
    """Bytes as text; what is not UTF-8 survives."""
    return raw.decode("utf-8", "surrogateescape")


def value_of(proto: Any, tensor: Callable[[Any], Any], graph: Callable[[Any], Any]) -> Any:
    """The value of an attribute: numbers, text, arrays, graphs, and lists of these."""
    kind = proto.type
    if kind == AttributeProto.FLOAT:
        return float(proto.f)
    if kind == AttributeProto.INT:
        return int(proto.i)
    if kind == AttributeProto.STRING:
        return text(proto.s)
    if kind == AttributeProto.TENSOR:
        return tensor(proto.t)
    if kind == AttributeProto.GRAPH:
        return graph(proto.g)
    if kind == AttributeProto.SPARSE_TENSOR:
        return dense(proto.sparse_tensor, tensor)
    if kind == AttributeProto.TYPE_PROTO:
        return proto.tp
    if kind == AttributeProto.FLOATS:
        return [float(number) for number in proto.floats]
    if kind == AttributeProto.INTS:
        return [int(number) for number in proto.ints]
    if kind == AttributeProto.STRINGS:
        return [text(raw) for raw in proto.strings]
    if kind == AttributeProto.TENSORS:
        return [tensor(each) for each in proto.tensors]
    if kind == AttributeProto.GRAPHS:
        return [graph(each) for each in proto.graphs]
    raise NotSupported(f"onnx: attribute {proto.name!r} is of kind {kind}", where=NOWHERE)


def dense(sparse: Any, tensor: Callable[[Any], Any]) -> Any:
    """The array of a sparse tensor in coordinate form."""
    shape = tuple(int(size) for size in sparse.dims)
    values, indices = tensor(sparse.values), tensor(sparse.indices)
    if np.prod(shape, dtype=object) > 2**31:
        raise FileFormatError(f"onnx: a sparse tensor of shape {shape}", where=NOWHERE)
    array = np.zeros(shape, values.dtype)
    try:
        if indices.ndim == 1:
            array.reshape(-1)[indices] = values
        else:
            array[tuple(indices.T)] = values
    except (IndexError, ValueError) as error:
        raise FileFormatError(
            f"onnx: a sparse tensor of shape {shape} has indices outside of it", where=NOWHERE
        ) from error
    return array
