"""Every Python block of the README and the docs runs, and prints what the page says it prints.

The blocks of one page share a namespace and run from top to bottom in an empty folder. The markers
of `tools/markdown_page.py` say which block is not run and which text is the output of a block.
"""

import contextlib
import gc
import io
from pathlib import Path
from types import ModuleType

import pytest
from markdown_page import Page, PageError, parse_page, read_page

from weft.tensor import Tensor

ROOT = Path(__file__).resolve().parents[2]
TOP_PAGES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")


def pages_with_python() -> list[Path]:
    pages = [ROOT / name for name in TOP_PAGES] + sorted((ROOT / "docs").rglob("*.md"))
    return [
        page
        for page in pages
        if page.exists() and any(block.language == "python" for block in read_page(page).blocks)
    ]


def run_blocks(page: Page, filename: str) -> None:
    """Run the Python blocks of a page and compare their output where the page shows it."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    printed: str | None = None  # by the block before this one, if that was run
    for block in page.blocks:
        if block.marker == "output":
            if printed is None:
                raise PageError(f"{filename}:{block.line}: no block that runs stands before this")
            assert tidy(printed) == tidy(block.text), f"{filename}:{block.line}: other output"
        printed = None
        if block.language == "python" and block.marker != "no-run":
            # Leading newlines make the line numbers of errors those of the page.
            code = compile("\n" * (block.line - 1) + block.text, filename, "exec")
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(code, namespace)
            printed = output.getvalue()


def tidy(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().splitlines()]


def install_backend(torch: ModuleType) -> None:
    """Make the name of the backend known, as it is where Weft is installed."""
    from weft.interop.torch.backend import weft

    torch._dynamo.reset()
    if "weft" not in torch._dynamo.list_backends():
        torch._dynamo.register_backend(weft, name="weft")


@pytest.mark.parametrize(
    "path", [pytest.param(p, id=p.relative_to(ROOT).as_posix()) for p in pages_with_python()]
)
def test_page_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    if "onnx" in path.name:
        pytest.importorskip("onnx")
    if "torch-" in path.name:
        install_backend(pytest.importorskip("torch"))
    monkeypatch.chdir(tmp_path)
    # Writes of other pages that still wait would run with this page's first kernel, and count.
    gc.collect()
    (Tensor([0.0]) + 1).realize()
    run_blocks(read_page(path), str(path))


# The runner itself.
TWO_BLOCKS = """\
```python
x = 20
print("x is", x)
```
<!-- output -->
```text
x is 20
```
prose
```python
print(x + 1)
```
<!-- output -->
```text
21
```
"""


def test_blocks_share_a_namespace_and_print_what_the_page_shows():
    run_blocks(parse_page(TWO_BLOCKS), "page.md")


def test_other_output_is_found():
    with pytest.raises(AssertionError, match=r"page\.md:15: other output"):
        run_blocks(parse_page(TWO_BLOCKS.replace("21", "22")), "page.md")


def test_error_points_to_the_line_of_the_page():
    page = parse_page("text\n\n```python\nx = 1\nx / 0\n```\n")
    with pytest.raises(ZeroDivisionError) as error:
        run_blocks(page, "page.md")
    last = error.traceback[-1]
    assert (str(last.path).endswith("page.md"), last.lineno + 1) == (True, 5)


def test_no_run_block_is_left_out():
    run_blocks(parse_page("<!-- no-run -->\n```python\nraise ValueError\n```\n"), "page.md")


def test_output_needs_a_block_that_runs():
    page = parse_page("<!-- output -->\n```text\nhello\n```\n")
    with pytest.raises(PageError, match="no block that runs"):
        run_blocks(page, "page.md")
