"""`weft convert MODEL OUT`: a GGUF file with other types of weights, or safetensors."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="a GGUF file")
    parser.add_argument("out", help="the file to write: .gguf or .safetensors")
    parser.add_argument(
        "--type",
        default="Q8_0",
        help="of the weights: F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, TQ1_0, TQ2_0 or MXFP4",
    )


def run(options: argparse.Namespace) -> int:
    from weft.llm.weights.convert import convert

    def show(name: str, number: int, count: int) -> None:
        end = "\n" if number == count else ""
        print(f"\r{number}/{count} {name:40.40}", end=end, file=sys.stderr, flush=True)

    progress = show if sys.stderr.isatty() else None
    convert(options.model, options.out, options.type, progress)
    print(f"{options.out}: {Path(options.out).stat().st_size / 1e6:.1f} MB")
    return 0
