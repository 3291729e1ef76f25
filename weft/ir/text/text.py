"""The text form of a graph, at every level: `dump` writes it, `parse` reads it back.

`parse(dump(x)) is x` for every graph. The text holds nothing of this process, so it can be hashed.
`show` is one short line for messages and traces; `mark` is the dump with an arrow at one node.

A program is its bodies, each a function, and then the graph itself:

    program   = { "def" NAME ":" scope } scope
    scope     = { line } ( "return" expr | block )
    line      = NAME "=" ( expr | block )           a node with a name; names are only labels
              | "r3" "<" expr                       RANGE number 3 and its extent; another one
                                                    of that number is called r3_16
    block     = "sink" ":" members | "kernel" STRING { "r0" WORD "," … } ":" members
              | "linear" [ "from" "p3" | BYTES { "," "p3" "at" OFFSET } ] ":" members
    members   = deeper lines. In a sink or kernel those without a name are the sources. In a linear
                all are, unless "let" stands before them; "for r3 < expr:" opens a RANGE and
                "end r3" closes it.

    expr      = infix as in Python: < <= ==  |  ^  &  << >>  + -  * / // %, then - ~ load read
                x - y is ADD(x, NEG(y))
    postfix   = x[i, j if mask: dtype]              INDEX; "read x[…]" is READ, "load x" is LOAD
              | x.expand(4, n)                      so RESHAPE, PERMUTE, PAD, REDUCE over axes, …
    atom      = max(x, y)                           so every elementwise op without a sign
              | float32(x)                          CAST
              | float32(2.5)                        CONST; bare where a source beside it tells the
                                                    dtype, a bare integer alone is an index
              | reduce ADD over r2, r3: x           | scan ADD over r2: x         | call f0(x, y)
              | reduce f0 from 0.0 with m over r2: x              a joined REDUCE, and its join
              | store address = x for r0, r1          | stage local[i of 16 if mask] = x for r0
              | param 0: float32[4, n]              | buffer 0 "CPU": float32[4]  | iota: int32[8]
              | memory "acc" local: float32[64]     | variable "n" 1..64
              | special group 0 < x                 | OP[dtype](x, y; arg)        any node
    arg       = none, numbers, true, "strings", (tuples,), dtypes, OP names, @function

An integer among the sizes of a shape is part of the arg, any other expression is a source.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from weft.ir.ops import INFO, Op
from weft.ir.text.forms import expression
from weft.ir.text.page import Page, Ref
from weft.ir.text.parse import parse
from weft.ir.text.syntax import ATOM, COMPARISON, PREFIX, hint, is_free_name
from weft.ir.text.write import TextWriter
from weft.ir.uop import Arg, UOp
from weft.ir.walk import topological
from weft.support.errors import InternalError, mark_line

__all__ = ["dump", "locate", "mark", "parse", "show"]

SHOWN_DEPTH: Final = 6
SHOWN_NODES: Final = 100
SHOWN_SOURCES: Final = 8
SHOWN_WIDTH: Final = 120
CONTEXT: Final = 8


def dump(root: UOp) -> str:
    """The whole graph as text.

    >>> from weft.ir.build import range_
    >>> print(dump(range_(0, 16) * 8 + 3))
    r0 < 16
    return r0 * 8 + 3
    """
    return "\n".join(_write(root, ())[0])


def mark(root: UOp, guilty: UOp) -> str:
    """The dump with an arrow at one node, and of a long text only the lines around it.

    >>> from weft.ir.build import range_
    >>> r = range_(0, 16)
    >>> print(mark(r * 8 + 3, r * 8))
      r0 < 16
    > v0 = r0 * 8
      return v0 + 3
    """
    text, line = locate(root, guilty)
    lines = mark_line(text, line)
    if line is None or len(lines) <= 4 * CONTEXT:
        return "\n".join(lines)
    first, last = max(line - CONTEXT, 0), line + CONTEXT + 1
    before, after = ["  ..."] * (first > 0), ["  ..."] * (last < len(lines))
    return "\n".join(before + lines[first:last] + after)


def locate(root: UOp, guilty: UOp) -> tuple[str, int | None]:
    """The dump with `guilty` on a line of its own, and the number of that line from 0."""
    lines, line = _write(root, (guilty,))
    return "\n".join(lines), line


def _write(root: UOp, apart: Collection[UOp]) -> tuple[list[str], int | None]:
    """The lines of the dump, and the first line of a node in `apart`, which all stand alone."""
    orders = _scopes(root)
    functions = _function_names(body for body in orders if body is not root)
    lines: list[str] = []
    found = None
    for scope, order in orders.items():
        writer = TextWriter(scope, order, functions, apart)
        if scope is not root:
            lines.append(f"def {functions[scope]}:")
        writer.write(scope, "" if scope is root else "  ")
        for node in apart:
            if found is None and node in writer.line_of:
                found = len(lines) + writer.line_of[node]
        lines += writer.lines
        if scope is not root:
            lines.append("")
    return lines, found


def _scopes(root: UOp) -> dict[UOp, list[UOp]]:
    """The graph and all bodies below it with their nodes in order, callees before callers."""
    orders: dict[UOp, list[UOp]] = {}
    needs: dict[UOp, list[UOp]] = {}
    done: dict[UOp, list[UOp]] = {}
    stack = [root]
    while stack:
        scope = stack[-1]
        if scope not in orders:
            orders[scope] = topological(scope)
            needs[scope] = [body for node in orders[scope] for body in _bodies(node.arg)]
        waiting = [body for body in needs[scope] if body not in done]
        if waiting and scope not in done:
            stack.extend(reversed(waiting))
        else:
            done[stack.pop()] = orders[scope]
    return done


def _bodies(arg: Arg) -> Iterator[UOp]:
    if arg.__class__ is UOp:
        yield arg
    elif arg.__class__ is tuple:
        for part in arg:
            if part.__class__ is tuple or part.__class__ is UOp:
                yield from _bodies(part)


def _function_names(bodies: Iterator[UOp]) -> dict[UOp, str]:
    """A name for each body: that of its kernel, else `f` and a number."""
    names: dict[UOp, str] = {}
    taken: set[str] = set()
    for body in bodies:
        arg = body.arg
        name = arg[0] if body.op == Op.KERNEL and arg.__class__ is tuple and arg else None
        count = len(names)
        while not isinstance(name, str) or name in taken or not is_free_name(name):
            name = f"f{count}"
            count += 1
        taken.add(name)
        names[body] = name
    return names


def show(node: UOp) -> str:
    """The node in one short line: every infix in parentheses, leaves by name, the far end cut.

    >>> from weft.ir.build import range_
    >>> show(range_(0, 16) * 8 // 4)
    '((r0 * 8) // 4)'
    """
    try:
        text, _ = _show(node, Page(_AnyBody()), SHOWN_DEPTH)
    except InternalError:  # an arg without a text form: a repr must not raise
        text = f"{INFO[node.op].name}(...)"
    return text if len(text) <= SHOWN_WIDTH else text[: SHOWN_WIDTH - 3] + "..."


class _AnyBody(dict[UOp, str]):
    """The names of bodies where none is written."""

    def __missing__(self, body: UOp) -> str:
        return "body"


def _show(node: UOp, page: Page, depth: int) -> Ref:
    known = page.refs.get(node)
    if known is not None:
        return known
    name = hint(node)
    if name is not None:
        return name, ATOM
    if depth == 0 or len(page.refs) > SHOWN_NODES or len(node.src) > SHOWN_SOURCES:
        return (f"{INFO[node.op].name}(...)" if node.src else INFO[node.op].name), ATOM
    for source in node.src:
        page.refs[source] = _show(source, page, depth - 1)
    text, level = expression(node, page)
    return (f"({text})", ATOM) if COMPARISON <= level < PREFIX else (text, level)
