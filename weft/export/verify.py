"""The graph of a file, checked before anything is made of it.

A graph that passes can do nothing but compute: it obeys the tensor spec, names no memory, device
or code, every size holds for all values of its variables, and every index is compared with its
axis. What is generated from it then reads and writes only the memory that it is given. Files are
checked when they are loaded, and graphs before they are saved, so what is saved can be loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from weft.export.guards import guarded
from weft.export.sizes import MOST_ELEMENTS, RefusedError, SizeChecker
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op, mask_of, name
from weft.ir.shapes import Shape, fill_pairs, largest_size, same_shape, same_size, shape_of, size
from weft.ir.sizes import least, minus
from weft.ir.spec.tensor import TENSOR_SPEC
from weft.ir.uop import UOp, make
from weft.ir.walk import bodies, topological
from weft.support.errors import InternalError

MOST_AXES: Final = 64
# Nodes once every call is replaced by its body; a function that calls itself twice, and so on
# forty times, would never be scheduled.
MOST_NODES: Final = 1 << 20
# What would reach beyond the arguments: memory and devices by name, and finished code.
_REACHES_OUT: Final = frozenset((Op.BUFFER, Op.COPY, Op.SHARD, Op.KERNEL, Op.PROGRAM))
_LEGAL: Final = TENSOR_SPEC.ops - _REACHES_OUT - {Op.SINK}
_WRITES: Final = mask_of(Op.AFTER, Op.STORE)
# What checks of a spec raise for args of other types than any builder makes.
_UNFIT: Final = (TypeError, ValueError, IndexError, KeyError, AttributeError, OverflowError)


def verified(root: UOp, sizes: SizeChecker) -> UOp:
    """Return the graph with its indices guarded; raise RefusedError unless it is harmless."""
    if root.op != Op.TUPLE:
        raise RefusedError("expected a graph that is a tuple of parameters, versions and values")
    return require_values_of(root, sizes)


def require_values_of(root: UOp, sizes: SizeChecker) -> UOp:
    """As `verified`, of a graph that may be a single value."""
    try:
        _require_ops(root)
        scopes = _Scopes(sizes)
        for body in bodies(root):
            if body.ops & _WRITES:
                raise RefusedError("a called function writes to memory")
            scopes.take(body)
        return scopes.take(root)
    except RefusedError:
        raise
    except (*_UNFIT, InternalError, RecursionError) as error:
        what = str(error).partition("\n")[0]
        raise RefusedError(
            f"the graph is not well formed ({type(error).__name__}: {what})"
        ) from None


def _require_ops(root: UOp) -> None:
    """No op reaches out, and bodies are graphs; before anything else walks through them."""
    seen: set[UOp] = set()
    stack = [root]
    while stack:
        for node in topological(stack.pop()):
            if node.op not in _LEGAL:
                raise RefusedError(f"{name(node.op)} is not an op of a function that is a file")
            if node.op in (Op.CALL, Op.CUSTOM_GRADIENT):
                body = node.arg if node.op == Op.CALL else node.arg[0]
                if not isinstance(body, UOp):
                    raise RefusedError(f"the body of a {name(node.op)} is not a graph")
                if body not in seen:
                    seen.add(body)
                    stack.append(body)


class _Scopes:
    """Takes scopes, callees before callers, and keeps what they became."""

    def __init__(self, sizes: SizeChecker) -> None:
        self._sizes = sizes
        self._safe: dict[UOp, UOp] = {}
        self._nodes: dict[UOp, int] = {}  # of a body, with the bodies it calls in it
        self._parameters: dict[UOp, list[UOp]] = {}

    def take(self, scope: UOp) -> UOp:
        order = topological(scope)
        self._require_budget(scope, order)
        done: dict[UOp, UOp] = {}
        for node in order:
            self._check(node, scope)
            done[node] = guarded(self._rebuilt(node, done))
        self._parameters[scope] = [node for node in order if node.op == Op.PARAM]
        self._safe[scope] = done[scope]
        return done[scope]

    def _require_budget(self, scope: UOp, order: list[UOp]) -> None:
        count = len(order) + sum(self._nodes[n.arg] for n in order if n.op == Op.CALL)
        if count > MOST_NODES:
            raise RefusedError(
                f"the graph has more than {MOST_NODES} nodes, calls counted by bodies"
            )
        self._nodes[scope] = count

    def _check(self, node: UOp, scope: UOp) -> None:
        if node.dtype is dtypes.index:
            self._sizes.require(node)
        fault = TENSOR_SPEC.fault_of(node)
        if fault is not None:
            detail = f" ({fault.detail})" if fault.detail else ""
            raise RefusedError(f"{name(node.op)}: {fault.invariant}{detail}")
        _require_values(node, scope)
        check = _CHECKS.get(node.op)
        if check is not None:
            check(node)
        if node.op == Op.CALL:
            self._require_arguments(node)
        self._require_shape(shape_of(node))

    def _require_arguments(self, node: UOp) -> None:
        """The spec lets symbolic sizes pass; here they are those of the arguments."""
        for parameter in self._parameters[node.arg]:
            if not same_shape(shape_of(parameter), shape_of(node.src[parameter.arg[0]])):
                raise RefusedError("an argument of a CALL has another shape than its PARAM")

    def _require_shape(self, shape: Shape) -> None:
        if len(shape) > MOST_AXES:
            raise RefusedError(f"a value has {len(shape)} axes; at most {MOST_AXES} are read")
        self._sizes.require_shape(shape)
        if largest_size(shape) > MOST_ELEMENTS:
            raise RefusedError(f"a value has {largest_size(shape)} elements")

    def _rebuilt(self, node: UOp, done: dict[UOp, UOp]) -> UOp:
        """The node over what its sources and its body became."""
        sources = tuple([done[source] for source in node.src])
        arg = node.arg
        if node.op == Op.CALL:
            arg = self._safe[arg]
        elif node.op == Op.CUSTOM_GRADIENT:
            arg = (self._safe[arg[0]], *arg[1:])
        is_same = arg is node.arg and all(map(_is, sources, node.src))
        return node if is_same else make(node.op, node.dtype, sources, arg)


def _is(a: UOp, b: UOp) -> bool:
    return a is b


def _require_values(node: UOp, scope: UOp) -> None:
    """What is not a value stands only where something is done with it."""
    for number, source in enumerate(node.src):
        if source.dtype is dtypes.void:
            is_write = node.op == Op.AFTER and number > 0 and source.op == Op.STORE
            if not is_write and node.op != Op.ITEM:
                raise RefusedError(
                    f"expected a value as a source of {name(node.op)}, got {name(source.op)}"
                )
    if node.op == Op.TUPLE and node is not scope:
        raise RefusedError("a TUPLE is the result of a graph, not a value in it")


def base_of(address: UOp) -> UOp:
    """The memory that an address, or a version of memory, is of."""
    while address.op != Op.PARAM and address.src:
        address = address.src[0]
    return address


def _after(node: UOp) -> None:
    before = node.src[0]
    memory = base_of(before)
    if before.op not in (Op.PARAM, Op.AFTER) or memory.op != Op.PARAM:
        raise RefusedError("AFTER is a version of something else than a PARAM")
    if any(base_of(write.src[0]) is not memory for write in node.src[1:]):
        raise RefusedError("AFTER waits for a write to other memory")


def _reshape(node: UOp) -> None:
    if not same_size(size(shape_of(node.src[0])), size(shape_of(node))):
        raise RefusedError("RESHAPE changes the number of elements for some sizes")


def _shrink(node: UOp) -> None:
    for (start, stop), extent in zip(fill_pairs(node), shape_of(node.src[0]), strict=True):
        if least(start) < 0 or least(minus(stop, start)) < 0 or least(minus(extent, stop)) < 0:
            raise RefusedError("SHRINK is not inside of its value for all sizes")


def _pad(node: UOp) -> None:
    if any(least(bound) < 0 for pair in fill_pairs(node) for bound in pair):
        raise RefusedError("PAD takes elements away for some sizes")


_CHECKS: Final[dict[int, Callable[[UOp], None]]] = {
    Op.AFTER: _after,
    Op.RESHAPE: _reshape,
    Op.SHRINK: _shrink,
    Op.PAD: _pad,
}
