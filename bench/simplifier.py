"""The simplifier on the corpus of index expressions, against tinygrad's symbolic rules.

Weft simplifies an index, narrows a mask, and narrows an index under its mask; tinygrad runs `sym`,
its complete set. Both results go back into the ops of the corpus, where they are counted and
compared with the input by brute force.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

from bench.contest import Contest, Figures, Line, Subject, at_most, no_more_than_peer, times_faster
from bench.corpus.load import (
    Expression,
    evaluate,
    forget_tinygrad,
    load,
    rewrite_tinygrad,
    to_tinygrad,
)
from bench.corpus.measure import environments, to_corpus
from bench.corpus.weft_side import from_weft, simplify_weft, to_weft
from weft.ir.uop import sweep
from weft.rules.simplify import simplify

SUBJECT = Subject("simplifier", peer="tinygrad")

Timed = tuple[float, Expression | None]


def weft_cold(expression: Expression) -> Timed:
    """Simplify once, with nothing remembered of any other expression."""
    sweep()
    part = to_weft(expression)
    start = perf_counter()
    result = simplify_weft(part)
    return perf_counter() - start, from_weft(result)


def tinygrad_cold(expression: Expression) -> Timed:
    """The same for tinygrad, whose nodes go with their last reference."""
    forget_tinygrad()
    uop = to_tinygrad(expression)
    start = perf_counter()
    result = rewrite_tinygrad(uop)
    return perf_counter() - start, to_corpus(result)


def is_same(expression: Expression, after: Expression | None) -> bool:
    """Whether a result is worth what the expression is, at up to a hundred points."""
    return all(
        evaluate(expression, env) == (None if after is None else evaluate(after, env))
        for env in environments(expression, few=100, samples=60)
    )


def size(after: Expression | None) -> int:
    return 0 if after is None else len(after.nodes)


@SUBJECT.benchmark(
    "simplify",
    Line("cold", "µs/node", times_faster(5)),
    Line("nodes left", "nodes", no_more_than_peer()),
    Line("wrong results", "results", at_most(0)),
    rounds=3,
)
class Simplify(Contest):
    """Simplify each expression of the corpus, cold; time per input node, and the nodes left."""

    def __init__(self, has_peer: bool) -> None:
        super().__init__(has_peer)
        self.expressions = load()
        self.nodes = sum(len(expression.nodes) for expression in self.expressions)
        self.weft_results: list[Timed] = []
        self.peer_results: list[Timed] = []
        for expression in self.expressions[::8]:
            weft_cold(expression)
            if has_peer:
                tinygrad_cold(expression)

    def weft(self) -> Figures:
        self.weft_results = self._round(weft_cold, self.weft_results)
        return self._figures(self.weft_results)

    def peer(self) -> Figures:
        self.peer_results = self._round(tinygrad_cold, self.peer_results)
        return self._figures(self.peer_results)

    def _round(self, simplify: Callable[[Expression], Timed], last: list[Timed]) -> list[Timed]:
        """The best of each expression: a round is too long to find the machine idle throughout."""
        results = [simplify(expression) for expression in self.expressions]
        if not last:
            return results
        return [(min(new[0], old[0]), new[1]) for new, old in zip(results, last, strict=True)]

    def _figures(self, results: list[Timed]) -> Figures:
        return {"cold": sum(seconds for seconds, _ in results) * 1e6 / self.nodes}

    def compare(self) -> tuple[Figures, Figures]:
        return self._counts(self.weft_results), self._counts(self.peer_results)

    def _counts(self, results: list[Timed]) -> Figures:
        if not results:
            return {}
        afters = [after for _, after in results]
        same = [is_same(*pair) for pair in zip(self.expressions, afters, strict=True)]
        return {"nodes left": sum(map(size, afters)), "wrong results": same.count(False)}

    def notes(self) -> list[str]:
        pairs = zip(self.weft_results, self.peer_results, strict=False)
        gains = [size(theirs) - size(ours) for (_, ours), (_, theirs) in pairs]
        if not gains:
            return []
        smaller, larger = sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)
        return [
            f"simplify: of {len(gains)} expressions ({self.nodes:,} nodes) Weft's result is "
            f"smaller in {smaller}, equal in {len(gains) - smaller - larger}, larger in {larger}."
        ]


@SUBJECT.benchmark("again", Line("normal form", "ns/node"))
class Again(Contest):
    """Simplify results once more: nothing is to be done, which Weft remembers."""

    def __init__(self, has_peer: bool) -> None:
        super().__init__(has_peer)
        expressions = load()[::3]
        results = [simplify_weft(to_weft(expression)) for expression in expressions]
        self.nodes = sum(size(from_weft(result)) for result in results)
        self.roots = [
            simplify(root)
            for result in results
            for root in (result if isinstance(result, tuple) else (result,))
        ]
        if has_peer:
            self.peer_roots = [rewrite_tinygrad(to_tinygrad(e)) for e in expressions]
            self.peer_nodes = sum(size(to_corpus(root)) for root in self.peer_roots)

    def weft(self) -> Figures:
        start = perf_counter()
        for root in self.roots:
            simplify(root)
        return {"normal form": (perf_counter() - start) * 1e9 / self.nodes}

    def peer(self) -> Figures:
        start = perf_counter()
        for root in self.peer_roots:
            # Weft's `simplify` does not narrow, and neither does this set.
            rewrite_tinygrad(root, "symbolic")
        return {"normal form": (perf_counter() - start) * 1e9 / self.peer_nodes}
