"""Weft's side of the corpus: expressions to nodes, simplified as a kernel's are, and back.

A result goes back into the ops of the corpus, so that both engines are counted and evaluated by
the same code. A masked index is a pair here: Weft keeps the mask beside the index.
"""

from __future__ import annotations

from typing import Any

from bench.corpus.convert import Graph
from bench.corpus.load import Expression
from weft.ir.build import range_, variable
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.uop import UOp, bool_like, const, make
from weft.ir.walk import topological
from weft.rules.simplify import simplify
from weft.rules.validity import narrow, narrow_mask

# A mask and the index it guards, or an index or condition alone.
Part = UOp | tuple[UOp, UOp]

WEFT_OPS = {
    "add": Op.ADD,
    "mul": Op.MUL,
    "neg": Op.NEG,
    "max": Op.MAX,
    "min": Op.MIN,
    "floordiv": Op.FLOORDIV,
    "floormod": Op.FLOORMOD,
    "truncdiv": Op.TRUNCDIV,
    "truncmod": Op.TRUNCMOD,
    "and": Op.AND,
    "or": Op.OR,
    "xor": Op.XOR,
    "not": Op.NOT,
}
COMPARISONS = {"less": Op.LESS, "equal": Op.EQUAL}
CORPUS_OPS = {
    **{op: name for name, op in (WEFT_OPS | COMPARISONS).items()},
    Op.WHERE: "where",
    Op.CAST: "cast",
}


def to_weft(expression: Expression) -> Part:
    """Build the expression of Weft's nodes, in the index dtype, without simplifying."""
    return weft_nodes(expression)[expression.root]


def weft_nodes(expression: Expression) -> list[Part]:
    """Return the node of each node of the expression; that of "gated" is a pair."""
    parts: list[Part] = []
    for op, *operands in expression.nodes:
        parts.append(_build(op, operands, parts))
    return parts


def _build(op: str, operands: list[Any], parts: list[Any]) -> Part:
    match op:
        case "const":
            is_bool = isinstance(operands[0], bool)
            return const(dtypes.bool if is_bool else dtypes.index, operands[0])
        case "range":
            return range_(operands[0], operands[1])
        case "variable":
            return variable(f"v{operands[0]}", operands[1], operands[2])
    sources = tuple(parts[operand] for operand in operands)
    if op in WEFT_OPS:
        return make(WEFT_OPS[op], sources[0].dtype, sources)
    if op in COMPARISONS:
        return make(COMPARISONS[op], bool_like(sources[0]), sources)
    match op:
        case "sub":
            return sources[0] - sources[1]  # type: ignore[no-any-return]
        case "not_equal":
            return ~sources[0].equal(sources[1])  # type: ignore[no-any-return]
        case "where":
            return make(Op.WHERE, sources[1].dtype, sources)
        case "cast":
            return make(Op.CAST, dtypes.index, sources)
        case "gated":
            return sources[0], sources[1]
    raise ValueError(f"no such op in the corpus: {op}")


def simplify_weft(part: Part) -> Part:
    """Simplify as for a kernel: an index under its mask, a mask under its own conditions."""
    if isinstance(part, tuple):
        mask = narrow_mask(part[0])
        return mask, narrow(part[1], mask)
    return narrow_mask(part) if part.op == Op.AND else simplify(part)


def from_weft(part: Part) -> Expression | None:
    """Return the expression of a result in the ops of the corpus; None is never valid.

    As with `from_tinygrad`, ids are kept and a mask that always holds is left out.
    """
    graph = Graph(renumber=False)
    mask, value = part if isinstance(part, tuple) else (None, part)
    if mask is None or (mask.op == Op.CONST and mask.arg):
        kind = "gate" if value.dtype is dtypes.bool else "index"
        return graph.expression("", "", kind, _add(graph, value)[value])
    if mask.op == Op.CONST:
        return None
    positions = _add(graph, mask, value)
    root = graph.add("gated", positions[mask], positions[value])
    return graph.expression("", "", "gated", root)


def _add(graph: Graph, *roots: UOp) -> dict[UOp, int]:
    """Add all nodes below the roots; return their positions. The extent of a range is its own."""
    positions: dict[UOp, int] = {}
    for node in topological(*roots, enter=lambda node: node.op != Op.RANGE):
        if node.op == Op.CONST:
            positions[node] = graph.add("const", node.arg)
        elif node.op == Op.RANGE:
            positions[node] = graph.add("range", node.arg, node.src[0].arg)
        elif node.op == Op.VARIABLE:
            name, least, most = node.arg
            positions[node] = graph.add("variable", int(name[1:]), least, most)
        else:
            sources = (positions[source] for source in node.src)
            positions[node] = graph.add(CORPUS_OPS[node.op], *sources)
    return positions
