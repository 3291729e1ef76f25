"""The lines and blocks of the text form: `parse` gives back the graph that `dump` wrote.

Lines are read one after the other, and open blocks stand on a stack, so neither a long nor a deep
program meets a limit. `text.py` has the grammar.
"""

from __future__ import annotations

import re
from typing import Final

from weft.ir.collector import CollectorPaused
from weft.ir.ops import Op
from weft.ir.text.cursor import TOKENS, LineError
from weft.ir.text.expression import Reader
from weft.ir.text.syntax import BLOCKS, is_free_name
from weft.ir.uop import Arg, UOp
from weft.support.errors import TextError
from weft.support.source_line import FixedLine

# The number of a range; what stands behind it tells several ranges of one number apart.
_RANGE_NAME: Final = re.compile(r"r(0|[1-9][0-9]*)(_[0-9]+)?")


class _TextBlock:
    """Lines deeper than `indent`. A scope has no op and ends with its result."""

    def __init__(
        self, indent: int, op: int | None, name: str = "", let: bool = False, arg: Arg = None
    ) -> None:
        self.indent = indent
        self.op = op
        self.name = name
        self.let = let
        self.arg = arg
        self.members: list[UOp] = []
        self.result: UOp | None = None


def parse(text: str, file: str = "text") -> UOp:
    """The graph that this text describes; `file` is named in errors.

    >>> from weft.ir.build import range_
    >>> parse("r0 < 16\\nreturn r0 * 8 + 3") is range_(0, 16) * 8 + 3
    True
    """
    parser = _Parser()
    number, line = 0, ""
    try:
        with CollectorPaused():
            for line in text.split("\n"):
                number += 1
                parser.take(line)
            return parser.finish()
    except LineError as fault:
        raise _text_error(fault.what, fault.at, number, line, file, fault.fix) from None
    except ValueError:  # of int(), which limits digits
        raise _text_error("a number has too many digits", 0, number, line, file) from None
    except RecursionError:
        raise _text_error("the expression is nested too deeply", 0, number, line, file) from None


def _text_error(what: str, at: int, number: int, line: str, file: str, fix: str = "") -> TextError:
    starts = [match.start() for match in TOKENS.finditer(line)]
    column = starts[at] if at < len(starts) else len(line.rstrip())
    location = FixedLine(file, number, f"{line.rstrip()}\n{' ' * column}^")
    return TextError(f"line {number}: {what}", where=location, fix=fix)


