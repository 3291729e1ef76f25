"""Sequences and optionals, which are lists and None."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.onnx.execute import run_graph
from weft.onnx.table import op
from weft.onnx.values import plain, whole_number


def _position(call: Any, where: Any, size: int, is_insert: bool = False) -> int:
    number = whole_number(call.run.host(where))
    most = size + 1 if is_insert else size
    if not -size <= number < most:
        raise call.error(f"position {number} in a sequence of {size}")
    return number + size if number < 0 else number


def _listed(call: Any, sequence: Any) -> list[Any]:
    if not isinstance(sequence, list):
        raise call.error(f"expected a sequence, got {type(sequence).__name__}")
    return sequence


@op("SequenceEmpty", raw=True)
def sequence_empty(call: Any) -> Any:
    return []


@op("SequenceConstruct", raw=True)
def sequence_construct(call: Any, *values: Any) -> Any:
    return list(values)


@op("SequenceAt", raw=True)
def sequence_at(call: Any, sequence: Any, where: Any) -> Any:
    listed = _listed(call, sequence)
    return listed[_position(call, where, len(listed))]


@op("SequenceInsert", raw=True)
def sequence_insert(call: Any, sequence: Any, value: Any, where: Any = None) -> Any:
    listed = list(_listed(call, sequence))
    at = len(listed) if where is None else _position(call, where, len(listed), True)
    return [*listed[:at], value, *listed[at:]]


@op("SequenceErase", raw=True)
def sequence_erase(call: Any, sequence: Any, where: Any = None) -> Any:
    listed = list(_listed(call, sequence))
    at = len(listed) - 1 if where is None else _position(call, where, len(listed))
    return [*listed[:at], *listed[at + 1 :]]


@op("SequenceLength", raw=True)
def sequence_length(call: Any, sequence: Any) -> Any:
    return np.array(len(_listed(call, sequence)), dtype=np.int64)


@op("SplitToSequence", raw=True)
def split_to_sequence(call: Any, x: Any, sizes: Any = None) -> Any:
    value, axis = plain(call.run.tensor(x)), call.get("axis", 0)
    extent = value.shape[axis]
    if sizes is None:
        pieces = list(value.split([1] * extent, axis))
        return pieces if call.get("keepdims", 1) else [each.squeeze(axis) for each in pieces]
    given = call.run.host(sizes)
    if given.ndim:
        return list(value.split([whole_number(size) for size in given], axis))
    step = whole_number(given)
    if step < 1:
        raise call.error(f"pieces of size {step}")
    listed = [min(step, extent - start) for start in range(0, extent, step)]
    return list(value.split(listed, axis))


@op("ConcatFromSequence", raw=True)
def concat_from_sequence(call: Any, sequence: Any) -> Any:
    listed = [call.run.tensor(each) for each in _listed(call, sequence)]
    if not listed:
        raise call.error("an empty sequence")
    axis = call.get("axis")
    if call.get("new_axis", 0):
        return listed[0].stack(*listed[1:], dim=axis)
    return listed[0].cat(*listed[1:], dim=axis) if len(listed) > 1 else listed[0]


@op("SequenceMap", raw=True)
def sequence_map(call: Any, sequence: Any, *others: Any) -> Any:
    body = call.get("body")
    results = []
    for number, item in enumerate(_listed(call, sequence)):
        rest = [other[number] if isinstance(other, list) else other for other in others]
        names = [each.name for each in body.inputs]
        given = dict(zip(names, [item, *rest], strict=True))
        results.append(run_graph(body, given, call.run, call.scope))
    return tuple([row[n] for row in results] for n in range(len(body.outputs)))


@op("Optional", raw=True)
def optional(call: Any, value: Any = None) -> Any:
    return value


@op("OptionalHasElement", raw=True)
def optional_has_element(call: Any, value: Any = None) -> Any:
    return np.array(value is not None)


@op("OptionalGetElement", raw=True)
def optional_get_element(call: Any, value: Any) -> Any:
    if value is None:
        raise call.error("the optional is empty")
    return value
