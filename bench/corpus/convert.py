"""Expressions of the corpus out of tinygrad's UOps.

extract.py calls this to write the corpus, and measure.py to evaluate and count what tinygrad's
simplifier returns, so that both sides are counted in the same ops. tinygrad marks an index that
must not be used by the value Invalid, anywhere inside the expression; here the conditions are
gathered, and an expression has an index and one mask.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

from bench.corpus.load import LEAVES, TINYGRAD_OPS, Expression, Node

if TYPE_CHECKING:
    from tinygrad.uop.ops import UOp

CORPUS_OPS = {name: op for op, name in TINYGRAD_OPS.items()}


class UnsupportedError(Exception):
    """The graph has an op that is not index arithmetic, such as a float or a vector."""


class Graph:
    """Nodes under construction; equal nodes are one."""

    def __init__(self, renumber: bool) -> None:
        self.renumber = renumber
        self.nodes: list[Node] = []
        # True and 1 are equal in Python, so the key of a constant holds its type.
        self._positions: dict[tuple[Any, ...], int] = {}

    def add(self, *node: Any) -> int:
        key = (*node, type(node[1]))
        position = self._positions.setdefault(key, len(self.nodes))
        if position == len(self.nodes):
            self.nodes.append(node)
        return position

    def all_of(self, conditions: list[int]) -> int:
        result = conditions[0]
        for condition in conditions[1:]:
            result = self.add("and", result, condition)
        return result

    def expression(self, origin: str, stage: str, kind: str, root: int) -> Expression:
        """Keep what the root reaches; number ranges and variables in the order of appearance."""
        reached = {root}
        for position in range(root, -1, -1):
            op, *operands = self.nodes[position]
            if position in reached and op not in LEAVES:
                reached.update(operands)
        ids: dict[int, int] = {}
        moved: dict[int, int] = {}
        nodes: list[Node] = []
        for position in sorted(reached):
            op, *operands = self.nodes[position]
            if op in {"range", "variable"} and self.renumber:
                operands[0] = ids.setdefault(operands[0], len(ids))
            elif op not in LEAVES:
                operands = [moved[operand] for operand in operands]
            moved[position] = len(nodes)
            nodes.append((op, *operands))
        return Expression(origin, stage, kind, tuple(nodes), len(nodes) - 1)


class Converted(NamedTuple):
    """The position of a UOp's value, None if it is never valid, and those of its conditions."""

    value: int | None
    masks: tuple[int, ...]


