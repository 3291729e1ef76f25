"""A function that came from a file: it checks its arguments and runs its program."""

from __future__ import annotations

import copy
from typing import Any

from weft.ir.uop import UOp
from weft.support.errors import ArgumentError, ArgumentTypeError, DeviceError, ShapeError
from weft.tensor.core import realize_all
from weft.tensor.jit.program import InputRow, ObjectKind, TensorKind, TracedProgram, ValueKind
from weft.tensor.jit.signature import unbound
from weft.tensor.tensor import Tensor
from weft.tensor.trees import Structure, flatten


class LoadedFunction:
    """What `load_function` returns. Objects among the arguments, such as `self`, are left out.

    `state` has the tensors that the function captured; those that it writes change with each call.
    """

    def __init__(self, name: str, program: TracedProgram, names: list[str], device: str) -> None:
        self.name = name
        self._program = program
        self._structure = _without_objects(program.structure, iter(program.leaves))
        self._leaves = [leaf for leaf in program.leaves if not isinstance(leaf, ObjectKind)]
        self._positions = [n for n, leaf in enumerate(program.leaves) if not _is_object(leaf)]
        self._names = [names[position] for position in self._positions]
        self._device = device
        self._rows = program.rows

    @property
    def state(self) -> list[Tensor]:
        return [Tensor._of(storage) for storage in self._program.captured]

    def __repr__(self) -> str:
        return f"<LoadedFunction {self.name}>"

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        leaves: list[Any] = []
        structure = flatten((args, kwargs), leaves)
        if not _is_alike(structure, self._structure):
            raise ArgumentTypeError(
                f"{self.name}: the arguments do not have the structure of the saved ones",
                facts=[("given", _shown(structure)), ("saved", _shown(self._structure))],
                rule="an exported function takes arguments like those it was saved with",
            )
        tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        realize_all(tensors)
        for name, leaf, kind in zip(self._names, leaves, self._leaves, strict=True):
            self._require(name, leaf, kind)
        everything: list[Any] = [None] * len(self._program.leaves)
        for position, leaf in zip(self._positions, leaves, strict=True):
            everything[position] = leaf
        self._require_apart(tensors)
        self._program.prepare()
        # Rows are of this call: another thread may pass a view where this one does not.
        program = copy.copy(self._program)
        program.rows = [_seen(row, everything[row.leaf]) for row in self._rows]
        return program.call(everything)

    def _require(self, name: str, leaf: Any, kind: Any) -> None:
        """Raise unless an argument is what the trace was made for."""
        if isinstance(kind, ValueKind):
            if isinstance(kind.value, UOp):
                if not isinstance(leaf, UOp) or unbound(leaf) is not kind.value:
                    raise ArgumentTypeError(f"{self.name}: expected a bound size for {name}")
                return
            if type(leaf) is not type(kind.value) or leaf != kind.value:
                raise ArgumentError(
                    f"{self.name}: {name} is {leaf!r}, and was {kind.value!r} when it was saved",
                    rule="a value that is not a tensor is part of an exported function",
                )
            return
        if not isinstance(leaf, Tensor):
            raise ArgumentTypeError(
                f"{self.name}: expected a tensor for {name}, got {type(leaf).__name__}"
            )
        assert isinstance(kind, TensorKind)
        if (leaf.dtype, tuple(map(unbound, leaf.shape))) != (kind.dtype, kind.shape):
            raise ShapeError(
                f"{self.name}: {name} does not fit",
                facts=[
                    ("given", leaf.shape, leaf.dtype.name),
                    ("saved", kind.shape, kind.dtype.name),
                ],
                rule="an exported function takes tensors like those it was saved with",
            )
        here = self._device
        if leaf.device != here:
            raise DeviceError(
                f"{self.name}: {name} is on {leaf.device}, and the function runs on {here}",
                fix=f"load_function(path, device={leaf.device!r})",
            )

    def _require_apart(self, tensors: list[Tensor]) -> None:
        written = any(row.is_written or row.is_donated for row in self._rows)
        storages = [tensor._storage for tensor in tensors]
        if written and len(set(storages)) != len(storages):
            raise ArgumentError(
                f"{self.name}: two arguments share memory, and the function writes to one",
                rule="arguments of an exported function that writes share no memory",
                fix="copy one of them: x.clone()",
            )


def _is_object(leaf: Any) -> bool:
    return isinstance(leaf, ObjectKind)


def _seen(row: InputRow, tensor: Tensor) -> InputRow:
    """The row for this call's tensor, which may be a view or not."""
    return row._replace(is_view=bool(tensor._steps))


def _without_objects(structure: Structure, leaves: Any) -> Structure:
    """The structure of what is passed to a loaded function: positions that are objects go."""
    positional, keywords = structure.parts
    kept = [part for part in positional.parts if not (_drop(part, leaves))]
    for part in keywords.parts:
        _drop(part, leaves)
    return Structure(tuple, (), (Structure(tuple, (), tuple(kept)), keywords))


def _drop(part: Structure, leaves: Any) -> bool:
    """Whether a part is one object; its leaves are taken from the iterator."""
    if part.kind is None:
        return _is_object(next(leaves))
    for inner in part.parts:
        _drop(inner, leaves)
    return False


def _is_alike(given: Structure, saved: Structure) -> bool:
    if (given.kind is None) != (saved.kind is None) or len(given.parts) != len(saved.parts):
        return False
    if given.kind is not None and saved.kind is not None:
        if tuple(given.names) != tuple(saved.names):
            return False
        if issubclass(given.kind, list) != issubclass(saved.kind, list):
            return False
    return all(_is_alike(*pair) for pair in zip(given.parts, saved.parts, strict=True))


def _shown(structure: Structure) -> str:
    if structure.kind is None:
        return "_"
    parts = [_shown(part) for part in structure.parts]
    if structure.names:
        pairs = zip(structure.names, parts, strict=True)
        return "{" + ", ".join(f"{name!r}: {part}" for name, part in pairs) + "}"
    return ("[{}]" if issubclass(structure.kind, list) else "({})").format(", ".join(parts))
