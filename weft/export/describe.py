"""Structures, values, steps and plans of a jitted function as JSON; `header.py` reads it back.

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
            f"save_function: a {type(value).__name__} cannot be saved",
            rule="beside tensors, arguments and results are numbers, strings and None",
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


def plan_to_json(plan: ResultPlan, captured: list[Storage]) -> Json:
    if isinstance(plan, FromPython):
        return {"value": _plain(plan.value)}
    if isinstance(plan, FromSizes):
        return {"size": dump(plan.size)}
    if isinstance(plan, FromArgument):
        steps = None if plan.steps is None else [_step_to_json(step) for step in plan.steps]
        return {"argument": plan.leaf, "steps": steps}
    steps = [_step_to_json(step) for step in plan.steps]
    if isinstance(plan, FromOutside):
        return {"state": captured.index(plan.storage), "steps": steps}
    return {"output": plan.output, "steps": steps, "twin": plan.twin}


class StateView(NamedTuple):
    """A view of memory that is captured, by its number."""

    number: int
    steps: tuple[Movement, ...]


def plan_of(plan: ResultPlan | StateView, captured: list[Storage]) -> ResultPlan:
    """A plan of a file, with the storages that its function captured."""
    if not isinstance(plan, StateView):
        return plan
    storage = captured[plan.number]
    return FromOutside(ref(Tensor._of(storage, plan.steps)), storage, plan.steps)
