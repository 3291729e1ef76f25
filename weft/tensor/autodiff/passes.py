"""Gradients of tensors that `backward` did not know to be wanted, computed when `.grad` is read.

`backward` gives gradients to leaves. Where no leaf says that it requires one, any float may be
what somebody meant: a clone, a view, a cast, a value that was computed. So each pass stays with
the storages that it went through, and `.grad` of a tensor over one of them runs it for that one.
A pass is kept for as long as the storage is, and no more than `KEPT` of them; past that, and where
memory that a pass reads has been overwritten, `.grad` says what to write. It is never None because
a tensor was made in one way rather than in another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from weft.engine.buffers import has_memory
from weft.ir.movement import apply_all
from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.support.errors import ArgumentError
from weft.tensor.autodiff.history import Unfolded, followed
from weft.tensor.autodiff.leaves import (
    has_identity,
    leaves_with_gradient,
    may_be_followed,
    remember,
)
from weft.tensor.storage import Storage, live_storages
from weft.tensor.trace.state import GoneStorage, TraceState, tracing

if TYPE_CHECKING:
    from weft.tensor.core import Core
    from weft.tensor.tensor import Tensor

KEPT: Final = 8


class Pass(NamedTuple):
    """One call of `backward`, and the value that a storage had then."""

    output: UOp
    seed: UOp
    unfolded: Unfolded
    trace: TraceState | None
    value: UOp


_PASSES: Final[WeakKeyDictionary[Storage, list[Pass]]] = WeakKeyDictionary()


def note_pass(output: UOp, below: set[UOp], seed: UOp, unfolded: Unfolded) -> None:
    """Let the storages that a call of `backward` went through remember it."""
    for storage in live_storages():
        value = storage.uop
        if value not in below or not value.dtype.is_inexact or storage.is_gone:
            continue
        passes = _PASSES.setdefault(storage, [])
        if len(passes) <= KEPT:
            passes.append(Pass(output, seed, unfolded, tracing.trace, value))
        else:  # too many to run: what they hold is let go
            passes[:] = [passes[0]._replace(output=value, unfolded=Unfolded([], {}))] * len(passes)


def forget_passes(storage: Storage) -> None:
    _PASSES.pop(storage, None)


def gradient_on_demand(tensor: Any) -> Tensor | None:
    """What the passes that went through a tensor give it. It is a leaf of those to come."""
    node = _sum_of_passes(tensor)
    if node is None:
        return None
    new = gradient_of(tensor, node)
    if tracing.trace is None:
        tensor._grad = new
        remember(tensor, None)
    return new


def leads_to_wanted(tensor: Core) -> bool | None:
    """Whether a value was computed from a leaf that requires a gradient; None where it was not."""
    if (
        not may_be_followed()
        or not tensor.dtype.is_inexact
        or isinstance(tensor._storage, GoneStorage)
    ):
        return None
    node = tensor.uop
    return node in followed(topological(node), leaves_with_gradient()) or None


def gradient_of(target: Any, node: UOp, keeps_graph: bool = False) -> Tensor:
    """A gradient as a tensor; on several devices it is laid out as what it is the gradient of."""
    if isinstance(target.device, str):
        new: Tensor = target._new(node)
    else:
        new = target._value(node, target.device).shard_like(target)
    if not keeps_graph:
        new.requires_grad = new._storage.keeps_graph = False
    return new


def _sum_of_passes(tensor: Core) -> UOp | None:
    """The gradients of the passes that went through a tensor, added up."""
    passes = _PASSES.get(tensor._storage)
    if passes is None or tensor._wants is not None or not tensor.dtype.is_inexact:
        return None
    if len(passes) > KEPT:
        raise _not_given("it has gone through more calls of backward() than are kept")
    total: UOp | None = None
    for each in passes:
        part = _gradient(each, tensor) if each.trace is tracing.trace else None
        if part is not None:
            total = part if total is None else total + part
    return total


def _gradient(each: Pass, tensor: Core) -> UOp | None:
    from weft.gradient.reverse import gradients

    target = apply_all(each.value, tensor._steps)
    if target not in set(topological(each.output)):
        return None
    if not has_identity(target):
        raise _not_given("it is a constant, and equal constants are one value")
    (found,) = gradients(each.output, [target], each.seed)
    if found is None:
        return None
    found = each.unfolded.fold(found)
    memory = [node for node in topological(found) if node.op == Op.BUFFER]
    if each.trace is None and not all(map(has_memory, memory)):
        raise _not_given("what it needs has been overwritten since backward()")
    return found


def _not_given(why: str) -> ArgumentError:
    return ArgumentError(
        f"grad: the tensor does not require a gradient, and {why}",
        rule="backward() gives gradients to leaves; of other tensors they are computed when\n"
        "they are asked for, as long as they can be",
        fix="make it with requires_grad=True, or call x.requires_grad_() before it is used",
    )
