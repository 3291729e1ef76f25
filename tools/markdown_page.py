"""Read the parts of a Markdown page that machines check: fenced blocks, headings and links.

The tests of `tests/docs` run the blocks and follow the links; `.ci/run` takes the README's
commands from here, so the line a reader sees is the line that CI runs:

    python tools/markdown_page.py README.md test-command

A block may carry one marker, an HTML comment on the line before it, such as `<!-- no-run -->`.
"""

import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MARKERS = {
    "no-run": "the Python block below is not run",
    "output": "the text block below is what the Python block above it prints",
    "demo-command": "the README's command that shows Weft at work",
    "test-command": "the README's command that runs the tests",
}

FENCE = re.compile(r"(?P<indent> *)(?P<ticks>`{3,})(?P<language>[^`]*)$")
COMMENT = re.compile(r"\s*<!--\s*(?P<text>[\w-]+)\s*-->\s*$")
HEADING = re.compile(r"#{1,6}\s+(?P<title>.*?)\s*#*$")
INLINE_CODE = re.compile(r"(`+).*?\1")
INLINE_LINK = re.compile(r"\]\(\s*<?(?P<target>[^\s)>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
REFERENCE_LINK = re.compile(r"\s{0,3}\[[^\]]+\]:\s+<?(?P<target>[^\s>]+)>?")
HTML_LINK = re.compile(r"(?:href|src)=\"(?P<target>[^\"]+)\"")
HTML_ANCHOR = re.compile(r"<[^>]*\b(?:id|name)=\"(?P<name>[^\"]+)\"")


class PageError(ValueError):
    """A page breaks a rule of this module; the message names the page and the line."""


@dataclass(frozen=True)
class Block:
    """One fenced block. `line` is the number of its first line of text, counted from 1."""

    language: str
    text: str
    line: int
    marker: str | None


@dataclass(frozen=True)
class Link:
    """One link or image, with the line it stands on."""

    target: str
    line: int


@dataclass(frozen=True)
class Page:
    """What a Markdown page holds, in the order of the page. Prose excludes the fenced blocks."""

    blocks: tuple[Block, ...]
    prose: tuple[tuple[int, str], ...]

    def links(self) -> Iterator[Link]:
        for number, line in self.prose:
            shown = INLINE_CODE.sub("", line)
            for form in (INLINE_LINK, REFERENCE_LINK, HTML_LINK):
                for match in form.finditer(shown):
                    yield Link(match["target"], number)

    def anchors(self) -> set[str]:
        """Return the names a link may end with, spelled as GitHub and MkDocs spell them."""
        found: set[str] = set()
        for _, line in self.prose:
            found.update(match["name"] for match in HTML_ANCHOR.finditer(line))
            if heading := HEADING.match(line):
                name = heading_anchor(heading["title"])
                repeats = 0
                unique = name
                while unique in found:
                    repeats += 1
                    unique = f"{name}-{repeats}"
                found.add(unique)
        return found


def heading_anchor(title: str) -> str:
    """Turn a heading into its anchor.

    >>> heading_anchor("How to add an op: `ir/ops.py`")
    'how-to-add-an-op-iropspy'
    """
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
    kept = re.sub(r"[^\w\- ]", "", text.lower())
    return kept.strip().replace(" ", "-")


def parse_page(text: str, name: str = "page") -> Page:
    """Split a page into its fenced blocks and its prose. Raise PageError for a broken fence."""
    blocks: list[Block] = []
    prose: list[tuple[int, str]] = []
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        fence = FENCE.match(lines[at])
        if fence is None:
            prose.append((at + 1, lines[at]))
            at += 1
            continue
        start = at + 1
        end = find_fence_end(lines, start, fence["ticks"])
        if end is None:
            raise PageError(f"{name}:{start}: this fence is never closed")
        body = textwrap.dedent("\n".join(lines[start:end]))
        marker = preceding_marker(prose, last=at, name=name)
        blocks.append(Block(fence["language"].strip(), body + "\n", start + 1, marker))
        at = end + 1
    return Page(tuple(blocks), tuple(prose))


def find_fence_end(lines: list[str], start: int, ticks: str) -> int | None:
    for at in range(start, len(lines)):
        line = lines[at].strip()
        if line.startswith(ticks) and not line.strip("`"):
            return at
    return None


def preceding_marker(prose: list[tuple[int, str]], last: int, name: str) -> str | None:
    """Return the marker on line number `last`, the one before the fence, if there is one."""
    if not prose or prose[-1][0] != last:
        return None
    comment = COMMENT.match(prose[-1][1])
    if comment is None:
        return None
    if comment["text"] not in MARKERS:
        known = ", ".join(MARKERS)
        raise PageError(f"{name}:{last}: unknown marker {comment['text']!r}; known: {known}")
    return comment["text"]


def read_page(path: Path) -> Page:
    return parse_page(path.read_text(encoding="utf-8"), path.name)


def marked_command(path: Path, marker: str) -> str:
    """Return the one line of the block that carries the marker."""
    texts = [block.text.strip() for block in read_page(path).blocks if block.marker == marker]
    if len(texts) != 1:
        raise PageError(f"{path.name}: {len(texts)} blocks are marked {marker!r}, not 1")
    if "\n" in texts[0]:
        raise PageError(f"{path.name}: the block marked {marker!r} has more than one line")
    return texts[0]


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python tools/markdown_page.py PAGE MARKER")
    print(marked_command(Path(sys.argv[1]), sys.argv[2]))
