"""What a rewrite did: each rule that fired, on what, with what result and why.

Tracing uses other generated code, so it costs nothing when off. `with tracing() as trace:` records
every rewrite in this thread; `print(trace)` shows it pass by pass. The same record is how a rule
set that does not terminate is explained: the rules on the cycle are named.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, NamedTuple

from weft.ir.text import show
from weft.ir.uop import UOp
from weft.rewrite.rule import Rule
from weft.rewrite.ruleset import Matcher, RuleSet
from weft.support.errors import InternalError

ACTIVE: Final[ContextVar[RewriteTrace | None]] = ContextVar("weft_trace", default=None)


FEWEST_OF_A_LOOP: Final = 100


class Rewritten(NamedTuple):
    """A rule that fired."""

    rule: Rule
    before: UOp
    after: UOp
    bindings: dict[str, Any] | None

    @property
    def why(self) -> str:
        shown = {k: show(v) if isinstance(v, UOp) else v for k, v in (self.bindings or {}).items()}
        return self.rule.why.format(**shown) if self.rule.why else ""


class PassTrace:
    """The steps of one rewrite, or of all rewrites of one pass."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.steps: list[Rewritten] = []
        self.visits = 0

    @property
    def counts(self) -> Counter[str]:
        return Counter(step.rule.name for step in self.steps)

    def __str__(self) -> str:
        lines = [f"pass {self.name}: {len(self.steps)} rewrites, {self.visits} visits"]
        rows = [(s.rule.name, show(s.before), show(s.after), s.why) for s in self.steps]
        widths = [max((len(row[i]) for row in rows), default=0) for i in range(3)]
        for name, before, after, why in rows:
            text = f"  {name:<{widths[0]}}  {before:<{widths[1]}}  -> {after:<{widths[2]}}"
            lines.append(f"{text}  # {why}" if why else text.rstrip())
        return "\n".join(lines)


class RewriteTrace:
    """All that was rewritten while it was active.

    One that `remembers` shows each rewrite of a pass once and does not visit again what is known
    to be in normal form; else every visit is counted.
    """

    def __init__(self, remembers: bool = False) -> None:
        self.passes: list[PassTrace] = []
        self.remembers = remembers
        self._name: str | None = None
        self._tables: dict[RuleSet, list[Matcher | None]] = {}
        self._memos: dict[RuleSet, dict[UOp, UOp]] = {}

    @contextmanager
    def named(self, name: str) -> Iterator[PassTrace]:
        """Gather the rewrites inside under the name of a pass."""
        outer, self._name = self._name, name
        self.passes.append(PassTrace(name))
        self._memos.clear()
        try:
            yield self.passes[-1]
        finally:
            self._name = outer

    def table_of(self, rules: RuleSet) -> list[Matcher | None]:
        """The decision functions of a rule set that report to the pass of this trace."""
        if self._name is None:
            self.passes.append(PassTrace(rules.name))
        table = self._tables.get(rules)
        if table is None:
            table = rules.compile(_recorder(rules, lambda: self.passes[-1].steps))
            self._tables[rules] = table
        return table

    def memo_of(self, rules: RuleSet) -> dict[UOp, UOp]:
        """What this pass knows of a rule set already; nothing where every visit counts."""
        if not self.remembers or not rules.bit:
            return {}
        return self._memos.setdefault(rules, {})

    def visited(self, count: int) -> None:
        self.passes[-1].visits += count

    def __str__(self) -> str:
        return "\n".join(map(str, self.passes))


def _recorder(rules: RuleSet, steps: Callable[[], list[Rewritten]]) -> Callable[..., None]:
    def record(number: int, before: UOp, after: UOp, bindings: dict[str, Any] | None) -> None:
        if after is not before:
            steps().append(Rewritten(rules.rules[number], before, after, bindings))

    return record


def active() -> RewriteTrace | None:
    """The trace of this thread, if there is one."""
    return ACTIVE.get()


@contextmanager
def tracing(remembers: bool = False) -> Iterator[RewriteTrace]:
    """Record every rewrite in this scope."""
    token = ACTIVE.set(RewriteTrace(remembers))
    try:
        current = ACTIVE.get()
        assert current is not None
        yield current
    finally:
        ACTIVE.reset(token)


def report_loop(root: UOp, rules: RuleSet, run: Callable[[list[Matcher | None]], None]) -> None:
    """Run again with a record and raise an error that names the rules which undo each other.

    Returns where few rules fired: then the caller's own stack was too deep, and nothing loops.
    """
    steps: list[Rewritten] = []
    run(rules.compile(_recorder(rules, lambda: steps)))
    if len(steps) < FEWEST_OF_A_LOOP:
        return
    cycle = _cycle(steps)
    if cycle:
        names = list(dict.fromkeys(step.rule.name for step in cycle))
        what = f"rewriting does not end: {' and '.join(names)} undo each other"
    else:
        cycle = steps[-10:]
        names = list(dict.fromkeys(step.rule.name for step in cycle))
        what = f"rewriting does not end: the graph keeps growing by {', '.join(names)}"
    facts = [(s.rule.name, show(s.before), f"-> {show(s.after)}") for s in cycle[:10]]
    raise InternalError(
        what, pass_name=rules.name, rewrite_rule=names[-1], facts=facts, ir_text=show(root)
    )


def _cycle(steps: list[Rewritten]) -> list[Rewritten]:
    """The steps between the last step and the one before it that is the same."""
    if not steps:
        return []
    last = steps[-1]
    for i in range(len(steps) - 2, -1, -1):
        if steps[i].rule is last.rule and steps[i].before is last.before:
            return steps[i + 1 :]
    return []
