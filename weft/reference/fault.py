"""The one form in which the interpreters report what a program does wrong.

A program that reads past its memory, or before anything was written there, is a bug of the pass
that made it, never of the user. So every fault is an `InternalError` and names the node at fault.
"""

from __future__ import annotations

from weft.ir.uop import UOp
from weft.support.errors import InternalError


def fault(what: str, node: UOp | None = None, **facts: object) -> InternalError:
    """An error to raise: what went wrong, the node that did it, and the numbers that show it."""
    rows: list[tuple[str, object]] = [(name, str(value)) for name, value in facts.items()]
    if node is not None:
        rows.insert(0, ("node", repr(node)))
    return InternalError(what, pass_name="reference", facts=rows)
