"""The command of a fuzzer that runs random programs of lines: draw, run in modes, shrink, report.

`fuzz.programs` and `fuzz.jit` each have a `Subject`: how a program is made, in which modes it
runs, and what a difference is.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from fuzz.program_oracle import Line, realizing
from weft.ir.uop import sweep


class Subject(NamedTuple):
    """What is tested. A mode is a way to run a program; only `try_difference` looks into it."""

    description: str
    count: int
    modes: Mapping[str, Any]
    lines: Callable[[int], list[Line]]  # the program of a seed
    try_difference: Callable[[Sequence[Line], Any, str], str | None]  # on a device
    script: Callable[[Sequence[Line], Any, str], str]  # the program as text that runs

    def check(
        self, lines: Sequence[Line], modes: Sequence[str], device: str
    ) -> tuple[str, str] | None:
        """The first mode in which a program goes wrong, and how."""
        for name in modes:
            problem = self.try_difference(lines, self.modes[name], device)
            if problem is not None:
                return name, problem
        return None

    def report(
        self, number: int, lines: Sequence[Line], name: str, problem: str, device: str
    ) -> None:
        """Print a failing program, as small as it gets."""
        mode = self.modes[name]
        small = shrink(lines, lambda fewer: self.try_difference(fewer, mode, device) is not None)
        print(f"program {number}, {name}: {problem}")
        again = self.try_difference(small, mode, device)
        print(f"shrunk to {len(small)} of {len(lines)} lines: {again}")
        print(self.script(small, mode, device), flush=True)

    def main(self, arguments: Sequence[str] | None = None) -> int:
        """Run the command; 1 if a program went wrong."""
        names = ", ".join(self.modes)
        parser = argparse.ArgumentParser(description=self.description.splitlines()[0])
        parser.add_argument("--count", type=int, default=self.count)
        parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
        parser.add_argument("--device", default="CPU")
        parser.add_argument("--modes", default=",".join(self.modes), help=f"some of {names}")
        options = parser.parse_args(arguments)
        print(f"seed {options.seed}", flush=True)
        wrong = 0
        for number in range(options.count):
            lines = self.lines(options.seed * 1_000_003 + number)
            found = self.check(lines, options.modes.split(","), options.device)
            if found is not None:
                wrong += 1
                self.report(number, lines, *found, options.device)
            if number % 100 == 99:
                sweep()
        print(f"{options.count} programs, {wrong} differences, seed {options.seed}")
        return 1 if wrong else 0


def shrink(lines: Sequence[Line], is_bad: Callable[[Sequence[Line]], bool]) -> list[Line]:
    """The program without the lines, and names to realize, that the failure does not need."""
    kept = list(lines)
    found = True
    while found:
        found = False
        for fewer in _smaller(kept):
            try:
                found = is_bad(fewer)
            except Exception:  # the oracle cannot run it
                continue
            if found:
                kept = fewer
                break
    return kept


def _smaller(lines: list[Line]) -> Iterator[list[Line]]:
    """Programs with one line less, the last first, or with one name less to realize.

    The lines of a function's body are lines too, all but the last, which returns.
    """
    for position in reversed(range(len(lines))):
        yield lines[:position] + lines[position + 1 :]
    for position, line in enumerate(lines):
        for smaller in (*_with_less_to_realize(line), *_with_a_smaller_body(line)):
            yield [*lines[:position], smaller, *lines[position + 1 :]]


def _with_less_to_realize(line: Line) -> Iterator[Line]:
    names = (
        line.numpy.split(", ") if line.ours.count("\n") == 0 and ".realize(" in line.ours else []
    )
    for name in names[1:] and names:
        yield realizing([other for other in names if other != name])


def _with_a_smaller_body(line: Line) -> Iterator[Line]:
    ours, numpy = line.ours.split("\n"), line.numpy.split("\n")
    if len(ours) != len(numpy) or not ours[0].startswith("@"):
        return
    for position in reversed(range(2, len(ours) - 1)):
        yield Line(*("\n".join(text[:position] + text[position + 1 :]) for text in (ours, numpy)))
