"""`/v1/embeddings`: texts as vectors."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response

from weft.llm.engine.embed import embed
from weft.llm.serve.completions import inputs_of
from weft.llm.serve.fields import Refused
from weft.llm.serve.service import Service
from weft.support.errors import ArgumentError, OutOfMemory


async def embeddings(service: Service, http: HttpRequest) -> Response:
    fields = await service.fields(http)
    inputs = inputs_of(service, fields, "input")
    width = service.engine.model.config.width
    size = fields.whole("dimensions", width, 1, width) or width
    form = fields.text("encoding_format", "float")
    if form not in ("float", "base64"):
        raise Refused("encoding_format is float or base64", field="encoding_format")
    try:
        rows = await asyncio.to_thread(embed, service.engine, inputs, size)
    except (ArgumentError, OutOfMemory) as failure:
        status = 429 if isinstance(failure, OutOfMemory) else 400
        raise Refused(failure.what, status=status, field="input") from None
    count = sum(map(len, inputs))
    data = [
        {"object": "embedding", "index": index, "embedding": _encoded(row, form)}
        for index, row in enumerate(rows)
    ]
    counts = {"prompt_tokens": count, "total_tokens": count}
    body = {"object": "list", "model": service.name, "data": data, "usage": counts}
    return JSONResponse(body)


def _encoded(row: Any, form: str) -> Any:
    return row.tolist() if form == "float" else base64.b64encode(row.tobytes()).decode()
