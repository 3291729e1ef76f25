"""The routes of the server, and how every failure becomes an answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from weft.llm.serve.chat import chat_completions
from weft.llm.serve.completions import completions
from weft.llm.serve.embeddings import embeddings
from weft.llm.serve.fields import Refused
from weft.llm.serve.metrics import metrics_text
from weft.llm.serve.service import Service

Handler = Callable[[Service, Request], Awaitable[Response]]
# The page has everything in it and speaks to this server alone.
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'"
)


def make_app(service: Service) -> Starlette:
    """The application; the engine runs while it does."""

    def bound(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
        async def handle(request: Request) -> Response:
            return await handler(service, request)

        return handle

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        service.engine.start()
        try:
            yield
        finally:
            service.engine.close()

    routes = [
        Route("/", bound(_page)),
        Route("/health", bound(_health)),
        Route("/metrics", bound(_metrics)),
        Route("/v1/models", bound(_models)),
        Route("/v1/models/{name:path}", bound(_model)),
        Route("/v1/chat/completions", bound(chat_completions), methods=["POST"]),
        Route("/v1/completions", bound(completions), methods=["POST"]),
        Route("/v1/embeddings", bound(embeddings), methods=["POST"]),
    ]
    handlers: dict[Any, Any] = {
        Refused: _refused,
        HTTPException: _http_error,
        ClientDisconnect: _gone,
        Exception: _failed,
    }
    return Starlette(routes=routes, lifespan=lifespan, exception_handlers=handlers)


async def _page(service: Service, request: Request) -> Response:
    text = files("weft.llm.serve").joinpath("page.html").read_text(encoding="utf-8")
    return HTMLResponse(text, headers={"Content-Security-Policy": _POLICY})


async def _health(service: Service, request: Request) -> Response:
    engine = service.engine
    if engine.is_closed:
        return JSONResponse({"status": "closing"}, status_code=503)
    return JSONResponse({"status": "ok", "active": engine.active, "waiting": engine.queued})


async def _metrics(service: Service, request: Request) -> Response:
    service.require_key(request)
    return PlainTextResponse(metrics_text(service.engine), media_type="text/plain; version=0.0.4")


async def _models(service: Service, request: Request) -> Response:
    service.require_key(request)
    return JSONResponse({"object": "list", "data": [_described(service)]})


async def _model(service: Service, request: Request) -> Response:
    service.require_key(request)
    if request.path_params["name"] != service.name:
        raise Refused("there is no such model", status=404, code="model_not_found")
    return JSONResponse(_described(service))


def _described(service: Service) -> dict[str, Any]:
    return {
        "id": service.name,
        "object": "model",
        "created": int(service.started),
        "owned_by": "weft",
        "context_length": min(service.engine.model.config.context, service.engine.room),
    }


async def _refused(request: Request, refused: Refused) -> Response:
    headers = {"Retry-After": "1"} if refused.status == 429 else None
    return JSONResponse(refused.body(), status_code=refused.status, headers=headers)


async def _http_error(request: Request, error: HTTPException) -> Response:
    refused = Refused(str(error.detail), status=error.status_code)
    return JSONResponse(refused.body(), status_code=error.status_code, headers=error.headers)


async def _gone(request: Request, error: ClientDisconnect) -> Response:
    return Response(status_code=499)


async def _failed(request: Request, error: Exception) -> Response:
    return JSONResponse(Refused("the server failed", status=500).body(), status_code=500)
