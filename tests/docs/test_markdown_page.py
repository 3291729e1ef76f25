"""The reader of Markdown pages, on small pages that use or break each of its rules."""

from pathlib import Path

import pytest
from markdown_page import Link, PageError, heading_anchor, marked_command, parse_page

ROOT = Path(__file__).resolve().parents[2]

PAGE = """\
# Title

Some `[code](not-a-link.md)` and [a link](a.md#b).

<!-- no-run -->
```python
x = [1](2)
```

- item

  ````text
  ```python
  inner
  ```
  ````

## Title
[ref]: b.md
"""


def test_blocks_carry_language_text_line_and_marker():
    first, second = parse_page(PAGE).blocks
    assert (first.language, first.text, first.line, first.marker) == (
        "python",
        "x = [1](2)\n",
        7,
        "no-run",
    )
    assert second.text == "```python\ninner\n```\n"
    assert second.marker is None


def test_links_leave_out_code():
    assert list(parse_page(PAGE).links()) == [Link("a.md#b", 3), Link("b.md", 19)]


def test_repeated_headings_are_numbered():
    assert parse_page(PAGE).anchors() == {"title", "title-1"}


@pytest.mark.parametrize(
    ("title", "anchor"),
    [
        ("Set up", "set-up"),
        ("The `UOp`, at last!", "the-uop-at-last"),
        ("See [the tour](tour.md)", "see-the-tour"),
        ("a_b – c", "a_b--c"),
    ],
)
def test_heading_anchor(title: str, anchor: str):
    assert heading_anchor(title) == anchor


def test_open_fence_is_refused():
    with pytest.raises(PageError, match="page:2: this fence is never closed"):
        parse_page("text\n```python\nx = 1\n")


def test_unknown_marker_is_refused():
    with pytest.raises(PageError, match="page:1: unknown marker 'norun'; known: no-run"):
        parse_page("<!-- norun -->\n```python\n```\n")


@pytest.mark.parametrize("marker", ["demo-command", "test-command"])
def test_readme_holds_its_commands(marker: str):
    assert marked_command(ROOT / "README.md", marker).startswith("python -m pip install -e ")


def test_a_command_is_one_line(tmp_path: Path):
    page = tmp_path / "README.md"
    page.write_text("<!-- test-command -->\n```sh\na\nb\n```\n")
    with pytest.raises(PageError, match="more than one line"):
        marked_command(page, "test-command")
    with pytest.raises(PageError, match="0 blocks are marked 'demo-command'"):
        marked_command(page, "demo-command")
