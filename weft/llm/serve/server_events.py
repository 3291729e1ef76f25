"""Streams of JSON as server-sent events, with an end that says why it came."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from starlette.responses import StreamingResponse

from weft.llm.serve.fields import Refused


def event_stream(chunks: AsyncIterator[dict[str, Any]]) -> StreamingResponse:
    """A response of events; a failure on the way is the last of them."""

    async def lines() -> AsyncIterator[str]:
        try:
            async for chunk in chunks:
                yield f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n"
        except Refused as refused:
            yield f"data: {json.dumps(refused.body())}\n\n"
            return
        finally:
            await chunks.aclose()  # type: ignore[attr-defined]
        yield "data: [DONE]\n\n"

    headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
    return StreamingResponse(lines(), media_type="text/event-stream", headers=headers)