class Converter:
    """Turn UOps into nodes of one graph.

    With `keep_ids` the leaves are those of `to_tinygrad` and keep the ids they had there.
    """

    def __init__(self, keep_ids: bool = False) -> None:
        self.graph = Graph(renumber=not keep_ids)
        self._done: dict[UOp, Converted] = {}
        self._ids: dict[Any, int] = {}

    def convert(self, root: "UOp") -> Converted:
        # An explicit stack: a chain of reshapes is deeper than Python's recursion limit allows.
        stack = [root]
        while stack:
            uop = stack[-1]
            waiting = [source for source in self._sources(uop) if source not in self._done]
            if waiting and uop not in self._done:
                stack.extend(reversed(waiting))
                continue
            stack.pop()
            if uop not in self._done:
                self._done[uop] = self._convert(uop)
        return self._done[root]

    def _sources(self, uop: "UOp") -> "tuple[UOp, ...]":
        from tinygrad.dtype import dtypes

        if uop.dtype is not dtypes.bool and not dtypes.is_int(uop.dtype):
            raise UnsupportedError(f"{uop.op.name} of {uop.dtype}")
        return () if _is_leaf(uop) else uop.src

    def _convert(self, uop: "UOp") -> Converted:
        from tinygrad.dtype import Invalid

        name = uop.op.name
        if name == "CONST":
            value = None if uop.val is Invalid else self.graph.add("const", uop.val)
            return Converted(value, ())
        if _is_leaf(uop):
            return Converted(self._leaf(uop), ())
        sources = [self._done[source] for source in uop.src]
        if name == "WHERE":
            return self._where(*sources)
        masks = tuple(dict.fromkeys(mask for source in sources for mask in source.masks))
        operands = [source.value for source in sources if source.value is not None]
        if len(operands) < len(sources):
            return Converted(None, masks)
        return Converted(self._operation(uop, operands), masks)

    def _leaf(self, uop: "UOp") -> int:
        """Number a range, or a value that is loaded and could be anything its dtype holds."""
        number = self._ids.setdefault(uop, len(self._ids))
        if not self.graph.renumber:
            number = uop.arg[0] if uop.op.name == "RANGE" else int(uop.expr[1:])
        if uop.op.name not in {"RANGE", "SPECIAL"}:
            return self.graph.add("variable", number, int(uop.vmin), int(uop.vmax))
        if uop.src[0].op.name != "CONST":
            raise UnsupportedError("a range whose extent is not a constant")
        return self.graph.add("range", number, uop.src[0].val)

    def _where(self, condition: Converted, chosen: Converted, other: Converted) -> Converted:
        if condition.value is None or (chosen.value is None and other.value is None):
            return Converted(None, condition.masks)
        add, test = self.graph.add, condition.value
        if other.value is None:
            assert chosen.value is not None
            return Converted(chosen.value, (*condition.masks, *chosen.masks, test))
        if chosen.value is None:
            return Converted(other.value, (*condition.masks, *other.masks, add("not", test)))
        # The masks of a branch matter only where that branch is taken.
        masks = list(condition.masks)
        masks += [add("or", add("not", test), mask) for mask in chosen.masks]
        masks += [add("or", test, mask) for mask in other.masks]
        value = add("where", test, chosen.value, other.value)
        return Converted(value, tuple(dict.fromkeys(masks)))

    def _operation(self, uop: "UOp", operands: list[int]) -> int:
        from tinygrad.dtype import dtypes

        name, add = uop.op.name, self.graph.add
        if name == "CAST":
            if uop.dtype is dtypes.bool:
                return add("not_equal", operands[0], add("const", 0))
            # Index arithmetic does not overflow, so a cast between integers is not an operation.
            return add("cast", operands[0]) if uop.src[0].dtype is dtypes.bool else operands[0]
        if name not in CORPUS_OPS:
            raise UnsupportedError(name)
        if name in {"AND", "OR", "XOR"} and uop.dtype is not dtypes.bool:
            raise UnsupportedError(f"{name} of integers")
        negates = name == "CMPNE" and uop.src[0].dtype is dtypes.bool
        if negates and self.graph.nodes[operands[1]] == ("const", True):
            return add("not", operands[0])
        return add(CORPUS_OPS[name], *operands)


def _is_leaf(uop: "UOp") -> bool:
    from tinygrad.dtype import dtypes

    name = uop.op.name
    if name in {"CONST", "RANGE", "SPECIAL"}:
        return True
    # An INDEX stands for the load of what it points at.
    return name in {"PARAM", "INDEX", "LOAD"} and dtypes.is_int(uop.dtype)


def from_tinygrad(
    uop: "UOp", origin: str = "", stage: str = "", keep_ids: bool = False
) -> list[Expression]:
    """Return the expressions of a UOp: the index or the condition; if masked, also with its mask.

    The last one says all that the UOp says.
    """
    from tinygrad.dtype import dtypes

    converter = Converter(keep_ids)
    value, masks = converter.convert(uop)
    graph = converter.graph
    if value is None:
        raise UnsupportedError("an index that is never valid")
    if uop.dtype is dtypes.bool:
        return [graph.expression(origin, stage, "gate", graph.all_of([*masks, value]))]
    found = [graph.expression(origin, stage, "index", value)]
    if masks:
        mask = graph.all_of(list(masks))
        found.append(graph.expression(origin, stage, "gate", mask))
        root = graph.add("gated", mask, value)
        found.append(graph.expression(origin, stage, "gated", root))
    return found
