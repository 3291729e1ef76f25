"""An `__init__.py` re-exports names and holds no code: a reader finds every thing in its own file.

Allowed are a docstring, imports, literal tables such as `__all__`, and the two functions Python
calls for lazy names (`__getattr__`, `__dir__`).
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LAZY_FUNCTIONS = ("__getattr__", "__dir__")


def is_literal(value: ast.expr | None) -> bool:
    try:
        ast.literal_eval(value)  # type: ignore[arg-type]
    except (ValueError, TypeError):
        return False
    return True


def is_re_export(statement: ast.stmt) -> bool:
    match statement:
        case ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant(value=str())):
            return True
        case ast.Assign(value=value) | ast.AnnAssign(value=value):
            return is_literal(value)
        case ast.If(test=ast.Name(id="TYPE_CHECKING"), body=body, orelse=[]):
            return all(is_re_export(inner) for inner in body)
        case ast.FunctionDef(name=name):
            return name in LAZY_FUNCTIONS
    return False


def find_code(source: str) -> list[int]:
    """Return the lines of the statements that are more than a re-export."""
    return [node.lineno for node in ast.parse(source).body if not is_re_export(node)]


def test_init_files_hold_no_code():
    found = [
        f"{path.relative_to(ROOT)}:{line}: this is code; move it to a file of its own"
        for path in sorted((ROOT / "weft").rglob("__init__.py"))
        for line in find_code(path.read_text(encoding="utf-8"))
    ]
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize(
    "source",
    ["def helper(): pass", "class A: pass", "x = f()", "print(1)", "if True:\n  import os"],
)
def test_checker_finds_code(source: str):
    assert find_code(f'"""Docs."""\nimport os\n{source}\n') == [3]


def test_checker_accepts_re_exports():
    source = '''
"""Docs."""
from typing import TYPE_CHECKING
from weft.ir.uop import UOp
if TYPE_CHECKING:
    from weft.tensor import Tensor
__all__ = ["Tensor", "UOp"]
LAZY: dict[str, str] = {"Tensor": "weft.tensor"}
def __getattr__(name): ...
'''
    assert find_code(source) == []
