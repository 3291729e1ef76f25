"""The expressions of the text form: tokens of one line become nodes.

`parse.py` drives it line by line; `text.py` has the grammar. Depth of recursion is the depth
of one line, which the printer keeps small. A `LineError` knows its token.
"""

from __future__ import annotations

from typing import Final

from weft.ir.dtypes import BOOL, FLOAT, DType, dtypes
from weft.ir.ops import BY_NAME, COMPARE, ELEMENTWISE, INFO, Op
from weft.ir.text.cursor import Cursor, LineError
from weft.ir.text.keywords import KEYWORDS, METHOD_FORMS
from weft.ir.text.syntax import (
    COMPARISON,
    FUNCTIONS,
    INFIX,
    METHODS,
    SUM,
    Infix,
    dtype_named,
    result_dtype,
)
from weft.ir.uop import Arg, UOp, bool_like, const, make

_SIGNS: Final = {row.symbol: row for row in INFIX.values()} | {"-": Infix("-", Op.ADD, SUM)}
_LITERALS: Final = frozenset(("true", "false", "nan", "inf"))


class Literal:
    """A number without a dtype yet, and the token it ends at."""

    __slots__ = ("at", "text")

    def __init__(self, text: str, at: int) -> None:
        self.text = text
        self.at = at


class Reader(Cursor):
    """Reads one line at a time; `names` are the nodes of the scope, `functions` the bodies."""

    def __init__(self) -> None:
        super().__init__()
        self.names: dict[str, UOp] = {}
        self.functions: dict[str, UOp] = {}

    def node(self) -> UOp:
        return self.settle(self.expression())

    def nodes(self) -> list[UOp]:
        found = [self.node()]
        while self.skip(","):
            found.append(self.node())
        return found

    def expression(self, level: int = COMPARISON) -> UOp | Literal:
        left = self._prefix()
        while True:
            row = _SIGNS.get(self.tokens[self.at])
            if row is None or row.level < level:
                return left
            self.at += 1
            left = self._infix(row, left, self.expression(row.level + 1))
            if row.level == COMPARISON:
                level = COMPARISON + 1  # comparisons do not chain

    def settle(self, value: UOp | Literal, beside: DType | None = None) -> UOp:
        """A node; a literal takes the dtype of what stands beside it, or the plain one."""
        if value.__class__ is UOp:
            return value
        assert isinstance(value, Literal)
        text = value.text
        is_bool = text in ("true", "false")
        is_float = not is_bool and not text.lstrip("-").isdecimal()
        dtype = beside or (dtypes.bool if is_bool else None if is_float else dtypes.index)
        if dtype is None:
            raise LineError(
                f"expected a dtype for {text}", value.at, f"write float32({text}) or another dtype"
            )
        if is_bool != (dtype.kind == BOOL) or is_float != (dtype.kind == FLOAT):
            raise LineError(f"expected a literal of {dtype.name}, found {text}", value.at)
        return const(dtype, float(text) if is_float else text == "true" if is_bool else int(text))

    def settle_both(self, x: UOp | Literal, y: UOp | Literal) -> tuple[UOp, UOp]:
        if y.__class__ is UOp:
            second = self.settle(y)
            return self.settle(x, second.dtype), second
        first = self.settle(x)
        return first, self.settle(y, first.dtype)

    def _infix(self, row: Infix, left: UOp | Literal, right: UOp | Literal) -> UOp:
        x, y = self.settle_both(left, right)
        if row.symbol == "-":
            y = make(Op.NEG, y.dtype, (y,))
        return make(row.op, bool_like(x) if row.op in COMPARE else x.dtype, (x, y))

    def _prefix(self) -> UOp | Literal:
        token = self.tokens[self.at]
        if token == "-":
            self.at += 1
            token = self.tokens[self.at]
            if token[:1].isdecimal() or token == "inf":
                self.at += 1
                return Literal("-" + token, self.at - 1)
            return self.build(Op.NEG, self.settle(self._prefix()))
        if token == "~":
            self.at += 1
            return self.build(Op.NOT, self.settle(self._prefix()))
        if token == "load":
            self.at += 1
            return self.build(Op.LOAD, self.settle(self._postfix()))
        if token == "read":
            self.at += 1
            start = self.at
            address = self._postfix()
            if (
                not isinstance(address, UOp)
                or address.op != Op.INDEX
                or self.tokens[self.at - 1] != "]"
            ):
                raise LineError("expected a stage at its indices after read", start)
            return make(Op.READ, address.dtype, address.src)
        return self._postfix()

    def _postfix(self) -> UOp | Literal:
        value = self._atom()
        while True:
            token = self.tokens[self.at]
            if token == "[":
                self.at += 1
                value = self._index(self.settle(value))
            elif token == ".":
                self.at += 1
                name = self.name("the name of a method")
                if name not in METHODS:
                    raise self.unknown(name, METHODS, "method")
                self.expect("(")
                value = METHOD_FORMS[METHODS[name]](self, self.settle(value))
            else:
                return value

    def _index(self, memory: UOp) -> UOp:
        indices: list[UOp] = []
        mask = const(dtypes.bool, True)
        dtype = memory.dtype
        if self.tokens[self.at] not in ("if", ":", "]"):
            indices = self.nodes()
        if self.skip("if"):
            mask = self.node()
        if self.skip(":"):
            dtype = self.dtype()
        self.expect("]")
        return make(Op.INDEX, dtype, (memory, mask, *indices))

    def _atom(self) -> UOp | Literal:
        token = self.tokens[self.at]
        self.at += 1
        found = self.names.get(token)
        if found is not None:
            return found
        if token[:1].isdecimal() or token in _LITERALS:
            return Literal(token, self.at - 1)
        if token == "(":
            value = self.expression()
            self.expect(")")
            return value
        keyword = KEYWORDS.get(token)
        if keyword is not None:
            return keyword(self)
        if token in FUNCTIONS:
            return self._function(FUNCTIONS[token])
        dtype = dtype_named(token)
        if dtype is not None:
            return self._typed(dtype)
        if token in BY_NAME:
            return self._uniform(BY_NAME[token])
        self.at -= 1
        if token.isidentifier():
            self.at += 1
            raise self.unknown(token, [*self.names, *FUNCTIONS], "name")
        raise self.fail("an expression")

    def _typed(self, dtype: DType) -> UOp:
        self.expect("(")
        value = self.expression()
        self.expect(")")
        if isinstance(value, Literal):
            return self.settle(value, dtype)
        return make(Op.CAST, dtype, (value,))

    def _function(self, op: int) -> UOp:
        self.expect("(")
        values = self.items(self.expression, ")")
        if op in ELEMENTWISE and len(values) > 1:
            values[-2:] = self.settle_both(*values[-2:])
        return self.build(op, *[self.settle(value) for value in values])

    def _uniform(self, op: int) -> UOp:
        start = self.at - 1
        self.expect("[")
        dtype = self.dtype()
        self.expect("]")
        self.expect("(")
        src: list[UOp] = []
        while self.tokens[self.at] not in (";", ")"):
            if src:
                self.expect(",")
            src.append(self.node())
        arg = self.arg() if self.skip(";") else None
        self.expect(")")
        if op == Op.CONST:
            raise LineError("expected a literal", start, f"write {dtype.name}(value)")
        return self.build(op, *src, arg=arg, dtype=dtype, start=start)

    def arg(self) -> Arg:
        token = self.tokens[self.at]
        if token[:1] == '"':
            return self.string()
        self.at += 1
        if token == "(":
            return tuple(self.items(self.arg, ")"))
        if token == "@":
            return self.function()
        if token == "-":
            return -self.arg()
        if token[:1].isdecimal() or token in ("inf", "nan"):
            return int(token) if token.isdecimal() else float(token)
        words: dict[str, Arg] = {"none": None, "true": True, "false": False}
        if token in words:
            return words[token]
        if token in BY_NAME:
            return BY_NAME[token]
        self.at -= 1
        if dtype_named(token) is None:
            raise self.fail("an arg")
        return self.dtype()

    def function(self) -> UOp:
        name = self.name("the name of a function")
        if name not in self.functions:
            raise self.unknown(name, self.functions, "function")
        return self.functions[name]

    def build(
        self, op: int, *src: UOp, arg: Arg = None, dtype: DType | None = None, start: int = -1
    ) -> UOp:
        """A node, with the dtype that follows from its parts unless one is given."""
        row = INFO[op]
        at = max(self.at - 1, 0) if start < 0 else start
        if len(src) < row.least or (row.most is not None and len(src) > row.most):
            raise LineError(f"{row.name} cannot take {len(src)} sources", at)
        if dtype is None:
            dtype = result_dtype(op, src, arg)
        if dtype is None:
            raise LineError(f"expected {row.name}[dtype](…), for its dtype does not follow", at)
        try:
            return make(op, dtype, src, arg)
        except (TypeError, ValueError, IndexError):
            raise LineError(f"{row.name} cannot have this arg", at) from None
