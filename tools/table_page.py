"""What the writers of reference pages share: the folder, the note on top, tables and prose."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from weft.ir.dtypes import ANY, BOOL, COMPLEX, FLOAT, INDEX, INT, UINT

ROOT = Path(__file__).resolve().parents[1]
NOTE = "<!-- Written by tools/tables.py from {source}; change that instead. -->"
KIND_NAMES = {
    BOOL: "bool",
    INT: "int",
    UINT: "uint",
    INDEX: "index",
    FLOAT: "float",
    COMPLEX: "complex",
}


def head(title: str, source: str) -> Iterator[str]:
    """The first lines of a page."""
    yield f"# {title}"
    yield ""
    yield NOTE.format(source=source)
    yield ""


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table; a bar inside a cell is escaped.

    >>> markdown_table(["a", "b"], [("1", "x | y")])
    ['| a | b |', '| --- | --- |', '| 1 | x \\\\| y |']
    """
    lines = [heads, ["---"] * len(heads), *([c.replace("|", "\\|") for c in row] for row in rows)]
    return ["| " + " | ".join(cells) + " |" for cells in lines]


def code(text: str) -> str:
    """Inline code, or nothing for nothing."""
    return f"`{text}`" if text else ""


def anchor(name: str) -> str:
    return f'<a id="{name}"></a>'


def kinds_text(mask: int) -> str:
    """The kinds of a mask in words.

    >>> kinds_text(INT | UINT), kinds_text(ANY)
    ('int, uint', 'any')
    """
    if mask == ANY:
        return "any"
    return ", ".join(name for kind, name in KIND_NAMES.items() if mask & kind)


def summary(documented: object) -> str:
    """The first paragraph of a docstring."""
    return " ".join((inspect.getdoc(documented) or "").partition("\n\n")[0].split())


def wrapped(text: str, width: int = 99) -> Iterator[str]:
    """The words of a text in lines."""
    line = ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > width:
            yield line
            line = word
        else:
            line = f"{line} {word}".lstrip()
    yield line
