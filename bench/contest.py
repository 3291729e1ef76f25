"""What a benchmark is: lines of the table, and a contest that fills them in round by round.

A subject (`bench/engine.py`, …) declares its benchmarks as classes:

    SUBJECT = Subject("engine", peer="tinygrad")

    @SUBJECT.benchmark("create", Line("new node", "ns"))
    class Create(Contest):
        def weft(self) -> Figures:
            return {"new node": …}

Less is better in every line: times, and counts of nodes or errors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

Figures = Mapping[str, float]
C = TypeVar("C", bound="Contest")


@dataclass(frozen=True)
class Goal:
    """What the figures of a line should reach. `is_met(weft, peer)`; None is an unknown figure."""

    text: str
    is_met: Callable[[float, float | None], bool | None]


def times_faster(factor: float) -> Goal:
    """The peer takes at least `factor` times as long."""

    def is_met(weft: float, peer: float | None) -> bool | None:
        return None if peer is None else peer >= factor * weft

    return Goal(f">= {factor:g}x", is_met)


def at_most(limit: float, unit: str = "") -> Goal:
    """Weft's figure stays below a limit, whatever the peer's is."""
    return Goal(f"<= {limit:g} {unit}".rstrip(), lambda weft, peer: weft <= limit)


def no_more_than_peer() -> Goal:
    """Weft's figure is the peer's or less."""

    def is_met(weft: float, peer: float | None) -> bool | None:
        return None if peer is None else weft <= peer

    return Goal("<= peer", is_met)


@dataclass(frozen=True)
class Line:
    """One line of the table. With `of`, its figure is the quotient of two other lines' figures."""

    name: str
    unit: str
    goal: Goal | None = None
    of: tuple[str, str] | None = None


class Contest:
    """One benchmark at work. What it needs, warm-up included, is made before the first round."""

    def __init__(self, has_peer: bool) -> None:
        self.has_peer = has_peer

    def weft(self) -> Figures:
        """The figures of one round of Weft, by the name of their line."""
        raise NotImplementedError

    def peer(self) -> Figures:
        """The same for the peer, which is installed if this is called."""
        raise NotImplementedError

    def others(self, asked: Sequence[str]) -> Mapping[str, Callable[[], Figures]]:
        """Further sides that take turns with these two, by name; those not installed are left out.

        They take long, so they play where they are asked for: "beside" for other peers, "search"
        for Weft with searched kernels.
        """
        return {}

    def shares(self, figures: Figures) -> Mapping[str, str]:
        """For lines that know it, how much of the machine's peak Weft's figure is."""
        return {}

    def compare(self) -> tuple[Figures, Figures]:
        """Further figures of Weft and its peer, out of their results, once all rounds are over."""
        return {}, {}

    def notes(self) -> list[str]:
        """What the figures do not say, once all rounds are over."""
        return []


@dataclass(frozen=True)
class Benchmark:
    """A row of the registry. `rounds` is the most this one runs, for those that take long."""

    subject: str
    name: str
    about: str
    lines: tuple[Line, ...]
    contest: Callable[[bool], Contest]
    peer: str | None
    rounds: int


@dataclass
class Subject:
    """The benchmarks of one file, which share their peer."""

    name: str
    peer: str | None = None
    benchmarks: list[Benchmark] = field(default_factory=list)

    def benchmark(
        self, name: str, *lines: Line, rounds: int = 100
    ) -> Callable[[type[C]], type[C]]:
        """Add a contest; the first line of its docstring is what `--list` says of it."""

        def add(contest: type[C]) -> type[C]:
            about = (contest.__doc__ or "").partition("\n")[0]
            row = Benchmark(self.name, name, about, lines, contest, self.peer, rounds)
            self.benchmarks.append(row)
            return contest

        return add
