"""The rewrite engine by its parts, against tinygrad's: nodes, matching, depth, loops.

Imports of tinygrad are inside, because it may not be installed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

from bench.contest import Contest, Figures, Line, Subject, at_most
from bench.corpus.load import Expression, forget_tinygrad, load, tinygrad_nodes
from bench.corpus.weft_side import from_weft, simplify_weft, to_weft, weft_nodes
from bench.random_rules import Shapes, tinygrad_node, tinygrad_rules, weft_node, weft_rules
from weft.ir.build import range_
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.uop import UOp, const, make, sweep
from weft.rewrite.driver import rewrite
from weft.rewrite.pattern import any_
from weft.rewrite.rule import rule
from weft.rewrite.ruleset import rules
from weft.rules.simplify import SIMPLIFY
from weft.support.errors import InternalError

SUBJECT = Subject("engine", peer="tinygrad")

X, Y = any_("x"), any_("y")
NEW, EXISTING = "new node", "existing node"


@SUBJECT.benchmark("create", Line(NEW, "ns"), Line(EXISTING, "ns"))
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

    def _figures(self, build: Callable[[], list[Any]]) -> Figures:
        start = perf_counter()
        alive = build()
        middle = perf_counter()
        build()
        end = perf_counter()
        del alive
        return {
            NEW: (middle - start) * 1e9 / self.COUNT,
            EXISTING: (end - middle) * 1e9 / self.COUNT,
        }

    def weft(self) -> Figures:
        sweep()
        leaves = [range_(i, 100) for i in range(self.LEAVES)]
        index = dtypes.index

        def build() -> list[UOp]:
            nodes = list(leaves)
            for is_sum, i, j in self.plan:
                nodes.append(make(Op.ADD if is_sum else Op.MUL, index, (nodes[i], nodes[j])))
            return nodes

        return self._figures(build)

    def peer(self) -> Figures:
        from tinygrad.dtype import dtypes as peer_dtypes
        from tinygrad.uop import Ops
        from tinygrad.uop.ops import UOp as PeerUOp

        leaves = [PeerUOp.range(100, i) for i in range(self.LEAVES)]
        index = peer_dtypes.weakint

        def build() -> list[PeerUOp]:
            nodes = list(leaves)
            for is_sum, i, j in self.plan:
                nodes.append(PeerUOp(Ops.ADD if is_sum else Ops.MUL, index, (nodes[i], nodes[j])))
            return nodes

        return self._figures(build)


def weft_match(node: UOp) -> UOp | None:
    """What the driver does at a node whose sources are done."""
    match = SIMPLIFY.table[node.op]
    result = match(node, None) if match is not None else None
    return None if result is node else result


@SUBJECT.benchmark("match", Line("a rule fires", "ns"), Line("none fires", "ns"))
class Match(Contest):
    """Ask all rules about one node: nodes of the corpus as they are, and of its normal forms."""

    def __init__(self, has_peer: bool) -> None:
        super().__init__(has_peer)
        raw = load()[::6]
        normal = [from_weft(simplify_weft(to_weft(expression))) for expression in raw]
        self.hits = self._nodes(raw, fires=True)
        self.misses = self._nodes([after for after in normal if after is not None], fires=False)

    def _nodes(self, expressions: Sequence[Expression], fires: bool) -> list[tuple[UOp, Any]]:
        """The nodes at which a rule fires, or none does, in both engines."""
        found: list[tuple[UOp, Any]] = []
        for expression in expressions:
            ours = weft_nodes(expression)
            theirs = tinygrad_nodes(expression) if self.has_peer else [None] * len(ours)
            for node, peer_node in zip(ours, theirs, strict=True):
                # A gated index is a pair and no node; a leaf has no rules.
                if isinstance(node, tuple) or not node.src or node.op == Op.RANGE:
                    continue
                agrees = peer_node is None or (self._peer_match(peer_node) is not None) == fires
                if agrees and (weft_match(node) is not None) == fires:
                    found.append((node, peer_node))
        return found

    def _peer_match(self, uop: Any) -> Any:
        from tinygrad.uop.symbolic import sym

        return sym.rewrite(uop)

    def weft(self) -> Figures:
        sweep()  # the results of the last round are made anew
        table = SIMPLIFY.table

        def match(node: UOp) -> object:
            return table[node.op](node, None)  # type: ignore[misc]

        return self._figures(match, 0)

    def peer(self) -> Figures:
        from tinygrad.uop.symbolic import sym

        forget_tinygrad()
        return self._figures(sym.rewrite, 1)

    def _figures(self, match: Callable[[Any], object], side: int) -> Figures:
        figures = {}
        for name, pairs in (("a rule fires", self.hits), ("none fires", self.misses)):
            nodes = [pair[side] for pair in pairs]
            start = perf_counter()
            for node in nodes:
                match(node)
            figures[name] = (perf_counter() - start) * 1e9 / len(nodes)
        return figures


@SUBJECT.benchmark(
    "scale",
    Line("miss, 10 rules", "ns"),
    Line("miss, 100 rules", "ns"),
    Line("miss, 1000 rules", "ns"),
    Line("1000 rules : 10", "x", at_most(5, "x"), of=("miss, 1000 rules", "miss, 10 rules")),
)
class Scale(Contest):
    """Ask 10, 100 and 1000 random rules about random nodes that none of them matches."""

    SIZES = (10, 100, 1000)
    SEED = 7
    TRIED = 6_000

    def __init__(self, has_peer: bool) -> None:
        super().__init__(has_peer)
        shapes = Shapes(self.SEED)
        patterns = [shapes.pattern() for _ in range(max(self.SIZES))]
        self.tables = {size: weft_rules(patterns[:size]).table for size in self.SIZES}
        most = self.tables[max(self.SIZES)]
        tried = [(shape, weft_node(shape)) for shape in (shapes.node() for _ in range(self.TRIED))]
        missed = [pair for pair in tried if not _fires(most[pair[1].op], pair[1])]
        self.nodes = [node for _, node in missed]
        if has_peer:
            self.matchers = {size: tinygrad_rules(patterns[:size]) for size in self.SIZES}
            self.peer_nodes = [tinygrad_node(shape) for shape, _ in missed]

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


def _fires(match: Callable[[UOp, Any], UOp | None] | None, node: UOp) -> bool:
    return match is not None and match(node, None) is not None


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
        from tinygrad.uop import Ops
        from tinygrad.uop.ops import PatternMatcher, UPat, graph_rewrite
        from tinygrad.uop.ops import UOp as PeerUOp

        product = UPat(Ops.MUL, src=(UPat.var("x"), UPat.var("y")))
        matcher = PatternMatcher([(product, lambda x, y: PeerUOp(Ops.ADD, x.dtype, (x, y)))])
        node, two = PeerUOp.range(16, 0), PeerUOp.const(2)
        for _ in range(self.COUNT):
            node = PeerUOp(Ops.MUL, node.dtype, (node, two))
        start = perf_counter()
        graph_rewrite(node, matcher)
        return {"chain of 100,000": (perf_counter() - start) * 1e6 / self.COUNT}


@SUBJECT.benchmark("loop", Line("until it is reported", "ms", at_most(1000, "ms")))
class Loop(Contest):
    """Rewrite with two rules that undo each other, until the error comes."""

    RULES = rules("loop", rule("mul-to-add", X * Y, X + Y), rule("add-to-mul", X + Y, X * Y))
    LINE = "until it is reported"

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
            return {self.LINE: seconds * 1e3}
        raise AssertionError("the loop was not found")

    def peer(self) -> Figures:
        from tinygrad.uop import Ops
        from tinygrad.uop.ops import PatternMatcher, UPat, graph_rewrite
        from tinygrad.uop.ops import UOp as PeerUOp

        x, y = UPat.var("x"), UPat.var("y")
        undo = [
            (UPat(Ops.MUL, src=(x, y)), lambda x, y: PeerUOp(Ops.ADD, x.dtype, (x, y))),
            (UPat(Ops.ADD, src=(x, y)), lambda x, y: PeerUOp(Ops.MUL, x.dtype, (x, y))),
        ]
        start = perf_counter()
        try:
            graph_rewrite(PeerUOp.range(16, 0) * 3, PatternMatcher(undo))
        except RuntimeError as error:
            self.peer_said = str(error)
            return {self.LINE: (perf_counter() - start) * 1e3}
        raise AssertionError("the loop was not found")

    def notes(self) -> list[str]:
        theirs = f'; tinygrad says "{self.peer_said}"' if self.peer_said else ""
        return [f'loop: Weft says "{self.said}"{theirs}.']
