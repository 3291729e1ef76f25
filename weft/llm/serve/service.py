"""What all handlers share: the engine, its words, its limits, and streams on the event loop."""

from __future__ import annotations

import asyncio
import hmac
import json
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request as HttpRequest

from weft.llm.engine.engine import Engine
from weft.llm.engine.request import Answer, Piece, Request
from weft.llm.serve.fields import Fields, Refused
from weft.llm.serve.options import Grammars
from weft.llm.text.chat_template import ChatTemplate, chat_template
from weft.llm.text.tokenizer import TextTokenizer
from weft.support.errors import ArgumentError, Busy


@dataclass(frozen=True)
class Limits:
    """What one request may ask for."""

    body: int = 8 << 20  # bytes
    choices: int = 16
    inputs: int = 256  # texts of one request
    default_most: int = 0  # tokens of an answer where none are stated; 0 is as many as fit


@dataclass
class Service:
    """A model that is served under a name."""

    engine: Engine
    tokenizer: TextTokenizer
    name: str
    key: str = ""
    limits: Limits = field(default_factory=Limits)
    started: float = field(default_factory=time.time)

    def __post_init__(self) -> None:
        self.template: ChatTemplate = chat_template(self.tokenizer)
        self.grammars = Grammars(self.tokenizer)

    async def fields(self, http: HttpRequest) -> Fields:
        """The body of a request to the model."""
        self.require_key(http)
        data = bytearray()
        async for part in http.stream():
            data += part
            if len(data) > self.limits.body:
                raise Refused(f"a body has at most {self.limits.body} bytes", status=413)
        try:
            body = json.loads(data)
        except (ValueError, RecursionError):
            raise Refused("the body is not valid JSON") from None
        _require_text(body)
        if not isinstance(body, dict):
            raise Refused("the body is a JSON object")
        fields = Fields(body)
        named = fields.text("model", self.name)
        if named not in (self.name, ""):
            raise Refused(
                f"there is no model {named[:100]!r}; this is {self.name!r}",
                status=404,
                field="model",
                code="model_not_found",
            )
        return fields

    def require_key(self, http: HttpRequest) -> None:
        if not self.key:
            return
        stated = http.headers.get("authorization", "").removeprefix("Bearer ")
        if not hmac.compare_digest(stated.encode(), self.key.encode()):
            raise Refused("the API key is wrong or missing", status=401, code="invalid_api_key")

    def submit(self, requests: Sequence[Request]) -> list[Answer]:
        """Begin answers, all or none."""
        answers: list[Answer] = []
        try:
            for request in requests:
                answers.append(self.engine.submit(request))
        except (ArgumentError, Busy) as failure:
            for answer in answers:
                answer.cancel()
            if isinstance(failure, Busy):
                raise Refused("the server is busy; try again later", status=429) from None
            code = "context_length_exceeded" if "prompt of" in failure.what else None
            message = f"{failure.what}: {failure.rule}"
            raise Refused(message, field="prompt", code=code) from None
        return answers

    def client(self, http: HttpRequest, fields: Fields) -> str:
        """Whom the engine is fair to: a stated user, or the host that asks."""
        return fields.text("user") or (http.client.host if http.client else "")


async def events(answers: Sequence[Answer]) -> AsyncIterator[tuple[int, Piece | None]]:
    """Pieces of several answers with their numbers, as they come; None is an end.

    Whoever stops listening cancels what is left.
    """
    loop, changed = asyncio.get_running_loop(), asyncio.Event()

    def wake() -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(changed.set)

    for answer in answers:
        answer.listen(wake)
    open_ones = dict(enumerate(answers))
    try:
        while open_ones:
            changed.clear()
            for number, answer in list(open_ones.items()):
                is_over = answer.ending is not None
                for piece in answer.take():
                    yield number, piece
                if is_over:
                    del open_ones[number]
                    yield number, None
            if open_ones:
                await changed.wait()
    finally:
        for answer in open_ones.values():
            answer.cancel()


async def collected(http: HttpRequest, answers: Sequence[Answer]) -> list[list[Piece]] | None:
    """All pieces of all answers; None if the client went away, which cancels them."""

    async def gather() -> list[list[Piece]]:
        found: list[list[Piece]] = [[] for _ in answers]
        async for number, piece in events(answers):
            if piece is not None:
                found[number].append(piece)
        return found

    async def gone() -> None:
        while (await http.receive())["type"] != "http.disconnect":
            pass

    work, watch = asyncio.create_task(gather()), asyncio.create_task(gone())
    try:
        await asyncio.wait({work, watch}, return_when=asyncio.FIRST_COMPLETED)
        return work.result() if work.done() else None
    finally:
        for task in (work, watch):
            task.cancel()
        await asyncio.gather(work, watch, return_exceptions=True)
        for answer in answers:
            answer.cancel()


def ended(answer: Answer) -> str:
    """Why an answer ended, in the words of the interface; an error of ours is raised."""
    if answer.ending == "error":
        failure = answer.failure
        if isinstance(failure, ArgumentError):
            raise Refused(failure.what)
        raise Refused("the model failed to answer", status=500)
    if answer.ending == "cancelled":
        raise Refused("the server is shutting down", status=503)
    return "length" if answer.ending == "length" else "stop"


def usage(answers: Sequence[Answer], prompts: Sequence[int]) -> dict[str, Any]:
    made = sum(len(answer.tokens) for answer in answers)
    return {
        "prompt_tokens": sum(prompts),
        "completion_tokens": made,
        "total_tokens": sum(prompts) + made,
        "prompt_tokens_details": {"cached_tokens": answers[0].reused_tokens if answers else 0},
    }


def _require_text(body: Any) -> None:
    """JSON may spell half of a character, which is not text: nothing can encode it."""
    try:
        json.dumps(body, ensure_ascii=False).encode()
    except (UnicodeEncodeError, RecursionError):
        raise Refused("the body has text that is not valid Unicode") from None
