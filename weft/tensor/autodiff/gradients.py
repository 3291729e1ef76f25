"""Gradients of tensors: `backward`, `gradient`, `requires_grad`."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from weft.engine.buffers import BUFFERS
from weft.ir import movement
from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.support.errors import ArgumentError, DTypeError, NotSupported, ShapeError
from weft.tensor.autodiff.differences import differences
from weft.tensor.autodiff.history import Unfolded, followed, is_computed, unfold
from weft.tensor.autodiff.hooks import after_hooks, watch_of
from weft.tensor.autodiff.leaves import has_identity, is_leaf, live_leaves, remember
from weft.tensor.autodiff.passes import gradient_of, note_pass
from weft.tensor.autodiff.versions import gradients_of_versions, versions_of
from weft.tensor.storage import live_storages
from weft.tensor.trace.state import GoneStorage, tracing

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor


def _seed(self: Tensor, gradient: Tensor | None, name: str) -> UOp:
    if not self.dtype.is_inexact:
        raise DTypeError(
            f"{name}: a tensor of {self.dtype.name} has no gradient",
            rule="only floats and complex numbers have gradients",
        )
    if gradient is None:
        if self.numel() != 1:
            raise ShapeError(
                f"{name}: the output has {self.numel()} elements",
                facts=[("shape", self.shape)],
                rule="without a gradient to start from, the output is one number",
                fix="reduce it, for example with sum() or mean(), or pass gradient=",
            )
        return movement.full(self.dtype, 1.0, self.shape)
    if gradient.shape != self.shape:
        raise ShapeError(
            f"{name}: the gradient to start from has another shape",
            facts=[("output", self.shape), ("gradient", gradient.shape)],
            rule="the gradient to start from has the shape of the output",
        )
    return gradient.cast(self.dtype).uop


def backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> Tensor:
    """Add the gradient of this value to `.grad` of every leaf it depends on.

    Leaves are floats that were created, not computed, and whose `requires_grad` is True; where
    there is none, those that leave it open; and then `.grad` of any other float that the value
    depends on is its gradient too. Equal expressions are one value, so a constant such as
    `Tensor.zeros(3)` has a gradient once it is realized or if it was created with
    `requires_grad=True`; its `.grad` says so.

    >>> from weft.tensor import Tensor
    >>> x = Tensor([1.0, 2.0, 3.0])
    >>> _ = (x * x).sum().backward()
    >>> x.grad.tolist()
    [2.0, 4.0, 6.0]

    Graphs are kept, so `retain_graph` changes nothing. With `create_graph` the gradients can be
    differentiated again. `inputs` are the only tensors that get a gradient, if they are given.

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
    seed = _seed(self, gradient, "backward")
    leaves = [leaf for leaf in live_leaves() if _wants_gradient(leaf)]
    unfolded, versions = _unfolded(self, leaves)
    output = unfolded.roots[0]
    below = set(topological(output))
    _require_no_jitted(output, below, "backward")
    used = {
        leaf: [node for node in nodes if node in below]
        for leaf, nodes in zip(leaves, versions, strict=True)
    }
    targets = {leaf: nodes for leaf, nodes in used.items() if nodes}
    if any(leaf._wants for leaf in targets):
        targets = {leaf: nodes for leaf, nodes in targets.items() if leaf._wants}
    else:
        note_pass(output, below, seed, unfolded)
    if inputs is not None:
        listed = inputs if isinstance(inputs, (list, tuple)) else [inputs]
        chosen = {id(each) for each in listed}
        targets = {leaf: nodes for leaf, nodes in targets.items() if id(leaf) in chosen}
    if not targets and self.uop.op == Op.BUFFER:
        raise _without_graph()
    found = gradients_of_versions(output, targets, seed, watch_of(self, unfolded.fold))
    if not found and not _leads_somewhere(self, output):
        raise _without_leaves()
    for leaf, node in found.items():
        new = gradient_of(leaf, unfolded.fold(node), create_graph)
        _add_gradient(leaf, after_hooks(leaf, new))
    return self


def _unfolded(self: Tensor, targets: Sequence[Tensor]) -> tuple[Unfolded, list[list[UOp]]]:
    """The graph of a value, and the versions of the targets that may be in it."""
    versions = [versions_of(each) for each in targets]
    unfolded = unfold(self.uop, *itertools.chain(*versions))
    rest = iter(unfolded.roots[1:])
    return unfolded, [list(itertools.islice(rest, len(nodes))) for nodes in versions]


def _leads_somewhere(self: Tensor, output: UOp) -> bool:
    """Whether a gradient leads from an output to a value that a tensor other than it may have."""
    nodes = topological(output)
    others = {each.uop for each in live_storages() if each is not self._storage}
    ends = [node for node in nodes if node in others and node.dtype.is_inexact]
    return output in followed(nodes, ends)


