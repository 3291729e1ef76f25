"""What the commands of language models share: the model's options, and how it is loaded."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from weft.cli.terminal import positive

if TYPE_CHECKING:
    from weft.ir.dtypes import DType
    from weft.llm import Model
    from weft.llm.engine.speculate import Proposer
    from weft.llm.text.tokenizer import TextTokenizer


def add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", help="a GGUF file, or a folder of Hugging Face files")
    parser.add_argument(
        "--context", type=positive, default=0, help="limit the positions of a sequence"
    )


def load_model(options: argparse.Namespace) -> tuple[Model, TextTokenizer]:
    """The model and its tokenizer, with a line of progress on a terminal."""
    from weft.llm import load
    from weft.llm.text import tokenizer_of

    model = load(options.model, options.context, progress=_progress())
    return model, tokenizer_of(model)


CACHE_TYPES = {"f32": "float32", "f16": "float16", "bf16": "bfloat16", "fp8": "fp8e4m3"}


def add_cache(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--cache-type",
        default="f32",
        choices=list(CACHE_TYPES),
        help="how keys and values are stored; fp8 takes a quarter of the memory and costs quality",
    )


def cache_dtype(options: argparse.Namespace) -> DType:
    """The type of keys and values."""
    from weft.ir.dtypes import dtypes

    found: DType = getattr(dtypes, CACHE_TYPES[options.cache_type])
    return found


def add_speculation(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--ngram", action="store_true", help="speculate by repeated text")
    parser.add_argument("--draft", default="", help="speculate by a smaller model, a file")


def proposer_of(options: argparse.Namespace, model: Model, streams: int) -> Proposer | None:
    """What proposes tokens, if anything does."""
    from weft.llm import load
    from weft.llm.engine.draft import DraftProposer
    from weft.llm.engine.speculate import NgramProposer

    if options.draft:
        draft = load(options.draft, options.context)
        return DraftProposer(draft, model, streams=streams)
    return NgramProposer() if options.ngram else None


def model_name(options: argparse.Namespace) -> str:
    return Path(options.model).resolve().name.removesuffix(".gguf")


def _progress() -> Callable[[int, int], None] | None:
    if not sys.stderr.isatty():
        return None

    def show(done: int, total: int) -> None:
        end = "\n" if done >= total else ""
        line = f"\rloading {done / max(total, 1):4.0%} of {total / 1e9:.2f} GB"
        print(line, end=end, file=sys.stderr, flush=True)

    return show
