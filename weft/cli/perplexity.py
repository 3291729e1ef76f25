"""`weft perplexity MODEL FILE`: how well a model predicts a text."""

from __future__ import annotations

import argparse
from pathlib import Path

from weft.cli.model_options import add_model, load_model
from weft.cli.terminal import positive
from weft.support.errors import MissingFile


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument("file", help="a text in UTF-8")
    parser.add_argument("--piece", type=positive, default=512, help="tokens that are read at once")
    parser.add_argument("--pieces", type=positive, default=0, help="how many; by default all")


def run(options: argparse.Namespace) -> int:
    from weft.llm.engine.perplexity import perplexity

    path = Path(options.file)
    if not path.is_file():
        raise MissingFile(f"perplexity: there is no file {options.file}")
    model, tokenizer = load_model(options)
    tokens = tokenizer.encode(path.read_text(encoding="utf-8", errors="replace"))
    if options.pieces:
        tokens = tokens[: options.pieces * options.piece]
    begin = tokenizer.marks.begin if tokenizer.marks.begins_text else None
    for number, found in enumerate(perplexity(model, tokens, options.piece, begin), 1):
        line = f"{number}: perplexity {found.value:.4f} +/- {found.error:.4f}"
        print(f"{line}, {found.tokens} tokens", flush=True)
    return 0
