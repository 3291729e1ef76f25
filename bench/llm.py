"""SmolLM2-135M beside llama.cpp: the same file, the same tokens, the same number of threads.

    python -m bench.llm                       # one thread
    python -m bench.llm --threads 2 --count 100

Both decode greedily from the same prompts, a short one and a longer one. llama.cpp rounds what
it multiplies with packed weights to 8 bits, so where two tokens are nearly as likely the answers
part; it also decodes from the same weights unpacked to float32, where nothing is rounded. Times
are those of the processor, divided by the threads, because other programs may run; `--clock` takes
the clock. Needs the package llama-cpp-python, which is built from source, and the extra `llm`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
from package_file import NotAvailable
from smollm2 import chat, engine_of, weights_path

from bench.peers import is_installed
from weft import Context
from weft.llm import Engine, stream

Clock = Callable[[], float]
ROOT = Path(__file__).resolve().parents[1]


class Run(NamedTuple):
    """The tokens of an answer, and the time before each of them."""

    tokens: list[int]
    seconds: list[float]

    @property
    def rate(self) -> float:
        """Tokens per second after the first one, by the median."""
        return 1 / median(self.seconds[1:])


class Row(NamedTuple):
    """One prompt on both sides."""

    name: str
    prompt: int
    weft: Run
    peer: Run
    exact: Run  # the peer with weights in float32

    def agreed(self, other: Run) -> str:
        """How many tokens are the same before the first that differs."""
        pairs = list(zip(self.weft.tokens, other.tokens, strict=True))
        same = next((n for n, (a, b) in enumerate(pairs) if a != b), len(pairs))
        return f"{same} of {len(pairs)}"


def prompts() -> dict[str, str]:
    license_text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    return {
        "a question": chat("Why is the sky blue?"),
        "a license": chat(f"Say in a few words what this license allows.\n\n{license_text}"),
    }


def timed(tokens: Iterable[int], count: int, now: Clock) -> Run:
    found: list[int] = []
    seconds: list[float] = []
    start = now()
    for token in tokens:
        end = now()
        found.append(int(token))
        seconds.append(end - start)
        start = end
        if len(found) == count:
            break
    return Run(found, seconds)


def weft_side(engine: Engine, prompt: list[int], count: int, now: Clock) -> Run:
    decoded(engine, prompt, 2, now)  # the first call compiles
    return decoded(engine, prompt, count, now)


def decoded(engine: Engine, prompt: list[int], count: int, now: Clock) -> Run:
    """A run that reads the whole prompt: nothing of a run before it is kept."""
    pieces = stream(engine, prompt, most=count, ends=frozenset())
    run = timed((piece.token for piece in pieces if piece.token >= 0), count, now)
    pieces.close()
    engine.forget()
    return run


def peer_side(model: Any, prompt: list[int], count: int, now: Clock) -> Run:
    model.reset()
    tokens = model.generate(prompt, top_k=1, temp=0.0, repeat_penalty=1.0)
    return timed(tokens, count, now)


def unpacked(path: Path, folder: Path) -> Path:
    """The same model with all weights in float32, written by llama.cpp itself."""
    import llama_cpp

    options = llama_cpp.llama_model_quantize_default_params()
    options.ftype, options.allow_requantize = llama_cpp.LLAMA_FTYPE_ALL_F32, True
    made = folder / "float32.gguf"
    if llama_cpp.llama_model_quantize(str(path).encode(), str(made).encode(), options):
        raise SystemExit(f"llama.cpp cannot unpack {path}")
    return made


def measure(count: int, threads: int, context: int, now: Clock) -> list[Row]:
    from llama_cpp import Llama

    path = weights_path()
    sizes = {"n_ctx": context, "n_threads": threads, "n_threads_batch": threads}
    wide = {"type_k": 0, "type_v": 0}  # keys and values in float32
    rows = []
    # The first tensor on a device opens it, with the threads of that moment.
    with tempfile.TemporaryDirectory() as folder, Context(THREADS=threads):
        engine = engine_of(path, context)
        peer = Llama(str(path), **sizes, verbose=False)
        exact = Llama(str(unpacked(path, Path(folder))), **sizes, **wide, verbose=False)
        for name, text in prompts().items():
            prompt = engine.tokenizer.encode(text)
            theirs = peer.tokenize(text.encode(), add_bos=False, special=True)
            if prompt != theirs:
                raise SystemExit(f"{name}: the tokenizers differ: {prompt} and {theirs}")
            ours = weft_side(engine, prompt, count, now)
            others = (peer_side(each, prompt, count, now) for each in (peer, exact))
            rows.append(Row(name, len(prompt), ours, *others))
    return rows


def table(rows: Sequence[Row]) -> str:
    """The rows in Markdown, as the page of the examples has them."""
    heads = (
        "prompt",
        "tokens equal to llama.cpp's with float32 weights",
        "with packed weights",
        "Weft, tokens/s",
        "llama.cpp, tokens/s",
        "first token, Weft",
        "first token, llama.cpp",
    )
    lines = [f"| {' | '.join(heads)} |", "| --- " * len(heads) + "|"]
    for row in rows:
        cells = (
            f"{row.name}, {row.prompt} tokens",
            row.agreed(row.exact),
            row.agreed(row.peer),
            f"{row.weft.rate:.1f}",
            f"{row.peer.rate:.1f}",
            f"{row.weft.seconds[0]:.2f} s",
            f"{row.peer.seconds[0]:.2f} s",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--count", type=int, default=60, help="how many tokens to decode")
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--clock", action="store_true", help="time by the clock")
    args = parser.parse_args(argv)
    if not is_installed("llama_cpp"):
        print("skipped: llama.cpp is not installed: pip install llama-cpp-python")
        return 0

    def processor() -> float:
        return time.process_time() / args.threads

    now = time.perf_counter if args.clock else processor
    try:
        rows = measure(args.count, args.threads, args.context, now)
    except NotAvailable as reason:
        print(f"skipped: {reason}")
        return 0
    print(table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
