"""Random index expressions against brute force: the simplifier keeps values, bounds hold.

    python -m fuzz.index_expressions --count 100000 --seed 1

Each expression is evaluated before and after simplification on every corner and on random points
of its ranges, by the plain Python meaning of each op. Every value must lie in `bounds`, divide by
`divisor`, and a second simplification must change nothing.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
import time
from collections.abc import Iterator, Sequence

from weft.ir.bounds import bounds, divisor
from weft.ir.build import range_, variable
from weft.ir.dtypes import INDEX, DType, Scalar, by_name, dtypes
from weft.ir.ops import Op
from weft.ir.scalar import evaluate
from weft.ir.uop import UOp, const, make, sweep
from weft.ir.walk import topological
from weft.rules.simplify import simplify

EXTENTS = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 17, 32, 100)
CONSTANTS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 24, 32, 64, 100, -1, -2, -3, -4, -7, -8)
ARITHMETIC = (Op.ADD, Op.ADD, Op.ADD, Op.MUL, Op.FLOORDIV, Op.FLOORDIV, Op.FLOORMOD, Op.FLOORMOD)
RARE = (Op.MAX, Op.MIN, Op.TRUNCDIV, Op.TRUNCMOD, Op.NEG, Op.SHL, Op.SHR, Op.WHERE, Op.CAST)

Environment = dict[UOp, Scalar]


class Generator:
    """Random expressions that look like those of kernels: sums, quotients and remainders."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def leaves(self, dtype: DType = dtypes.index) -> list[UOp]:
        extents = self.random.choices(EXTENTS, k=self.random.randint(1, 4))
        found = [range_(number, extent) for number, extent in enumerate(extents)]
        if self.random.random() < 0.2:
            least = self.random.randint(-3, 5)
            found.append(variable("n", least, least + self.random.randint(0, 20)))
        return found if dtype is dtypes.index else [leaf.cast(dtype) for leaf in found]

    def number(self, leaves: Sequence[UOp], depth: int) -> UOp:
        """An integer expression."""
        dtype = leaves[0].dtype
        if depth <= 0 or self.random.random() < 0.1:
            return self.leaf(leaves)
        op = self.random.choice(ARITHMETIC if self.random.random() < 0.85 else RARE)
        x = self.number(leaves, depth - 1)
        if op == Op.WHERE:
            return self.condition(leaves, depth - 2).where(x, self.number(leaves, depth - 2))
        if op == Op.CAST:
            return self.condition(leaves, depth - 2).cast(dtype)
        if op == Op.NEG:
            return -x
        if op in (Op.SHL, Op.SHR):
            return make(op, dtype, (x, const(dtype, self.random.randint(0, 3))))
        is_constant = op not in (Op.ADD, Op.MAX, Op.MIN) and self.random.random() < 0.95
        y = self.constant(dtype) if is_constant else self.number(leaves, depth - 1)
        return make(op, dtype, (y, x) if self.random.random() < 0.1 else (x, y))

    def leaf(self, leaves: Sequence[UOp]) -> UOp:
        if self.random.random() < 0.2:
            return self.constant(leaves[0].dtype)
        return self.random.choice(leaves)

    def constant(self, dtype: DType) -> UOp:
        return const(dtype, self.random.choice(CONSTANTS))

    def condition(self, leaves: Sequence[UOp], depth: int) -> UOp:
        """A bool expression."""
        kind = self.random.random()
        if depth > 0 and kind < 0.3:
            x, y = self.condition(leaves, depth - 1), self.condition(leaves, depth - 1)
            return self.random.choice((x & y, x | y, x ^ y, x & ~y, ~x))
        x, y = self.number(leaves, depth - 1), self.number(leaves, depth - 1)
        if kind < 0.8:
            y = self.constant(leaves[0].dtype)
        return self.random.choice((x < y, x < y, y < x, x <= y, x.equal(y)))

    def expression(self, dtype: DType = dtypes.index) -> UOp:
        leaves = self.leaves(dtype)
        depth = self.random.randint(1, 5)
        if self.random.random() < 0.3:
            return self.condition(leaves, depth)
        return self.number(leaves, depth)

    def environments(self, node: UOp, count: int) -> Iterator[Environment]:
        """Values for the leaves: all corners of few ranges, and random points."""
        leaves = [part for part in topological(node) if part.op in (Op.RANGE, Op.VARIABLE)]
        spans = [bounds(leaf) for leaf in leaves]
        for corner in itertools.islice(itertools.product(*spans), 16):
            yield dict(zip(leaves, corner, strict=True))
        for _ in range(count):
            yield {
                leaf: self.random.randint(*span) for leaf, span in zip(leaves, spans, strict=True)
            }


def value(node: UOp, environment: Environment) -> Scalar:
    """What an expression is worth, computed op by op."""
    values = dict(environment)
    for part in topological(node):
        if part in values:
            continue
        if part.op == Op.CONST:
            values[part] = part.arg
        else:
            sources = tuple(values[source] for source in part.src)
            values[part] = evaluate(part.op, part.dtype, sources, part.src[-1].dtype)
    return values[node]


def check(generator: Generator, node: UOp, points: int = 12) -> str | None:
    """What is wrong with the simplification of an expression, or None."""
    simple = simplify(node)
    if simple.dtype is not node.dtype:
        return f"dtype changed from {node.dtype.name} to {simple.dtype.name}"
    for environment in generator.environments(node, points):
        before, after = value(node, environment), value(simple, environment)
        where = ", ".join(f"{leaf} = {number}" for leaf, number in environment.items())
        if before != after:
            return f"{before} became {after} at {where}"
        for form in (node, simple):
            low, high = bounds(form)
            if not low <= before <= high:
                return f"{before} is outside of bounds {low}..{high} of {form} at {where}"
            if form.dtype.kind == INDEX and _does_not_divide(divisor(form), int(before)):
                return f"{divisor(form)} does not divide {before} at {where}"
    return None if simplify(simple) is simple else "a second simplification changes it"


def _does_not_divide(factor: int, number: int) -> bool:
    return number % factor != 0 if factor else number != 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    parser.add_argument("--dtype", default="index", help="fixed-width dtypes wrap around")
    options = parser.parse_args(arguments)
    print(f"seed {options.seed}", flush=True)
    generator = Generator(options.seed)
    wrong = 0
    for number in range(options.count):
        node = generator.expression(by_name(options.dtype))
        problem = check(generator, node)
        if problem is not None:
            wrong += 1
            print(f"expression {number}: {node}\n  became {simplify(node)}\n  {problem}")
        if number % 20_000 == 19_999:
            sweep()
            print(f"{number + 1} expressions, {wrong} differences", flush=True)
    print(f"{options.count} expressions, {wrong} differences, seed {options.seed}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
