"""Chat templates: turns of a conversation as the text that a model was trained on.

A template comes with the model file, from anywhere. It runs in jinja2's sandbox with plain data
alone: it can reach no attribute that leads to Python, change nothing that it is handed, and its
text is limited.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn

from weft.llm.text.tokenizer import TextTokenizer
from weft.support.errors import ArgumentError, FileFormatError, NotSupported

MOST_CHARACTERS: Final = 16_000_000
# Where a file has no template: the most common one, if the file has its tokens, or plain text.
CHATML: Final = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
PLAIN: Final = (
    "{% for message in messages %}{{ message.role | capitalize }}: {{ message.content }}\n"
    "{% endfor %}{% if add_generation_prompt %}Assistant:{% endif %}"
)


class ChatTemplate:
    """A template, compiled; `render` makes the text of a conversation."""

    def __init__(self, text: str, tokens: Mapping[str, str] | None = None) -> None:
        self.text = text
        self._tokens = dict(tokens or {})
        self._template = _compile(text)

    @property
    def has_tools(self) -> bool:
        """Whether the template has room for tools."""
        return "tools" in self.text

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        reply: bool = True,
        **more: Any,
    ) -> str:
        """The text of a conversation; with `reply`, up to where an answer begins."""
        values = _plain(
            {
                **more,
                **self._tokens,
                "messages": list(messages),
                "tools": list(tools) if tools else None,
                "add_generation_prompt": reply,
            }
        )
        pieces, size = [], 0
        try:
            for piece in self._template.generate(values):
                pieces.append(piece)
                size += len(piece)
                if size > MOST_CHARACTERS:
                    raise ArgumentError(
                        "chat: the template makes too long a text",
                        rule=f"a conversation has at most {MOST_CHARACTERS:,} characters",
                    )
        except ArgumentError:
            raise
        except Exception as failure:  # a template can fail in any way that Python can
            raise ArgumentError(
                f"chat: the model's template refuses these messages: {failure}",
                rule="a template states which roles there are, and in which order",
            ) from None
        return "".join(pieces)


def chat_template(tokenizer: TextTokenizer, name: str = "default") -> ChatTemplate:
    """The template of a tokenizer's file, or one that fits its tokens."""
    found = tokenizer.templates.get(name) or next(iter(tokenizer.templates.values()), None)
    if found is None:
        found = CHATML if tokenizer.number("<|im_start|>") is not None else PLAIN
    marks = tokenizer.marks
    begin = tokenizer.name(marks.begin) if marks.begin is not None else ""
    end = tokenizer.name(min(marks.ends)) if marks.ends else ""
    return ChatTemplate(found, {"bos_token": begin or "", "eos_token": end or ""})


def _compile(text: str) -> Any:
    try:
        from jinja2 import TemplateError
        from jinja2.ext import loopcontrols
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError:
        raise NotSupported(
            "chat: the package jinja2 is not installed",
            fix='install it: pip install "weft[llm]"',
        ) from None
    made = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, "jinja2.ext.do"]
    )
    made.filters["tojson"] = _to_json
    made.globals["raise_exception"] = _refuse
    made.globals["strftime_now"] = _now
    try:
        return made.from_string(text)
    except (TemplateError, RecursionError) as failure:
        raise FileFormatError(f"chat: the template cannot be read: {failure}") from None


def _plain(value: Any) -> Any:
    """Data as JSON has it; a template is handed nothing that has methods of its own."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    raise ArgumentError(
        f"chat: expected plain data in a message, got a {type(value).__name__}",
        rule="messages are text, numbers, lists and objects",
    )


def _to_json(value: Any, indent: int | None = None, **options: Any) -> str:
    known = {k: v for k, v in options.items() if k in ("ensure_ascii", "separators", "sort_keys")}
    return json.dumps(value, indent=indent, **{"ensure_ascii": False, **known})


def _refuse(message: str) -> NoReturn:
    raise ValueError(message)


def _now(form: str) -> str:
    return datetime.datetime.now().strftime(form)
