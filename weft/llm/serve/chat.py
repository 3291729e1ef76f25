"""`/v1/chat/completions`: a conversation goes on, with tools, formats, choices and streams."""

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
from weft.llm.serve.tools import Tools, calls_in, instructions, may_begin_call, tools_of
from weft.support.errors import ArgumentError

ROLES = ("system", "developer", "user", "assistant", "tool", "function")


async def chat_completions(service: Service, http: HttpRequest) -> Response:
    fields = await service.fields(http)
    fields.require_absent("functions", "audio", "modalities", "prediction")
    tools = tools_of(fields)
    prompt = prompt_of(service, messages_of(fields), tools)
    logprobs = -1
    if fields.flag("logprobs"):
        logprobs = fields.whole("top_logprobs", 0, 0, 20) or 0
    limits = service.limits
    options = options_of(fields, limits.choices, limits.default_most, logprobs)
    if tools.schema is None:
        masks = await asyncio.to_thread(service.grammars.of, fields)
    else:
        masks = await asyncio.to_thread(service.grammars.of_schema, tools.schema, "tools")
    answers = service.submit(
        [
            Request(
                prompt=tuple(prompt),
                most=options.most,
                sampling=options.sampling_of(choice),
                stops=options.stops,
                masks=masks,
                client=service.client(http, fields),
            )
            for choice in range(options.count)
        ]
    )
    reply = ChatReply(service, tools, len(prompt), has_logprobs=logprobs >= 0)
    if options.is_streamed:
        return event_stream(reply.chunks(answers, options.with_usage))
    pieces = await collected(http, answers)
    if pieces is None:
        return Response(status_code=499)
    return JSONResponse(reply.whole(answers, pieces))


def messages_of(fields: Fields) -> list[dict[str, Any]]:
    """The messages of a body, with text as content."""
    listed = fields.items("messages")
    if not listed:
        raise Refused("messages has at least one message", field="messages")
    found = []
    for message in listed:
        if not isinstance(message, dict) or message.get("role") not in ROLES:
            raise Refused("a message has a role: " + ", ".join(ROLES), field="messages")
        role = "system" if message["role"] == "developer" else message["role"]
        found.append({**message, "role": role, "content": _content(message)})
    return found


def _content(message: dict[str, Any]) -> str:
    content = message.get("content")
    if content is None and message["role"] == "assistant":
        return ""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [None]
    texts = [part.get("text") if isinstance(part, dict) else None for part in parts]
    if not all(isinstance(text, str) for text in texts):
        raise Refused("the content of a message is text", field="messages")
    return "".join(str(text) for text in texts)


def prompt_of(service: Service, messages: list[dict[str, Any]], tools: Tools) -> list[int]:
    """The tokens of a conversation, up to where the answer begins."""
    template = service.template
    if tools.listed and not template.has_tools:
        messages = [{"role": "system", "content": instructions(tools)}, *messages]
        if len(messages) > 1 and messages[1]["role"] == "system":
            both = messages[1]["content"] + "\n\n" + messages[0]["content"]
            messages = [{"role": "system", "content": both}, *messages[2:]]
    try:
        text = template.render(messages, tools=tools.listed or None)
    except ArgumentError as failure:
        raise Refused(failure.what, field="messages") from None
    return service.tokenizer.encode(text)


class ChatReply:
    """What is sent of answers, whole or in chunks."""

    def __init__(
        self, service: Service, tools: Tools, prompt_tokens: int, has_logprobs: bool
    ) -> None:
        self.service = service
        self.tools = tools
        self.prompt_tokens = prompt_tokens
        self.has_logprobs = has_logprobs
        self.head = {
            "id": "chatcmpl-" + secrets.token_hex(12),
            "created": int(time.time()),
            "model": service.name,
        }

    def whole(self, answers: Sequence[Answer], pieces: list[list[Piece]]) -> dict[str, Any]:
        choices = []
        for index, (answer, made) in enumerate(zip(answers, pieces, strict=True)):
            reason, text = ended(answer), "".join(piece.text for piece in made)
            message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
            calls = calls_in(text, self.tools) if self.tools.listed else []
            if calls:
                message |= {"content": None, "tool_calls": calls}
                reason = "tool_calls"
            choices.append(
                {
                    "index": index,
                    "message": message,
                    "finish_reason": reason,
                    "logprobs": {"content": self._logs(made)} if self.has_logprobs else None,
                }
            )
        counts = usage(answers, [self.prompt_tokens])
        return {**self.head, "object": "chat.completion", "choices": choices, "usage": counts}

    async def chunks(
        self, answers: Sequence[Answer], with_usage: bool
    ) -> AsyncIterator[dict[str, Any]]:
        held = dict.fromkeys(range(len(answers)), "")
        is_holding = dict.fromkeys(range(len(answers)), bool(self.tools.listed))
        for index in held:
            yield self._chunk(index, {"role": "assistant", "content": ""})
        async for index, piece in events(answers):
            if piece is None:
                for delta, reason in self._last(held[index], answers[index]):
                    yield self._chunk(index, delta, reason)
                continue
            text = held[index] + piece.text
            is_holding[index] = is_holding[index] and may_begin_call(text)
            held[index] = text if is_holding[index] else ""
            if is_holding[index] or not (text or self.has_logprobs):
                continue
            yield self._chunk(index, {"content": text}, None, piece)
        if with_usage:
            counts = usage(answers, [self.prompt_tokens])
            head = {**self.head, "object": "chat.completion.chunk"}
            yield {**head, "choices": [], "usage": counts}

    def _last(self, held: str, answer: Answer) -> list[tuple[dict[str, Any], str | None]]:
        reason = ended(answer)
        calls = calls_in(held, self.tools) if held else []
        if calls:
            numbered = [{"index": n, **call} for n, call in enumerate(calls)]
            return [({"tool_calls": numbered}, None), ({}, "tool_calls")]
        return [*([({"content": held}, None)] if held else []), ({}, reason)]

    def _chunk(
        self, index: int, delta: dict[str, Any], reason: str | None = None, piece: Any = None
    ) -> dict[str, Any]:
        choice: dict[str, Any] = {"index": index, "delta": delta, "finish_reason": reason}
        if self.has_logprobs and piece is not None:
            choice["logprobs"] = {"content": self._logs([piece])}
        return {**self.head, "object": "chat.completion.chunk", "choices": [choice]}

    def _logs(self, pieces: Sequence[Piece]) -> list[dict[str, Any]]:
        return [
            {
                **self._log(piece.token, piece.logprob),
                "top_logprobs": [self._log(*each) for each in piece.top],
            }
            for piece in pieces
            if piece.token >= 0
        ]

    def _log(self, token: int, logprob: float) -> dict[str, Any]:
        token_bytes = self.service.tokenizer.token_bytes
        data = token_bytes[token] if token < len(token_bytes) else b""
        text = data.decode("utf-8", "replace")
        return {"token": text, "logprob": max(logprob, -9999.0), "bytes": list(data)}
