"""What a jitted function is traced for: the signature of a call.

It holds the structure of the arguments, what is known of each tensor before it is computed, which
tensors are the same or share memory, the values of everything else, and the numbers, strings and
tensors that the function itself finds in its closure, its defaults and its globals. Two calls of
one signature run the same trace.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable, Collection, Iterable, Sequence
from types import CodeType
from typing import Any, Final, NamedTuple, Self
from weakref import ref

from weft.engine.bindings import take_bindings, variables_of
from weft.ir.dtypes import dtypes
from weft.ir.movement import Step
from weft.ir.ops import Op
from weft.ir.uop import UOp, make
from weft.support.errors import ArgumentTypeError
from weft.tensor.core import realize_all
from weft.tensor.storage import Storage, place_of
from weft.tensor.tensor import Tensor
from weft.tensor.trace.state import GoneStorage
from weft.tensor.trees import Structure, flatten, paths

SCALARS: Final = (bool, int, float, str, bytes, type(None))


class Identity(ref[Any]):
    """An object as itself, whatever it says about equality; it is not kept alive."""

    __slots__ = ("_hash",)
    _hash: int

    def __new__(cls, thing: Any) -> Self:
        made = super().__new__(cls, thing)
        made._hash = id(thing)
        return made

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Identity) and (thing := self()) is not None and thing is other()


class Arguments(NamedTuple):
    """The arguments of a call, flat."""

    structure: Structure
    leaves: list[Any]

    @property
    def variables(self) -> list[UOp]:
        """The variables whose values the arguments bring."""
        values = values_of(self.leaves)
        found = variables_of([unbound(size) for size in _sizes(self.leaves)])
        return [variable for variable in found if variable.arg[0] in values]

    @property
    def tensors(self) -> list[Tensor]:
        """Each tensor once."""
        return list({id(leaf): leaf for leaf in self.leaves if isinstance(leaf, Tensor)}.values())


def _sizes(leaves: Iterable[Any]) -> list[UOp]:
    """All symbolic sizes among the arguments: those of tensors, and those passed as they are."""
    found: list[UOp] = []
    for leaf in leaves:
        if isinstance(leaf, Tensor):
            found += leaf._storage.uop.src
            found += [size for _, _, symbolic in leaf._steps for size in symbolic]
        elif isinstance(leaf, UOp):
            found.append(leaf)
    return found


def values_of(leaves: Iterable[Any]) -> dict[str, int]:
    """The value of each variable that the arguments bring; raises where there are two."""
    return take_bindings(make(Op.TUPLE, dtypes.void, tuple(_sizes(leaves))))[1]


def unbound(size: Any) -> Any:
    """A size without the value of its variables, which is no part of a trace."""
    return take_bindings(size)[0] if isinstance(size, UOp) else size


def unbound_steps(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    return tuple([(op, arg, tuple(map(unbound, symbolic))) for op, arg, symbolic in steps])


def read_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
    """The arguments, with all tensors computed.

    The gradient of a tensor is an argument too, if it has one.
    """
    leaves: list[Any] = []
    structure = flatten((args, kwargs), leaves)
    tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
    grads = [grad_of(tensor) for tensor in tensors]
    waiting = [tensor for tensor in (*tensors, *grads) if tensor is not None]
    if any(not tensor._storage.is_realized for tensor in waiting):
        realize_all(waiting)
    return Arguments(structure, leaves)


def grad_of(tensor: Tensor) -> Tensor | None:
    """The gradient that a tensor has; None where a trace left one that nobody can have."""
    grad = tensor._grad
    return None if grad is None or isinstance(grad._storage, GoneStorage) else grad


def is_by_value(tensor: Tensor, storages: Sequence[Storage]) -> bool:
    """Whether a trace sees the elements of a view and not the storage behind it.

    Then views of other places run the same trace. A storage that two arguments show must be seen.
    """
    return bool(tensor._steps) and storages.count(tensor._storage) == 1


def signature_of(
    arguments: Arguments, shared: Collection[Storage], names: Callable[[], list[str]]
) -> tuple[Any, ...]:
    """The key of the arguments of a call.

    A storage of `shared` is one that the function reaches by itself; its identity is in the key.
    """
    tensors = arguments.tensors
    numbers = {id(tensor): number for number, tensor in enumerate(tensors)}
    storages = [tensor._storage for tensor in tensors]
    key: list[Any] = [arguments.structure]
    for place, leaf in enumerate(arguments.leaves):
        if isinstance(leaf, Tensor):
            number = numbers[id(leaf)]
            key.append((number, *_tensor_key(leaf, storages, shared)))
        else:
            key.append(static_key(leaf, names, place))
    return tuple(key)


def _tensor_key(tensor: Tensor, storages: list[Storage], shared: Collection[Storage]) -> Any:
    storage = tensor._storage
    grad = grad_of(tensor)
    shape = None if grad is None else tuple(map(unbound, grad.shape))
    own = (tensor.requires_grad, None if grad is None else (grad.dtype, shape))
    if storage in shared:
        return "shared", storage, tensor._steps, own
    if is_by_value(tensor, storages):
        place = place_of(tensor.uop, tensor.device)
        return "view", tensor.dtype, tuple(map(unbound, tensor.shape)), place, own
    node = storage.uop
    where = storages.index(storage)
    sizes = tuple(map(unbound, node.src))
    return node.dtype, node.arg[1:], sizes, unbound_steps(tensor._steps), where, own


def static_key(value: Any, names: Callable[[], list[str]], place: int) -> Any:
    """A value that is part of the signature; 1, 1.0 and True are three values.

    `names` has the name of the value, for an error.
    """
    kind = type(value)
    if kind is float:
        return float, value.hex()
    if isinstance(value, UOp):
        return "size", unbound(value)
    own: Any = kind.__hash__
    if own is object.__hash__:
        try:
            return Identity(value)  # an object is itself, and the trace does not keep it alive
        except TypeError:
            return kind, value
    try:
        hash(value)
    except TypeError:
        raise _not_hashable(names()[place], value) from None
    return kind, value


def _not_hashable(name: str, value: object) -> ArgumentTypeError:
    kind = type(value).__name__
    is_array = kind == "ndarray"
    return ArgumentTypeError(
        f"jit: the argument {name} is a {kind}, which cannot be compared with other calls",
        law="an argument is a tensor, a list, tuple, dict or dataclass of arguments, or a value\n"
        "that is hashable; a value other than a tensor is part of the trace",
        fix=f"pass it as a tensor: Tensor({name})" if is_array else "pass tensors, or a tuple",
    )


def argument_names(function: Callable[..., Any], structure: Structure) -> list[str]:
    """What each leaf of the arguments is called in the function."""
    positional, keywords = structure.parts
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    names: list[str] = []
    for number, part in enumerate(positional.parts):
        several = number >= len(parameters) or _takes_all(parameters[number])
        names += paths(part, f"args[{number}]" if several else parameters[number].name)
    for word, part in zip(keywords.names, keywords.parts, strict=True):
        names += paths(part, word)
    return names


def _takes_all(parameter: inspect.Parameter) -> bool:
    return parameter.kind == inspect.Parameter.VAR_POSITIONAL


class Surroundings:
    """What a function finds outside of its arguments: cells, defaults and globals that it names.

    Numbers, strings and bound sizes count by value, tensors by identity.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        plain = plain_function(function)
        code = getattr(plain, "__code__", None)
        self.code = code
        self._defaults = [
            *(getattr(plain, "__defaults__", None) or ()),
            *(getattr(plain, "__kwdefaults__", None) or {}).values(),
        ]
        self._cells: list[Any] = list(getattr(plain, "__closure__", None) or ())
        self._cell_names = list(code.co_freevars) if code is not None else []
        self._globals: dict[str, Any] = getattr(plain, "__globals__", {})
        self._global_names = sorted(global_names(code)) if code is not None else []

    def key(self) -> tuple[Any, ...]:
        """The part of the signature that the arguments do not have."""
        cells = [cell_value(cell) for cell in self._cells]
        names = [self._globals.get(name) for name in self._global_names]
        return tuple([_seen_key(value) for value in (*cells, *names, *self._defaults)])

    def names(self) -> list[str]:
        """What each part of the key is called."""
        return [*self._cell_names, *self._global_names, *["a default"] * len(self._defaults)]

    def guards(self) -> Guards:
        """Where to look for what counts now, for a check that takes no time."""
        cells = [(cell, value) for cell in self._cells if _counts(value := cell_value(cell))]
        found = self._globals
        return Guards(
            cells,
            found,
            [(name, found[name]) for name in self._global_names if _counts(found.get(name))],
        )


