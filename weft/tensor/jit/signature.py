"""What a jitted function is traced for: the signature of a call.

It holds the structure of the arguments, what is known of each tensor before it is computed, which
tensors are the same or share memory, and the values of everything else. What the function reads
by itself is not part of it: traces of one signature differ in that (`watch`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final, NamedTuple, Self
from weakref import ref

from weft.engine.bindings import take_bindings, variables_of
from weft.ir.dtypes import dtypes
from weft.ir.movement import Movement
from weft.ir.ops import Op
from weft.ir.uop import UOp, make
from weft.support.errors import ArgumentTypeError
from weft.tensor.core import realize_all
from weft.tensor.storage import Storage, placement_of
from weft.tensor.tensor import Tensor
from weft.tensor.trace.state import GoneStorage
from weft.tensor.trees import Structure, flatten, paths

SCALARS: Final = (bool, int, float, complex, str, bytes, type(None))


class WeakIdentity(ref[Any]):
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
        return (
            isinstance(other, WeakIdentity) and (thing := self()) is not None and thing is other()
        )


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
    """A size without the value of its variables, which is not part of a trace."""
    return take_bindings(size)[0] if isinstance(size, UOp) else size


def unbound_steps(steps: tuple[Movement, ...]) -> tuple[Movement, ...]:
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

    Then views of other offsets run the same trace. A storage that two arguments show must be seen.
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
    for position, leaf in enumerate(arguments.leaves):
        if isinstance(leaf, Tensor):
            number = numbers[id(leaf)]
            key.append((number, *_tensor_key(leaf, storages, shared)))
        else:
            key.append(static_key(leaf, names, position))
    return tuple(key)


def _tensor_key(tensor: Tensor, storages: list[Storage], shared: Collection[Storage]) -> Any:
    storage = tensor._storage
    grad = grad_of(tensor)
    shape = None if grad is None else tuple(map(unbound, grad.shape))
    own = (tensor._wants, None if grad is None else (grad.dtype, shape))
    if storage in shared:
        return "shared", storage, tensor._steps, own
    if is_by_value(tensor, storages):
        placement = placement_of(tensor.uop, tensor.device)
        return "view", tensor.dtype, tuple(map(unbound, tensor.shape)), placement, own
    node = storage.uop
    where = storages.index(storage)
    sizes = tuple(map(unbound, node.src))
    return node.dtype, node.arg[1:], sizes, unbound_steps(tensor._steps), where, own


def static_key(value: Any, names: Callable[[], list[str]], position: int) -> Any:
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
            return WeakIdentity(value)  # an object is itself, and the trace does not keep it alive
        except TypeError:
            return kind, value
    try:
        hash(value)
    except TypeError:
        raise _not_hashable(names()[position], value) from None
    return kind, value


def _not_hashable(name: str, value: object) -> ArgumentTypeError:
    kind = type(value).__name__
    is_array = kind == "ndarray"
    return ArgumentTypeError(
        f"jit: the argument {name} is a {kind}, which cannot be compared with other calls",
        rule="an argument is a tensor, a list, tuple, dict or dataclass of arguments, or a value\n"
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


def plain_function(function: Any) -> Any:
    """The function of Python that is called in the end, without wrappers and objects around it."""
    plain = inspect.unwrap(function)
    plain = getattr(plain, "__func__", plain)
    if not hasattr(plain, "__code__"):  # an object that can be called
        plain = type(plain).__call__
    return plain
