"""Write the reference pages of the docs from the tables in the code.

    python tools/tables.py            write the pages of docs/reference/
    python tools/tables.py --check    fail if a page is not what the code says

Ops, settings, errors and rules are tables in the code, so their pages are printed and not written
by hand. `tests/docs/test_tables.py` runs the check.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import weft.rules
from weft.ir.dtypes import ANY, BOOL, FLOAT, INDEX, INT, UINT
from weft.ir.ops import INFO, OpClass, OpInfo
from weft.ir.scalar import KINDS
from weft.ir.spec_kernel import KERNEL_SPEC
from weft.ir.spec_program import PROGRAM_SPEC
from weft.ir.spec_tensor import TENSOR_SPEC
from weft.ir.text_syntax import INFIX, PREFIXES
from weft.rewrite.pattern import Pattern
from weft.rewrite.rule import Rule
from weft.rewrite.ruleset import RuleSet
from weft.rules.memory import KERNEL_RULES
from weft.rules.simplify import SIMPLIFY
from weft.support.error_table import ERROR_TABLE, ErrorRow
from weft.support.settings import table

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "reference"
NOTE = "<!-- Written by tools/tables.py from {source}; change that instead. -->"

KIND_NAMES = {BOOL: "bool", INT: "int", UINT: "uint", INDEX: "index", FLOAT: "float"}
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


# Markdown.


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table; a bar inside a cell is escaped.

    >>> markdown_table(["a", "b"], [("1", "x | y")])
    ['| a | b |', '| --- | --- |', '| 1 | x \\\\| y |']
    """
    lines = [heads, ["---"] * len(heads), *([c.replace("|", "\\|") for c in row] for row in rows)]
    return ["| " + " | ".join(cells) + " |" for cells in lines]


def code(text: str) -> str:
    """Inline code, or nothing for nothing."""
    return f"`{text}`" if text else ""


def anchor(name: str) -> str:
    return f'<a id="{name}"></a>'


def kinds_text(mask: int) -> str:
    """The kinds of a mask in words.

    >>> kinds_text(INT | UINT), kinds_text(ANY)
    ('int, uint', 'any')
    """
    if mask == ANY:
        return "any"
    return ", ".join(name for kind, name in KIND_NAMES.items() if mask & kind)


# ops.md


def ops_page() -> Iterator[str]:
    yield "# Ops"
    yield ""
    yield NOTE.format(source="weft/ir/ops.py")
    yield ""
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
    ("laws", lambda row: ", ".join(sorted(row.laws))),
    ("levels", levels_text),
    ("meaning", lambda row: row.meaning),
)


# settings.md


def settings_page() -> Iterator[str]:
    yield "# Settings"
    yield ""
    yield NOTE.format(source="weft/support/settings.py")
    yield ""
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
    yield "# Errors"
    yield ""
    yield NOTE.format(source="weft/support/error_table.py")
    yield ""
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


# rules.md


def rules_page() -> Iterator[str]:
    yield "# Rules"
    yield ""
    yield NOTE.format(source="weft/rules/")
    yield ""
    yield from wrapped("""
        Every rule of `SIMPLIFY`, the one rule set of the algebra that all levels share, in the
        order in which it holds them. A law has terms on both sides; a structural rule is a
        function, shown by its examples. `x`, `y`, `z`, `a` and `b` match any node, `c0` and `c1` a
        constant, and `fold(…)` is computed when the rule fires. A pattern over a commutative op
        matches both ways round.
    """)
    yield ""
    yield from wrapped("""
        "Over" is the kinds of dtype a rule holds for: that of the last source of the matched node.
        A rule that assumes something is off unless a rule set allows the assumption:
        `SIMPLIFY.allowing("finite")`. In the examples `i`, `j` and `three` are ranges of 16, 32
        and 4, `n` is a variable from 1 to 64, `u8` a uint8 and `flag` a bool. Every rule is tested
        against the meaning of the ops by
        [test_every_rule.py](../../tests/rules/test_every_rule.py).
    """)
    for module, family in families():
        yield ""
        yield f"## {family.name.capitalize()}"
        yield ""
        yield f"[weft/rules/{module}.py](../../weft/rules/{module}.py)"
        laws = [item for item in family.all_rules if item.rhs is not None]
        if laws:
            yield ""
            yield from markdown_table(["rule", "law", "over", "where"], map(law_row, laws))
        functions = {item.function: item for item in family.all_rules if item.rhs is None}
        for item in functions.values():
            yield ""
            yield from structural_section(item, family)


def families() -> list[tuple[str, RuleSet]]:
    """The rule sets that KERNEL_RULES is made of with their modules, in its order."""
    found: list[tuple[int, str, RuleSet]] = []
    places = {id(item): place for place, item in enumerate(KERNEL_RULES.all_rules)}
    for info in pkgutil.iter_modules(weft.rules.__path__):
        module = importlib.import_module(f"weft.rules.{info.name}")
        for value in vars(module).values():
            if isinstance(value, RuleSet) and value is not SIMPLIFY and defined_in(value, module):
                found.append((places[id(value.all_rules[0])], info.name, value))
    count, listed = len(places), sum(len(family.all_rules) for _, _, family in found)
    if listed != count:
        sys.exit(f"KERNEL_RULES has {count} rules, and the sets of weft/rules have {listed}")
    return [(module, family) for _, module, family in sorted(found, key=lambda row: row[0])]


