"""Gradients of tensors: `backward`, `gradient`, `requires_grad`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from weft.engine.buffers import BUFFERS
from weft.ir import movement
from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.support.errors import ArgumentError, DTypeError, NotSupported, ShapeError
from weft.tensor.autodiff.history import unfold
from weft.tensor.autodiff.leaves import is_leaf, live_leaves, remember
from weft.tensor.trace.state import GoneStorage, tracing

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

# What tells a value from all others: memory, and what stands for it in a function.
_MEMORY: Final = 1 << Op.BUFFER | 1 << Op.PARAM


def _seed(self: Tensor, gradient: Tensor | None, name: str) -> UOp:
    if not self.dtype.is_float:
        raise DTypeError(
            f"{name}: a tensor of {self.dtype.name} has no gradient",
            law="only floats have gradients",
        )
    if gradient is None:
        if self.numel() != 1:
            raise ShapeError(
                f"{name}: the output has {self.numel()} elements",
                facts=[("shape", self.shape)],
                law="without a gradient to start from, the output is one number",
                fix="reduce it, for example with sum() or mean(), or pass gradient=",
            )
        return movement.full(self.dtype, 1.0, self.shape)
    if gradient.shape != self.shape:
        raise ShapeError(
            f"{name}: the gradient to start from has another shape",
            facts=[("output", self.shape), ("gradient", gradient.shape)],
            law="the gradient to start from has the shape of the output",
        )
    return gradient.cast(self.dtype).uop


def backward(self: Tensor, gradient: Tensor | None = None) -> Tensor:
    """Add the gradient of this value to `.grad` of every leaf it depends on.

    Leaves are floats that were created, not computed, and whose `requires_grad` is True; where
    there is none, those that leave it open. A constant without memory, such as `Tensor.zeros(3)`,
    counts once it is realized or where it was created with `requires_grad=True`.

    >>> from weft.tensor import Tensor
    >>> x = Tensor([1.0, 2.0, 3.0])
    >>> _ = (x * x).sum().backward()
    >>> x.grad.tolist()
    [2.0, 4.0, 6.0]

    A value that was computed from leaves with `requires_grad=True` keeps its graph when it is
    realized, until something that the graph reads is overwritten.

    >>> w = Tensor([3.0], requires_grad=True)
    >>> loss = (w * w).sum()
    >>> loss.item()
    9.0
    >>> _ = loss.backward()
    >>> w.grad.tolist()
    [6.0]
    """
    from weft.gradient.reverse import gradients

    seed = _seed(self, gradient, "backward")
    leaves = [leaf for leaf in live_leaves() if _wants_gradient(leaf)]
    unfolded = unfold(self.uop, *(leaf.uop for leaf in leaves))
    output, *nodes_of_leaves = unfolded.roots
    below = set(topological(output))
    _require_no_jitted(output, below, "backward")
    pairs = zip(leaves, nodes_of_leaves, strict=True)
    targets = {leaf: node for leaf, node in pairs if node in below}
    if any(leaf.requires_grad for leaf in targets):
        targets = {leaf: node for leaf, node in targets.items() if leaf.requires_grad}
    if not targets and self.uop.op == Op.BUFFER:
        raise _without_graph()
    found = gradients(output, list(targets.values()), seed)
    for leaf, node in zip(targets, found, strict=True):
        if node is not None:
            new = _gradient_of(leaf, unfolded.fold(node))
            new.requires_grad = new._storage.keeps_graph = False
            _add_gradient(leaf, new)
    return self


def _gradient_of(target: Tensor, node: UOp) -> Tensor:
    """A gradient as a tensor; on several devices it lies as what it is the gradient of."""
    if isinstance(target.device, str):
        return target._new(node)
    return target._value(node, target.device).shard_like(target)


def _without_graph() -> ArgumentError:
    return ArgumentError(
        "backward: the value is in memory, and what it was computed from is not known",
        law="a realized value keeps its graph if a leaf below it was made with requires_grad=True",
        fix="make the leaves with requires_grad=True, or call backward() before the value is read",
    )


def _add_gradient(leaf: Tensor, new: Tensor) -> None:
    """Add to `.grad`. To one that nobody can have any more there is nothing to add."""
    if tracing.trace is not None:
        tracing.trace.note_grad_sum(leaf)
    before = leaf._grad
    if before is None:
        leaf._grad = new
    elif not isinstance(before._storage, GoneStorage):
        leaf._grad = before + new


def _require_no_jitted(
    root: UOp, below: Iterable[UOp], name: str, targets: Sequence[UOp] = ()
) -> None:
    """A gradient that would end at the result of a jitted function is no gradient.

    One that ends at a target is what was asked for.
    """
    made = [node for node in below if _is_jitted(node) and node not in targets]
    if not made:
        return
    # What is behind a detach() needs no gradient, nor what a target was computed from.
    ends = set(targets)
    seen = set(topological(root, enter=lambda node: node.op != Op.DETACH and node not in ends))
    if not seen.isdisjoint(made):
        raise NotSupported(
            f"{name}: the value was computed by a jitted function, whose graph is not kept",
            law="a jitted function returns computed values; a gradient through it is taken inside",
            fix=f"call {name} inside of the jitted function, or use result.detach() where no\n"
            "gradient is wanted",
        )


def _is_jitted(node: UOp) -> bool:
    memory = BUFFERS.get(node.arg[0]) if node.op == Op.BUFFER else None
    return memory is not None and memory.hides_graph


def _wants_gradient(leaf: Tensor) -> bool:
    return leaf.requires_grad is not False and bool(leaf.uop.ops & 1 << Op.BUFFER)


def gradient(
    self: Tensor,
    *targets: Tensor,
    gradient: Tensor | None = None,
    materialize_grads: bool = False,
) -> list[Tensor]:
    """Return the gradients of this value with respect to the targets.

    A target that the value does not depend on is refused, unless `materialize_grads` asks for
    zeros. A constant, such as `Tensor.ones(3)`, needs `requires_grad=True` to be a target, because
    equal constants are one value. PyTorch: autograd.grad.

    >>> from weft.tensor import Tensor
    >>> x = Tensor([1.0, 2.0])
    >>> (x * x).sum().gradient(x)[0].tolist()
    [2.0, 4.0]
    """
    from weft.gradient.reverse import gradients

    seed = _seed(self, gradient, "gradient")
    unfolded = unfold(self.uop, *(target.uop for target in targets))
    output, *wanted = unfolded.roots
    _require_no_jitted(output, topological(output), "gradient", wanted)
    found = gradients(output, wanted, seed)
    result = []
    for number, (target, node) in enumerate(zip(targets, found, strict=True)):
        if node is None and materialize_grads:
            result.append(target.zeros_like())
            continue
        if node is None:
            raise ArgumentError(
                f"gradient: the output does not depend on target {number}",
                facts=[("target", target.shape, target.dtype.name)],
                law="a target is a value that the output was computed from; a value that was\n"
                "read forgets this, unless a leaf below it has requires_grad=True",
                fix="call gradient() before the output is read, or pass\n"
                "materialize_grads=True for zeros",
            )
        _require_memory(number, target)
        result.append(_gradient_of(target, unfolded.fold(node)))
    return result


def _require_memory(number: int, target: Tensor) -> None:
    """Equal constants are one node, so a gradient would count all of them."""
    if is_leaf(target) and not target.uop.ops & _MEMORY:
        raise ArgumentError(
            f"gradient: target {number} is a constant, which has no memory of its own",
            facts=[("target", target.shape, target.dtype.name)],
            law="equal constants are one value wherever they stand, so a slope of one of them\n"
            "could not be told from those of the others",
            fix="make it with requires_grad=True, or realize() it before it is used",
        )


def set_requires_grad(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Say whether `backward` gives this tensor a gradient, and return it.

    PyTorch: requires_grad_.

    >>> from weft.tensor import Tensor
    >>> Tensor([1.0]).requires_grad_().requires_grad
    True
    """
    if not requires_grad:
        self.requires_grad = False
        return self
    return remember(self, True)
