"""The rewrite engine by its parts, against tinygrad's: nodes, matching, depth, loops.

Imports of tinygrad are inside, because it may not be installed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

from bench.contest import Contest, Figures, Line, Subject, at_most
from bench.corpus.load import forget_tinygrad, load, to_tinygrad
from bench.corpus.weft_side import from_weft, weft_nodes
from bench.random_rules import Shapes, weft_node, weft_rules
from weft.ir.build import range_
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.uop import UOp, const, make, sweep
from weft.ir.walk import rebuild
from weft.rewrite.driver import rewrite
from weft.rewrite.pattern import any_
from weft.rewrite.rule import rule
from weft.rewrite.ruleset import Matcher, rules
from weft.rules.simplify import SIMPLIFY, simplify
from weft.support.errors import InternalError

SUBJECT = Subject("engine", peer="tinygrad")

X, Y = any_("x"), any_("y")


@SUBJECT.benchmark("create", Line("new node", "ns"), Line("existing node", "ns"))
class Create(Contest):
    """Make sums and products over ranges, and make them again while they exist."""

    COUNT = 20_000
    LEAVES = 16

    def __init__(self, has_peer: bool) -> None:
        super().__init__(has_peer)
        generator = random.Random("create")
        self.plan = [
            (generator.random() < 0.5, generator.randrange(n), generator.randrange(n))
            for n in range(self.LEAVES, self.LEAVES + self.COUNT)
        ]

    def weft(self) -> Figures:
        sweep()
        leaves = [range_(i, 100) for i in range(self.LEAVES)]
        return self._figures(lambda: sums_and_products(self.plan, leaves))

    def peer(self) -> Figures:
        from tinygrad.uop.ops import UOp as PeerUOp

        from bench import tinygrad_rules

        leaves = [PeerUOp.range(100, i) for i in range(self.LEAVES)]
        return self._figures(lambda: tinygrad_rules.sums_and_products(self.plan, leaves))

    def _figures(self, build: Callable[[], list[Any]]) -> Figures:
        start = perf_counter()
        alive = build()
        middle = perf_counter()
        build()
        end = perf_counter()
        del alive
        return {
            "new node": (middle - start) * 1e9 / self.COUNT,
            "existing node": (end - middle) * 1e9 / self.COUNT,
        }


def sums_and_products(plan: list[tuple[bool, int, int]], leaves: list[UOp]) -> list[UOp]:
    """Make a node for each step: a sum or a product of two earlier ones."""
    nodes, index = list(leaves), dtypes.index
    for is_sum, i, j in plan:
        nodes.append(make(Op.ADD if is_sum else Op.MUL, index, (nodes[i], nodes[j])))
    return nodes


def driver_nodes() -> Iterator[UOp]:
    """Nodes of the corpus as a driver meets them, their sources in normal form."""
    seen: set[UOp] = set()
    for expression in load()[::6]:
        for node in weft_nodes(expression):
            # A masked index is a pair, not a node; a leaf has no rules.
            if isinstance(node, tuple) or not node.src or node.op == Op.RANGE:
                continue
            made = rebuild(node, tuple(map(simplify, node.src)))
            if made not in seen:
                seen.add(made)
                yield made


@SUBJECT.benchmark("match", Line("a rule fires", "ns"), Line("none fires", "ns"))
class Match(Contest):
    """Ask all rules about one node, where one fires in both engines and where none does."""

    def __init__(self, has_peer: bool) -> None:
        super().__init__(has_peer)
        # For each line the nodes of Weft and, in the same order, those of the peer.
        self.nodes: dict[str, tuple[list[UOp], list[Any]]] = {}
        for node in driver_nodes():
            peer_node = self._peer_node(node) if has_peer else None
            fires = _fires(SIMPLIFY.table[node.op], node)
            if has_peer and self._peer_fires(peer_node) != fires:
                continue
            name = "a rule fires" if fires else "none fires"
            ours, theirs = self.nodes.setdefault(name, ([], []))
            ours.append(node)
            theirs.append(peer_node)

    def _peer_node(self, node: UOp) -> Any:
        expression = from_weft(node)
        assert expression is not None
        return to_tinygrad(expression)

    def _peer_fires(self, uop: Any) -> bool:
        from tinygrad.uop.symbolic import sym

        return sym.rewrite(uop) is not None

    def weft(self) -> Figures:
        sweep()  # so that a rule makes its result anew
        table = SIMPLIFY.table
        figures = {}
        for name, (nodes, _) in self.nodes.items():
            start = perf_counter()
            for node in nodes:
                match = table[node.op]
                if match is not None:
                    match(node, None)
            figures[name] = (perf_counter() - start) * 1e9 / len(nodes)
        return figures

    def peer(self) -> Figures:
        from tinygrad.uop.symbolic import sym

        forget_tinygrad()
        figures = {}
        for name, (_, nodes) in self.nodes.items():
            start = perf_counter()
            for node in nodes:
                sym.rewrite(node)
            figures[name] = (perf_counter() - start) * 1e9 / len(nodes)
        return figures

    def notes(self) -> list[str]:
        counts = ", ".join(f"{name}: {len(ours):,}" for name, (ours, _) in self.nodes.items())
        return [f"match: nodes on which both agree: {counts}."]


def _fires(match: Matcher | None, node: UOp) -> bool:
    return match is not None and match(node, None) not in (None, node)


@SUBJECT.benchmark(
    "scale",
    Line("miss, 10 rules", "ns"),
    Line("miss, 100 rules", "ns"),
    Line("miss, 1000 rules", "ns"),
    Line("1000 rules : 10", "x", at_most(5, "x"), of=("miss, 1000 rules", "miss, 10 rules")),
)
class Scale(Contest):
    """Ask 10, 100 and 1000 random rules for ten root ops about nodes that none of them matches."""

    SIZES = (10, 100, 1000)
    SEED = 7
    TRIED = 6_000

    def __init__(self, has_peer: bool) -> None:
        super().__init__(has_peer)
        shapes = Shapes(self.SEED)
        patterns = shapes.patterns(max(self.SIZES))
        self.tables = {size: weft_rules(patterns[:size]).table for size in self.SIZES}
        most = self.tables[max(self.SIZES)]
        tried = [(shape, weft_node(shape)) for shape in (shapes.node() for _ in range(self.TRIED))]
        missed = [(shape, node) for shape, node in tried if not _fires(most[node.op], node)]
        self.nodes = [node for _, node in missed]
        if has_peer:
            from bench.tinygrad_rules import random_node, random_rules

            self.matchers = {size: random_rules(patterns[:size]) for size in self.SIZES}
            self.peer_nodes = [random_node(shape) for shape, _ in missed]

    def weft(self) -> Figures:
        figures = {}
        for size, table in self.tables.items():
            start = perf_counter()
            for node in self.nodes:
                match = table[node.op]
                if match is not None:
                    match(node, None)
            figures[f"miss, {size} rules"] = (perf_counter() - start) * 1e9 / len(self.nodes)
        return figures

    def peer(self) -> Figures:
        figures = {}
        for size, matcher in self.matchers.items():
            start = perf_counter()
            for node in self.peer_nodes:
                matcher.rewrite(node)
            figures[f"miss, {size} rules"] = (perf_counter() - start) * 1e9 / len(self.peer_nodes)
        return figures


@SUBJECT.benchmark("deep", Line("chain of 100,000", "µs/node"), rounds=3)
class Deep(Contest):
    """Rewrite a chain of 100,000 products into one of sums."""

    COUNT = 100_000
    RULES = rules("products-to-sums", rule("mul-to-add", X * Y, X + Y))

    def weft(self) -> Figures:
        sweep()
        node, two = range_(0, 16), const(dtypes.index, 2)
        for _ in range(self.COUNT):
            node = make(Op.MUL, dtypes.index, (node, two))
        start = perf_counter()
        result = rewrite(node, self.RULES)
        seconds = perf_counter() - start
        assert not result.ops & (1 << Op.MUL)
        return {"chain of 100,000": seconds * 1e6 / self.COUNT}

    def peer(self) -> Figures:
        from tinygrad.uop.ops import graph_rewrite

        from bench.tinygrad_rules import PRODUCTS_TO_SUMS, product_chain

        node = product_chain(self.COUNT)
        start = perf_counter()
        graph_rewrite(node, PRODUCTS_TO_SUMS)
        return {"chain of 100,000": (perf_counter() - start) * 1e6 / self.COUNT}


@SUBJECT.benchmark("loop", Line("until reported", "ms", at_most(1000, "ms")))
class Loop(Contest):
    """Rewrite with two rules that undo each other, until the error comes."""

    RULES = rules("loop", rule("mul-to-add", X * Y, X + Y), rule("add-to-mul", X + Y, X * Y))

    def __init__(self, has_peer: bool) -> None:
        super().__init__(has_peer)
        self.said = ""
        self.peer_said = ""

    def weft(self) -> Figures:
        sweep()
        node = range_(0, 16) * 3
        start = perf_counter()
        try:
            rewrite(node, self.RULES)
        except InternalError as error:
            seconds = perf_counter() - start
            self.said = error.what
            assert all(item.name in error.what for item in self.RULES)
            return {"until reported": seconds * 1e3}
        raise AssertionError("the loop was not found")

    def peer(self) -> Figures:
        from tinygrad.uop.ops import graph_rewrite

        from bench.tinygrad_rules import LOOP, product_chain

        node = product_chain(1)
        start = perf_counter()
        try:
            graph_rewrite(node, LOOP)
        except RuntimeError as error:
            self.peer_said = str(error)
            return {"until reported": (perf_counter() - start) * 1e3}
        raise AssertionError("the loop was not found")

    def notes(self) -> list[str]:
        theirs = f'; tinygrad says "{self.peer_said}"' if self.peer_said else ""
        return [f'loop: Weft says "{self.said}"{theirs}.']
