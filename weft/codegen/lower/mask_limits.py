"""Masks as limits of loops: what has to hold for an iteration of a reduction to change anything.

`trim_loops` ends loops there, and the heuristics of chains ask how many keys a mask leaves.
"""

from __future__ import annotations

import math

from weft.ir.bounds import bounds, dtype_limits
from weft.ir.build import index
from weft.ir.dtypes import FIXED, INDEX, Scalar
from weft.ir.linear import from_linear, linear
from weft.ir.ops import Op
from weft.ir.reduction.joined import is_joined, references, skips_empty_parts, start_of
from weft.ir.uop import UOp, make
from weft.ir.views import behind
from weft.rules.logic import conditions
from weft.rules.simplify import simplify


def needed_by(node: UOp, is_carried: bool) -> list[UOp]:
    """Conditions without which an iteration of a reduction changes nothing."""
    if is_joined(node):
        return needed_by(references(node)[0], False) if skips_empty_parts(node.arg[0]) else []
    return _needed(node.src[0], start_of(node), is_carried)


def _needed(value: UOp, neutral: Scalar, is_carried: bool = False) -> list[UOp]:
    """Conditions without which a value is the one that changes nothing.

    A block of weights that are all 0 adds nothing to a sum of products that goes on from block to
    block, whatever the values are that it weighs.
    """
    found: list[UOp] = []
    while True:
        choice = choice_of(value, neutral)
        if choice is not None:
            found += conditions(choice[0])
            value = choice[1]
        elif value.op == Op.REDUCE and not is_joined(value) and start_of(value) == neutral:
            value = value.src[0]
        elif value.op == Op.READ and behind(value.src[0]).op == Op.STAGE:
            # One of the elements that are staged, so what none of them needs it does not either.
            value = behind(value.src[0]).src[0]
        elif value.op == Op.CONTRACT and neutral == 0:
            tile = behind(value.src[0])  # that threads compute, or memory, which says nothing
            return found + (zero_unless(tile.src[0]) if tile.op == Op.STAGE else [])
        elif value.op == Op.MUL and is_carried and neutral == 0:
            blocks = [behind(each.src[0]) for each in value.src if each.op == Op.READ]
            stages = [each for each in blocks if each.op == Op.STAGE]
            return found + [condition for each in stages for condition in zero_unless(each.src[0])]
        else:
            return found


def zero_unless(element: UOp) -> list[UOp]:
    """Conditions without which all elements of a block are 0; none counts where it is NaN."""
    found: list[UOp] = []
    stack = [element]
    while stack:
        value = stack.pop()
        choice = choice_of(value, 0)
        if choice is not None:
            found += conditions(choice[0])
            stack.append(choice[1])
        elif value.op in (Op.MUL, Op.NEG, Op.CAST):
            stack += value.src
        elif value.op == Op.DIV:
            stack.append(value.src[0])
        elif value.op in (Op.EXP, Op.EXP2) and value.src[0].op == Op.ADD:
            exponents = [choice_of(_unscaled(each), -math.inf) for each in value.src[0].src]
            found += [c for each in exponents if each is not None for c in conditions(each[0])]
    return found


def _unscaled(exponent: UOp) -> UOp:
    """An exponent without a factor that makes it one of 2: what is -inf stays that."""
    if exponent.op == Op.MUL and exponent.src[1].op == Op.CONST and exponent.src[1].arg > 0:
        return exponent.src[0]
    return exponent


def choice_of(value: UOp, neutral: Scalar) -> tuple[UOp, UOp] | None:
    """A value as (condition, what it is there), where it is a constant elsewhere."""
    if value.op != Op.WHERE:
        return None
    condition, x, y = value.src
    if is_constant(y, neutral):
        return condition, x
    return (simplify(~condition), y) if is_constant(x, neutral) else None


def is_constant(node: UOp, value: Scalar) -> bool:
    return node.op == Op.CONST and node.arg == value


def end_under(condition: UOp, loop: UOp, outside: int) -> UOp | None:
    """The end of a loop for a condition that limits it from above; it may be below 0."""
    found = _limit(condition, loop, outside)
    if found is None or found[0] <= 0:
        return None
    factor, others = found
    return simplify((index(factor - 1) - others) // factor)


def start_under(condition: UOp, loop: UOp, outside: int) -> UOp | None:
    """The first iteration of a loop for a condition that limits it from below, or less than 0."""
    found = _limit(condition, loop, outside)
    if found is None or found[0] >= 0:
        return None
    factor, others = found
    return simplify(others // -factor + 1)


def _limit(condition: UOp, loop: UOp, outside: int) -> tuple[int, UOp] | None:
    """A condition as `a * loop + rest < 0`: a, and the least that `rest` is inside of the loop.

    It holds for some iteration of the loops inside while that allows it.
    """
    below = _below_zero(condition)
    if below is None:
        return None
    constant, terms = linear(below)
    factor, rest = 0, []
    for term, times in terms:
        if term is loop:
            factor = times
        elif term.ranges & ~outside:
            if term.ranges >> loop.arg & 1:
                return None
            low, high = bounds(term)
            constant += times * (low if times > 0 else high)
        else:
            rest.append((term, times))
    return factor, from_linear(below.dtype, constant, rest)


def _below_zero(condition: UOp) -> UOp | None:
    """The index expression that is below 0 exactly if a comparison holds."""
    is_negated = condition.op == Op.NOT
    compared = condition.src[0] if is_negated else condition
    if compared.op not in (Op.LESS, Op.LESS_EQUAL):
        return None
    x, y = (_as_index(side) for side in compared.src)
    if x is None or y is None:
        return None
    if compared.op == Op.LESS_EQUAL:
        y = y + 1
    return simplify(y - x - 1 if is_negated else x - y)


def _as_index(node: UOp) -> UOp | None:
    """An integer as exact index arithmetic; None where it may wrap, or is read from memory."""
    if node.dtype.kind == INDEX:
        return node
    if not node.dtype.kind & FIXED:
        return None
    made: UOp | None = None
    if node.op == Op.CONST:
        made = index(int(node.arg))
    elif node.op == Op.CAST:
        made = _as_index(node.src[0])
    elif node.op in (Op.ADD, Op.NEG, Op.MUL):
        src = [_as_index(source) for source in node.src]
        if all(source is not None for source in src):
            parts = tuple([source for source in src if source is not None])
            made = simplify(make(node.op, parts[0].dtype, parts))
    if made is None:
        return None
    least, most = dtype_limits(node.dtype)
    low, high = bounds(made)
    return made if least <= low and high <= most else None
