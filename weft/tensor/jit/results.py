"""What a jitted function returns, as a plan that every call follows.

A tensor that the function made is a new tensor over memory of the call. An argument is returned as
it was passed, a tensor from outside as it is, and a view of either as a view.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from weakref import ref

import numpy as np

from weft.ir import movement
from weft.ir.dtypes import DType
from weft.ir.movement import Movement
from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.ir.walk import substitute
from weft.support.errors import NotSupported
from weft.tensor.jit.graph import Wanted
from weft.tensor.jit.trace import Recording
from weft.tensor.storage import Storage
from weft.tensor.tensor import Tensor
from weft.tensor.trees import Structure, build, flatten

Steps = tuple[Movement, ...]


class FromArgument(NamedTuple):
    """An argument, or a view of it."""

    leaf: int
    steps: Steps | None  # None is the argument itself
    is_of_view: bool


class FromOutside(NamedTuple):
    """A tensor that was there before, while it lives, else a view of its storage."""

    tensor: ref[Tensor]
    storage: Storage
    steps: Steps


class FromOutput(NamedTuple):
    """A new tensor over an output. `twin` is an earlier result that is the same object."""

    output: int
    steps: Steps
    requires_grad: bool | None
    grad: FromArgument | FromOutside | FromOutput | None
    twin: int | None


class FromPython(NamedTuple):
    """A value that is not a tensor, the same in all calls."""

    value: Any


class FromSizes(NamedTuple):
    """A size, with the values of the call."""

    size: UOp


ResultPlan = FromArgument | FromOutside | FromOutput | FromPython | FromSizes


class Results(NamedTuple):
    """The plans of all leaves of a result."""

    structure: Structure
    plans: tuple[ResultPlan, ...]

    def build(
        self,
        leaves: Sequence[Any],
        outputs: Sequence[Storage],
        variables: dict[UOp, UOp],
    ) -> Any:
        made: list[Any] = []
        for plan in self.plans:
            if isinstance(plan, FromOutput) and plan.twin is not None:
                made.append(made[plan.twin])
            else:
                made.append(_make(plan, leaves, outputs, variables))
        return made[0] if self.structure.kind is None else build(self.structure, iter(made))


def _make(
    plan: ResultPlan,
    leaves: Sequence[Any],
    outputs: Sequence[Storage],
    variables: dict[UOp, UOp],
) -> Any:
    if isinstance(plan, FromOutput):
        steps = _bound(plan.steps, variables)
        tensor = Tensor._of(outputs[plan.output], steps)
        if plan.requires_grad is not None:
            tensor.requires_grad = plan.requires_grad
        if plan.grad is not None:
            tensor._grad = _make(plan.grad, leaves, outputs, variables)
        return tensor
    if isinstance(plan, FromPython):
        return plan.value
    if isinstance(plan, FromSizes):
        return substitute(plan.size, variables)
    if isinstance(plan, FromOutside):
        found = plan.tensor()
        if found is not None:
            return found
        return Tensor._of(plan.storage, _bound(plan.steps, variables))
    argument: Tensor = leaves[plan.leaf]
    if plan.steps is None:
        return argument
    steps = _bound(plan.steps, variables)
    return Tensor._of(argument._storage, (argument._steps if plan.is_of_view else ()) + steps)


def _bound(steps: Steps, variables: dict[UOp, UOp]) -> Steps:
    """The steps with the sizes of this call."""
    if not variables:
        return steps
    return tuple(
        [
            (op, arg, tuple([substitute(size, variables) for size in symbolic]))
            for op, arg, symbolic in steps
        ]
    )


def _not_repeated(function: str) -> NotSupported:
    return NotSupported(
        f"jit: {function} returns an array of NumPy",
        rule="a jitted function is traced once and replayed; it returns tensors, and values that\n"
        "are the same in every call",
        fix="return a tensor and read it outside: f(x).numpy()",
    )


class ResultReader:
    """Finds the plans of a result, and the outputs that they need."""

    def __init__(self, recording: Recording, donors: Sequence[int]) -> None:
        self._recording = recording
        self._inside = {id(tensor): leaf for leaf, tensor in recording.inside.items()}
        self._donors = list(donors)
        self._seen: dict[int, int] = {}
        self._leaf_of = {
            each.placeholder: each for each in recording.inputs if not each.is_gradient
        }
        self._shown: dict[Storage, set[Steps]] = {}
        self._numbers: dict[Storage, int] = {}
        self.wanted: list[Wanted] = []

    def read(self, leaf_numbers: dict[int, int]) -> Results:
        """The plans; `leaf_numbers` has the position of each argument by its id."""
        leaves: list[Any] = []
        structure = flatten(self._recording.result, leaves)
        for leaf in leaves:
            while isinstance(leaf, Tensor):
                self._shown.setdefault(leaf._storage, set()).add(leaf._steps)
                leaf = leaf._grad
        plans = [self._plan(leaf, number, leaf_numbers) for number, leaf in enumerate(leaves)]
        return Results(structure, tuple(plans))

    def _plan(self, leaf: Any, number: int | None, leaf_numbers: dict[int, int]) -> Any:
        if isinstance(leaf, UOp):
            return FromSizes(leaf)
        if isinstance(leaf, np.ndarray):
            raise _not_repeated(self._recording.name)
        if not isinstance(leaf, Tensor):
            return FromPython(leaf)
        tensor = leaf
        if id(tensor) in self._inside:
            return FromArgument(leaf_numbers[self._inside[id(tensor)]], None, False)
        storage = tensor._storage
        if storage in self._leaf_of:
            found = self._leaf_of[storage]
            return FromArgument(found.leaf, tensor._steps, found.is_view)
        if storage in self._recording.known or storage in self._recording.adopted:
            return FromOutside(ref(tensor), storage, tensor._steps)
        twin = self._seen.get(id(tensor))
        if number is not None:
            self._seen.setdefault(id(tensor), number)
        grad = tensor._grad
        return FromOutput(
            self._output(storage),
            () if len(self._shown[storage]) == 1 else tensor._steps,
            tensor._wants,
            None if grad is None or twin is not None else self._plan(grad, None, leaf_numbers),
            twin,
        )

    def _output(self, storage: Storage) -> int:
        """The number of the output that holds a storage.

        If one view of it is all that is returned, the output holds just that.
        """
        if storage not in self._numbers:
            node = storage.uop
            if len(self._shown[storage]) == 1:
                (steps,) = self._shown[storage]
                node = movement.apply_all(node, [step for step in steps if step[0] != Op.DETACH])
            self._numbers[storage] = len(self.wanted)
            self.wanted.append(Wanted(storage, node, self._take_donor(node.dtype, node.shape)))
        return self._numbers[storage]

    def _take_donor(self, dtype: DType, shape: Any) -> int | None:
        for donor in self._donors:
            node = self._recording.inputs[donor].node
            if node.dtype is dtype and node.shape == shape:
                self._donors.remove(donor)
                return donor
        return None
