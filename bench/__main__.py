"""Run the benchmarks and print one table of ratios.

    python -m bench [--only NAME] [--rounds N] [--beside] [--search] [--json FILE] [--list]
    python -m bench --compare A B
    python -m bench --draw FILE.svg
    python -m bench machine
    python -m bench device CUDA [--json FILE]

Each benchmark runs beside its peer: rounds of Weft and of the peer alternate in one process, with
the garbage collector off, and each keeps its best. Warm-up (imports, compiled rules) is excluded.
What is measured cold starts cold in each round: the nodes of the last one are dropped, and with
them all that was remembered. The ratio is the peer's figure over Weft's: above 1, Weft is faster.
Trust the ratios; the seconds of a shared machine vary by more than what is compared, so none of
them is ever a test.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from bench import history
from bench.contest import Benchmark
from bench.history import HISTORY
from bench.report import as_json, render
from bench.run import Outcome, run

# A file each: bench/engine.py holds SUBJECT, the benchmarks of the rewrite engine.
SUBJECTS = (
    "engine",
    "simplifier",
    "compile",
    "startup",
    "first",
    "eager",
    "speed",
    "recurrent",
    "jit",
    "trace",
)
# These take many minutes, and run where they are named.
LONG_SUBJECTS = ("networks",)
ROUNDS = 5
METHOD = (
    "Weft and its peer alternate in one process; best of {rounds} rounds (fewer where long), "
    "warm-up excluded, gc off.\nratio = peer / Weft: above 1x, Weft is faster. "
    "Trust ratios, not absolutes."
)


def benchmarks() -> list[Benchmark]:
    """All benchmarks of all subjects."""
    found: list[Benchmark] = []
    for subject in (*SUBJECTS, *LONG_SUBJECTS):
        found += import_module(f"bench.{subject}").SUBJECT.benchmarks
    return found


def chosen(rows: Sequence[Benchmark], names: Sequence[str]) -> list[Benchmark]:
    """Those whose name or subject is among the names; without names, all that do not take long."""
    unknown = set(names) - {row.name for row in rows} - {row.subject for row in rows}
    if unknown:
        known = ", ".join(row.name for row in rows)
        raise SystemExit(f"no benchmark is called {sorted(unknown)}; there are: {known}")
    if not names:
        return [row for row in rows if row.subject not in LONG_SUBJECTS]
    return [row for row in rows if row.name in names or row.subject in names]


def run_all(rows: Sequence[Benchmark], rounds: int, asked: Sequence[str]) -> list[Outcome]:
    outcomes = []
    for row in rows:
        start = time.perf_counter()
        outcomes.append(run(row, rounds, asked))
        seconds = time.perf_counter() - start
        print(f"{row.subject}/{row.name}: {seconds:.1f} s", file=sys.stderr, flush=True)
    return outcomes


def _numbers_as_names(arguments: Sequence[str]) -> list[str]:
    """-1 is a run here; argparse would take it for an option."""
    return [f" {each}" if each[:1] == "-" and each[1:].isdigit() else each for each in arguments]


def main(arguments: Sequence[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["machine"]:
        from bench.machine import main as measure_machine

        return measure_machine(arguments[1:])
    if arguments[:1] == ["device"]:
        from bench.device import main as measure_device

        return measure_device(arguments[1:])
    parser = argparse.ArgumentParser(prog="python -m bench", description="Weft beside its peers")
    parser.add_argument("--only", action="append", default=[], metavar="NAME")
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there too")
    parser.add_argument("--beside", action="store_true", help="further peers too, which is slow")
    parser.add_argument("--search", action="store_true", help="also with searched kernels")
    parser.add_argument("--list", action="store_true", help="say what there is, and run nothing")
    parser.add_argument(
        "--history", type=Path, default=HISTORY, metavar="FILE", help="of all runs"
    )
    parser.add_argument("--no-history", action="store_true", help="do not add this run to it")
    parser.add_argument("--compare", nargs=2, metavar=("A", "B"), help="what is slower in run B")
    parser.add_argument("--draw", type=Path, metavar="FILE", help="draw the history as SVG")
    options = parser.parse_args(_numbers_as_names(arguments))
    if options.compare:
        before, after = (history.find(name.strip(), options.history) for name in options.compare)
        text, is_slower = history.report(history.compare(before, after))
        print(text)
        return 1 if is_slower else 0
    if options.draw:
        options.draw.write_text(history.draw(history.read(options.history)), encoding="utf-8")
        return 0
    rows = chosen(benchmarks(), options.only)
    if options.list:
        print("\n".join(f"{row.subject:12} {row.name:12} {row.about}" for row in rows))
        return 0
    asked = [name for name in ("beside", "search") if getattr(options, name)]
    outcomes = run_all(rows, options.rounds, asked)
    lines = [line for outcome in outcomes for line in outcome.rows]
    notes = [note for outcome in outcomes for note in outcome.notes]
    errors = [outcome.error for outcome in outcomes if outcome.error]
    print(METHOD.format(rounds=options.rounds), render(lines), *notes, sep="\n\n")
    if errors:
        print(*errors, sep="\n", file=sys.stderr)
    results = as_json(lines, notes, options.rounds)
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    if not options.no_history:
        history.append(results, options.history)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
