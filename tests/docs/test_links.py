"""Every link of a Markdown page to another file of the repository, or to a heading, resolves."""

from pathlib import Path

import pytest
from markdown_page import read_page

ROOT = Path(__file__).resolve().parents[2]
ELSEWHERE = ("http://", "https://", "mailto:")


def pages() -> list[Path]:
    return sorted(ROOT.glob("*.md")) + sorted((ROOT / "docs").rglob("*.md"))


def find_broken(path: Path, root: Path) -> list[str]:
    """Return one message for each link of a page that leads nowhere inside `root`."""
    messages = []
    for link in read_page(path).links():
        if link.target.startswith(ELSEWHERE):
            continue
        where = f"{path.relative_to(root)}:{link.line}: {link.target}"
        file, _, anchor = link.target.partition("#")
        target = (path.parent / file).resolve() if file else path
        if not target.is_relative_to(root):
            messages.append(f"{where} leaves the repository")
        elif not target.exists():
            messages.append(f"{where} does not exist")
        elif anchor and target.suffix == ".md" and anchor not in read_page(target).anchors():
            messages.append(f"{where} names no heading of {target.relative_to(root)}")
    return messages


@pytest.mark.parametrize(
    "path", [pytest.param(p, id=p.relative_to(ROOT).as_posix()) for p in pages()]
)
def test_links_resolve(path: Path):
    messages = find_broken(path, ROOT)
    assert not messages, "\n" + "\n".join(messages)


def test_checker_can_fail(tmp_path: Path):
    page = tmp_path / "page.md"
    (tmp_path / "other.md").write_text("# Here\n")
    page.write_text(
        "[ok](other.md#here) [ok](https://example.org/none) [ok](#top)\n"
        "[a](none.md)\n[b](other.md#there)\n[c](../outside.md)\n[d](#nowhere)\n# Top\n"
    )
    assert find_broken(page, tmp_path) == [
        "page.md:2: none.md does not exist",
        "page.md:3: other.md#there names no heading of other.md",
        "page.md:4: ../outside.md leaves the repository",
        "page.md:5: #nowhere names no heading of page.md",
    ]
