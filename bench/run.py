"""Runs contests: Weft and its peer take turns in one process, and each keeps its best round.

Figures of a machine that does other things too are only ever too large, so the least is nearest to
the truth; and a slow spell hits both, because they alternate. The garbage collector is off while a
round runs and runs between rounds. A peer that raises is out, and the table says so; an error of
Weft is recorded as well, so that the other benchmarks still run.
"""

from __future__ import annotations

import gc
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bench.contest import Benchmark, Contest, Figures, Line
from bench.peers import is_installed


@dataclass(frozen=True)
class Row:
    """A line of the table with its figures; None is a figure that there is not."""

    benchmark: Benchmark
    line: Line
    weft: float | None
    peer: float | None
    peer_fails: bool = False
    others: Mapping[str, float] = field(default_factory=dict)
    share: str = ""

    @property
    def ratio(self) -> float | None:
        """The peer's figure in units of Weft's: above 1, Weft is faster."""
        if self.weft is None or self.peer is None or self.weft == 0:
            return None
        return self.peer / self.weft

    @property
    def is_met(self) -> bool | None:
        if self.line.goal is None or self.weft is None:
            return None
        return self.line.goal.is_met(self.weft, self.peer)


@dataclass
class Side:
    """One of the two in a contest: the best figure of each line so far, or the error it met."""

    play: Callable[[], Figures]
    best: dict[str, float] = field(default_factory=dict)
    error: str = ""

    def round(self) -> None:
        if self.error:
            return
        gc.collect()
        gc.disable()
        try:
            self.add(self.play())
        except Exception:
            self.error = traceback.format_exc()
        finally:
            gc.enable()

    def add(self, figures: Figures) -> None:
        for name, figure in figures.items():
            self.best[name] = min(figure, self.best.get(name, figure))

    def figure(self, line: Line) -> float | None:
        if line.of is None:
            return self.best.get(line.name)
        above, below = (self.best.get(name) for name in line.of)
        return None if above is None or not below else above / below


@dataclass(frozen=True)
class Outcome:
    """What came of one benchmark."""

    rows: list[Row]
    notes: list[str]
    error: str


def run(benchmark: Benchmark, rounds: int, asked: Sequence[str] = ()) -> Outcome:
    """Let Weft and the peer take turns, and the further sides if they are asked for."""
    has_peer = benchmark.peer is not None and is_installed(benchmark.peer)
    # What is alive now is not garbage, so the collections between rounds need not look at it.
    gc.collect()
    gc.freeze()
    try:
        contest, failure = _prepared(benchmark, has_peer)
        outcome = _contest(benchmark, contest, min(rounds, benchmark.rounds), asked)
        return replace(outcome, notes=[*failure, *outcome.notes])
    except Exception:
        return Outcome(_rows(benchmark, None, None), [], traceback.format_exc())
    finally:
        gc.unfreeze()


def _prepared(benchmark: Benchmark, has_peer: bool) -> tuple[Contest, list[str]]:
    """The contest, without the peer where that cannot even be prepared, and why."""
    if has_peer:
        try:
            return benchmark.contest(True), []
        except Exception as failure:
            said = f"{type(failure).__name__}: {failure}"[:120]
            return benchmark.contest(False), [f"{benchmark.peer} fails: {said}"]
    return benchmark.contest(False), []


def _contest(benchmark: Benchmark, contest: Contest, rounds: int, asked: Sequence[str]) -> Outcome:
    weft, peer = Side(contest.weft), Side(contest.peer)
    others = {name: Side(play) for name, play in contest.others(asked).items()}
    sides = [weft, *([peer] if contest.has_peer else []), *others.values()]
    for _ in range(rounds):
        for side in sides:
            side.round()
    notes = []
    if not weft.error and not peer.error:
        for side, figures in zip((weft, peer), contest.compare(), strict=True):
            side.add(figures)
        notes = contest.notes()
    if peer.error:
        notes.append(f"{benchmark.peer} fails: {peer.error.splitlines()[-1][:120]}")
    for name, side in others.items():
        if side.error:
            notes.append(f"{name} fails: {side.error.splitlines()[-1][:120]}")
    rows = _rows(benchmark, weft, peer)
    shares = contest.shares(weft.best)
    for position, row in enumerate(rows):
        found = {name: side.figure(row.line) for name, side in others.items()}
        known = {name: figure for name, figure in found.items() if figure is not None}
        rows[position] = replace(row, others=known, share=shares.get(row.line.name, ""))
    return Outcome(rows, notes, weft.error)


def _rows(benchmark: Benchmark, weft: Side | None, peer: Side | None) -> list[Row]:
    return [
        Row(
            benchmark,
            line,
            weft.figure(line) if weft else None,
            peer.figure(line) if peer else None,
            bool(peer and peer.error),
        )
        for line in benchmark.lines
    ]
