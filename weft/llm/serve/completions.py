"""`/v1/completions`: texts or tokens go on, without a conversation."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response

from weft.llm.engine.request import Answer, Piece, Request
from weft.llm.serve.fields import Fields, Refused
from weft.llm.serve.options import options_of
from weft.llm.serve.server_events import event_stream
from weft.llm.serve.service import Service, collected, ended, events, usage
from weft.support.errors import ArgumentError


async def completions(service: Service, http: HttpRequest) -> Response:
    fields = await service.fields(http)
    fields.require_absent("suffix")
    prompts = inputs_of(service, fields, "prompt")
    likeliest = fields.whole("logprobs", -1, 0, 20)
    logprobs = -1 if likeliest is None else likeliest
    options = options_of(fields, service.limits.choices, 16, logprobs)
    best = fields.whole("best_of", options.count, 1, service.limits.choices)
    if best != options.count:
        raise Refused("best_of is n: choices are not compared", field="best_of")
    masks = await asyncio.to_thread(service.grammars.of, fields)
    requests = [
        Request(
            prompt=tuple(prompt),
            most=options.most,
            sampling=options.sampling_of(choice),
            stops=options.stops,
            masks=masks,
            client=service.client(http, fields),
        )
        for prompt in prompts
        for choice in range(options.count)
    ]
    answers = service.submit(requests)
    reply = Reply(service, prompts, options.count, fields.flag("echo"), logprobs >= 0)
    if options.is_streamed:
        return event_stream(reply.chunks(answers, options.with_usage))
    pieces = await collected(http, answers)
    if pieces is None:
        return Response(status_code=499)
    return JSONResponse(reply.whole(answers, pieces))


def inputs_of(service: Service, fields: Fields, name: str) -> list[list[int]]:
    """Texts, or lists of tokens, as tokens: one, or a list of them."""
    value = fields.get(name)
    is_one = isinstance(value, str) or (
        isinstance(value, list) and bool(value) and all(type(each) is int for each in value)
    )
    listed = [value] if is_one else value
    if not isinstance(listed, list) or not 0 < len(listed) <= service.limits.inputs:
        raise Refused(
            f"{name} is a text or tokens, or a list of at most {service.limits.inputs} of them",
            field=name,
        )
    found = []
    for each in listed:
        if isinstance(each, str):
            found.append(service.tokenizer.encode(each))
            continue
        try:
            service.tokenizer.require_tokens(each)
        except (ArgumentError, TypeError):
            raise Refused(f"{name} has texts, or tokens of the vocabulary", field=name) from None
        found.append(list(each))
    if not all(found):
        raise Refused(f"{name} has an empty text", field=name)
    return found


class Reply:
    """What is sent of answers, whole or in chunks."""

    def __init__(
        self,
        service: Service,
        prompts: list[list[int]],
        count: int,
        is_echoed: bool,
        has_logprobs: bool,
    ) -> None:
        self.lengths = [0] * (len(prompts) * count)  # of the texts that were sent
        self.service = service
        self.prompts = prompts
        self.count = count
        self.is_echoed = is_echoed
        self.has_logprobs = has_logprobs
        self.head = {
            "id": "cmpl-" + secrets.token_hex(12),
            "object": "text_completion",
            "created": int(time.time()),
            "model": service.name,
        }

    def whole(self, answers: Sequence[Answer], pieces: list[list[Piece]]) -> dict[str, Any]:
        choices = []
        for index, (answer, made) in enumerate(zip(answers, pieces, strict=True)):
            text = self._echo(index) + "".join(piece.text for piece in made)
            choices.append(self._choice(index, text, ended(answer), made))
        return {**self.head, "choices": choices, "usage": self._usage(answers)}

    async def chunks(
        self, answers: Sequence[Answer], with_usage: bool
    ) -> AsyncIterator[dict[str, Any]]:
        if self.is_echoed:
            for index in range(len(answers)):
                yield {**self.head, "choices": [self._choice(index, self._echo(index), None, [])]}
        async for index, piece in events(answers):
            reason = ended(answers[index]) if piece is None else None
            made = [] if piece is None else [piece]
            if piece is None or piece.text or self.has_logprobs:
                text = "" if piece is None else piece.text
                yield {**self.head, "choices": [self._choice(index, text, reason, made)]}
        if with_usage:
            yield {**self.head, "choices": [], "usage": self._usage(answers)}

    def _usage(self, answers: Sequence[Answer]) -> dict[str, Any]:
        return usage(answers, [len(prompt) for prompt in self.prompts])

    def _echo(self, index: int) -> str:
        prompt = self.prompts[index // self.count]
        return self.service.tokenizer.decode(prompt) if self.is_echoed else ""

    def _choice(
        self, index: int, text: str, reason: str | None, pieces: list[Piece]
    ) -> dict[str, Any]:
        begin = self.lengths[index] + len(text) - sum(len(piece.text) for piece in pieces)
        self.lengths[index] += len(text)
        logs = self._logs(pieces, begin) if self.has_logprobs else None
        return {"index": index, "text": text, "finish_reason": reason, "logprobs": logs}

    def _logs(self, pieces: list[Piece], begin: int) -> dict[str, Any]:
        """What is known of tokens whose text begins so many characters from the start."""
        drawn = [piece for piece in pieces if piece.token >= 0]
        offsets = []
        for piece in drawn:
            offsets.append(begin)
            begin += len(piece.text)
        return {
            "text_offset": offsets,
            "tokens": [self._name(piece.token) for piece in drawn],
            "token_logprobs": [max(piece.logprob, -9999.0) for piece in drawn],
            "top_logprobs": [
                {self._name(token): max(log, -9999.0) for token, log in piece.top}
                for piece in drawn
            ],
        }

    def _name(self, token: int) -> str:
        token_bytes = self.service.tokenizer.token_bytes
        return token_bytes[token].decode("utf-8", "replace") if token < len(token_bytes) else ""