def _without_leaves() -> ArgumentError:
    return ArgumentError(
        "backward: the value does not depend on any tensor that could have a gradient",
        rule="gradients do not pass detach(), no_grad(), integers and comparisons",
        fix="compute the value from tensors with requires_grad=True, outside of no_grad()",
    )


def _without_graph() -> ArgumentError:
    return ArgumentError(
        "backward: the value is in memory, and what it was computed from is not known",
        rule="a realized value keeps its graph if a leaf of it was made with requires_grad=True",
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
    """A gradient that would end at the result of a jitted function is not a gradient.

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
            rule="a jitted function returns computed values; take a gradient through it inside",
            fix=f"call {name} inside of the jitted function, or use result.detach() where no\n"
            "gradient is wanted",
        )


def _is_jitted(node: UOp) -> bool:
    memory = BUFFERS.get(node.arg[0]) if node.op == Op.BUFFER else None
    return memory is not None and memory.hides_graph


def _wants_gradient(leaf: Tensor) -> bool:
    return leaf._wants is not False and has_identity(leaf.uop)


def gradient(
    self: Tensor,
    *targets: Tensor,
    gradient: Tensor | None = None,
    materialize_grads: bool | None = None,
    **finite: Any,
) -> list[Tensor]:
    """Return the gradients of this value with respect to the targets.

    The gradient of a target that the value does not depend on is zeros; `materialize_grads=False`
    asks for an error instead. There is one, too, where the value goes back to memory that was
    computed and whose graph is not known, unless `materialize_grads=True`. A constant, such as
    `Tensor.ones(3)`, needs `requires_grad=True` to be a target, because equal constants are one
    value. PyTorch: autograd.grad.

    Without targets these are the finite differences along axes, and `spacing`, `dim` and
    `edge_order` are those of torch.gradient and numpy.gradient.

    >>> from weft.tensor import Tensor
    >>> x = Tensor([1.0, 2.0])
    >>> (x * x).sum().gradient(x)[0].tolist()
    [2.0, 4.0]
    """
    if finite or not targets or not all(isinstance(each, self.__class__) for each in targets):
        return _finite(self, targets, finite)
    seed = _seed(self, gradient, "gradient")
    unfolded, versions = _unfolded(self, targets)
    output, wanted = unfolded.roots[0], [nodes[0] for nodes in versions]
    below = set(topological(output))
    _require_no_jitted(output, below, "gradient", wanted)
    named = dict(enumerate(versions))
    found = gradients_of_versions(output, named, seed, watch_of(self, unfolded.fold))
    is_whole = not any(map(is_computed, below))
    result = []
    for number, target in enumerate(targets):
        node = found.get(number)
        if node is None:
            is_known = is_whole or wanted[number] in below
            if not (is_known if materialize_grads is None else materialize_grads):
                raise _not_below(number, target)
            result.append(target.zeros_like())
            continue
        _require_identity(number, target)
        result.append(gradient_of(target, unfolded.fold(node), True))
    return result


def _not_below(number: int, target: Tensor) -> ArgumentError:
    return ArgumentError(
        f"gradient: the output does not depend on target {number}",
        facts=[("target", target.shape, target.dtype.name)],
        rule="a target is a value that the output was computed from; a value that was\n"
        "read forgets this, unless a leaf below it has requires_grad=True",
        fix="call gradient() before the output is read, or pass\nmaterialize_grads=True for zeros",
    )


def _finite(self: Tensor, targets: Sequence[Any], options: dict[str, Any]) -> list[Tensor]:
    """PyTorch's and NumPy's function of this name, which has no targets."""
    for name in options:
        if name not in ("spacing", "dim", "edge_order"):
            raise ArgumentError(
                f"gradient: unknown argument {name!r}",
                rule="there are targets, gradient and materialize_grads; of finite differences\n"
                "spacing, dim and edge_order",
            )
    spacing = list(targets) if targets else options.get("spacing")
    spacing = spacing[0] if isinstance(spacing, list) and len(spacing) == 1 else spacing
    order = options.get("edge_order", 1)
    return differences(self, spacing, options.get("dim"), 1 if order is None else order)


def _require_identity(number: int, target: Tensor) -> None:
    """Equal constants are one node, so a gradient would count all of them."""
    if is_leaf(target) and not has_identity(target.uop):
        raise ArgumentError(
            f"gradient: target {number} is a constant, which has no memory of its own",
            facts=[("target", target.shape, target.dtype.name)],
            rule="equal constants are one value wherever they stand, so a slope of one of them\n"
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
