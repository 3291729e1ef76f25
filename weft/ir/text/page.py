"""The pieces that the forms of the text are made of: sources, constants, args.

A text carries its level, so that whoever puts it somewhere knows whether it needs parentheses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from json import dumps as quoted

from weft.ir.dtypes import DType, Scalar
from weft.ir.ops import Op
from weft.ir.text.syntax import ATOM, COMPARISON, PREFIX, is_free_name, is_plain
from weft.ir.uop import Arg, UOp
from weft.support.errors import InternalError

__all__ = [
    "Page",
    "Ref",
    "arg_text",
    "beside",
    "const_ref",
    "first_beside",
    "literal",
    "quoted",
    "typed",
    "word",
]

Ref = tuple[str, int]  # a text and its level


class Page:
    """What has been written: the text that stands for each node, and the name of each body."""

    __slots__ = ("functions", "refs")

    def __init__(self, functions: Mapping[UOp, str]) -> None:
        self.functions = functions
        self.refs: dict[UOp, Ref] = {}

    def operand(self, node: UOp, level: int = COMPARISON) -> str:
        """The text of a source, in parentheses where it is looser than `level`."""
        text, own = self.refs[node]
        return text if own >= level else f"({text})"

    def commas(self, nodes: Sequence[UOp]) -> str:
        return ", ".join([self.operand(node) for node in nodes])


def arg_text(arg: Arg, functions: Mapping[UOp, str]) -> str:
    if arg is None:
        return "none"
    if isinstance(arg, tuple):
        inner = ", ".join([arg_text(part, functions) for part in arg])
        return f"({inner},)" if len(arg) == 1 else f"({inner})"
    if isinstance(arg, bool | int | float):
        return literal(arg)
    if isinstance(arg, str):
        return quoted(arg)
    if isinstance(arg, UOp):
        return "@" + functions[arg]
    if isinstance(arg, DType):
        return arg.name
    raise InternalError(f"an arg of type {type(arg).__name__} has no text form")


def word(text: str) -> str:
    """A string of an arg without quotes, where it reads as a word."""
    return text if is_free_name(text) else quoted(text)


def literal(value: Scalar) -> str:
    """A number exactly: the shortest digits that give the float back, -0.0, inf, nan."""
    if value is True or value is False:
        return "true" if value else "false"
    return repr(value)


def typed_literal(node: UOp) -> str:
    return f"{node.dtype.name}({literal(node.arg)})"


def const_ref(node: UOp) -> Ref:
    """A constant where nothing beside it tells its dtype."""
    if not is_plain(node.dtype):
        return typed_literal(node), ATOM
    text = literal(node.arg)
    return text, PREFIX if text[0] == "-" else ATOM


def beside(node: UOp, other: UOp, page: Page, level: int = COMPARISON) -> str:
    """A source whose dtype, if it is a constant, is told by another source."""
    if node.op != Op.CONST:
        return page.operand(node, level)
    return literal(node.arg) if node.dtype is other.dtype else typed_literal(node)


def first_beside(node: UOp, other: UOp, page: Page, level: int = COMPARISON) -> str:
    """The first of two sources that tell each other's dtype: of two constants it is the typed."""
    if node.op == Op.CONST and other.op == Op.CONST and node.dtype is other.dtype:
        return page.operand(node, level)
    return beside(node, other, page, level)


def typed(node: UOp, page: Page, level: int) -> str:
    """A source where a bare literal would mean something else."""
    return typed_literal(node) if node.op == Op.CONST else page.operand(node, level)
