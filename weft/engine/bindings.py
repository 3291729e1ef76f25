"""Values of symbolic sizes, taken out of a graph before it is scheduled.

A graph that a user built has BIND nodes: a variable and its value. `take_bindings` replaces
each by the variable, so that graphs which differ in values alone are the same node and
share a schedule and its kernels, and returns the values by name. That mapping, name -> int, is
what `Prepared.run` takes: the values are arguments of each launch. Whoever keeps a graph to run it
many times (a traced function) keeps the graph without bindings and gives a mapping at each call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from weft.ir.ops import Op
from weft.ir.uop import UOp, make
from weft.ir.walk import bodies, map_graph, topological, with_sources
from weft.support.errors import ArgumentError

Variables = Mapping[str, int]
MAY_BIND: Final = 1 << Op.BIND | 1 << Op.CALL
# What the body of a call may hold that nobody sees outside.
_HIDDEN: Final = MAY_BIND | 1 << Op.BUFFER


def take_bindings(root: UOp) -> tuple[UOp, dict[str, int]]:
    """The graph with variables instead of bound ones, in called bodies too; and the values.

    >>> from weft.ir.build import bind, variable
    >>> graph, values = take_bindings(bind(variable("n", 1, 8), 3) + 1)
    >>> graph, values
    ((n + 1), {'n': 3})
    """
    values: dict[str, int] = {}
    return _without_bindings(root, values), values


def give_bindings(root: UOp, bound: Mapping[UOp, UOp]) -> UOp:
    """The graph with bound variables instead of variables, in called bodies too.

    >>> from weft.ir.build import bind, variable
    >>> n = variable("n", 1, 8)
    >>> take_bindings(give_bindings(n + 1, {n: bind(n, 3)}))
    ((n + 1), {'n': 3})
    """
    if not bound or not root.ops & (1 << Op.VARIABLE | 1 << Op.CALL):
        return root

    def given(node: UOp) -> UOp | None:
        return bound.get(node, node) if node.op in (Op.BIND, Op.VARIABLE) else None

    return _rewritten(root, given, lambda body: give_bindings(body, bound))


def _rewritten(
    root: UOp, replaced: Callable[[UOp], UOp | None], called: Callable[[UOp], UOp]
) -> UOp:
    """A graph with some nodes replaced, and the bodies of its calls rewritten."""

    def changed(node: UOp, made: Mapping[UOp, UOp]) -> UOp:
        new = replaced(node)
        if new is not None:
            return new
        new = with_sources(node, made)
        if new.op == Op.CALL:
            return make(Op.CALL, new.dtype, new.src, called(new.arg))
        if new.op == Op.CUSTOM_GRADIENT:
            return make(new.op, new.dtype, new.src, (called(new.arg[0]), *new.arg[1:]))
        return new

    return map_graph(root, changed, enter=lambda node: node.op != Op.BIND)


def may_bind(nodes: Iterable[UOp], ops: int) -> bool:
    """Whether graphs may hold values of variables, or calls that hold some or memory of their own.

    `nodes` are all of theirs, and `ops` their ops.
    """
    if not ops & MAY_BIND:
        return False
    return bool(ops >> Op.BIND & 1) or any(
        node.op == Op.CALL and node.arg.ops & _HIDDEN for node in nodes
    )


def bound_values(root: UOp) -> dict[str, int]:
    """The values of the variables below a node, by name; the first of several."""
    if not root.ops & MAY_BIND or not may_bind(topological(root), root.ops):
        return {}
    nodes = topological(root, *bodies(root))
    return {node.src[0].arg[0]: int(node.src[1].arg) for node in nodes if node.op == Op.BIND}


def _without_bindings(root: UOp, values: dict[str, int]) -> UOp:
    if not root.ops & MAY_BIND:
        return root

    def taken(node: UOp) -> UOp | None:
        if node.op != Op.BIND:
            return None
        _enter(node, values)
        return node.src[0]

    return _rewritten(root, taken, lambda body: _without_bindings(body, values))


def _enter(bound: UOp, values: dict[str, int]) -> None:
    name, value = bound.src[0].arg[0], int(bound.src[1].arg)
    values.setdefault(name, value)
    require_agreement(values, {name: value})


def require_agreement(values: Variables, others: Variables) -> None:
    """No variable has two values."""
    for name, value in others.items():
        if values.get(name, value) != value:
            raise ArgumentError(
                f"Variable {name!r} is bound to {values[name]} and to {value} in one program",
                rule="a variable has one value while a program runs, and what was written since"
                " the last realize() is one program",
                fix="realize() what uses one value before the other is used, or give the variables"
                " different names",
            )


def variables_of(nodes: Iterable[UOp]) -> tuple[UOp, ...]:
    """The variables below some nodes, each once."""
    return tuple(node for node in topological(*nodes) if node.op == Op.VARIABLE)


def require_values(variables: Iterable[UOp], values: Variables) -> None:
    """Every variable has a value, inside its bounds."""
    for variable in variables:
        name, least, most = variable.arg
        if name not in values:
            raise ArgumentError(
                f"Variable {name!r} has no value",
                rule="every variable of a program is bound when it runs",
                fix=f"bind it: {name}.bind({least})",
            )
        if not least <= values[name] <= most:
            raise ArgumentError(
                f"Variable {name!r}: {values[name]} is out of its range",
                facts=[("least", least), ("greatest", most), ("value", values[name])],
                rule="a bound value is between the variable's min and max",
            )
