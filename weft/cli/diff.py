"""`weft diff FILE`: run a program twice and name the first tensor on which the runs disagree."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from weft.support.errors import ArgumentError, UnknownName
from weft.support.message import nearest
from weft.support.setting import ROWS

if TYPE_CHECKING:
    from weft.viz.diff import Outcome


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--devices", metavar="A,B", help="two devices, such as CPU,PYTHON")
    parser.add_argument("--dtypes", metavar="A,B", help="two default dtypes of floats")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=A,B",
        help="two values of a setting, such as NOOPT=0,1; can be repeated",
    )
    parser.add_argument(
        "--bound",
        type=float,
        default=1e-3,
        help="of the greatest difference, over the greatest magnitude of a tensor (0.001)",
    )
    parser.add_argument("file", help="a Python program that uses Weft")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")


def run(options: argparse.Namespace) -> int:
    """0 where all tensors agree, 1 where one does not."""
    from weft.viz.diff import diff_program

    pairs = list(options.set)
    pairs += [f"DEVICE={options.devices}"] if options.devices else []
    pairs += [f"DEFAULT_FLOAT={options.dtypes}"] if options.dtypes else []
    if not pairs:
        raise ArgumentError(
            "diff: the two runs are the same", fix="name a pair: weft diff --devices CPU,PYTHON"
        )
    left, right = {}, {}
    for text in pairs:
        variable, one, other = _pair(text)
        left[variable], right[variable] = one, other
    names = [" ".join(f"{name}={value}" for name, value in side.items()) for side in (left, right)]
    outcome = diff_program([options.file, *options.arguments], left, right, options.bound)
    return _report(outcome, names, options.bound)


def _pair(text: str) -> tuple[str, str, str]:
    """The variable of a setting and its two values."""
    name, _, values = text.partition("=")
    first, comma, second = values.partition(",")
    if not comma or not first or not second:
        raise ArgumentError(
            f"diff: expected two values, got {text!r}", fix="write NAME=A,B, as in NOOPT=0,1"
        )
    by_variable = {row.variable: row for row in ROWS.values()}
    row = ROWS.get(name) or by_variable.get(name)
    if row is None:
        near = nearest(name, ROWS)
        raise UnknownName(
            f"diff: no setting is called {name}", fix=f"the nearest one is {near}" if near else ""
        )
    return row.variable, first, second


def _report(outcome: Outcome, names: list[str], bound: float) -> int:
    found = outcome.found
    if found is None:
        print(f"{outcome.tensors} tensors agree within {bound:g}: {names[0]} and {names[1]}")
        return 0
    of = f" of {found.line}" if found.line else ""
    print(f"{found.what} differs: {found.dtype} {list(found.shape)}{of}")
    _print_text(found.text)
    if found.reason:
        print(f"  the programs part: {found.reason}")
        return 1
    shown = outcome.inside or found
    if outcome.inside is not None and outcome.inside.line != found.line:
        print(f"it begins at {shown.line}, {shown.dtype} {list(shown.shape)}")
        _print_text(shown.text)
    elif outcome.inside is None and found.is_of_a_call:
        print("each of its lines agrees, run by itself from the same values: the jitted program")
        print("rounds otherwise, or is wrong; CHECK=jit compares it with its lines")
    width = max(map(len, names))
    for name, value in zip(names, shown.values, strict=True):
        print(f"  {name:{width}}  {value:.9g} at {list(shown.at)}")
    print(f"  off by {shown.error:.3g} of the greatest magnitude; the bound is {bound:g}")
    return 1


def _print_text(text: str) -> None:
    for line in text.splitlines():
        print(f"    {line}")