class Guards(NamedTuple):
    """Cells and globals with the values that they had."""

    cells: list[tuple[Any, Any]]
    scope: dict[str, Any]
    names: list[tuple[str, Any]]


def _counts(value: Any) -> bool:
    return value is not None and isinstance(value, (*SCALARS, Tensor, UOp))


def _seen_key(value: Any) -> Any:
    if isinstance(value, Tensor):
        return Identity(value)
    if isinstance(value, UOp):  # no argument: the trace has its value
        return "bound", value
    return static_key(value, list, 0) if _counts(value) else None


def cell_value(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


def plain_function(function: Any) -> Any:
    """The function of Python that is called in the end, without wrappers and objects around it."""
    plain = inspect.unwrap(function)
    plain = getattr(plain, "__func__", plain)
    if not hasattr(plain, "__code__"):  # an object that can be called
        plain = type(plain).__call__
    return plain


def global_names(code: CodeType) -> set[str]:
    """The names that a function, and functions inside of it, may look up in the module."""
    return _loaded_names(code, ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"))


def attribute_names(code: CodeType) -> set[str]:
    """The names that a function, and functions inside of it, ask objects for."""
    return _loaded_names(code, ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR"))


def _loaded_names(code: CodeType, operations: tuple[str, ...]) -> set[str]:
    names = {each.argval for each in dis.get_instructions(code) if each.opname in operations}
    for part in code.co_consts:
        if isinstance(part, CodeType):
            names |= _loaded_names(part, operations)
    return names
