"""`CHECK=nan`: the first kernel, node and line that made a NaN or an infinity.

After each kernel its results are read. Where one is not finite, the interpreter evaluates the
tensor graph on what was in memory before, and finds the first node that made such a value of
values that had none: an infinity that a program put into a mask is not a finding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.engine.buffers import Buffer
from weft.ir.arrays.values import Array, from_storage, storage_dtype, value_dtype
from weft.ir.dtypes import FLOAT, DType
from weft.ir.ops import Op, name
from weft.ir.shapes import shape_of
from weft.ir.sizes import shape_value
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.reference.tensor import evaluate_nodes
from weft.rewrite.trace_file import current
from weft.runtime.device import Device, Handle
from weft.support.errors import NotFinite

if TYPE_CHECKING:
    from weft.engine.run import PlannedLaunch


class FiniteCheck:
    """One run of a schedule: what its memory held before, and what each kernel wrote."""

    def __init__(
        self,
        device: Device,
        body: UOp,
        memory: Sequence[Buffer | None],
        variables: Mapping[str, int],
    ) -> None:
        self._device = device
        self._body = body
        self._variables = variables
        self._before = [_bytes(part) for part in memory]

    def after(self, step: PlannedLaunch, handles: Sequence[Handle]) -> None:
        """Look at what a kernel wrote."""
        parameters = step.loaded.program.parameters
        for parameter, handle, node in zip(parameters, handles, step.memory, strict=True):
            if not parameter.is_written or parameter.dtype.kind != FLOAT:
                continue
            count = int(np.prod(shape_value(shape_of(node), self._variables), dtype=np.int64))
            data = bytearray(count * node.dtype.itemsize)
            self._device.synchronize()
            self._device.copy_out(memoryview(data), handle)
            if not np.isfinite(_array(node.dtype, data, (count,))).all():
                self._blame(step)
                return

    def _blame(self, step: PlannedLaunch) -> None:
        """Name the node that made the value, if one of this graph did."""
        values = evaluate_nodes(self._body, self._arguments(), self._variables)
        for node, value in values.items():
            made = _made(node, value, values)
            if made is None:
                continue
            what, where = made
            error = NotFinite(
                f"{name(node.op)} made {what} at element {where}",
                facts=[
                    ("kernel", step.loaded.program.name, str(shape_of(node))),
                    *_source_facts(node, where, values),
                ],
                where=node.line or step.line,
            )
            trace = current()
            if trace is not None:
                trace.write("check", check="nan", text=str(error), node=trace.graph(node))
            raise error

    def _arguments(self) -> list[Array]:
        """The memory before the run, by slot; what had no contents is zeros."""
        found: dict[int, UOp] = {
            node.arg[0]: node for node in topological(self._body) if node.op == Op.PARAM
        }
        arrays: list[Array] = []
        for slot in range(max(found, default=-1) + 1):
            if (node := found.get(slot)) is None:
                arrays.append(np.zeros(0))
                continue
            shape = shape_value(shape_of(node), self._variables)
            data = self._before[slot] if slot < len(self._before) else None
            arrays.append(
                np.zeros(shape, value_dtype(node.dtype))
                if data is None
                else _array(node.dtype, data, shape)
            )
        return arrays


def _bytes(part: Buffer | None) -> bytearray | None:
    if part is None or part.handle is None:
        return None
    data = bytearray(part.size)
    part.device.synchronize()
    part.device.copy_out(memoryview(data), part.handle)
    return data


def _array(dtype: DType, data: bytearray, shape: Sequence[int]) -> Array:
    kind = storage_dtype(dtype)
    count = int(np.prod(shape, dtype=np.int64))
    return from_storage(dtype, np.frombuffer(data, kind)[:count].reshape(shape))


def _made(node: UOp, value: Any, values: Mapping[UOp, Any]) -> tuple[str, tuple[int, ...]] | None:
    """What a node made of sources that had none of it, and at which element."""
    if not _is_float(value) or node.op in (Op.PARAM, Op.BUFFER, Op.CONST):
        return None
    for what, test in (("a NaN", np.isnan), ("an infinity", np.isinf)):
        bad = test(value)
        if not bad.any():
            continue
        sources = [values[source] for source in node.src]
        if not any(test(each).any() for each in sources if _is_float(each)):
            return what, tuple(int(i) for i in np.argwhere(bad)[0])
    return None


def _is_float(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


def _source_facts(
    node: UOp, where: tuple[int, ...], values: Mapping[UOp, Any]
) -> list[tuple[str, ...]]:
    """The values of the sources at the element, where they have the shape of the node."""
    facts: list[tuple[str, ...]] = []
    for source in node.src:
        value = values[source]
        if isinstance(value, np.ndarray) and shape_of(source) == shape_of(node):
            facts.append((f"of {name(source.op)}", str(value[where])))
    return facts
