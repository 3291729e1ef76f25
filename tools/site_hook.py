"""What MkDocs does beyond its own: pages from outside of docs/, and links that leave it.

The pages link to each other and to source files as they lie in the repository, so that they work
on any code host. In the site the README and its neighbors are pages beside the others, a link to
one of them leads there, and a link to a source file is the path of that file as text.
"""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

from markdown_page import heading_anchor  # noqa: E402 -- MkDocs runs this file by its path

# Pages outside of docs/, by the names that they have in the site.
TOP_PAGES = {
    "README.md": "readme.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
ELSEWHERE = re.compile(r"[a-z]+:|#")
OUTPUT = re.compile(r"<!-- output -->\n```text\n")
# A block, inline code, or a link; what is code is left as it is.
PARTS = re.compile(
    r"^(?P<indent> *)(?P<fence>`{3,}).*?^(?P=indent)(?P=fence)$"
    r"|(?<!\[)(?P<ticks>`+)[^`]+(?P=ticks)"
    r"|\[(?P<label>(?:`[^`]*`|[^\]`])*)\]\((?P<target>[^)\s]+)\)",
    re.DOTALL | re.MULTILINE,
)


def on_config(config: Any) -> Any:
    # Headings get the anchors that code hosts give them.
    config.mdx_configs["toc"]["slugify"] = lambda title, separator: heading_anchor(title)
    decisions = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    config.nav.append({"Decisions": [f"decisions/{page.name}" for page in decisions]})
    return config


def on_files(files: Any, config: Any) -> Any:
    from mkdocs.structure.files import File

    for name, page in TOP_PAGES.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    return site_markdown(markdown, page.file.src_uri)


def site_markdown(markdown: str, page: str) -> str:
    """The text of a page for the site; `page` is its path there.

    >>> site_markdown("[the map](../ARCHITECTURE.md#ranks), [ops.py](../weft/ir/ops.py)", "a.md")
    '[the map](architecture.md#ranks), `weft/ir/ops.py`'
    """
    titled = OUTPUT.sub('```text title="prints"\n', markdown)
    return PARTS.sub(lambda match: _part(match, page), titled)


def _part(match: re.Match[str], page: str) -> str:
    target = match["target"]
    if target is None or ELSEWHERE.match(target):
        return match[0]
    path, _, anchor = target.partition("#")
    names = {site: name for name, site in TOP_PAGES.items()}
    source = names.get(page, f"docs/{page}")
    target = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    site = TOP_PAGES.get(target) or (target.removeprefix("docs/") if _is_page(target) else None)
    if site is None:
        return _as_text(match["label"], target)
    link = posixpath.relpath(site, posixpath.dirname(page) or ".")
    return f"[{match['label']}]({link}{'#' + anchor if anchor else ''})"


def _is_page(target: str) -> bool:
    # What does not exist stays a link, so that MkDocs reports it.
    return target.startswith("docs/") and not (ROOT / target).is_dir()


def _as_text(label: str, target: str) -> str:
    """A link to a source file as text: its path, after the label where that says more.

    >>> _as_text("table.py", "weft/codegen/opts/table.py"), _as_text("a test", "tests/test_a.py")
    ('`weft/codegen/opts/table.py`', 'a test (`tests/test_a.py`)')
    """
    bare = label.strip("`").rstrip("/")
    return f"`{target}`" if target.endswith(bare) else f"{label} (`{target}`)"
