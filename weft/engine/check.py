"""`CHECK=levels`: a graph evaluated after each phase, and the first phase that changes the answer.

The oracle evaluates the tensor graph, the kernels of the schedule and the programs of codegen
on the same memory; the device's own answer comes last. It is for finding bugs: every element is
computed several times in plain Python, so graphs with more than `MOST_ELEMENTS` are refused.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import numpy as np

from weft.codegen.generate import generate
from weft.engine.contents import read_bytes
from weft.ir.dtypes import FLOAT, SCALARS, DType, dtypes
from weft.ir.ops import Op
from weft.ir.shapes import largest_size, shape_of
from weft.ir.sizes import shape_value
from weft.ir.text import dump
from weft.ir.uop import UOp, make
from weft.reference.memory import Memory
from weft.reference.numpy_values import from_storage, storage_dtype, to_storage
from weft.reference.schedule import run_schedule
from weft.reference.tensor import evaluate
from weft.schedule.schedule import Schedule
from weft.support.errors import InternalError, NotSupported
from weft.target.target import Target

MOST_ELEMENTS: Final = 200_000
# Folds add in another order on a device, and the oracle rounds only once.
_TOLERANCE: Final = {"rtol": 2e-3, "atol": 1e-4}

Contents = list[bytes]


class LevelCheck:
    """What the memory of a graph must hold after it ran, level by level."""

    def __init__(self, memory: Sequence[UOp], variables: Mapping[str, int]) -> None:
        if sum(largest_size(shape_of(node)) for node in memory) > MOST_ELEMENTS:
            raise NotSupported(
                "CHECK=levels: the graph is too large for the interpreter",
                law=f"it takes at most {MOST_ELEMENTS} elements of memory",
                fix="run a smaller case, or without CHECK",
            )
        self.memory = list(memory)
        self.variables = variables
        self.before: Contents = [bytes(read_bytes(node)) for node in memory]
        self.levels: list[tuple[str, Contents]] = []

    def add_tensor_level(self, body: UOp) -> None:
        arrays = {}
        for node, data in zip(self.memory, self.before, strict=True):
            shape = shape_value(shape_of(node))
            raw = np.frombuffer(data, storage_dtype(node.dtype)).reshape(shape)
            arrays[node.arg[0]] = from_storage(node.dtype, raw)
        after = evaluate(body, arrays, self.variables)
        stored = [to_storage(node.dtype, after[node.arg[0]]).tobytes() for node in self.memory]
        self.levels.append(("tensor", stored))

    def add_schedule(self, schedule: Schedule) -> None:
        self._add("schedule", schedule, schedule.kernels)

    def add_codegen(self, schedule: Schedule, target: Target) -> None:
        programs = {call.arg: generate(call.arg, target) for call in schedule.kernels.src}
        calls = [
            make(Op.CALL, dtypes.void, call.src, programs[call.arg].instructions)
            for call in schedule.kernels.src
        ]
        native = target.native_dtypes
        self._add("codegen", schedule, make(Op.LINEAR, dtypes.void, tuple(calls)), native)

    def _add(
        self, name: str, schedule: Schedule, calls: UOp, native: Collection[DType] | None = None
    ) -> None:
        def seen(dtype: DType) -> DType:
            """Programs see memory of a dtype that the target lacks as bits."""
            if native is None or dtype in native:
                return dtype
            return SCALARS[f"uint{min(dtype.bits, 32)}"]

        arguments = [
            Memory.from_bytes(seen(node.dtype), data)
            for node, data in zip(self.memory, self.before, strict=True)
        ]
        arguments += [
            Memory(
                seen(part.dtype),
                largest_size(shape_of(part)) * part.dtype.bits // seen(part.dtype).bits,
            )
            for part in schedule.temporaries
        ]
        run_schedule(calls, {}, self.variables, arguments)
        stored = [part.to_bytes() for part in arguments[: len(self.memory)]]
        self.levels.append((name, stored))

    def add_device(self) -> None:
        self.levels.append(("device", [bytes(read_bytes(node)) for node in self.memory]))

    def verify(self, body: UOp) -> None:
        """Raise where a level differs from the one before it."""
        for (before, old), (after, new) in zip(self.levels, self.levels[1:], strict=False):
            for position, node in enumerate(self.memory):
                if not _agree(node, old[position], new[position]):
                    raise InternalError(
                        f"the answer changes in phase {after}",
                        pass_name=after,
                        facts=[("memory", repr(node)), ("right until", before)],
                        ir_text=dump(body),
                    )


def _agree(node: UOp, old: bytes, new: bytes) -> bool:
    if node.dtype.kind != FLOAT:
        return old == new
    raw = [np.frombuffer(data, storage_dtype(node.dtype)) for data in (old, new)]
    x, y = (from_storage(node.dtype, part).astype(np.float64) for part in raw)
    return bool(np.allclose(x, y, equal_nan=True, **_TOLERANCE))
