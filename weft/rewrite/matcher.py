"""Turns the rules of a rule set into Python source: one decision function per root op.

The rules of an op are merged into a tree of tests on the ops of the node's sources, so a node is
tested once for all rules together and the cost hardly grows with their number. Within the tree, a
rule that asks for more at the first point of difference is tried before one that asks for less,
and rules that ask for the same are tried in the order they were written. A pattern over a
commutative op is tried both ways round; constants stand to the right in normal form, so they need
no second try.

The text is plain Python: `RuleSet.source()` prints it, and reading it is the best way to see it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Final, NamedTuple

from weft.ir.dtypes import ANY, BOOL, FLOAT, INDEX, INT, UINT
from weft.ir.ops import COMMUTATIVE_OPS, COMPARE, INFO, Op
from weft.rewrite.pattern import Pattern
from weft.rewrite.rule import CONTEXT, NODE, Rule, parameters
from weft.support.errors import InternalError

Path = tuple[int, ...]

# Up to this many ops are told apart by a chain of comparisons, more by halving.
CHAIN: Final = 4


class Variant(NamedTuple):
    """A rule with its commutative ops in one of their orders, laid out by path."""

    number: int
    rule: Rule
    nodes: dict[Path, Pattern]
    tests: tuple[tuple[Path, int], ...]  # ops that must be at a path, nearest the root first


def generate(
    rules: tuple[Rule, ...], constants_right: bool, trace: bool, left_out: int = 0
) -> str:
    """The source of a function that makes `match_<OP>(n, context)` for every root op.

    What the rules call comes as arguments, so that the text can be compiled ahead. `left_out` is a
    mask of root ops whose decision functions somebody has already.
    """
    by_op: dict[int, list[Variant]] = {}
    called: list[str] = []
    for number, item in enumerate(rules):
        assert item.lhs.op is not None
        if left_out >> item.lhs.op & 1:
            continue
        called += [f"f{number} = functions[{number}]"] if item.function is not None else []
        called += [f"w{number} = guards[{number}]"] if item.when is not None else []
        for pattern in _orders(item.lhs, constants_right, _repeated(item.lhs)):
            by_op.setdefault(item.lhs.op, []).append(_variant(number, item, pattern))
    lines = list(called)
    for op, variants in sorted(by_op.items()):
        lines.append(f"def match_{INFO[op].name}(n, context):")
        lines += _by_kind(op, variants, trace)
        lines.append("    return None")
    entries = ", ".join(f"{op}: match_{INFO[op].name}" for op in sorted(by_op))
    lines.append(f"return {{{entries}}}")
    head = "def table(make, const, bool_like, record, functions, guards):"
    return "\n".join([head, *[f"    {line}" for line in lines], ""])


def _repeated(pattern: Pattern) -> frozenset[str]:
    """The variables that stand in a pattern more than once."""
    seen: list[str] = []
    stack = [pattern]
    while stack:
        part = stack.pop()
        seen += [part.variable] if part.variable is not None else []
        stack.extend(part.src or ())
    return frozenset(variable for variable in seen if seen.count(variable) > 1)


def _orders(pattern: Pattern, constants_right: bool, repeated: frozenset[str]) -> list[Pattern]:
    """The pattern with the sources of its commutative ops in every order that matters."""
    if not pattern.src:
        return [pattern]
    choices = [_orders(source, constants_right, repeated) for source in pattern.src]
    found: dict[tuple[object, ...], Pattern] = {}
    for sources in product(*choices):
        for order in _swaps(pattern, tuple(sources), constants_right, repeated):
            made = Pattern(pattern.op, order, pattern.variable, kinds=pattern.kinds)
            found.setdefault(made.key, made)
    return list(found.values())


def _swaps(
    pattern: Pattern, src: tuple[Pattern, ...], constants_right: bool, repeated: frozenset[str]
) -> Iterator[tuple[Pattern, ...]]:
    if pattern.op not in COMMUTATIVE_OPS or len(src) != 2:
        yield src
        return
    left, right = src
    if constants_right and left.is_constant != right.is_constant:
        yield (right, left) if left.is_constant else src
        return
    yield src
    is_symmetric = all(part.op is None and part.variable not in repeated for part in src)
    if not is_symmetric and left.key != right.key:
        yield right, left


def _variant(number: int, item: Rule, pattern: Pattern) -> Variant:
    nodes: dict[Path, Pattern] = {}
    level: list[tuple[Path, Pattern]] = [((), pattern)]
    tests: list[tuple[Path, int]] = []
    while level:
        deeper: list[tuple[Path, Pattern]] = []
        for path, part in level:
            nodes[path] = part
            _require_arity(item, part)
            if path and part.op is not None:
                tests.append((path, part.op))
            deeper += [((*path, i), source) for i, source in enumerate(part.src or ())]
        level = deeper
    return Variant(number, item, nodes, tuple(tests))


def _require_arity(item: Rule, part: Pattern) -> None:
    if part.op is not None and part.src is not None:
        row = INFO[part.op]
        if len(part.src) < row.least or (row.most is not None and len(part.src) > row.most):
            raise InternalError(
                f"rule {item.name}: {row.name} cannot take {len(part.src)} sources"
            )


def _by_kind(op: int, variants: list[Variant], trace: bool) -> list[str]:
    """Separate decision trees for kinds of dtype that see different rules."""
    groups: dict[tuple[int, ...], int] = {}
    for kind in (BOOL, INT, UINT, INDEX, FLOAT):
        seen = tuple(i for i, variant in enumerate(variants) if variant.rule.over & kind)
        groups[seen] = groups.get(seen, 0) | kind
    if len(groups) == 1:
        return _inside((), op, variants, set(), 1, trace)
    lines = ["    kind = (n.src[-1] if n.src else n).dtype.kind"]
    word = "if"
    for seen, kinds in groups.items():
        if seen:
            test = f"kind == {kinds}" if kinds & (kinds - 1) == 0 else f"kind & {kinds}"
            lines.append(f"    {word} {test}:")
            lines += _inside((), op, [variants[i] for i in seen], set(), 2, trace)
            word = "elif"
    return lines


def _inside(
    path: Path, op: int, variants: list[Variant], known: set[Path], depth: int, trace: bool
) -> list[str]:
    """Code for a node whose op has just become known: name its sources and look at them."""
    known = known | {path}
    pad = "    " * depth
    lengths = {len(v.nodes[path].src or ()) for v in variants} - {0}
    if not lengths:
        return _tree(variants, known, depth, trace)
    if INFO[op].most == INFO[op].least:
        names = "".join(f"{_name((*path, i))}, " for i in range(INFO[op].least)).rstrip()
        return [f"{pad}{names} = {_name(path)}.src", *_tree(variants, known, depth, trace)]
    lines: list[str] = []
    for length in sorted(lengths):
        chosen = [v for v in variants if len(v.nodes[path].src or ()) == length]
        names = "".join(f"{_name((*path, i))}, " for i in range(length)).rstrip()
        lines.append(f"{pad}if len({_name(path)}.src) == {length}:")
        lines.append(f"{pad}    {names} = {_name(path)}.src")
        lines += _tree(chosen, known, depth + 1, trace)
    rest = [v for v in variants if not v.nodes[path].src]
    return lines + (_tree(rest, known, depth, trace) if rest else [])


def _tree(variants: list[Variant], known: set[Path], depth: int, trace: bool) -> list[str]:
    """Code that tries these variants, all of which fit what is known of the ops so far."""
    pending = [(variant, _next_test(variant, known)) for variant in variants]
    paths = [test[0] for _, test in pending if test is not None]
    if not paths:
        return [line for variant in variants for line in _attempt(variant, depth, trace)]
    path = min(paths, key=lambda p: (len(p), p))
    by_op: dict[int, list[Variant]] = {}
    rest: list[Variant] = []
    for variant in variants:
        wanted = dict(variant.tests).get(path)
        if wanted is None:
            rest.append(variant)
        else:
            by_op.setdefault(wanted, []).append(variant)
    branches = {
        op: _inside(path, op, chosen, known, depth + 1, trace) for op, chosen in by_op.items()
    }
    lines = [
        f"{'    ' * depth}o = {_name(path)}.op",
        *_branches(sorted(branches), branches, depth),
    ]
    return lines + (_tree(rest, known | {path}, depth, trace) if rest else [])


def _next_test(variant: Variant, known: set[Path]) -> tuple[Path, int] | None:
    return next((test for test in variant.tests if test[0] not in known), None)


def _branches(ops: list[int], code: dict[int, list[str]], depth: int) -> list[str]:
    """Tell the ops apart. The code of a branch is indented for `depth + 1`."""
    pad = "    " * depth
    if len(ops) > CHAIN:
        half = len(ops) // 2
        low = _branches(ops[:half], code, depth)
        high = _branches(ops[half:], code, depth)
        return [
            f"{pad}if o < {ops[half]}:",
            *[f"    {line}" for line in low],
            f"{pad}else:",
            *[f"    {line}" for line in high],
        ]
    lines: list[str] = []
    for i, op in enumerate(ops):
        lines.append(f"{pad}{'elif' if i else 'if'} o == {op}:  # {INFO[op].name}")
        lines += code[op]
    return lines


def _name(path: Path) -> str:
    return "n" + "_".join(map(str, path))


def _attempt(variant: Variant, depth: int, trace: bool) -> list[str]:
    """The last tests of one variant, its guard, and its result."""
    pad = "    " * depth
    lines: list[str] = []
    conditions: list[str] = []
    bound: dict[str, Path] = {}
    for path, part in variant.nodes.items():
        if part.kinds != ANY:
            conditions.append(f"{_name(path)}.dtype.kind & {part.kinds}")
        if part.literal is not None:
            conditions.append(_literal_test(_name(path), part.literal))
        if part.variable is not None:
            if part.variable in bound:
                conditions.append(f"{_name(path)} is {_name(bound[part.variable])}")
            else:
                bound[part.variable] = path
    number, item = variant.number, variant.rule
    values = _values(variant, bound)
    if item.when is not None:
        conditions.append(f"w{number}({', '.join(values[p] for p in parameters(item.when))})")
    if conditions:
        lines.append(f"{pad}if {' and '.join(conditions)}:")
        pad += "    "
    return lines + _result(variant, values, bound, pad, trace)


def _literal_test(node: str, literal: bool | int | float) -> str:
    if isinstance(literal, bool):
        return f"{node}.arg is {literal}"
    if isinstance(literal, float) and (literal == 0.0 or literal != literal):
        return f"repr({node}.arg) == {repr(literal)!r}"
    return f"{node}.arg == {literal!r}"


def _values(variant: Variant, bound: dict[str, Path]) -> dict[str, str]:
    """For each variable the text that a guard or function receives."""
    values = {NODE: "n", CONTEXT: CONTEXT}
    for variable, path in bound.items():
        is_value = variant.nodes[path].is_constant
        values[variable] = f"{_name(path)}.arg" if is_value else _name(path)
    return values


def _result(
    variant: Variant, values: dict[str, str], bound: dict[str, Path], pad: str, trace: bool
) -> list[str]:
    number, item = variant.number, variant.rule
    note = "{" + ", ".join(f"{v!r}: {values[v]}" for v in bound) + "}" if item.why else "None"
    traced = [f"{pad}    record({number}, n, r, {note})"] if trace else []
    if item.rhs is not None:
        result = template(item.rhs, "n.dtype", bound)[0]
        if not trace:
            return [f"{pad}return {result}"]
        return [f"{pad}r = {result}", *[line[4:] for line in traced], f"{pad}return r"]
    assert item.function is not None
    arguments = ", ".join(values[p] for p in parameters(item.function))
    return [
        f"{pad}r = f{number}({arguments})",
        f"{pad}if r is not None:",
        *traced,
        f"{pad}    return r",
    ]


def template(part: Pattern, hint: str, bound: dict[str, Path]) -> tuple[str, str]:
    """The text that builds a template, and that of its dtype. `hint` is a literal's dtype."""
    if part.folded:
        return f"const({hint}, {_arithmetic(part, bound)})", hint
    if part.literal is not None:
        return f"const({hint}, {_number(part.literal)})", hint
    if part.variable is not None:
        node = _name(bound[part.variable])
        return node, f"{node}.dtype"
    assert part.op is not None
    assert part.src is not None
    typed = [s for s in part.src if s.literal is None and not s.folded]
    if part.op == Op.WHERE:
        typed = [s for s in part.src[1:] if s.literal is None and not s.folded]
    inner = template(typed[0], hint, bound)[1] if typed else hint
    parts = [template(source, inner, bound)[0] for source in part.src]
    dtype = hint if part.op == Op.CAST else inner
    if part.op in COMPARE:
        dtype = f"bool_like({template(typed[0], hint, bound)[0]})"
    return f"make({part.op}, {dtype}, ({', '.join(parts)},))", dtype


def _number(value: bool | int | float) -> str:
    text = repr(value)
    return f"float({text!r})" if text in ("nan", "inf", "-inf") else text


def _arithmetic(part: Pattern, bound: dict[str, Path]) -> str:
    """The text that computes an expression over the values of constants."""
    if part.literal is not None:
        return _number(part.literal)
    if part.variable is not None:
        return f"{_name(bound[part.variable])}.arg"
    assert part.op is not None
    assert part.src is not None
    parts = [_arithmetic(source, bound) for source in part.src]
    if part.op in (Op.MAX, Op.MIN):
        return f"{'max' if part.op == Op.MAX else 'min'}({', '.join(parts)})"
    if part.op in _PREFIX:
        return f"({_PREFIX[part.op]}{parts[0]})"
    return f"({f' {_INFIX[part.op]} '.join(parts)})"


_PREFIX: Final = {Op.NEG: "-", Op.NOT: "~"}
_INFIX: Final = {
    Op.ADD: "+",
    Op.MUL: "*",
    Op.FLOORDIV: "//",
    Op.FLOORMOD: "%",
    Op.DIV: "/",
    Op.AND: "&",
    Op.OR: "|",
    Op.XOR: "^",
    Op.SHL: "<<",
    Op.SHR: ">>",
}
