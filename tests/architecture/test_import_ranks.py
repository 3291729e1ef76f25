"""Imports inside weft go down only: a package imports lower ranks, never siblings or higher ones.

The checker reads source text, so an import inside a function, under TYPE_CHECKING or through
`import_module("weft...")` counts like any other. `weft/__init__.py` re-exports and has no rank.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WEFT = ROOT / "weft"

RANKS = (
    ("support",),
    ("ir",),
    ("rewrite",),
    ("rules",),
    ("target", "gradient", "reference"),
    ("schedule", "codegen", "render", "runtime"),
    ("engine",),
    ("tensor",),
    ("io", "autograd", "fft", "linalg", "masked", "signal", "special"),
    ("nn", "functions", "array_api", "backends", "distributions"),
    (
        "aten",
        "onnx",
        "llm",
        "export",
        "distributed",
        "interop",
        "optim",
        "utils",
        "func",
        "helpers",
        "random",
        "testing",
    ),
    ("amp",),
    ("cuda", "viz"),
    ("cli",),
    ("__main__",),
)
RANK_OF = {package: rank for rank, packages in enumerate(RANKS) for package in packages}
RANK_LINE = " < ".join(
    packages[0] if len(packages) == 1 else "{" + ", ".join(packages) + "}" for packages in RANKS
)


def weft_imports(source: str, module: str, is_package: bool) -> Iterator[tuple[int, str]]:
    """Yield (line, dotted name) for each name under `weft` that a module imports.

    `from weft import ir` yields "weft.ir"; `from ..ir import uop` inside weft.rules yields
    "weft.ir.uop".
    """
    parents = module.split(".") if is_package else module.split(".")[:-1]
    for node in ast.walk(ast.parse(source)):
        names: list[str] = []
        match node:
            case ast.Import():
                names = [alias.name for alias in node.names]
            case ast.ImportFrom():
                base = [] if not node.level else parents[: len(parents) + 1 - node.level]
                base = [*base, node.module] if node.module else base
                names = [".".join([*base, alias.name]) for alias in node.names]
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__")
                | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                names = [name]
        yield from ((node.lineno, name) for name in names if name.split(".")[0] == "weft")


def find_violations(source: str, module: str, is_package: bool = False) -> list[str]:
    """Return one message for each import of `module` that its rank does not allow."""
    importer = module.split(".")[1]
    where = module.replace(".", "/") + ("/__init__.py" if is_package else ".py")
    if importer not in RANK_OF:
        return [f"{where}: the package {importer!r} has no rank; add it to RANKS: {RANK_LINE}"]
    allowed = [package for package in RANK_OF if RANK_OF[package] < RANK_OF[importer]]
    messages = []
    for line, name in weft_imports(source, module, is_package):
        imported = name.split(".")[1] if "." in name else ""
        if imported == importer or imported in allowed:
            continue
        if imported not in RANK_OF:
            reason = "import a public name from the package that defines it, not from weft itself"
        elif RANK_OF[imported] == RANK_OF[importer]:
            reason = f"{imported} is a sibling, and siblings never import each other"
        else:
            reason = f"{imported} ranks above {importer}"
        lower = ", ".join(allowed) or "nothing of weft"
        messages.append(f"{where}:{line} imports {name}: {reason}; {importer} may import: {lower}")
    return messages


def module_name(path: Path) -> tuple[str, bool]:
    parts = path.relative_to(ROOT).with_suffix("").parts
    is_package = parts[-1] == "__init__"
    return ".".join(parts[:-1] if is_package else parts), is_package


def ranked_files() -> list[Path]:
    return [path for path in sorted(WEFT.rglob("*.py")) if path != WEFT / "__init__.py"]


def test_imports_go_down_only():
    messages = [
        message
        for path in ranked_files()
        for message in find_violations(path.read_text(encoding="utf-8"), *module_name(path))
    ]
    assert not messages, "\n" + "\n".join(messages)


def test_every_folder_under_weft_has_a_rank():
    first = {path.relative_to(WEFT).parts[0] for path in WEFT.rglob("*.py")} - {"__init__.py"}
    unranked = {name.removesuffix(".py") for name in first} - RANK_OF.keys()
    assert not unranked, f"no rank for {sorted(unranked)}; the ranks are: {RANK_LINE}"


def test_architecture_page_states_the_ranks():
    page = ROOT / "ARCHITECTURE.md"
    if not page.exists():
        pytest.skip("there is no ARCHITECTURE.md")
    stated = " ".join(page.read_text(encoding="utf-8").split())
    assert RANK_LINE in stated, f"ARCHITECTURE.md does not hold the ranks:\n{RANK_LINE}"


# The checker itself: each of these sources breaks the ranks in another way.
BAD_SOURCES = {
    "upward": ("weft.ir.uop", "import weft.rewrite.driver", "rewrite ranks above ir"),
    "upward from": ("weft.ir.uop", "from weft.tensor import Tensor", "tensor ranks above ir"),
    "package by name": ("weft.ir.uop", "from weft import rules", "rules ranks above ir"),
    "second of two": ("weft.rules.add", "import weft.ir, weft.engine", "engine ranks above"),
    "relative": ("weft.ir.uop", "from ..rewrite import rule", "rewrite ranks above ir"),
    "relative by name": ("weft.ir.uop", "from .. import rewrite", "rewrite ranks above ir"),
    "sibling": ("weft.codegen.lower", "from weft.render import llvm", "render is a sibling"),
    "in a function": ("weft.ir.uop", "def f():\n  import weft.rules", "uop.py:2 imports"),
    "for types": (
        "weft.ir.uop",
        "if TYPE_CHECKING:\n  from weft.rules import x",
        "uop.py:2 imports",
    ),
    "by string": ("weft.ir.uop", "importlib.import_module('weft.rules')", "rules ranks above"),
    "public name": ("weft.nn.linear", "from weft import Tensor", "not from weft itself"),
    "weft itself": ("weft.nn.linear", "import weft", "not from weft itself"),
    "no rank": ("weft.misc.thing", "", "the package 'misc' has no rank"),
}


@pytest.mark.parametrize("case", BAD_SOURCES)
def test_checker_refuses(case: str):
    module, source, expected = BAD_SOURCES[case]
    messages = find_violations(source, module)
    assert len(messages) == 1
    assert expected in messages[0]


GOOD_SOURCES = {
    "downward": ("weft.rules.add", "from weft.ir.uop import UOp\nimport weft.rewrite"),
    "own package": ("weft.ir.uop", "from weft.ir import ops\nfrom . import dtypes"),
    "sibling of a lower rank": ("weft.engine.run", "from weft.codegen import x, y"),
    "elsewhere": ("weft.support.cache", "import os, weftlike\nfrom pathlib import Path"),
    "relative and down": ("weft.codegen.decompose.exp", "from ...ir import uop"),
}


@pytest.mark.parametrize("case", GOOD_SOURCES)
def test_checker_accepts(case: str):
    module, source = GOOD_SOURCES[case]
    assert find_violations(source, module) == []


def test_relative_import_in_a_package_counts_from_the_package():
    assert find_violations("from ..rewrite import rule", "weft.ir", is_package=True) != []
    assert find_violations("from .uop import UOp", "weft.ir", is_package=True) == []


def test_message_says_what_is_allowed():
    (message,) = find_violations("\nimport weft.rules", "weft.rewrite.rule")
    assert message == (
        "weft/rewrite/rule.py:2 imports weft.rules: rules ranks above rewrite; "
        "rewrite may import: support, ir"
    )
