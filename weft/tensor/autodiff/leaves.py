"""The tensors that `backward` gives a gradient to: those that no other was computed from.

They are held weakly and by identity, because `==` of tensors is a tensor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary, ref

from weft.ir.dtypes import INEXACT
from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.support.errors import DTypeError
from weft.tensor.autodiff.history import has_histories, has_history

if TYPE_CHECKING:
    from weft.tensor.core import Core
    from weft.tensor.tensor import Tensor

_LEAVES: Final[dict[int, ref[Tensor]]] = {}
# Those of all tensors that require a gradient: every realize asks, and most leaves do not.
_WANTED: Final[dict[int, ref[Core]]] = {}
# What tells a value from all others: memory, and what stands for it in a function.
_MEMORY: Final = 1 << Op.BUFFER | 1 << Op.PARAM
# How often each constant that counts, such as a range or an identity, was created.
_CREATED: Final[WeakKeyDictionary[UOp, int]] = WeakKeyDictionary()


def remember(tensor: Tensor, requires_grad: bool | None) -> Tensor:
    """Note a leaf, and return it.

    One that requires a gradient gets memory of its own: a constant without memory is the same node
    as every equal constant, and their gradients could not be told apart.
    """
    if requires_grad and not tensor.dtype.is_inexact:
        raise DTypeError(
            f"requires_grad: a tensor of {tensor.dtype.name} has no gradient",
            rule="only floats and complex numbers have gradients",
            fix="make it a float: dtype=dtypes.float32",
        )
    if tensor._wants is not requires_grad:
        tensor.requires_grad = requires_grad
    if not tensor.dtype.is_inexact:
        return tensor
    if requires_grad:
        tensor._storage.take_memory()
    if id(tensor) not in _LEAVES:
        node = tensor._storage.uop
        if _is_counted(node):  # for good: graphs may hold uses of leaves that are gone
            _CREATED[node] = _CREATED.get(node, 0) + 1
        _enter(tensor)
    return tensor


def _enter(tensor: Tensor) -> None:
    key = id(tensor)
    _LEAVES[key] = ref(tensor, lambda _: _LEAVES.pop(key, None) and None)


def _is_counted(node: UOp) -> bool:
    return not node.ops & _MEMORY and bool(node.ops >> Op.IOTA & 1)


def has_identity(node: UOp) -> bool:
    """Whether the uses of a value can be told from those of equal ones.

    Equal constants are one node. A number, such as that of `Tensor.ones(3)`, may stand anywhere;
    one that is made by counting, such as `Tensor.eye(3)`, is told apart where it was created once.
    """
    return bool(node.ops & _MEMORY) or (_is_counted(node) and _CREATED.get(node, 1) == 1)


def note_wanted(tensor: Core, is_wanted: bool) -> None:
    """Note that a tensor requires a gradient, or does so no more."""
    key = id(tensor)
    if is_wanted:
        _WANTED[key] = ref(tensor, lambda _: _WANTED.pop(key, None) and None)
    else:
        _WANTED.pop(key, None)


def remember_realized(tensor: Tensor) -> None:
    """Note a value as a leaf when it is in memory and nothing leads further back."""
    node = tensor._storage.uop
    if node.dtype.kind & INEXACT and id(tensor) not in _LEAVES and not has_history(node):
        _enter(tensor)


def is_leaf(tensor: Tensor) -> bool:
    """Whether a tensor was created, and not computed."""
    return id(tensor) in _LEAVES


def wanted_leaves() -> list[Core]:
    """The leaves that require a gradient."""
    # A list of values is made at once; one of pairs may run the collector, which drops entries.
    found = [leaf for each in list(_WANTED.values()) if (leaf := each()) is not None]
    return [leaf for leaf in found if id(leaf) in _LEAVES and not leaf._storage.is_gone]


def leaves_with_gradient() -> list[UOp]:
    """The values of the leaves that require a gradient."""
    if not _WANTED:  # every realize asks
        return []
    return [leaf._storage.uop for leaf in wanted_leaves()]


def earlier_with_gradient() -> list[UOp]:
    """The values that such leaves had before they were written, where something reads them."""
    if not _WANTED:
        return []
    earlier = (each() for leaf in wanted_leaves() for each in leaf._storage.earlier)
    return [node for node in earlier if node is not None]


def may_be_followed() -> bool:
    """Whether a gradient may lead anywhere: some leaf requires one, or a graph is kept."""
    return bool(_WANTED) or has_histories()


def live_leaves() -> list[Tensor]:
    """All leaves that somebody still holds and that have a value, oldest first."""
    held = [tensor for each in list(_LEAVES.values()) if (tensor := each()) is not None]
    return [tensor for tensor in held if not tensor._storage.is_gone]
