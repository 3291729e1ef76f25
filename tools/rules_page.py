"""The reference page of rules: every rule of the algebra, with its identity or its examples."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from table_page import anchor, code, head, kinds_text, markdown_table, summary, wrapped

import weft.rules
from weft.ir.dtypes import ANY
from weft.ir.ops import INFO
from weft.ir.scalar import KINDS
from weft.ir.text.syntax import INFIX, PREFIXES
from weft.rewrite.pattern import Pattern
from weft.rewrite.rule import Rule
from weft.rewrite.ruleset import RuleSet
from weft.rules.memory import KERNEL_RULES
from weft.rules.simplify import SIMPLIFY


def rules_page() -> Iterator[str]:
    yield from head("Rules", "weft/rules/")
    yield from wrapped("""
        Every rule of `SIMPLIFY`, the one rule set of the algebra that all levels share, in the
        order in which it holds them. An identity has terms on both sides; a structural rule is a
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
        identities = [item for item in family.all_rules if item.rhs is not None]
        if identities:
            yield ""
            yield from markdown_table(
                ["rule", "identity", "over", "where"], map(identity_row, identities)
            )
        functions = {item.function: item for item in family.all_rules if item.rhs is None}
        for item in functions.values():
            yield ""
            yield from structural_section(item, family)


def families() -> list[tuple[str, RuleSet]]:
    """The rule sets that KERNEL_RULES is made of with their modules, in its order."""
    found: list[tuple[int, str, RuleSet]] = []
    positions = {id(item): number for number, item in enumerate(KERNEL_RULES.all_rules)}
    for info in pkgutil.iter_modules(weft.rules.__path__):
        module = importlib.import_module(f"weft.rules.{info.name}")
        for value in vars(module).values():
            if isinstance(value, RuleSet) and value is not SIMPLIFY and defined_in(value, module):
                found.append((positions[id(value.all_rules[0])], info.name, value))
    count, listed = len(positions), sum(len(family.all_rules) for _, _, family in found)
    if listed != count:
        sys.exit(f"KERNEL_RULES has {count} rules, and the sets of weft/rules have {listed}")
    return [(module, family) for _, module, family in sorted(found, key=lambda row: row[0])]


def defined_in(family: RuleSet, module: object) -> bool:
    """Whether a module makes a rule set, and does not only import it."""
    return getattr(module, "__name__", "").endswith(f".{family.name}")


def identity_row(item: Rule) -> tuple[str, ...]:
    assert item.rhs is not None
    identity = f"{pattern_text(item.lhs)} -> {pattern_text(item.rhs)}"
    notes = [code(guard_text(item.when))] if item.when is not None else []
    notes += [f"assumes {', '.join(item.assumes)}"] if item.assumes else []
    notes += [item.why.translate(BRACES)] if item.why else []
    return anchor(item.name) + code(item.name), code(identity), over_text(item), "; ".join(notes)


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
    file = inspect.getsourcefile(guard)
    assert file is not None
    source = Path(file).read_text(encoding="utf-8")
    line = guard.__code__.co_firstlineno
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Lambda) and node.lineno == line:
            return source_text(source, node.body)
        if isinstance(node, ast.FunctionDef) and node.lineno == line:
            last = node.body[-1]
            if len(node.body) == 1 and isinstance(last, ast.Return) and last.value is not None:
                return source_text(source, last.value)
            return f"{node.name}({', '.join(argument.arg for argument in node.args.args)})"
    sys.exit(f"{file}:{line}: no guard stands here")


def source_text(source: str, node: ast.expr) -> str:
    """An expression as it is written, on one line; `ast.unparse` differs between versions."""
    return " ".join((ast.get_source_segment(source, node) or "").split())
