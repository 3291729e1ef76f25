"""`weft trace FILE`: ask a trace where something happened, or write it for another viewer."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from weft.cli.viz import find_trace
from weft.support.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("trace", nargs="?", help="a file that VIZ=1 wrote; else the newest here")
    parser.add_argument("--rule", help="the rewrites of rules whose names hold this")
    parser.add_argument("--kernel", help="kernels whose names hold this: lines, opts, text")
    parser.add_argument("--line", metavar="FILE:N", help="the kernels that a line became")
    parser.add_argument("--to", choices=["perfetto"], help="write it for the Perfetto viewer")
    parser.add_argument("--out", metavar="FILE", help="where --to writes (TRACE.perfetto.json)")


def run(options: argparse.Namespace) -> int:
    from weft.viz.find import Found
    from weft.viz.perfetto import to_perfetto
    from weft.viz.profile import Profile

    path = find_trace(options.trace)
    if options.to:
        out = Path(options.out or path.with_suffix(".perfetto.json"))
        out.write_text(json.dumps(to_perfetto(path)), encoding="utf-8")
        print(out)
        return 0
    if not (options.rule or options.kernel or options.line):
        found = Profile()
        found.read(path)
        print(found)
        return 0
    tables = Found(path)
    questions = ((tables.rule, options.rule), (tables.kernel, options.kernel))
    asked = [*questions, (tables.line, options.line)]
    answers = [line for ask, text in asked if text for line in ask(text)]
    if not answers:
        raise UsageError(f"trace: {path.name} has nothing of that")
    print("\n".join(answers))
    return 0
