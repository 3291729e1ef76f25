"""`weft chat MODEL`: a conversation in the terminal.

Ctrl-C stops the answer that comes, and nothing else; Ctrl-D ends the program. A line that ends
with a backslash goes on, and three quotes begin and end a text of several lines.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

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
from weft.support.errors import UsageError

if TYPE_CHECKING:
    from weft.llm import Engine

HELP: Final = """/help            this list
/reset           forget the conversation
/retry           answer the last message again
/undo            take the last message and its answer back
/system TEXT     tell the model how to answer, from now on
/temperature X   0 takes the likeliest token
/most N          tokens of an answer at most
/save FILE       write the conversation as JSON
/load FILE       go on with a conversation that was saved
/exit            end, as Ctrl-D does"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument("--system", default="", help="tell the model how to answer")
    parser.add_argument("--temperature", type=float, default=0.7)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--most", type=positive, default=1024, help="tokens of an answer")
    add_cache(parser)
    add_speculation(parser)


def run(options: argparse.Namespace) -> int:
    from weft.llm import Engine

    with contextlib.suppress(ImportError):  # Windows has none
        import readline  # noqa: F401 -- `input` has a history then
    model, tokenizer = load_model(options)
    engine = Engine(
        model,
        tokenizer,
        streams=1,
        dtype=cache_dtype(options),
        proposer=proposer_of(options, model, 1),
    )
    print(f"{model_name(options)}: write a message, or /help")
    Conversation(engine, options).talk(input)
    return 0


class Conversation:
    """Messages so far, and how the next answer is made."""

    def __init__(
        self,
        engine: Engine,
        options: argparse.Namespace,
        write: Callable[[str], Any] | None = None,
    ) -> None:
        from weft.llm.text.chat_template import chat_template

        assert engine.tokenizer is not None
        self.engine = engine
        self.options = options
        self.template = chat_template(engine.tokenizer)
        self.messages: list[dict[str, str]] = []
        self.write = write or (lambda text: print(text, end="", flush=True))

    def talk(self, read: Callable[[str], str]) -> None:
        """Read messages and answer them until the end of the input."""
        while True:
            try:
                text = read_message(read)
            except KeyboardInterrupt:
                self.write("\n(Ctrl-D or /exit ends)\n")
                continue
            except EOFError:
                self.write("\n")
                return
            if text.strip() == "/exit":
                return
            try:
                self.take(text)
            except (UsageError, OSError, ValueError) as failure:
                self.write(f"{failure}\n")

    def take(self, text: str) -> None:
        """Do what a line says: a command, or a message."""
        if text.startswith("/"):
            name, _, rest = text[1:].partition(" ")
            command = getattr(self, f"do_{name}", None)
            if command is None:
                self.write(f"there is no command /{name}\n{HELP}\n")
            else:
                command(rest.strip())
        elif text.strip():
            self.messages.append({"role": "user", "content": text})
            self.answer()

    def answer(self) -> None:
        """Answer the last message; what was written when Ctrl-C came stays."""
        from weft.llm import Request, Sampling

        o = self.options
        system = [{"role": "system", "content": o.system}] if o.system else []
        prompt = self.template.render([*system, *self.messages])
        assert self.engine.tokenizer is not None
        tokens = tuple(self.engine.tokenizer.encode(prompt))
        sampling = Sampling(temperature=o.temperature, seed=o.seed)
        begin = first = time.perf_counter()
        answer = self.engine.submit(Request(tokens, o.most, sampling))
        said: list[str] = []
        try:
            for piece in answer:
                if not said:
                    first = time.perf_counter()
                said.append(piece.text)
                self.write(piece.text)
        except KeyboardInterrupt:
            answer.cancel()
            self.engine.step()
            self.write("\n(stopped)")
        self.messages.append({"role": "assistant", "content": "".join(said)})
        self.write(f"\n{_speed(answer, begin, first)}\n")

    def do_help(self, _: str) -> None:
        self.write(HELP + "\n")

    def do_reset(self, _: str) -> None:
        self.messages.clear()

    def do_undo(self, _: str) -> None:
        del self.messages[-2:]

    def do_retry(self, _: str) -> None:
        if self.messages[-1:] and self.messages[-1]["role"] == "assistant":
            self.messages.pop()
        if self.messages:
            self.answer()

    def do_system(self, rest: str) -> None:
        self.options.system = rest

    def do_temperature(self, rest: str) -> None:
        self.options.temperature = float(rest)

    def do_most(self, rest: str) -> None:
        self.options.most = int(rest)

    def do_save(self, rest: str) -> None:
        text = json.dumps(self.messages, ensure_ascii=False, indent=1)
        Path(rest).write_text(text, encoding="utf-8")

    def do_load(self, rest: str) -> None:
        found = json.loads(Path(rest).read_text(encoding="utf-8"))
        if not isinstance(found, list) or not all(
            isinstance(each, dict) and isinstance(each.get("content"), str) for each in found
        ):
            raise ValueError("expected a conversation that /save has written")
        self.messages = found


def read_message(read: Callable[[str], str]) -> str:
    """One message, which may have several lines.

    >>> lines = iter(['one\\\\', 'two'])
    >>> read_message(lambda prompt: next(lines))
    'one\\ntwo'
    """
    line = read("> ")
    if line.strip().startswith('"""'):
        lines = [line.strip()[3:]]
        while not lines[-1].endswith('"""'):
            lines.append(read(". "))
        return "\n".join(lines).removesuffix('"""').strip("\n")
    while line.endswith("\\"):
        line = line[:-1] + "\n" + read(". ")
    return line


def _speed(answer: Any, begin: float, first: float) -> str:
    now, count = time.perf_counter(), len(answer.tokens)
    line = f"[{answer.prompt_tokens} tokens read ({answer.reused_tokens} known)"
    line += f" in {first - begin:.2f} s, {count} written"
    return line + (
        f", {(count - 1) / max(now - first, 1e-9):.1f} per second]" if count > 1 else "]"
    )
