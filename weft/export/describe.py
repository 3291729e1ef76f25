"""Structures, values, steps and recipes of a jitted function as JSON; `header.py` reads it back.

Only plain data has a form here. An object of the user's has none, because its class is code that a
later process need not have.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Final, NamedTuple
from weakref import ref

from weft.ir.movement import Movement
from weft.ir.ops import INFO
from weft.ir.shapes import Shape
from weft.ir.text import dump
from weft.ir.uop import UOp
from weft.support.errors import NotSupported
from weft.tensor.jit.program import ObjectKind, TensorKind, ValueKind
from weft.tensor.jit.results import (
    FromArgument,
    FromOutside,
    FromPython,
    FromSizes,
    ResultPlan,
)
from weft.tensor.storage import Storage
from weft.tensor.tensor import Tensor
from weft.tensor.trees import Structure

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


def shape_to_json(shape: Shape) -> Json:
    return [size if isinstance(size, int) else dump(size) for size in shape]


def _step_to_json(step: Movement) -> Json:
    op, arg, symbolic = step
    return [INFO[op].name, arg, [dump(size) for size in symbolic]]


def recipe_to_json(recipe: ResultPlan, captured: list[Storage]) -> Json:
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


class StateView(NamedTuple):
    """A view of memory that is captured, by its number."""

    number: int
    steps: tuple[Movement, ...]


def recipe_of(recipe: ResultPlan | StateView, captured: list[Storage]) -> ResultPlan:
    """A recipe of a file, with the storages that its function captured."""
    if not isinstance(recipe, StateView):
        return recipe
    storage = captured[recipe.number]
    return FromOutside(ref(Tensor._of(storage, recipe.steps)), storage, recipe.steps)
