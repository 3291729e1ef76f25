"""Docstrings as Markdown: a signature, the prose, and the examples, which tests run elsewhere.

`api_pages.py` writes the pages of docs/reference/api/ with these. A docstring is plain text, so
what Markdown would take for its own is escaped.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

from table_page import wrapped

WIDTH = 95
_MARKS = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


def entry(name: str, documented: Any, owner: str = "", level: int = 3) -> Iterator[str]:
    """One function or class: its heading, its signature, and what its docstring says."""
    yield ""
    yield f"{'#' * level} {name}"
    yield ""
    yield "```py"
    yield from signature(f"{owner}.{name}" if owner else name, documented)
    yield "```"
    yield from prose(inspect.getdoc(documented) or "")


def signature(name: str, documented: Callable[..., Any]) -> list[str]:
    """The lines of a call, with one line for each parameter where one line is too long.

    >>> signature("Tensor.f", lambda self, x, *, y=2.0: 0)
    ['Tensor.f(x, *, y=2.0)']
    """
    try:
        made = inspect.signature(documented)
    except (TypeError, ValueError):  # a class without a constructor of its own
        return [name]
    parts = [part for part in _parameters(made) if part not in ("self", "self: Tensor")]
    result = "" if isinstance(documented, type) else _annotation(made.return_annotation)
    tail = f" -> {result}" if result else ""
    line = f"{name}({', '.join(parts)}){tail}"
    if len(line) <= WIDTH:
        return [line]
    return [f"{name}(", *(f"    {part}," for part in parts), f"){tail}"]


def _parameters(made: inspect.Signature) -> Iterator[str]:
    last = None
    for each in made.parameters.values():
        if last is each.POSITIONAL_ONLY != each.kind:
            yield "/"
        if each.kind is each.KEYWORD_ONLY and last not in (each.VAR_POSITIONAL, each.KEYWORD_ONLY):
            yield "*"
        last = each.kind
        text = _MARKS.get(each.kind, "") + each.name
        annotation = _annotation(each.annotation)
        text += f": {annotation}" if annotation else ""
        if each.default is not each.empty:
            value = getattr(each.default, "__name__", None) or repr(each.default)
            text += f" = {value}" if annotation else f"={value}"
        yield text


def _annotation(given: Any) -> str:
    if given is inspect.Parameter.empty:
        return ""
    return given if isinstance(given, str) else getattr(given, "__name__", str(given))


def prose(docstring: str) -> Iterator[str]:
    """A docstring as Markdown. Examples and what is indented become blocks.

    >>> list(prose("Say x * y.\\n\\n>>> 1 + 1\\n2"))
    ['', 'Say x \\\\* y.', '', '```pycon', '>>> 1 + 1', '2', '```']
    """
    for part in re.split(r"\n\s*\n", docstring):
        lines = [line.rstrip() for line in part.splitlines()]
        if not any(lines):
            continue
        if ">>>" in part and not lines[0].startswith((">>>", " ")):
            at = next(i for i, line in enumerate(lines) if line.lstrip().startswith(">>>"))
            yield from _part(lines[:at])
            lines = lines[at:]
        yield from _part(lines)


def _part(lines: list[str]) -> Iterator[str]:
    yield ""
    is_example = lines[0].lstrip().startswith(">>>")
    if is_example or lines[0].startswith("    "):
        yield "```pycon" if is_example else "```text"
        yield from (line.removeprefix("    ") for line in lines)
        yield "```"
    elif lines[0].startswith("- "):
        yield from (_escaped(line) for line in lines)
    else:
        yield from wrapped(_escaped(" ".join(lines)))


def _escaped(text: str) -> str:
    """Text in which only inline code is Markdown.

    >>> _escaped("a*b[0] of `c*d`")
    'a\\\\*b\\\\[0] of `c*d`'
    """
    pieces = re.split(r"(`[^`]*`)", text)
    pieces[::2] = [re.sub(r"([*_\[<|])", r"\\\1", piece) for piece in pieces[::2]]
    return "".join(pieces)
