"""A spec is a table of invariants that accepts exactly the legal nodes of a phase.

Passes are checked with `verify(root, SPEC, pass_name)`, which visits every node once and raises an
`InternalError` that names the invariant and shows the graph with the guilty node marked. An op
without a row is not legal at that level. The tables are in `tensor.py`, `kernel.py` and
`program.py`; what holds at every level is in `common.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Final, NamedTuple, NoReturn

from weft.ir.ops import INFO, name
from weft.ir.results import FILLING
from weft.ir.text import locate, show
from weft.ir.uop import UOp, new_mark
from weft.ir.walk import bodies, topological
from weft.support.errors import InternalError

SOURCES_SHOWN: Final = 4

# What a check returns: whether the invariant holds, or in words how it is broken.
Verdict = bool | str


class Row(NamedTuple):
    """An invariant about single nodes of some ops. A check may rely on the rows above it."""

    invariant: str
    ops: frozenset[int]
    check: Callable[[UOp], Verdict]


class GraphRow(NamedTuple):
    """An invariant about a whole scope: `find(root, nodes)` is a guilty node and what is wrong."""

    invariant: str
    find: Callable[[UOp, list[UOp]], tuple[UOp, str] | None]


class Fault(NamedTuple):
    """A broken invariant, the node that breaks it, and how."""

    node: UOp
    invariant: str
    detail: str = ""


def row(invariant: str, ops: int | Iterable[int], check: Callable[[UOp], Verdict]) -> Row:
    return Row(invariant, frozenset((ops,) if isinstance(ops, int) else ops), check)


@cache
def _mark_of(rows: tuple[Row, ...]) -> int:
    """Specs with the same invariants of single nodes share the mark of those."""
    return new_mark()


class Spec:
    """The invariants of one level. `scope` is what a graph of that level is called in messages.

    Bodies of calls are of the level of their caller, unless `bodies` says otherwise: a pass does
    not enter them, so what it has lowered may still be in there.
    """

    def __init__(
        self,
        scope: str,
        rows: Sequence[Row],
        graph_rows: Sequence[GraphRow] = (),
        bodies: Spec | None = None,
    ) -> None:
        self.scope = scope
        self.bodies = bodies or self
        self.rows = tuple(rows)
        self.graph_rows = tuple(graph_rows)
        self.verified = new_mark()  # on a root, with all bodies below it
        self._obeyed = _mark_of(self.rows)  # on a node, by itself
        self._by_op: dict[int, list[Row]] = {}
        for entry in self.rows:
            for op in entry.ops:
                self._by_op.setdefault(op, []).append(entry)

    @property
    def ops(self) -> frozenset[int]:
        """The ops that are legal at this level."""
        return frozenset(self._by_op)

    def fault_of(self, node: UOp) -> Fault | None:
        """The first invariant that this node breaks by itself."""
        rows = self._by_op.get(node.op)
        if rows is None:
            return Fault(node, f"{name(node.op)} is not legal in a {self.scope}")
        for invariant, _, check in rows:
            verdict = check(node)
            if verdict is not True:
                return Fault(node, invariant, verdict if isinstance(verdict, str) else "")
        return None

    def find_fault(self, root: UOp) -> Fault | None:
        """The first broken invariant of a graph, without the bodies of its calls."""
        nodes = topological(root)
        mark = self._obeyed
        for node in nodes:
            if not node.done & mark:
                fault = self.fault_of(node)
                if fault is not None:
                    return fault
                node.done |= mark
        for entry in self.graph_rows:
            found = entry.find(root, nodes)
            if found is not None:
                return Fault(found[0], entry.invariant, found[1])
        return None


def verify(root: UOp, spec: Spec, pass_name: str | None = None) -> None:
    """Raise an InternalError unless the graph and the bodies of its calls obey their specs.

    Nodes do not change, so that what has been found to be legal is not looked at again.
    """
    if root.done & spec.verified:
        return
    for scope in (*bodies(root), root):
        invariants = spec if scope is root else _invariants_of_body(scope, spec)
        fault = invariants.find_fault(scope)
        if fault is not None:
            _raise(scope, invariants, fault, pass_name)
    root.done |= spec.verified


def _invariants_of_body(body: UOp, spec: Spec) -> Spec:
    """A body is of the level that its caller says, unless it is a kernel."""
    from weft.ir.spec.kernel import KERNEL_SPEC

    return KERNEL_SPEC if body.op in FILLING else spec.bodies


def _raise(scope: UOp, spec: Spec, fault: Fault, pass_name: str | None) -> NoReturn:
    node, invariant, detail = fault
    facts: list[Sequence[str]] = [("node", show(node), node.dtype.name)]
    for i, source in enumerate(node.src[:SOURCES_SHOWN]):
        facts.append((f"source {i}", show(source), source.dtype.name))
    if node.op not in spec.ops:
        what = invariant
        facts.append(("legal here", ", ".join(row.name for row in INFO if row.number in spec.ops)))
    else:
        what = f"{name(node.op)} breaks an invariant of the {spec.scope}: {invariant}"
        if detail:
            facts.insert(0, ("because", detail))
    text, line = locate(scope, node)
    raise InternalError(
        what, pass_name=pass_name, ir_text=text, marked_line=line, facts=facts, where=node.line
    )