class _Parser:
    def __init__(self) -> None:
        self.reader = Reader()
        self.names = self.reader.names  # of the graph itself, while a function is read
        self.stack = [_TextBlock(-1, None)]

    def take(self, line: str) -> None:
        """Read one line."""
        tokens: list[str] = TOKENS.findall(line)
        if tokens and tokens[-1][0] == "#":
            tokens.pop()
        if not tokens:
            return
        indent = len(line) - len(line.lstrip())
        while indent <= self.stack[-1].indent:
            self._close()
        tokens.append("")
        reader = self.reader
        reader.tokens, reader.at = tokens, 0
        if self.stack[-1].result is not None:
            raise LineError("expected the end, because the result was given above", 0)
        self._line(indent)
        if reader.at < len(tokens) - 1:
            raise reader.fail("the end of the line")

    def finish(self) -> UOp:
        """Close what is open, and return the result of the graph."""
        self.reader.tokens, self.reader.at = [""], 0
        while len(self.stack) > 1:
            self._close()
        return self._result_of(self.stack[0])

    def _result_of(self, scope: _TextBlock) -> UOp:
        if scope.result is None:
            raise LineError("expected 'return' with the result before this line", 0)
        return scope.result

    def _close(self) -> None:
        block = self.stack.pop()
        if block.op is None:
            self.reader.functions[block.name] = self._result_of(block)
            self.reader.names = self.names
        else:
            node = self.reader.build(block.op, *block.members, arg=block.arg)
            self._put(node, block.name, block.let)

    def _line(self, indent: int) -> None:
        reader, parent = self.reader, self.stack[-1]
        first = reader.tokens[0]
        if first == "def":
            self._define_function(indent)
        elif first == "return" and parent.op is None:
            reader.at = 1
            parent.result = reader.node()
        elif parent.op == Op.LINEAR and first == "for":
            self._open_range()
        else:
            let = parent.op == Op.LINEAR and reader.skip("let")
            name = ""
            if reader.tokens[reader.at + 1 : reader.at + 2] == ["="]:
                name = self._new_name()
                reader.at += 1
            self._value(indent, name, let)

    def _value(self, indent: int, name: str, let: bool) -> None:
        """Read what stands behind `name =`, or a line without a name."""
        reader = self.reader
        token = reader.tokens[reader.at]
        if token in BLOCKS and reader.tokens[reader.at + 1] != "(":
            arg = self._header()
            self.stack.append(_TextBlock(indent, BLOCKS[token], name, let, arg))
            return
        if not name and reader.tokens[reader.at + 1] == "<" and token not in reader.names:
            match = _RANGE_NAME.fullmatch(token)
            if match:
                self._range(match[0], let)
                return
        if not name and self.stack[-1].op is None:
            raise reader.fail("'name =', 'return' or a block")
        node = reader.node()
        self._put(node, name, let)

    def _range(self, name: str, let: bool) -> None:
        reader = self.reader
        reader.at += 2
        extent = reader.node()
        number = int(name[1:].partition("_")[0])
        self._put(reader.build(Op.RANGE, extent, arg=number), name, let)

    def _open_range(self) -> None:
        """Read `for r0 < extent:`."""
        reader = self.reader
        reader.at = 1
        name = self._new_name()
        if not _RANGE_NAME.fullmatch(name) or reader.tokens[2] != "<":
            raise LineError("expected a range such as r0 < 16", 1)
        reader.at = 1
        self._range(name, False)
        reader.expect(":")

    def _header(self) -> Arg:
        """Read the line of a block up to its colon, and return the arg."""
        reader = self.reader
        block = reader.name()
        if block == "kernel":
            title = reader.string()
            return title, tuple(reader.items(self._loop, ":"))
        arg: Arg = None
        if block == "linear" and reader.skip("from"):
            arg = (self._slot(),)
        elif block == "linear" and reader.tokens[reader.at] != ":":
            size = reader.integer()
            offsets: list[tuple[int, int]] = []
            while reader.skip(","):
                offsets.append(self._offset())
            arg = (size, tuple(offsets))
        reader.expect(":")
        return arg

    def _offset(self) -> tuple[int, int]:
        """The offset of a temporary: `p3 at 256`."""
        slot = self._slot()
        self.reader.expect("at")
        return slot, self.reader.integer()

    def _slot(self) -> int:
        name = self.reader.name("a slot such as p3")
        if not re.fullmatch(r"p(0|[1-9][0-9]*)", name):
            raise LineError("expected a slot such as p3", self.reader.at - 1)
        return int(name[1:])

    def _loop(self) -> tuple[int, str]:
        name = self.reader.name("a range such as r0")
        if not _RANGE_NAME.fullmatch(name) or "_" in name:
            raise LineError("expected a range such as r0", self.reader.at - 1)
        return int(name[1:]), self.reader.word()

    def _define_function(self, indent: int) -> None:
        reader = self.reader
        if len(self.stack) > 1 or self.stack[0].members or self.names:
            raise LineError("expected functions before everything else", 0)
        reader.at = 1
        name = reader.name("the name of a function")
        if name in reader.functions:
            raise LineError(f"the function {name} is already defined", 1)
        reader.expect(":")
        reader.names = {}
        self.stack.append(_TextBlock(indent, None, name))

    def _new_name(self) -> str:
        reader = self.reader
        name = reader.name()
        if not is_free_name(name):
            raise LineError(f"expected a name, and {name} has a meaning of its own", reader.at - 1)
        if name in reader.names:
            raise LineError(f"{name} is already defined", reader.at - 1)
        return name

    def _put(self, node: UOp, name: str, let: bool) -> None:
        """Give a node its name, and add it to the block around it."""
        parent = self.stack[-1]
        if name:
            self.reader.names[name] = node
        if parent.op is None:
            if not name:
                parent.result = node
        elif not let and (not name or parent.op == Op.LINEAR):
            parent.members.append(node)
