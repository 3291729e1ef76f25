"""A server that runs until it is told to stop: running answers are finished, new ones refused."""

from __future__ import annotations

from typing import Any

from weft.llm.engine.engine import Engine
from weft.support.errors import NotSupported


def serve(engine: Engine, name: str, **options: Any) -> None:
    """Serve an engine; options are `host`, `port`, `key`, `default_most` and `patience`."""
    try:
        import starlette  # noqa: F401
        import uvicorn
    except ImportError:
        raise NotSupported(
            "serve: the packages starlette and uvicorn are not installed",
            fix='install them: pip install "weft[serve,llm]"',
        ) from None
    from weft.llm.serve.app import make_app
    from weft.llm.serve.service import Limits, Service

    assert engine.tokenizer is not None
    limits = Limits(default_most=options.get("default_most", 0))
    service = Service(engine, engine.tokenizer, name, options.get("key", ""), limits)
    uvicorn.run(
        make_app(service),
        host=options.get("host", "127.0.0.1"),
        port=options.get("port", 8080),
        log_level="warning",
        timeout_graceful_shutdown=options.get("patience", 30),
    )
