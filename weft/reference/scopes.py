"""The scopes of a LINEAR of instructions: which END closes what, and what is known where.

A RANGE opens a scope and its END closes it. An instruction may use what was computed
earlier in its own scope or in one around it; an order edge (of AFTER and BARRIER) only asks that
something has happened.
"""

from __future__ import annotations

from typing import Final

from weft.ir.ops import Op, name
from weft.ir.uop import UOp
from weft.reference.fault import fault

# Known everywhere: these are not computed by an instruction.
_LEAVES: Final = frozenset((Op.CONST, Op.VARIABLE, Op.PARAM, Op.MEMORY, Op.SPECIAL))


def match_ends(program: UOp) -> dict[int, int]:
    """Where to jump: the position of a RANGE's END, and of the RANGE of an END."""
    matched: dict[int, int] = {}
    opened: list[int] = []
    for position, node in enumerate(program.src):
        if node.op == Op.RANGE:
            opened.append(position)
        elif node.op == Op.END:
            if not opened or program.src[opened[-1]] is not node.src[0]:
                raise fault("END does not close what was opened last", node, position=position)
            matched[position] = opened.pop()
            matched[matched[position]] = position
    if opened:
        raise fault("a scope is never closed", program.src[opened[-1]], position=opened[-1])
    return matched


def verify_scopes(program: UOp) -> None:
    """Raise where an instruction uses a value that is not known there."""
    if program.op != Op.LINEAR:
        raise fault(f"a program is a LINEAR, not a {name(program.op)}", program)
    match_ends(program)
    happened: set[UOp] = set()
    scopes: list[set[UOp]] = [set()]
    for position, node in enumerate(program.src):
        if node.op == Op.END:
            scopes.pop()
        else:
            for source in _values_used(node):
                if not _is_known(source, scopes, happened):
                    raise fault(
                        f"{name(source.op)} is used where it is not known",
                        node,
                        position=position,
                    )
        if node.op == Op.BARRIER and not happened.issuperset(node.src):
            raise fault("BARRIER waits for what has not happened", node, position=position)
        if node.op == Op.RANGE:
            scopes.append(set())
        scopes[-1].add(node)
        happened.add(node)


def _values_used(node: UOp) -> tuple[UOp, ...]:
    if node.op == Op.BARRIER or node.op in _LEAVES:  # the sizes of a leaf are not computed here
        return ()
    return node.src[:1] if node.op == Op.AFTER else node.src


def _is_known(node: UOp, scopes: list[set[UOp]], happened: set[UOp]) -> bool:
    while node.op == Op.AFTER:
        if not happened.issuperset(node.src[1:]):
            return False
        node = node.src[0]
    return node.op in _LEAVES or any(node in scope for scope in scopes)
