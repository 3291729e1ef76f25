"""`weft bench-llm MODEL`: how fast a model reads prompts and writes, alone and in a batch."""

from __future__ import annotations

import argparse
import time

from weft.cli.model_options import add_model, load_model, model_name
from weft.cli.terminal import positive


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument("--prompt", type=positive, default=512, help="tokens of the prompt")
    parser.add_argument("--count", type=positive, default=64, help="tokens that are written")
    parser.add_argument("--streams", type=positive, default=1, help="answers at once")
    parser.add_argument("--repeat", type=positive, default=3, help="runs; the best is printed")
    parser.add_argument("--cpu", action="store_true", help="time of the processor, not the clock")


def run(options: argparse.Namespace) -> int:
    import numpy as np

    from weft.llm import Engine, Request

    model, _ = load_model(options)
    room = options.streams * (options.prompt + options.count + 32)
    engine = Engine(model, streams=options.streams, tokens=room)
    tokens = np.random.default_rng(0).integers(0, model.vocabulary, options.prompt).tolist()
    now = time.process_time if options.cpu else time.perf_counter
    best_read = best_write = 0.0
    for _ in range(options.repeat + 1):  # the first run compiles
        engine.forget()
        begin = now()
        requests = [
            Request((n, *tokens[1:]), options.count, ends=frozenset())
            for n in range(options.streams)
        ]
        answers = [engine.submit(request) for request in requests]
        while not all(answer.tokens for answer in answers):
            engine.step()
        middle, written = now(), engine.statistics.made
        for answer in answers:
            list(answer)
        seconds = max(now() - middle, 1e-9)
        best_read = max(best_read, options.streams * options.prompt / (middle - begin))
        best_write = max(best_write, (engine.statistics.made - written) / seconds)
    print(f"{model_name(options)}, {options.streams} at once:")
    print(f"  reads  {best_read:8.1f} tokens/s (prompts of {options.prompt})")
    print(f"  writes {best_write:8.1f} tokens/s")
    return 0
