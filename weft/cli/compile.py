"""`weft compile FILE`: a graph in text form, taken through the passes for any target."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from weft.support.errors import UnknownName, UsageError

if TYPE_CHECKING:
    from weft.codegen.opts.table import Opt
    from weft.engine.resume import Result


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="a graph, kernel or program as text; - reads it from stdin")
    parser.add_argument(
        "--from", dest="start", metavar="PASS", help="the first pass to run (that of the graph)"
    )
    parser.add_argument(
        "--to", dest="stop", metavar="PASS", help="the last pass to run (render, the source)"
    )
    parser.add_argument(
        "--target", metavar="NAME", help="such as CPU:LLVM:x86_64,avx2 or CUDA:PTX:sm_90a (CPU)"
    )
    parser.add_argument(
        "--opts", metavar="JSON", help="the schedule of a kernel's loops ('[]': leave them)"
    )
    parser.add_argument("--kernel", metavar="NAME", help="only this kernel of a schedule")
    parser.add_argument("--each", action="store_true", help="print what each pass gives")


def run(options: argparse.Namespace) -> int:
    """Read the text, run the passes, print what the last of them gives."""
    from weft.engine.resume import RENDER, resume
    from weft.engine.targets import find_target
    from weft.ir.text import parse

    text, name = _read(options.file)
    opts = None if options.opts is None else _parse_opts(options.opts)
    target = find_target(options.target or "")
    stop = options.stop or RENDER
    results = list(resume(parse(text, name), target, options.start, stop, opts))
    if options.kernel:
        results = _of_kernel(results, options.kernel)
    shown = [each for each in results if options.each or each.step == stop]
    for number, each in enumerate(shown):
        if len(shown) > 1:
            title = f"{each.step}: {each.kernel}" if each.kernel else each.step
            mark = _COMMENTS.get(target.renderer, "#") if each.step == RENDER else "#"
            print(*([""] if number else []), f"{mark} {title}", sep="\n")
        print(each.text)
    return 0


def _of_kernel(results: list[Result], name: str) -> list[Result]:
    found = [each for each in results if each.kernel in ("", name)]
    if not any(each.kernel for each in found):
        known = list(dict.fromkeys(each.kernel for each in results if each.kernel))
        raise UnknownName(
            f"compile: there is no kernel {name!r}",
            rule="the kernels are " + ", ".join(known),
        )
    return [each for each in found if each.kernel]


def _read(file: str) -> tuple[str, str]:
    if file == "-":
        return sys.stdin.read(), "<stdin>"
    path = Path(file)
    if not path.is_file():
        raise UsageError(f"compile: there is no file {file}")
    try:
        return path.read_text(), file
    except UnicodeDecodeError:
        raise UsageError(f"compile: expected a graph as text, got a binary file {file}") from None


def _parse_opts(text: str) -> tuple[Opt, ...]:
    from weft.codegen.opts.table import OPTS
    from weft.codegen.opts.text import from_json

    try:
        return from_json(text)
    except (json.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise UsageError(
            f"compile: --opts cannot be read: {error}",
            rule='opts are a JSON list such as [["Split", 0, 8], ["Vectorize", 1]], of '
            + ", ".join(kind.__name__ for kind in OPTS),
        ) from None


# How the languages of renderers begin a comment.
_COMMENTS: Final = {"C": "//", "CL": "//", "LLVM": ";", "PTX": ";"}
