"""Pages as the site shows them: links that leave docs/, blocks that print, code left alone."""

from pathlib import Path

import pytest
from docstring_page import prose, signature
from site_hook import ROOT, TOP_PAGES, site_markdown


@pytest.mark.parametrize(
    ("page", "text", "shown"),
    [
        ("a.md", "[x](b.md#c)", "[x](b.md#c)"),
        ("index.md", "[x](../README.md)", "[x](readme.md)"),
        ("reference/ops.md", "[x](../../CONTRIBUTING.md)", "[x](../contributing.md)"),
        ("architecture.md", "[x](docs/reference/ops.md#add)", "[x](reference/ops.md#add)"),
        ("architecture.md", "[the\nlog](CHANGELOG.md)", "[the\nlog](changelog.md)"),
        ("index.md", "[ops.py](../weft/ir/ops.py)", "`weft/ir/ops.py`"),
        ("index.md", "[the table](../weft/ir/ops.py)", "the table (`weft/ir/ops.py`)"),
        ("index.md", "[reasons](decisions)", "reasons (`docs/decisions`)"),
        ("index.md", "[tour](tour/tiny_weft.py)", "[tour](tour/tiny_weft.py)"),
        ("index.md", "[x](https://example.org) [y](#z)", "[x](https://example.org) [y](#z)"),
        ("index.md", "`[x](../weft)`", "`[x](../weft)`"),
        ("index.md", "```python\nf[x](../weft)\n```", "```python\nf[x](../weft)\n```"),
    ],
)
def test_links_lead_to_pages_or_become_paths(page: str, text: str, shown: str):
    assert site_markdown(text, page) == shown


def test_what_a_block_prints_has_a_title():
    page = "```python\nprint(1)\n```\n<!-- output -->\n```text\n1\n```\n"
    assert '```\n```text title="prints"\n1\n' in site_markdown(page, "index.md")


def test_top_pages_are_there():
    assert all((ROOT / name).is_file() for name in TOP_PAGES)


def test_every_page_is_in_the_menu():
    menu = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    folder = ROOT / "docs"
    pages = [page.relative_to(folder) for page in folder.rglob("*.md")]
    listed = [page for page in pages if page.parts[0] != "decisions"]
    missing = [page.as_posix() for page in listed if f" {page.as_posix()}\n" not in menu]
    assert not missing, f"mkdocs.yml leaves out {missing}"


def test_the_index_has_every_decision():
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    names = [page.name for page in (ROOT / "docs" / "decisions").glob("*.md")]
    assert not [name for name in names if f"(decisions/{name})" not in index]


def test_a_long_signature_has_a_line_for_each_parameter():
    def function(self, first_argument: int, *rest: Path, last: str = "a" * 60) -> None: ...

    assert signature("Tensor.function", function) == [
        "Tensor.function(",
        "    first_argument: int,",
        "    *rest: Path,",
        f"    last: str = '{'a' * 60}',",
        ") -> None",
    ]


def test_a_docstring_becomes_markdown():
    text = "Add x_1 and `y_1`.\n\n    x  y\n    1  2\n\n- one\n- two\n\nThus:\n>>> 1\n1\n"
    assert "\n".join(prose(text)).strip() == (
        "Add x\\_1 and `y_1`.\n\n```text\nx  y\n1  2\n```\n\n- one\n- two\n\nThus:\n\n"
        "```pycon\n>>> 1\n1\n```"
    )
