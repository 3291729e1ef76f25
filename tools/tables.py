"""Write the reference pages of the docs from the tables in the code.

    python tools/tables.py            write the pages of docs/reference/
    python tools/tables.py --check    fail if a page is not what the code says

Ops, settings, errors, rules, passes and devices are tables in the code, and signatures and
docstrings are there too, so their pages are printed and not written by hand.
`tests/docs/test_tables.py` runs the check.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from api_pages import api_pages
from command_page import command_page
from conformance_pages import conformance_page, deviations_page
from machine_pages import devices_page, phases_page
from rules_page import rules_page
from table_page import ROOT, anchor, code, head, kinds_text, markdown_table, summary, wrapped

from weft.ir.ops import INFO, OpClass, OpInfo
from weft.ir.scalar import KINDS
from weft.ir.spec.kernel import KERNEL_SPEC
from weft.ir.spec.program import PROGRAM_SPEC
from weft.ir.spec.tensor import TENSOR_SPEC
from weft.support.error_table import ERROR_TABLE, ErrorRow
from weft.support.settings import table

FOLDER = ROOT / "docs" / "reference"
LEVELS = {"tensor": TENSOR_SPEC, "kernel": KERNEL_SPEC, "program": PROGRAM_SPEC}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Write docs/reference/ from the code.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if stale")
    options = parser.parse_args(arguments)
    stale = stale_pages(FOLDER)
    for path, text in stale.items():
        if options.check:
            print(f"{path.relative_to(ROOT)} is stale: run python tools/tables.py")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.relative_to(ROOT)}")
    return 1 if options.check and stale else 0


def stale_pages(folder: Path) -> dict[Path, str]:
    """The pages of a folder that differ from what the code says, and what they should hold."""
    pages = {folder / name: "\n".join(make()) + "\n" for name, make in PAGES.items()}
    return {
        path: text
        for path, text in pages.items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    }


# ops.md


def ops_page() -> Iterator[str]:
    yield from head("Ops", "weft/ir/ops.py")
    yield from wrapped("""
        Every op of every level, from tensor to instruction, in the order of the one table. x, y
        and z are the sources. The kinds are those of dtypes that an elementwise op takes; of WHERE
        they are the kinds it chooses from. The levels are those whose spec accepts the op: a
        tensor graph, a kernel, a program of instructions. On floats ADD and MUL are associative
        only up to rounding, so no rule regroups them.
    """)
    for op_class in OpClass:
        rows = [row for row in INFO if row.op_class is op_class]
        yield ""
        yield f"## {op_class.value.capitalize()}"
        yield ""
        columns = [column for column in OP_COLUMNS if any(map(column[1], rows))]
        heads = [head for head, _ in columns]
        yield from markdown_table(heads, ([cell(row) for _, cell in columns] for row in rows))


def sources_text(row: OpInfo) -> str:
    if row.most is None:
        return f"{row.least} or more"
    return str(row.least) if row.most == row.least else f"{row.least} to {row.most}"


def levels_text(row: OpInfo) -> str:
    return ", ".join(name for name, spec in LEVELS.items() if row.number in spec.ops)


OP_COLUMNS: tuple[tuple[str, Callable[[OpInfo], str]], ...] = (
    ("op", lambda row: anchor(row.name) + code(row.name)),
    ("sources", sources_text),
    ("arg", lambda row: code(row.arg)),
    ("kinds", lambda row: kinds_text(KINDS.get(row.number, 0))),
    ("properties", lambda row: ", ".join(sorted(row.properties))),
    ("levels", levels_text),
    ("meaning", lambda row: row.meaning),
)


# settings.md


def settings_page() -> Iterator[str]:
    yield from head("Settings", "weft/support/settings.py")
    yield from wrapped("""
        Every setting has an environment variable, which is read once, at the first use of any
        setting. `Context` changes settings in a scope of one thread:
    """)
    yield from SETTINGS_EXAMPLE.splitlines()
    yield ""
    yield from wrapped("""
        Settings marked `key` can change a compiled result and are part of every cache key. The
        last column names the packages that read a setting; one without a package is accepted and
        has no effect yet.
    """)
    yield ""
    rows = [
        (
            anchor(row.name) + code(row.name),
            code(row.variable),
            code(f"{row.default:d}" if isinstance(row.default, int) else repr(row.default)),
            row.expects,
            "key" if row.in_cache_key else "",
            row.meaning,
            ", ".join(map(code, readers(row.name))),
        )
        for row in table()
    ]
    heads = ["setting", "variable", "default", "accepts", "cache", "meaning", "read by"]
    yield from markdown_table(heads, rows)


SETTINGS_EXAMPLE = """
```python
from weft import Context, dtypes

with Context(DEFAULT_FLOAT="float16"):
    print(dtypes.default_float)
print(dtypes.default_float)
```
<!-- output -->
```text
dtypes.float16
dtypes.float32
```
"""


def readers(name: str) -> list[str]:
    """The packages of weft that read a setting."""
    use = re.compile(rf"\bsettings\.{name}\b")
    table_files = {ROOT / "weft/support/setting.py", ROOT / "weft/support/settings.py"}
    files = [path for path in (ROOT / "weft").rglob("*.py") if path not in table_files]
    found = [path for path in files if use.search(path.read_text(encoding="utf-8"))]
    return sorted({path.relative_to(ROOT / "weft").parts[0] for path in found})


# errors.md


def errors_page() -> Iterator[str]:
    yield from head("Errors", "weft/support/error_table.py")
    yield from wrapped("""
        Errors have two roots. `UsageError` is for what you can put right; its subclasses also
        derive from the builtin error that a Python programmer expects, so `except ValueError`
        works. `InternalError` is a bug in Weft. All of them are names of the package `weft`.
    """)
    yield ""
    rows = [
        (row.code, f"[{row.name}](#{row.name.lower()})", builtins_text(row), summary(row.error))
        for row in ERROR_TABLE
    ]
    yield from markdown_table(["code", "error", "also a", "meaning"], rows)
    for row in ERROR_TABLE:
        yield ""
        yield f"## {row.name}"
        yield ""
        yield from wrapped(f"{row.code}. {row.explanation}")


def builtins_text(row: ErrorRow) -> str:
    bases = [base for base in row.error.__bases__ if base.__module__ == "builtins"]
    return ", ".join(code(base.__name__) for base in bases)


PAGES: dict[str, Callable[[], Iterator[str]]] = {
    "ops.md": ops_page,
    "settings.md": settings_page,
    "errors.md": errors_page,
    "rules.md": rules_page,
    "phases.md": phases_page,
    "devices.md": devices_page,
    "command.md": command_page,
    "conformance.md": conformance_page,
    "deviations.md": deviations_page,
    **api_pages(),
}


if __name__ == "__main__":
    sys.exit(main())
