"""`weft serve MODEL`: OpenAI's HTTP interface and a chat page, from a model file."""

from __future__ import annotations

import argparse
import os

from weft.cli.model_options import (
    add_cache,
    add_model,
    add_speculation,
    cache_dtype,
    load_model,
    model_name,
    proposer_of,
)
from weft.cli.terminal import positive


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on")
    parser.add_argument("--port", type=positive, default=8080)
    parser.add_argument("--name", default="", help="the name of the model; by default the file's")
    parser.add_argument("--streams", type=positive, default=16, help="answers at once")
    parser.add_argument("--waiting", type=positive, default=64, help="requests that may wait")
    parser.add_argument("--tokens", type=positive, default=0, help="room of the cache, in tokens")
    parser.add_argument(
        "--most", type=positive, default=0, help="tokens of an answer that states no limit"
    )
    add_cache(parser)
    add_speculation(parser)
    parser.add_argument(
        "--api-key",
        default=os.environ.get("WEFT_API_KEY", ""),
        help="what clients must send; WEFT_API_KEY is the default",
    )


def run(options: argparse.Namespace) -> int:
    from weft.llm import Engine
    from weft.llm.serve.run import serve

    model, tokenizer = load_model(options)
    engine = Engine(
        model,
        tokenizer,
        streams=options.streams,
        waiting=options.waiting,
        tokens=options.tokens,
        dtype=cache_dtype(options),
        proposer=proposer_of(options, model, options.streams),
    )
    name = options.name or model_name(options)
    print(f"{name}: http://{options.host}:{options.port}/ (chat), /v1 (OpenAI)", flush=True)
    serve(
        engine,
        name,
        host=options.host,
        port=options.port,
        key=options.api_key,
        default_most=options.most,
    )
    return 0
