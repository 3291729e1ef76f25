"""Conditions and bits. A conjunction of conditions is a chain in order, none twice, none implied.

`OR` is treated the same way, with implication reversed.
"""

from __future__ import annotations

from weft.ir.dtypes import BOOL, EXACT, FIXED, INDEX
from weft.ir.linear import LONGEST, order
from weft.ir.ops import Op
from weft.ir.uop import UOp, const, make
from weft.rewrite.pattern import Pattern, any_, const_, fold, node_
from weft.rewrite.rule import Rule, rule, structural
from weft.rewrite.ruleset import rules

x, y, c0, c1 = any_("x"), any_("y"), const_("c0"), const_("c1")
one = Pattern(Op.CONST, (), literal=1)


@structural(x & y, over=BOOL)
def collect_conditions(node: UOp, x: UOp, y: UOp) -> UOp | None:
    """Merge conjunctions: in order, no condition twice, none that another implies.

    before: (i < const(5)) & ((j < const(9)) & (i < const(3)))
    after:  (i < const(3)) & (j < const(9))

    before: (i < const(3)) & ~(i < const(5))
    after:  false
    """
    return _collect(node, x, y)


@structural(x | y, over=BOOL)
def collect_alternatives(node: UOp, x: UOp, y: UOp) -> UOp | None:
    """Merge disjunctions: in order, no condition twice, none that implies another.

    before: (i < const(5)) | (i < const(3))
    after:  i < const(5)

    before: (i < const(5)) | ~(i < const(3))
    after:  true
    """
    return _collect(node, x, y)


def _collect(node: UOp, x: UOp, y: UOp) -> UOp | None:
    is_and = node.op == Op.AND
    left, right = conditions(x, node.op), conditions(y, node.op)
    if len(left) + len(right) > LONGEST:
        return None
    kept: dict[UOp, None] = {}
    denied: set[UOp] = set()
    # The limit that is kept of a subject in each direction: no condition is compared with all.
    limited: dict[tuple[UOp, bool], tuple[int, UOp]] = {}
    for new in (*left, *right):
        if new.op == Op.CONST:
            if bool(new.arg) is is_and:
                continue
            return new
        if new in denied or (new.op == Op.NOT and new.src[0] in kept):
            return const(node.dtype, not is_and)
        if new in kept:
            continue
        limit = _limit(new)
        if limit is not None:
            subject, value, is_below = limit
            opposite = limited.get((subject, not is_below))
            if opposite is not None and _excludes(value, opposite[0], is_below, is_and):
                return const(node.dtype, not is_and)
            old = limited.get((subject, is_below))
            if old is not None:
                if _covers(old[0], value, is_below, is_and):
                    continue
                del kept[old[1]]
            limited[subject, is_below] = value, new
        if new.op == Op.NOT:
            denied.add(new.src[0])
        kept[new] = None
    if not kept:
        return const(node.dtype, is_and)
    made, *others = sorted(kept, key=condition_order)
    for condition in others:
        made = make(node.op, node.dtype, (made, condition))
    return None if made is node else made


def conditions(node: UOp, op: int = Op.AND) -> list[UOp]:
    """The parts of a chain of AND (or OR), in order."""
    parts: list[UOp] = []
    while node.op == op:
        parts.append(node.src[1])
        node = node.src[0]
    return [node, *reversed(parts)]


def condition_order(node: UOp) -> tuple[tuple[int, int, int], int, tuple[int, int, int]]:
    """Conditions on one expression stand together, its lower limit first."""
    inner = node.src[0] if node.op == Op.NOT else node
    subject = inner.src[0] if inner.op == Op.LESS else inner
    return order(subject), int(node is inner), order(node)


def _limit(node: UOp) -> tuple[UOp, int, bool] | None:
    """A condition `x < c` as (x, c, True), and `~(x < c)` as (x, c, False)."""
    inner = node.src[0] if node.op == Op.NOT else node
    if inner.op != Op.LESS or inner.src[1].op != Op.CONST or inner.src[1].dtype.kind & ~EXACT:
        return None
    return inner.src[0], inner.src[1].arg, inner is node


def _covers(old: int, new: int, is_below: bool, is_and: bool) -> bool:
    """Whether a limit in the same direction adds nothing: the old one implies it, or in an OR
    is implied by it."""
    return old <= new if is_below is is_and else old >= new


def _excludes(limit: int, opposite: int, is_below: bool, is_and: bool) -> bool:
    """Whether `x < below` and `x >= above` never hold together, or one of them always does."""
    below, above = (limit, opposite) if is_below else (opposite, limit)
    return below <= above if is_and else below >= above


def _absorption(outer: int, inner: int, name: str) -> Rule:
    return rule(name, node_(outer, x, node_(inner, x, y)), x, over=BOOL | FIXED)


LOGIC_RULES = rules(
    "logic",
    rule("not-not", ~~x, x),
    collect_conditions,
    collect_alternatives,
    _absorption(Op.AND, Op.OR, "and-absorbs-or"),
    _absorption(Op.OR, Op.AND, "or-absorbs-and"),
    rule("and-self", x & x, x, over=EXACT),
    rule("or-self", x | x, x, over=EXACT),
    rule("and-zero", x & 0, 0, over=FIXED | INDEX),
    rule("or-zero", x | 0, x, over=FIXED | INDEX),
    rule("and-all-ones", x & c0, x, over=FIXED, when=lambda node, c0: _all_ones(node, c0)),
    rule("or-all-ones", x | c0, c0, over=FIXED, when=lambda node, c0: _all_ones(node, c0)),
    rule("and-merges-constants", (x & c0) & c1, x & fold(c0 & c1), over=FIXED | INDEX),
    rule("or-merges-constants", (x | c0) | c1, x | fold(c0 | c1), over=FIXED | INDEX),
    rule("xor-zero", x ^ 0, x, over=FIXED | INDEX),
    rule("xor-false", x ^ False, x, over=BOOL),
    rule("xor-true", x ^ True, ~x, over=BOOL),
    rule("xor-self", x ^ x, 0, over=EXACT),
    rule("xor-merges-constants", (x ^ c0) ^ c1, x ^ fold(c0 ^ c1), over=FIXED | INDEX),
    rule("shift-left-zero", x << 0, x, over=FIXED | INDEX),
    rule("shift-right-zero", x >> 0, x, over=FIXED | INDEX),
    rule(
        "shift-left-multiplies", x << c0, x * fold(one << c0), over=INDEX, when=lambda c0: c0 >= 0
    ),
    rule(
        "shift-right-divides", x >> c0, x // fold(one << c0), over=INDEX, when=lambda c0: c0 >= 0
    ),
)


def _all_ones(node: UOp, value: int) -> bool:
    return value == (node.dtype.max if node.dtype.is_unsigned else -1)
