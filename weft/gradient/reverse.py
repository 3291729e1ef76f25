"""Reverse mode: the gradient of a tensor graph as another tensor graph.

The tensor layer and jit call `gradients`. The result holds ordinary ops only, so it can be
differentiated again, and nothing is simplified: that is the scheduler's first step. There are two
walks, none of them recursive: sources first, to find the nodes on a path from a target to the
output; then users first, so that all contributions to a node are added before its rule is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from weft.gradient.call import Asking, Derivatives
from weft.gradient.memory import receivers
from weft.gradient.table import RULES, WITHOUT_RULE
from weft.gradient.tuples import add
from weft.ir.dtypes import COMPLEX, FLOAT, VOID
from weft.ir.movement import expand, full, reshape
from weft.ir.ops import Op, name
from weft.ir.shapes import same_shape, shape_of
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.support.errors import DTypeError, InternalError, ShapeError

# What the gradient of a node adds, and to whose.
Parts = Iterable[tuple[UOp, UOp | None]]
# Sees the whole gradient of a node with a rule of its own, and gives that which goes on.
Watch = Callable[[UOp, UOp], UOp]


def gradients(
    output: UOp, targets: Sequence[UOp], seed: UOp | None = None, watch: Watch | None = None
) -> list[UOp | None]:
    """The gradient of sum(seed * output) with respect to each target, in its dtype and shape.

    A target may be any node: memory, a version of it, something in between. It has None where the
    output does not depend on it, or only through what has no slope: integers, comparisons, DETACH.
    Without a seed every element of the output counts once. `watch` is called with each
    CUSTOM_GRADIENT that is met and its gradient, and returns the gradient that goes on.

    >>> from weft.ir.build import buffer
    >>> from weft.ir.dtypes import dtypes
    >>> x = buffer(0, dtypes.float32, (3,), "CPU")
    >>> y = buffer(1, dtypes.float32, (3,), "CPU")
    >>> gradients(x * y, [y], seed=x)[0] is x * x
    True
    """
    if not output.dtype.is_inexact:
        return [None] * len(targets)
    return differentiate(output, targets, _seed(output, seed), watch)


def _seed(output: UOp, seed: UOp | None) -> UOp:
    """A seed with the dtype and shape of the output; a scalar stands for all elements."""
    shape = shape_of(output)
    if seed is None:
        return full(output.dtype, 1, shape)
    if seed.dtype is not output.dtype:
        raise DTypeError(
            f"gradients: the seed is {seed.dtype.name} and the output {output.dtype.name}",
            rule="a seed has the dtype of the output",
            fix=f"cast the seed to {output.dtype.name}",
        )
    own = shape_of(seed)
    if same_shape(own, shape):
        return seed
    if own:
        raise ShapeError(
            "gradients: the seed has another shape than the output",
            facts=[("seed", own), ("output", shape)],
            rule="a seed has the shape of the output, or is a scalar",
        )
    return expand(reshape(seed, (1,) * len(shape)), shape)


def differentiate(
    output: UOp, targets: Sequence[UOp], seed: UOp, watch: Watch | None = None
) -> list[UOp | None]:
    """As `gradients`, of a value or a TUPLE of them, with a seed that fits.

    A walk that meets a call asks for the derivative of its body and goes on with the result, so
    that calls nest to any depth.
    """
    walks = [_walk(output, targets, seed, watch)]
    result: list[UOp | None] | None = None
    while walks:
        try:
            request = walks[-1].send(result)
        except StopIteration as done:
            walks.pop()
            result = done.value
        else:
            walks.append(_walk(*request))
            result = None
    assert result is not None
    return result


def _walk(
    output: UOp, targets: Sequence[UOp], seed: UOp, watch: Watch | None = None
) -> Asking[list[UOp | None]]:
    derivatives = Derivatives(targets)
    order = topological(output)
    live = _find_live(order, targets, derivatives)
    kept = set(targets)
    found: dict[UOp, UOp] = {output: seed} if output in live else {}
    for node in reversed(order):
        g = found.get(node) if node in kept else found.pop(node, None)
        if g is None:
            continue
        if watch is not None and node.op == Op.CUSTOM_GRADIENT:
            g = watch(node, g)
        if node.op == Op.CALL:
            parts: Parts = yield from derivatives.of(node, g, live)
        else:
            parts = _contributions(node, g, live)
        for receiver, part in parts:
            if part is not None and receiver in live:
                _verify_fit(node, receiver, part)
                # A gradient that is asked for is of the line that asks.
                _give_line(part.src if receiver in kept else (part,), node)
                known = found.get(receiver)
                found[receiver] = part if known is None else add(known, part)
    return [found.get(target) for target in targets]


def _give_line(parts: Sequence[UOp], node: UOp) -> None:
    """What belongs to the gradient of a node is for the line of the program that made the node."""
    line = node.line
    if line is None:
        return
    stack = [*parts]
    while stack:
        made = stack.pop()
        if made.line is None and made.src:
            made.line = line
            stack.extend(made.src)


def _find_live(order: list[UOp], targets: Sequence[UOp], derivatives: Derivatives) -> set[UOp]:
    """The nodes that a slope leads to from a target; `order` has sources first."""
    live = {target for target in targets if target.dtype.is_inexact}
    for node in order:
        if node in live or node.dtype.kind not in (FLOAT, COMPLEX, VOID):
            continue
        if node.op == Op.CALL:
            if derivatives.captured(node.arg) or not live.isdisjoint(node.src):
                live.add(node)
        elif node.op not in WITHOUT_RULE and not live.isdisjoint(node.src):
            live.add(node)
    return live


def _contributions(node: UOp, g: UOp, live: set[UOp]) -> Parts:
    """What the gradient of a node adds to those of others."""
    if live.isdisjoint(node.src):
        return ()
    rule = RULES.get(node.op)
    if rule is None:
        if node.op in WITHOUT_RULE:
            return ()
        raise InternalError(f"{name(node.op)} has no gradient rule", where=node.line)
    to = receivers(node) if node.op == Op.AFTER else node.src
    # Sizes are sources too, behind those that the rules of movement ops speak of.
    return zip(to, rule(node, g), strict=False)


def _verify_fit(node: UOp, receiver: UOp, part: UOp) -> None:
    """A gradient has the dtype and shape of its node; a STORE or TUPLE has neither."""
    if receiver.dtype.kind == VOID:
        return
    if part.dtype is not receiver.dtype or not same_shape(shape_of(part), shape_of(receiver)):
        raise InternalError(
            f"the rule of {name(node.op)} gives a gradient that does not fit",
            facts=[
                ("source", receiver.dtype.name, shape_of(receiver)),
                ("gradient", part.dtype.name, shape_of(part)),
            ],
            where=node.line,
        )
