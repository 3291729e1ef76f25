"""`weft onnx info FILE`: what a model file needs, and whether Weft can run it."""

from __future__ import annotations

import argparse

from weft.support.errors import ArgumentError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    info = commands.add_parser(
        "info", help="operators, opsets, shapes, cost, and what is not supported"
    )
    info.add_argument("file", help="an ONNX file")
    info.add_argument(
        "--size",
        action="append",
        default=[],
        metavar="NAME=N",
        help="a named size that the cost is counted with (1)",
    )


def run(options: argparse.Namespace) -> int:
    """Print what the model is; 1 where an operator is not supported."""
    from weft.onnx.model_info import info, report

    found = info(options.file, dict(map(_size, options.size)))
    print(report(found))
    return 1 if found.unsupported else 0


def _size(text: str) -> tuple[str, int]:
    name, _, number = text.rpartition("=")
    if not name or not number.isdecimal():
        raise ArgumentError(f"onnx info: --size {text}", rule="a size is given as NAME=N")
    return name, int(number)
