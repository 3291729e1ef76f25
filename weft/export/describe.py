"""Structures, values, steps and recipes of a jitted function as JSON, and back.

Only plain data has a form here. An object of the user's has none, because its class is code that a
later process need not have.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Final
from weakref import ref

from weft.ir.dtypes import by_name
from weft.ir.movement import Step
from weft.ir.ops import INFO, Op
from weft.ir.shapes import Shape
from weft.ir.text import dump, parse
from weft.ir.uop import UOp
from weft.support.errors import NotSupported
from weft.tensor.jit.program import ObjectKind, TensorKind, ValueKind
from weft.tensor.jit.results import (
    FromArgument,
    FromOutput,
    FromOutside,
    FromPython,
    FromSizes,
    Recipe,
)
from weft.tensor.storage import Storage
from weft.tensor.tensor import Tensor
from weft.tensor.trees import LEAF, Structure

Json = Any
_PLAIN: Final = (bool, int, float, str, type(None))


def structure_to_json(structure: Structure) -> Json:
    """Classes of the user's become what they hold: a dataclass a dict, a namedtuple a tuple."""
    if structure.kind is None:
        return None
    parts = [structure_to_json(part) for part in structure.parts]
    if issubclass(structure.kind, dict) or dataclasses.is_dataclass(structure.kind):
        return {
            "kind": "dict",
            "names": [_plain(name) for name in structure.names],
            "parts": parts,
        }
    return {"kind": "list" if issubclass(structure.kind, list) else "tuple", "parts": parts}


def structure_from_json(data: Json) -> Structure:
    if data is None:
        return LEAF
    kinds = {"dict": dict, "list": list, "tuple": tuple}
    parts = tuple(structure_from_json(part) for part in data["parts"])
    return Structure(kinds[data["kind"]], tuple(data.get("names", ())), parts)


def _plain(value: Any) -> Json:
    if not isinstance(value, _PLAIN):
        raise NotSupported(
            f"save_function: a {type(value).__name__} has no form in a file",
            law="beside tensors, arguments and results are numbers, strings and None",
        )
    return value


def leaf_to_json(leaf: TensorKind | ValueKind | ObjectKind) -> Json:
    if isinstance(leaf, TensorKind):
        return {"dtype": leaf.dtype.name, "shape": shape_to_json(leaf.shape)}
    if isinstance(leaf, ObjectKind):
        return {"object": leaf.name}
    if isinstance(leaf.value, UOp):
        return {"size": dump(leaf.value)}
    return {"value": _plain(leaf.value)}


def leaf_from_json(data: Json) -> TensorKind | ValueKind | ObjectKind:
    if "dtype" in data:
        return TensorKind(by_name(data["dtype"]), shape_from_json(data["shape"]), None)
    if "object" in data:
        return ObjectKind(data["object"])
    return ValueKind(parse(data["size"]) if "size" in data else data["value"])


def shape_to_json(shape: Shape) -> Json:
    return [size if isinstance(size, int) else dump(size) for size in shape]


def shape_from_json(data: Json) -> Shape:
    return tuple(size if isinstance(size, int) else parse(size) for size in data)


def _step_to_json(step: Step) -> Json:
    op, arg, symbolic = step
    return [INFO[op].name, arg, [dump(size) for size in symbolic]]


def _step_from_json(data: Json) -> Step:
    op, arg, symbolic = data
    return getattr(Op, op), _tuples(arg), tuple(parse(size) for size in symbolic)


def _tuples(data: Json) -> Any:
    return tuple(_tuples(part) for part in data) if isinstance(data, list) else data


def recipe_to_json(recipe: Recipe, captured: list[Storage]) -> Json:
    if isinstance(recipe, FromPython):
        return {"value": _plain(recipe.value)}
    if isinstance(recipe, FromSizes):
        return {"size": dump(recipe.size)}
    if isinstance(recipe, FromArgument):
        steps = None if recipe.steps is None else [_step_to_json(step) for step in recipe.steps]
        return {"argument": recipe.leaf, "steps": steps}
    steps = [_step_to_json(step) for step in recipe.steps]
    if isinstance(recipe, FromOutside):
        return {"state": captured.index(recipe.storage), "steps": steps}
    return {"output": recipe.output, "steps": steps, "twin": recipe.twin}


def recipe_from_json(data: Json, captured: list[Storage]) -> Recipe:
    if "value" in data:
        return FromPython(data["value"])
    if "size" in data:
        return FromSizes(parse(data["size"]))
    steps = None if data["steps"] is None else tuple(_step_from_json(s) for s in data["steps"])
    if "argument" in data:
        # Arguments of an exported function are apart, so each is a view of its own.
        return FromArgument(data["argument"], steps, True)
    assert steps is not None
    if "state" in data:
        storage = captured[data["state"]]
        return FromOutside(ref(Tensor._of(storage, steps)), storage, steps)
    return FromOutput(data["output"], steps, None, None, data["twin"])
