"""Write the corpus: record the index expressions of tinygrad's kernels and make reshape chains.

Run by hand, with tinygrad 0.14 installed, from the root of the repository:

    python -m bench.corpus.extract

Nothing is computed: the device is NULL, which compiles kernels and does not run them. The result
is the same on each run, so a difference in the file is a difference in tinygrad or in here.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

os.environ["DEV"] = "NULL"  # read when tinygrad is imported

import tinygrad.codegen
import tinygrad.schedule.indexing as indexing
import tinygrad.schedule.rangeify as rangeify
from tinygrad.tensor import Tensor
from tinygrad.uop import Ops
from tinygrad.uop.ops import UOp, graph_rewrite

from bench.corpus.convert import UnsupportedError, from_tinygrad
from bench.corpus.kernels import KERNELS, Build
from bench.corpus.load import CORPUS, LEAVES, Expression
from bench.corpus.synthetic import reshape_chains

# The rewrites that simplify while shapes become indices. Turned off, an index is the whole chain
# of movement ops between a load and its kernel, as one expression.
EAGER_REWRITES = frozenset({"reshape", "pad", "minimum_valid"})
# The rewrites whose input is recorded in an ordinary run.
RECORDED_REWRITES = frozenset({*EAGER_REWRITES, "initial symbolic", "early symbolic"})

FEWEST_OPERATIONS, MOST_NODES = 3, 450
# For one kernel, stage and kind. A kernel repeats itself; more of it would hide the others.
MOST_CHAINS, MOST_OTHERS = 3, 1


class RangesMadeError(Exception):
    """Ends a run whose indices are recorded: what follows would not expect them unsimplified."""


Record = Callable[[str, UOp], None]


def roots(sink: UOp) -> Iterator[UOp]:
    """Yield the indices of all loads and stores, and the conditions of all selects."""
    for uop in sink.toposort():
        if uop.op is Ops.INDEX:
            yield from uop.src[1:]
        elif uop.op is Ops.WHERE and not uop.src[2].is_invalid:
            yield uop.src[0]


@contextmanager
def replaced(*changes: tuple[Any, str, Any]) -> Iterator[None]:
    """Set attributes of tinygrad for a while, with the caches that could hide it empty."""
    kept = [(owner, name, getattr(owner, name)) for owner, name, _ in changes]
    indexing._apply_reshape.cache_clear()
    indexing.apply_movement_op.cache_clear()
    for owner, name, value in changes:
        setattr(owner, name, value)
    try:
        yield
    finally:
        for owner, name, value in kept:
            setattr(owner, name, value)
        indexing._apply_reshape.cache_clear()
        indexing.apply_movement_op.cache_clear()


def record_chains(build: Build, record: Record) -> None:
    """Record the indices of a program when none of the movement ops has been simplified."""
    simplify: Callable[..., UOp] = UOp.simplify

    def without_eager(sink: UOp, *args: Any, **options: Any) -> UOp:
        eager = options.get("name") in EAGER_REWRITES
        return sink if eager else graph_rewrite(sink, *args, **options)

    def without_sinks(uop: UOp, tracked: bool = False) -> Any:
        return uop if uop.op is Ops.SINK else simplify(uop, tracked)

    def recorded(sink: UOp, *args: Any) -> UOp:
        for root in roots(indexing.run_rangeify(sink, *args)):
            record("chain", root)
        raise RangesMadeError

    changes = (
        (indexing, "graph_rewrite", without_eager),
        (UOp, "simplify", without_sinks),
        (rangeify, "run_rangeify", recorded),
    )
    tensors = build()
    with replaced(*changes), suppress(RangesMadeError):
        Tensor.realize(*tensors)


def record_passes(build: Build, record: Record) -> None:
    """Record what each symbolic pass is given in an ordinary run."""

    def recorded(sink: UOp, *args: Any, **options: Any) -> UOp:
        name = options.get("name")
        if name in RECORDED_REWRITES:
            whole = name not in EAGER_REWRITES
            parts = roots(sink) if whole else sink.src if sink.op is Ops.SINK else (sink,)
            for root in parts:
                record(name.replace(" ", "-").replace("_", "-"), root)
        result: UOp = graph_rewrite(sink, *args, **options)
        return result

    changes = [(owner, "graph_rewrite", recorded) for owner in (indexing, tinygrad.codegen)]
    tensors = build()
    with replaced(*changes):
        Tensor.realize(*tensors)


def expressions_of(name: str, build: Build) -> list[Expression]:
    """Return the distinct expressions of a kernel, in the order in which they are made."""
    found: dict[Expression, None] = {}
    seen: set[tuple[str, UOp]] = set()

    def record(stage: str, root: UOp) -> None:
        if (stage, root) in seen:
            return
        seen.add((stage, root))
        # Some indices and conditions depend on data other than integers.
        with suppress(UnsupportedError):
            found.update(dict.fromkeys(from_tinygrad(root, name, stage)))

    record_chains(build, record)
    record_passes(build, record)
    return list(found)


def is_worthwhile(expression: Expression) -> bool:
    operations = sum(node[0] not in LEAVES for node in expression.nodes)
    return operations >= FEWEST_OPERATIONS and len(expression.nodes) <= MOST_NODES


def spread(group: list[Expression]) -> list[Expression]:
    """Choose a few of a group at equal distances in size, up to its largest."""
    group = sorted(group, key=lambda expression: len(expression.nodes))
    most = MOST_CHAINS if group[0].stage == "chain" else MOST_OTHERS
    if len(group) <= most:
        return group
    step = (len(group) - 1) / max(most - 1, 1)
    return [group[-1 - round(i * step)] for i in range(most)]


def choose(expressions: Iterable[Expression]) -> list[Expression]:
    """Drop what is trivial or known from another kernel, and thin out what is left."""
    known: set[str] = set()
    groups: dict[tuple[str, str, str], list[Expression]] = {}
    for expression in expressions:
        # By their text, because the tuples of True and of 1 are equal.
        text = repr(expression.nodes)
        if text not in known and is_worthwhile(expression):
            known.add(text)
            key = (expression.origin, expression.stage, expression.kind)
            groups.setdefault(key, []).append(expression)
    return [expression for group in groups.values() for expression in spread(group)]


def write(expressions: Iterable[Expression]) -> None:
    lines = []
    for origin, stage, kind, nodes, root in expressions:
        fields = {"from": origin, "stage": stage, "kind": kind, "nodes": nodes, "root": root}
        lines.append(json.dumps(fields, separators=(",", ":")) + "\n")
    CORPUS.write_text("".join(lines))
    print(f"{len(lines)} expressions, {CORPUS.stat().st_size} bytes: {CORPUS}")


def main() -> None:
    found = []
    for name, build in KERNELS.items():
        expressions = expressions_of(name, build)
        print(f"{len(expressions):5} {name}")
        found += expressions
    write([*choose(found), *reshape_chains()])


if __name__ == "__main__":
    main()
