"""The tensors that `backward` gives a gradient to: those that no other was computed from.

They are held weakly and by identity, because `==` of tensors is a tensor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from weakref import ref

from weft.support.errors import DTypeError

if TYPE_CHECKING:
    from weft.ir.uop import UOp
    from weft.tensor.tensor import Tensor

_LEAVES: Final[dict[int, ref[Tensor]]] = {}


def remember(tensor: Tensor, requires_grad: bool | None) -> Tensor:
    """Note a leaf, and return it.

    One that requires a gradient gets memory of its own: a constant without memory is the same node
    as every equal constant, and their gradients could not be told apart.
    """
    if requires_grad and not tensor.dtype.is_float:
        raise DTypeError(
            f"requires_grad: a tensor of {tensor.dtype.name} has no gradient",
            law="only floats have gradients",
            fix="make it a float: dtype=dtypes.float32",
        )
    tensor.requires_grad = requires_grad
    if not tensor.dtype.is_float:
        return tensor
    if requires_grad:
        tensor._storage.take_memory()
    key = id(tensor)
    if key not in _LEAVES:
        _LEAVES[key] = ref(tensor, lambda _: _LEAVES.pop(key, None) and None)
    return tensor


def is_leaf(tensor: Tensor) -> bool:
    """Whether a tensor was created, and not computed."""
    return id(tensor) in _LEAVES


def leaves_with_gradient() -> list[UOp]:
    """The values of the leaves that require a gradient."""
    found: list[UOp] = []
    for reference in list(_LEAVES.values()):
        leaf = reference()
        if leaf is not None and leaf.requires_grad and not leaf._storage.is_gone:
            found.append(leaf._storage.uop)
    return found


def live_leaves() -> list[Tensor]:
    """All leaves that somebody still holds and that have a value, oldest first."""
    held = [tensor for each in list(_LEAVES.values()) if (tensor := each()) is not None]
    return [tensor for tensor in held if not tensor._storage.is_gone]
