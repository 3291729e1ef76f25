"""One caller's view of an engine: a text in, a text out.

    tokenizer = tokenizer_of(model)
    print(generate(model, "Once upon a time", tokenizer=tokenizer, most=50).text)

Each call makes an engine of one stream, which reads and decodes on the thread of the caller. Who
asks often makes an `Engine` and keeps it: what was read before is then not read again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from weft.llm.engine.engine import Engine
from weft.llm.engine.request import Answer, Ending, Piece, Request
from weft.llm.generate.sampling import Sampling
from weft.llm.model.transformer import Model
from weft.llm.text.tokenizer import TextTokenizer
from weft.support.errors import ArgumentError


@dataclass(frozen=True)
class Generated:
    """A whole answer."""

    text: str
    tokens: list[int]
    ending: Ending | None
    pieces: list[Piece]


def generate(
    model: Model | Engine,
    prompt: str | Iterable[int],
    sampling: Sampling | None = None,
    *,
    tokenizer: TextTokenizer | None = None,
    **options: Any,
) -> Generated:
    """The answer to a prompt; options are those of `Request`."""
    answer = _submitted(model, prompt, sampling, tokenizer, options)
    pieces = list(answer)
    text = "".join(piece.text for piece in pieces)
    return Generated(text, answer.tokens, answer.ending, pieces)


def stream(
    model: Model | Engine,
    prompt: str | Iterable[int],
    sampling: Sampling | None = None,
    *,
    tokenizer: TextTokenizer | None = None,
    **options: Any,
) -> Iterator[Piece]:
    """The pieces of an answer as they come; closing the iterator cancels the rest."""
    answer = _submitted(model, prompt, sampling, tokenizer, options)
    try:
        yield from answer
    finally:
        answer.cancel()


def _submitted(
    model: Model | Engine,
    prompt: str | Iterable[int],
    sampling: Sampling | None,
    tokenizer: TextTokenizer | None,
    options: dict[str, Any],
) -> Answer:
    engine = model if isinstance(model, Engine) else Engine(model, tokenizer, streams=1)
    if isinstance(prompt, str):
        if engine.tokenizer is None:
            raise ArgumentError("generate: a text needs a tokenizer", fix="pass tokenizer=")
        prompt = engine.tokenizer.encode(prompt)
    request = Request(tuple(prompt), sampling=sampling or Sampling(), **options)
    return engine.submit(request)
