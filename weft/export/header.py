"""What `describe.py` wrote, read from JSON of which nothing is believed.

Types, keys, counts and depth are checked here, sizes and steps against the invariants of the
graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from weft.export.describe import StateView
from weft.export.sizes import RefusedError, SizeChecker, require_count
from weft.export.verify import require_values_of
from weft.ir import movement
from weft.ir.build import param
from weft.ir.dtypes import COMPLEXES, SCALARS, DType, dtypes
from weft.ir.movement import Movement
from weft.ir.ops import BY_NAME, MOVEMENT, Op
from weft.ir.shapes import Shape
from weft.ir.text import parse
from weft.ir.uop import UOp
from weft.tensor.jit.program import ObjectKind, TensorKind, ValueKind
from weft.tensor.jit.results import FromArgument, FromOutput, FromPython, FromSizes, ResultPlan
from weft.tensor.trees import LEAF, Structure

Json = Any
Kind = tuple[DType, Shape]  # of a value
_PLAIN: Final = (bool, int, float, str, type(None))
_CONTAINERS: Final = {"dict": dict, "list": list, "tuple": tuple}
_STEPS: Final = MOVEMENT | {Op.DETACH}
_STORED: Final = {
    name: dtype
    for name, dtype in {**SCALARS, **COMPLEXES}.items()
    if dtype not in (dtypes.void, dtypes.index)
}
_MOST_NESTED: Final = 100


def require_list(data: Json, length: int | None = None) -> list[Any]:
    if type(data) is not list or (length is not None and len(data) != length):
        raise RefusedError(
            f"expected a list{f' of {length}' if length else ''}, got {_shown(data)}"
        )
    return data


def require_int(data: Json, end: int | None = None) -> int:
    """A number from 0 on, below the end."""
    if type(data) is not int or data < 0 or (end is not None and data >= end):
        below = "" if end is None else f" below {end}"
        raise RefusedError(f"expected a number{below}, got {_shown(data)}")
    return data


def require_text(data: Json) -> str:
    if type(data) is not str:
        raise RefusedError(f"expected text, got {_shown(data)}")
    return data


def _require_table(data: Json, *keys: str) -> dict[str, Any]:
    if type(data) is not dict or set(data) != set(keys):
        raise RefusedError(f"expected a table of {', '.join(keys)}, got {_shown(data)}")
    return data


def _require_plain(data: Json) -> Any:
    if type(data) not in _PLAIN:
        raise RefusedError(f"expected a number, text or null, got {_shown(data)}")
    return data


def _shown(data: Json) -> str:
    text = type(data).__name__ if isinstance(data, (list, dict)) else repr(data)
    return text if len(text) < 60 else f"{text[:60]}..."


class Decoder:
    """Reads the parts of one header. `sizes` has all variables that they name."""

    def __init__(self) -> None:
        self.sizes = SizeChecker()
        self.result_sizes: list[UOp] = []

    def structure(self, data: Json, depth: int = 0) -> Structure:
        if data is None:
            return LEAF
        if depth > _MOST_NESTED:
            raise RefusedError(f"containers are nested more than {_MOST_NESTED} deep")
        is_dict = type(data) is dict and data.get("kind") == "dict"
        table = _require_table(data, "kind", "parts", *(("names",) if is_dict else ()))
        kind = require_text(table["kind"])
        if kind not in _CONTAINERS:
            raise RefusedError(f"expected a kind of container, got {_shown(kind)}")
        parts = [self.structure(part, depth + 1) for part in require_list(table["parts"])]
        names = [_require_plain(name) for name in require_list(table.get("names", []))]
        if is_dict and not len(names) == len(set(names)) == len(parts):
            raise RefusedError("expected one name for each entry of a dict")
        return Structure(_CONTAINERS[kind], tuple(names), tuple(parts))

    def leaf(self, data: Json) -> TensorKind | ValueKind | ObjectKind:
        if type(data) is not dict:
            raise RefusedError(f"expected an argument, got {_shown(data)}")
        if "dtype" in data:
            table = _require_table(data, "dtype", "shape")
            return TensorKind(self.dtype(table["dtype"]), self.shape(table["shape"]), None)
        if "object" in data:
            return ObjectKind(require_text(_require_table(data, "object")["object"]))
        if "size" in data:
            return ValueKind(self.size(_require_table(data, "size")["size"]))
        return ValueKind(_require_plain(_require_table(data, "value")["value"]))

    def dtype(self, data: Json) -> DType:
        found = _STORED.get(require_text(data))
        if found is None:
            raise RefusedError(f"expected a dtype of tensors, got {_shown(data)}")
        return found

    def shape(self, data: Json) -> Shape:
        shape = tuple(
            [
                self.size(size) if type(size) is str else require_count(size)
                for size in require_list(data)
            ]
        )
        self.sizes.require_shape(shape)
        return shape

    def size(self, data: Json) -> UOp:
        """A symbolic size, which is the text of a graph."""
        size = parse(require_text(data), "a size")
        self.sizes.require_whole(size)
        return size

    def plan(
        self,
        data: Json,
        leaves: Sequence[TensorKind | ValueKind | ObjectKind],
        outputs: Sequence[Kind],
        captured: Sequence[Kind],
    ) -> ResultPlan | StateView:
        if type(data) is not dict:
            raise RefusedError(f"expected a result, got {_shown(data)}")
        if "value" in data:
            return FromPython(_require_plain(_require_table(data, "value")["value"]))
        if "size" in data:
            size = self.size(_require_table(data, "size")["size"])
            self.result_sizes.append(size)
            return FromSizes(size)
        if "argument" in data:
            table = _require_table(data, "argument", "steps")
            number = require_int(table["argument"], len(leaves))
            leaf = leaves[number]
            if not isinstance(leaf, TensorKind):
                raise RefusedError("a result is a view of an argument that is not a tensor")
            is_itself = table["steps"] is None
            steps = None if is_itself else self._steps(table["steps"], (leaf.dtype, leaf.shape))
            # Arguments of an exported function are apart, so each is a view of its own.
            return FromArgument(number, steps, True)
        if "state" in data:
            table = _require_table(data, "state", "steps")
            number = require_int(table["state"], len(captured))
            return StateView(number, self._steps(table["steps"], captured[number]))
        table = _require_table(data, "output", "steps", "twin")
        number = require_int(table["output"], len(outputs))
        steps = self._steps(table["steps"], outputs[number])
        return FromOutput(number, steps, None, None, table["twin"])

    def _steps(self, data: Json, shown: Kind) -> tuple[Movement, ...]:
        """Views of a value, each legal on what the ones before show."""
        steps = tuple([self._step(step) for step in require_list(data)])
        dtype, shape = shown
        require_values_of(movement.apply_all(param(0, dtype, shape), steps), self.sizes)
        return steps

    def _step(self, data: Json) -> Movement:
        name, arg, symbolic = require_list(data, 3)
        op = BY_NAME.get(require_text(name))
        if op not in _STEPS:
            raise RefusedError(f"{_shown(name)} makes no view")
        sizes = tuple([self.size(size) for size in require_list(symbolic)])
        self.result_sizes += sizes
        return op, _tuples(arg), sizes


def _tuples(data: Json) -> Any:
    if type(data) is list:
        return tuple([_tuples(part) for part in data])
    if data is not None and type(data) is not int:
        raise RefusedError(f"expected a number or null, got {_shown(data)}")
    return data
