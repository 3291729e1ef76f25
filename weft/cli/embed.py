"""`weft embed MODEL [TEXT ...]`: texts as vectors, a line of JSON for each."""

from __future__ import annotations

import argparse
import json
import sys

from weft.cli.model_options import add_model, load_model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument(
        "text", nargs="*", help="texts; without any, each line of the input is one"
    )
    parser.add_argument(
        "--similar", action="store_true", help="print how alike the texts are, not the vectors"
    )


def run(options: argparse.Namespace) -> int:
    from weft.llm import Engine
    from weft.llm.engine.embed import embed

    texts = options.text or [line.rstrip("\n") for line in sys.stdin if line.strip()]
    model, tokenizer = load_model(options)
    engine = Engine(model, tokenizer, streams=1)
    rows = embed(engine, [tokenizer.encode(text) for text in texts])
    if options.similar:
        for row in rows @ rows.T:
            print("  ".join(f"{value:6.3f}" for value in row))
        return 0
    for row in rows:
        print(json.dumps([round(float(value), 7) for value in row]))
    return 0
