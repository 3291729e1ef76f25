"""Ways through a graph: orders, users, substitution. None of them recurses, so depth is not
limited.

None enters the body of a `CALL`, because a body is its arg and not a source: what a rewrite sees
is one scope. `bodies` lists the scopes below a node for those who want them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from weft.ir.ops import Op
from weft.ir.uop import UOp, make
from weft.support.source_line import SourceLine


def topological(
    *roots: UOp,
    enter: Callable[[UOp], bool] | None = None,
    sources: Callable[[UOp], Sequence[UOp]] | None = None,
    stop: Collection[int] = frozenset(),
) -> list[UOp]:
    """All nodes below the roots, each once, sources before users.

    `enter(node)` false means: do not look below this node; nor below an op of `stop`.
    `sources(node)` are the nodes below it where those are not its own.
    """
    if enter is None and sources is None and not stop:
        return _all_below(roots)
    order: list[UOp] = []
    seen: set[UOp] = set()
    # Below a None lies a node whose sources have all been listed.
    stack: list[UOp | None] = list(reversed(roots))
    while stack:
        node = stack.pop()
        if node is None:
            order.append(stack.pop())  # type: ignore[arg-type]
        elif node not in seen:
            seen.add(node)
            if not node.src or node.op in stop or not (enter is None or enter(node)):
                order.append(node)
                continue
            stack += (node, None)
            for source in reversed(node.src if sources is None else sources(node)):
                if source not in seen:
                    stack.append(source)
    return order


def _all_below(roots: Sequence[UOp]) -> list[UOp]:
    """`topological` without conditions: a tenth of a compilation, so it looks up nothing twice."""
    order: list[UOp] = []
    seen: set[UOp] = set()
    stack: list[UOp | None] = list(reversed(roots))
    add, pop, push, put = seen.add, stack.pop, stack.append, order.append
    while stack:
        node = pop()
        if node is None:
            put(pop())  # type: ignore[arg-type]
        elif node not in seen:
            add(node)
            src = node.src
            if not src:
                put(node)
                continue
            push(node)
            push(None)
            for source in src if len(src) == 1 else src[::-1]:
                if source not in seen:
                    push(source)
    return order


def users(*roots: UOp) -> dict[UOp, list[UOp]]:
    """For each node below the roots, the nodes that use it, one entry per use."""
    found: dict[UOp, list[UOp]] = {}
    for node in topological(*roots):
        found.setdefault(node, [])
        for source in node.src:
            found[source].append(node)
    return found


def bodies(
    *roots: UOp, enter: Callable[[UOp], bool] | None = None, has_gradients: bool = True
) -> list[UOp]:
    """The bodies of all calls below the roots, nested ones too, callees before callers.

    Those that only gradients would call are among them unless `has_gradients` is false.
    `enter(node)` false means, as in `topological`: do not look below this node, nor inside.
    """
    holders = (Op.CALL, Op.CUSTOM_GRADIENT) if has_gradients else (Op.CALL,)
    order: list[UOp] = []
    seen: set[UOp] = set()
    # The callees of a body that are not looked at yet; each is taken once.
    waiting: list[tuple[UOp | None, Iterator[UOp]]] = [(None, _called(roots, enter, holders))]
    while waiting:
        body, inner = waiting[-1]
        new = next((callee for callee in inner if callee not in seen), None)
        if new is not None:
            seen.add(new)
            waiting.append((new, _called((new,), enter, holders)))
            continue
        waiting.pop()
        if body is not None:
            order.append(body)
    return order


def _called(
    scope: Sequence[UOp], enter: Callable[[UOp], bool] | None, holders: tuple[int, ...]
) -> Iterator[UOp]:
    """The bodies that one scope calls."""
    return (
        node.arg if node.op == Op.CALL else node.arg[0]
        for node in topological(*scope, enter=enter)
        if node.op in holders and (enter is None or enter(node))
    )


def rebuild(node: UOp, src: tuple[UOp, ...]) -> UOp:
    """The same node with other sources; it is from the same line of the program."""
    if src == node.src:
        return node
    made = make(node.op, node.dtype, src, node.arg)
    if made.line is None:
        made.line = node.line
    return made


def map_graph(
    root: UOp,
    change: Callable[[UOp, Mapping[UOp, UOp]], UOp],
    *,
    known: Mapping[UOp, UOp] | None = None,
    enter: Callable[[UOp], bool] | None = None,
    sources: Callable[[UOp], Sequence[UOp]] | None = None,
    order: Sequence[UOp] | None = None,
) -> UOp:
    """The graph with every node changed, bottom up: the one walk of the passes that rebuild.

    `change(node, made)` is called once per node, after its sources; `made` has what became of
    them. What `known` has is replaced by that. `enter` and `sources` are as in
    `topological`, and `order` is what that gives where somebody knows it.

    >>> from weft.ir.build import index, range_
    >>> def doubled(node, made):
    ...     new = with_sources(node, made)
    ...     return new * 2 if new.op == Op.RANGE else new
    >>> map_graph(range_(0, 4) + index(1), doubled)
    ((r0 * 2) + 1)
    """
    made: dict[UOp, UOp] = dict(known or {})
    for node in order or topological(root, enter=enter, sources=sources):
        if node not in made:
            made[node] = change(node, made)
    return made[root]


def with_sources(node: UOp, made: Mapping[UOp, UOp]) -> UOp:
    """The same node on what became of its sources; what `map_graph` does where nothing changes."""
    return rebuild(node, tuple([made[source] for source in node.src]))


def substitute(root: UOp, mapping: Mapping[UOp, UOp]) -> UOp:
    """Replace nodes, top down: what stands in the mapping is replaced and not looked into.

    When only ranges are replaced, subgraphs that do not hold them are skipped by their bit set.
    """
    return substitute_all((root,), mapping)[0]


def substitute_all(roots: Sequence[UOp], mapping: Mapping[UOp, UOp]) -> list[UOp]:
    """Replace nodes below several roots, in one walk over what they share."""
    if not mapping:
        return list(roots)
    wanted = 0
    only_ranges = all(node.op == Op.RANGE for node in mapping)
    if only_ranges:
        for node in mapping:
            wanted |= node.ranges
    made: dict[UOp, UOp] = dict(mapping)

    def enter(node: UOp) -> bool:
        return node not in mapping and not (only_ranges and _free_of(node, wanted))

    for node in topological(*roots, enter=enter):
        if node in made:
            continue
        if not node.src or (only_ranges and _free_of(node, wanted)):
            made[node] = node
        else:
            made[node] = rebuild(node, tuple([made[source] for source in node.src]))
    return [made[root] for root in roots]


def _free_of(node: UOp, wanted: int) -> bool:
    """No wanted range below: neither free nor closed (a closer hides its ranges from the set)."""
    return not node.ranges & wanted and not node.ops & _CLOSERS


_CLOSERS = 1 << Op.REDUCE | 1 << Op.STORE | 1 << Op.STAGE | 1 << Op.KERNEL


def try_line(node: UOp) -> SourceLine | None:
    """The user's line of a value: that of its node, or of the first one below it that has one."""
    waiting, seen = [node], {node}
    while waiting:
        node = waiting.pop()
        if node.line is not None:
            return node.line
        below = [source for source in reversed(node.src) if source not in seen]
        seen.update(below)
        waiting += below
    return None
