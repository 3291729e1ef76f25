"""The one renderer of error messages: what, where, facts, rule, fix, in that order.

`errors.py` calls it for every error a user can see. The first line stands alone in a log; each
later block appears only when there is something to say in it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from weft.support.source_line import SourceLine

_INDENT = "  "
_LONGEST_NAME = 100
_FIX = "fix: "


def render_message(
    what: str,
    where: SourceLine,
    facts: Sequence[Sequence[str]] = (),
    listing: str = "",
    rule: str = "",
    fix: str = "",
) -> str:
    """Return the whole message; `listing` is program text that is shown between facts and rule."""
    blocks = (
        what,
        _indent(_location(where)),
        _indent(align_columns(facts)),
        _indent(listing, 2 * _INDENT),
        _indent(rule),
        _indent(_FIX + fix.replace("\n", "\n" + " " * len(_FIX)) if fix else ""),
    )
    return "\n\n".join(block for block in blocks if block)


def align_columns(rows: Sequence[Sequence[str]]) -> str:
    """Return the rows as lines whose cells stand in columns; rows may differ in length.

    >>> print(align_columns([("left", "(3, 4)", "axis -1 is 4"), ("right", "(3, 4, 5)")]))
    left   (3, 4)   axis -1 is 4
    right  (3, 4, 5)
    """
    count = max((len(row) for row in rows), default=0)
    # The last cell of a row pushes nothing aside, so it may be long.
    widths = [
        max((len(row[i]) for row in rows if i + 1 < len(row)), default=0) for i in range(count)
    ]
    # The name stands a little closer to its value than the remarks do.
    gaps = ["", "  "] + ["   "] * count
    lines = (
        "".join(gaps[i] + cell.ljust(widths[i]) for i, cell in enumerate(row)) for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that a misspelt one most likely means, or None.

    >>> nearest("flaot32", ["int32", "float32", "bool"])
    'float32'
    """
    # Only an error needs it, and it is slow to import.
    import difflib

    if len(name) > _LONGEST_NAME:  # comparing takes the product of the lengths
        return None
    known = [candidate for candidate in known if len(candidate) <= _LONGEST_NAME]
    by_folded = {candidate.casefold(): candidate for candidate in known}
    close = difflib.get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.65)
    return by_folded[close[0]] if close else None


def _location(where: SourceLine) -> str:
    if not where.file:
        return ""
    return "\n".join([f"at {where.file}:{where.line}", _indent(where.text)]).rstrip()


def _indent(block: str, by: str = _INDENT) -> str:
    return "\n".join(by + line if line else "" for line in block.splitlines())


def bytes_text(size: int) -> str:
    """A number of bytes as people say it.

    >>> [bytes_text(size) for size in (0, 20_000, 431_104, 8_589_934_592)]
    ['0 bytes', '20.0 kB', '431.1 kB', '8.59 GB']
    """
    if size < 10_000:
        return f"{size} bytes"
    if size < 1_000_000:
        return f"{size / 1e3:.1f} kB"
    return f"{size / 1e6:.1f} MB" if size < 1_000_000_000 else f"{size / 1e9:.2f} GB"
