"""`weft onnx info FILE`: what a model file needs, and whether Weft can run it."""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    info = commands.add_parser(
        "info", help="operators, opsets, shapes, cost, and what is not supported"
    )
    info.add_argument("file", help="an ONNX file")


def run(options: argparse.Namespace) -> int:
    """Print what the model is; 1 where an operator is not supported."""
    from weft.onnx.model_info import info, report

    found = info(options.file)
    print(report(found))
    return 1 if found.unsupported else 0
