"""Simplify the corpus with tinygrad, check that the values stay, and print what it costs.

    python -m bench.corpus.measure [repeats]

Only the rewrite is timed, not the construction of its input, and each expression starts cold:
tinygrad interns nodes by weak references and keeps bounds on them and divisions in a cache, so the
nodes of the last expression are dropped and that cache is emptied first. The rules themselves are
warm. Nodes before and after are counted in the ops of the corpus.
"""

import gc
import itertools
import math
import random
import sys
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from bench.corpus.convert import UnsupportedError, from_tinygrad
from bench.corpus.load import (
    Expression,
    evaluate,
    forget_tinygrad,
    load,
    rewrite_tinygrad,
    to_tinygrad,
)

if TYPE_CHECKING:
    from tinygrad.uop.ops import UOp

FEW_ENVIRONMENTS = 2000
RANDOM_ENVIRONMENTS = 300


class Measured(NamedTuple):
    expression: Expression
    seconds: float
    nodes_after: int
    agrees: bool


def environments(
    expression: Expression, few: int = FEW_ENVIRONMENTS, samples: int = RANDOM_ENVIRONMENTS
) -> Iterator[dict[int, int]]:
    """Yield values for the ranges: all there are if few, else both ends and then random ones."""
    leaves = expression.leaves()
    values = [range(low, high + 1) for low, high in leaves.values()]
    if math.prod(map(len, values)) <= few:
        choices: Iterable[tuple[int, ...]] = itertools.product(*values)
    else:
        generator = random.Random(repr(expression.nodes))
        ends = [tuple(v[0] for v in values), tuple(v[-1] for v in values)]
        sampled = (tuple(map(generator.choice, values)) for _ in range(samples))
        choices = itertools.chain(ends, sampled)
    for choice in choices:
        yield dict(zip(leaves, choice, strict=True))


def same_values(before: Expression, after: Expression | None) -> bool:
    """Whether two expressions agree everywhere we look; None is the index that never holds."""
    return all(
        evaluate(before, env) == (None if after is None else evaluate(after, env))
        for env in environments(before)
    )


def to_corpus(uop: "UOp") -> Expression | None:
    try:
        return from_tinygrad(uop, keep_ids=True)[-1]
    except UnsupportedError as error:
        if "never valid" in str(error):
            return None
        raise


def measure(expression: Expression, rules: str, repeats: int) -> Measured:
    """Return the best time of several runs, each on new nodes."""
    seconds = float("inf")
    for _ in range(repeats):
        forget_tinygrad()
        gc.collect()
        uop = to_tinygrad(expression)
        start = time.perf_counter()
        result = rewrite_tinygrad(uop, rules)
        seconds = min(seconds, time.perf_counter() - start)
        after = to_corpus(result)
        del uop, result
    nodes_after = 0 if after is None else len(after.nodes)
    return Measured(expression, seconds, nodes_after, same_values(expression, after))


def print_row(label: str, rows: list[Measured]) -> None:
    before = sum(len(row.expression.nodes) for row in rows)
    after = sum(row.nodes_after for row in rows)
    seconds = sum(row.seconds for row in rows)
    print(
        f"{label:20} {len(rows):11} {before:12} {after:11} {seconds * 1e3:8.1f}"
        f" {seconds * 1e6 / before:10.2f} {sum(not row.agrees for row in rows):6}"
    )


def report(rows: list[Measured]) -> None:
    print("group                expressions nodes before nodes after       ms us per node  wrong")
    for stage in dict.fromkeys(row.expression.stage for row in rows):
        print_row(stage, [row for row in rows if row.expression.stage == stage])
    for kind in ("index", "gate", "gated"):
        print_row(kind, [row for row in rows if row.expression.kind == kind])
    print_row("all", rows)
    for row in rows:
        if not row.agrees:
            print("wrong:", row.expression)


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    expressions = load()
    for expression in expressions:
        rewrite_tinygrad(to_tinygrad(expression))  # compiles the rules
    # What is alive now stays alive and a collection need not look at it; the nodes must not be.
    forget_tinygrad()
    gc.collect()
    gc.freeze()
    gc.disable()
    for rules in ("sym", "symbolic"):
        print(f"\ntinygrad, {rules}, best of {repeats}")
        report([measure(expression, rules, repeats) for expression in expressions])


if __name__ == "__main__":
    main()