def defined_in(family: RuleSet, module: object) -> bool:
    """Whether a module makes a rule set, and does not only import it."""
    return getattr(module, "__name__", "").endswith(f".{family.name}")


def law_row(item: Rule) -> tuple[str, ...]:
    assert item.rhs is not None
    law = f"{pattern_text(item.lhs)} -> {pattern_text(item.rhs)}"
    notes = [code(guard_text(item.when))] if item.when is not None else []
    notes += [f"assumes {', '.join(item.assumes)}"] if item.assumes else []
    notes += [item.why.translate(BRACES)] if item.why else []
    return anchor(item.name) + code(item.name), code(law), over_text(item), "; ".join(notes)


def over_text(item: Rule) -> str:
    """The kinds that a rule names and its root op takes."""
    assert item.lhs.op is not None
    return kinds_text(item.over & KINDS.get(item.lhs.op, ANY))


def structural_section(item: Rule, family: RuleSet) -> Iterator[str]:
    assert item.function is not None
    same = [other for other in family.all_rules if other.function is item.function]
    yield f"### {item.name}"
    yield ""
    yield from wrapped(summary(item.function))
    yield ""
    if len(same) == 1:
        kinds = f" over {over_text(item)}" if item.lhs.src else ""
        yield f"Matches `{pattern_text(item.lhs)}`{kinds}."
    else:
        roots = [INFO[other.lhs.op].name for other in same if other.lhs.op is not None]
        yield from wrapped(f"One rule for each of {', '.join(map(code, roots))}.")
    yield ""
    yield "```text"
    examples = EXAMPLE.findall(inspect.getdoc(item.function) or "")
    width = max((len(before) for before, _ in examples), default=0)
    yield from (f"{before:<{width}}  ->  {after}" for before, after in examples)
    yield "```"


BRACES = str.maketrans("", "", "{}")
EXAMPLE = re.compile(r"before: (.+)\n\s*after: +(.+)")


def pattern_text(pattern: Pattern, is_inner: bool = False) -> str:
    """A pattern as it is written, every inner infix in parentheses.

    >>> from weft.rewrite.pattern import any_, const_, fold
    >>> pattern_text((any_("x") + 1) * -const_("c0")), pattern_text(fold(const_("c0") * 2))
    ('(x + 1) * -c0', 'fold(c0 * 2)')
    """
    if pattern.literal is not None:
        return repr(pattern.literal)
    if pattern.variable is not None:
        return pattern.variable
    assert pattern.op is not None
    is_infix = pattern.op in INFIX
    parts = [pattern_text(source, pattern.op not in FUNCTION_OPS) for source in pattern.src or ()]
    if is_infix:
        text = f" {INFIX[pattern.op].symbol} ".join(parts)
    elif pattern.op in PREFIXES:
        text = PREFIXES[pattern.op] + parts[0]
    else:
        text = INFO[pattern.op].name + (f"({', '.join(parts)})" if parts else "")
    if pattern.folded:
        return f"fold({text})"
    return f"({text})" if is_infix and is_inner else text


FUNCTION_OPS = frozenset(row.number for row in INFO) - INFIX.keys() - PREFIXES.keys()


def guard_text(guard: Callable[..., bool]) -> str:
    """The condition of a rule: the body of a lambda or of a function that only returns."""
    place = inspect.getsourcefile(guard)
    assert place is not None
    source = Path(place).read_text(encoding="utf-8")
    line = guard.__code__.co_firstlineno
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Lambda) and node.lineno == line:
            return source_text(source, node.body)
        if isinstance(node, ast.FunctionDef) and node.lineno == line:
            last = node.body[-1]
            if len(node.body) == 1 and isinstance(last, ast.Return) and last.value is not None:
                return source_text(source, last.value)
            return f"{node.name}({', '.join(argument.arg for argument in node.args.args)})"
    sys.exit(f"{place}:{line}: no guard stands here")


def source_text(source: str, node: ast.expr) -> str:
    """An expression as it is written, on one line; `ast.unparse` differs between versions."""
    return " ".join((ast.get_source_segment(source, node) or "").split())


# Prose.


def summary(documented: object) -> str:
    """The first paragraph of a docstring."""
    return " ".join((inspect.getdoc(documented) or "").partition("\n\n")[0].split())


def wrapped(text: str, width: int = 99) -> Iterator[str]:
    """The words of a text in lines."""
    line = ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > width:
            yield line
            line = word
        else:
            line = f"{line} {word}".lstrip()
    yield line


PAGES: dict[str, Callable[[], Iterator[str]]] = {
    "ops.md": ops_page,
    "settings.md": settings_page,
    "errors.md": errors_page,
    "rules.md": rules_page,
}


if __name__ == "__main__":
    sys.exit(main())
