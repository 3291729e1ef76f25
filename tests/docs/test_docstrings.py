"""Every example (`>>>`) in a docstring of weft and of the tools runs and prints what it shows.

Docstrings are taken from the source, not from the imported objects, so an example of a decorated
or nested function is not lost. Each docstring starts with the names of its module.
"""

import ast
import doctest
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

from weft.tensor import Tensor

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("weft", "tools")
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def docstrings(source: str) -> Iterator[tuple[str, str, int]]:
    """Yield (name, docstring, line before its first) for each docstring with an example."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, DOCUMENTED):
            text = ast.get_docstring(node, clean=False)
            if text and ">>>" in text:
                yield getattr(node, "name", "module"), text, node.body[0].lineno - 1


def run_examples(source: str, names: dict[str, object], filename: str) -> tuple[int, str]:
    """Run the examples of a source file. Return how many there are and what went wrong."""
    parser = doctest.DocTestParser()
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    count = 0
    report: list[str] = []
    for name, text, line in docstrings(source):
        test = parser.get_doctest(text, dict(names), name, filename, line)
        count += runner.run(test, out=report.append).attempted
    return count, "".join(report)


def files_with_examples() -> list[Path]:
    return [
        path
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
        if any(docstrings(path.read_text(encoding="utf-8")))
    ]


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts[1:] if parts[0] == "tools" else parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.mark.parametrize(
    "path", [pytest.param(p, id=p.relative_to(ROOT).as_posix()) for p in files_with_examples()]
)
def test_examples_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    if path.is_relative_to(ROOT / "weft" / "onnx"):
        pytest.importorskip("onnx")
    module = importlib.import_module(module_name(path))
    count, report = run_examples(path.read_text(encoding="utf-8"), vars(module), str(path))
    assert count > 0
    assert not report, report


def made_from_tables() -> dict[str, str]:
    """Docstrings of methods that no source has: a factory wrote them."""
    found = {}
    for name in dir(Tensor):
        raw = inspect.getattr_static(Tensor, name)
        made = inspect.unwrap(getattr(raw, "__func__", raw))
        code = getattr(made, "__code__", None)
        if code is not None and code.co_name != made.__name__ and ">>>" in (made.__doc__ or ""):
            found[made.__name__] = made.__doc__
    return found


def test_examples_of_methods_that_are_made_from_tables():
    written = made_from_tables()
    assert len(written) > 30
    source = "\n".join(f"def {name}():\n    {text!r}" for name, text in written.items())
    count, report = run_examples(source, {}, "tables")
    assert count == 2 * len(written)
    assert not report, report


# The runner itself.
SOURCE = '''
def outer():
    """Say it.

    >>> 1 + base
    3
    """
    def inner():
        """
        >>> [0, 1,
        ...  2]
        [0, ..., 2]
        """
'''


def test_examples_of_nested_functions_are_found():
    assert run_examples(SOURCE, {"base": 2}, "file.py") == (2, "")


def test_wrong_output_is_reported_with_its_line():
    count, report = run_examples(SOURCE, {"base": 3}, "file.py")
    assert count == 2
    assert 'File "file.py", line 5, in outer' in report
    assert "Expected:\n    3\nGot:\n    4" in report
