"""Index expressions of real kernels, before simplification: reading, evaluating, and tinygrad's.

`index_expressions.jsonl` holds one expression a line; README.md has the format and where they come
from. `load` and `evaluate` are plain Python, and `evaluate` is the oracle of any simplifier.
`to_tinygrad` and `simplify_tinygrad` need tinygrad 0.14 and import it when they are called.
"""

import json
import operator
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from tinygrad.uop.ops import UOp

CORPUS = Path(__file__).parent / "index_expressions.jsonl"

# An op, then its operands: positions of earlier nodes, but for a leaf, whose operands are numbers.
Node = tuple[Any, ...]
LEAVES = frozenset({"const", "range", "variable"})


class Expression(NamedTuple):
    """One expression: nodes in topological order, shared where the kernel shares them."""

    origin: str  # the kernel, as extract.py names it; "from" in the file
    stage: str  # which step made it: README.md lists them
    kind: str  # "index", "gate" (a condition) or "gated" (an index under its condition)
    nodes: tuple[Node, ...]
    root: int

    def leaves(self) -> dict[int, tuple[int, int]]:
        """Return the lowest and highest value of each range and variable, by its id."""
        bounds: dict[int, tuple[int, int]] = {}
        for node in self.nodes:
            if node[0] == "range":
                bounds[node[1]] = (0, node[2] - 1)
            elif node[0] == "variable":
                bounds[node[1]] = (node[2], node[3])
        return bounds


def load(path: Path = CORPUS) -> list[Expression]:
    """Return all expressions of the corpus."""
    expressions = []
    for line in path.read_text().splitlines():
        fields = json.loads(line)
        nodes = tuple(tuple(node) for node in fields["nodes"])
        expressions.append(
            Expression(fields["from"], fields["stage"], fields["kind"], nodes, fields["root"])
        )
    return expressions


def truncating_divide(x: int, y: int) -> int:
    """Divide and round toward zero, as C does."""
    quotient = abs(x) // abs(y)
    return quotient if (x < 0) == (y < 0) else -quotient


MEANINGS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "neg": operator.neg,
    "max": max,
    "min": min,
    "floordiv": operator.floordiv,
    "floormod": operator.mod,
    "truncdiv": truncating_divide,
    "truncmod": lambda x, y: x - y * truncating_divide(x, y),
    "less": operator.lt,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "and": lambda x, y: x and y,
    "or": lambda x, y: x or y,
    "xor": operator.ne,
    "not": operator.not_,
    "where": lambda condition, x, y: x if condition else y,
    "cast": int,
    "gated": lambda condition, x: x if condition else None,
}


def evaluate(expression: Expression, env: Mapping[int, int]) -> int | bool | None:
    """Return the value for these values of the ranges and variables, by id.

    A masked index whose condition is false has no value: None.
    """
    values: list[Any] = []
    for op, *operands in expression.nodes:
        if op == "const":
            values.append(operands[0])
        elif op in LEAVES:
            values.append(env[operands[0]])
        else:
            values.append(MEANINGS[op](*(values[operand] for operand in operands)))
    result: int | bool | None = values[expression.root]
    return result


# Named by tinygrad's op where there is one; "min" and "not" are built by its methods.
TINYGRAD_OPS = {
    "add": "ADD",
    "sub": "SUB",
    "mul": "MUL",
    "neg": "NEG",
    "max": "MAX",
    "floordiv": "FLOORDIV",
    "floormod": "FLOORMOD",
    "truncdiv": "CDIV",
    "truncmod": "CMOD",
    "less": "CMPLT",
    "equal": "CMPEQ",
    "not_equal": "CMPNE",
    "and": "AND",
    "or": "OR",
    "xor": "XOR",
    "where": "WHERE",
}


def to_tinygrad(expression: Expression) -> "UOp":
    """Build the expression of tinygrad's UOps, in its index dtype, without simplifying."""
    return tinygrad_nodes(expression)[expression.root]


def tinygrad_nodes(expression: Expression) -> "list[UOp]":
    """Return the UOp of each node of the expression."""
    uops: list[UOp] = []
    for op, *operands in expression.nodes:
        uops.append(_build_tinygrad(op, operands, uops))
    return uops


def _build_tinygrad(op: str, operands: list[Any], uops: "list[UOp]") -> Any:
    from tinygrad.dtype import dtypes
    from tinygrad.uop import Ops
    from tinygrad.uop.ops import UOp

    if op == "const":
        return UOp.const(operands[0])
    if op == "range":
        return UOp.range(operands[1], operands[0])
    if op == "variable":
        return UOp.variable(f"v{operands[0]}", operands[1], operands[2], param=True)
    sources = [uops[operand] for operand in operands]
    if op in TINYGRAD_OPS:
        return UOp(Ops[TINYGRAD_OPS[op]], src=tuple(sources))
    match op:
        case "not":
            return sources[0].logical_not()
        case "min":
            return sources[0].minimum(sources[1])
        case "cast":
            return sources[0].cast(dtypes.weakint)
        case "gated":
            return sources[1].valid(sources[0])
    raise ValueError(f"no such op in the corpus: {op}")


def rewrite_tinygrad(uop: "UOp", rules: str = "sym") -> "UOp":
    """Run a set of tinygrad's symbolic rules to their fixed point.

    `sym` is its complete set, which codegen runs on a whole kernel four times, masks included.
    `symbolic` is the set behind `UOp.simplify`, which leaves out what a mask says of its index.
    """
    from tinygrad.uop import symbolic
    from tinygrad.uop.ops import graph_rewrite

    result: UOp = graph_rewrite(uop, getattr(symbolic, rules))
    return result


def simplify_tinygrad(uop: "UOp", rules: str = "sym") -> "tuple[UOp, int]":
    """Simplify as `rewrite_tinygrad` does; return the result and its number of UOps."""
    result = rewrite_tinygrad(uop, rules)
    return result, len(result.toposort())


def forget_tinygrad() -> None:
    """Empty the cache in which tinygrad keeps the divisions it has simplified, and their nodes."""
    from tinygrad.uop.divandmod import fold_divmod_general

    fold_divmod_general.cache_clear()
