"""The state of rendering one program: which text stands for which node.

An integer can have two texts, one of its own type and one of 64 bits for addresses; `define`
writes the conversions that `plan_widths` found to be needed, where the definition is, so
that they are as far out of loops as the value itself.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from weft.ir.dtypes import INTEGER
from weft.ir.ops import Op
from weft.ir.program import Program
from weft.ir.uop import UOp
from weft.ir.views import behind
from weft.ir.walk import topological
from weft.render.llvm.casts import narrow, widen
from weft.render.llvm.facts import Widths, plan_contractions, plan_widths
from weft.render.llvm.float_facts import digits_of, tame_quotients
from weft.render.llvm.types import literal
from weft.render.llvm.writer import LlvmWriter
from weft.render.llvm.zero_lanes import quotients_by_zero
from weft.support.errors import InternalError
from weft.target.llvm import backend_of
from weft.target.target import Target

_NO_WIDTHS: Final = Widths(frozenset(), frozenset(), frozenset())


class MaskedPointer(NamedTuple):
    """An address, and whether it may be touched: always if `mask` is empty.

    `known` says it for each lane of a mask that is the same in all runs. `shared` is a condition
    of all lanes: without it none is touched.
    """

    pointer_type: str
    pointer: str
    mask: str
    mask_lanes: int
    is_argument: bool
    alignment: int  # bytes that the address is a multiple of
    known: tuple[bool, ...] = ()
    shared: str = ""


class Code:
    """A program on its way to text."""

    def __init__(self, program: Program, target: Target, contract: bool) -> None:
        self.program = program
        self.target = target
        self.backend = backend_of(target)
        self.writer = LlvmWriter()
        self.values: dict[UOp, str] = {}
        self.values_64: dict[UOp, str] = {}
        self.pointers: dict[UOp, tuple[str, str]] = {}  # of memory: (type, operand)
        self.addresses: dict[
            UOp, MaskedPointer | None
        ] = {}  # of INDEX nodes; None is never touched
        self.labels: dict[UOp, str] = {}  # of open loops
        self.written: set[UOp] = set()  # instructions that stand in front of all others
        instructions = program.instructions.src
        is_wide = self.backend.has_wide_indices
        self.widths = plan_widths(instructions) if is_wide else _NO_WIDTHS
        self.contracted = plan_contractions(instructions) if contract else frozenset[UOp]()
        has_functions = bool(target.float32_ops)
        self.digits = digits_of(instructions) if has_functions else {}
        self.tame = tame_quotients(instructions) if has_functions else frozenset[UOp]()
        self.by_zero = quotients_by_zero(instructions)
        self.leaves = [
            node
            for node in topological(program.instructions)
            if node.op in (Op.PARAM, Op.MEMORY, Op.VARIABLE, Op.SPECIAL)
        ]

    def operand(self, node: UOp) -> str:
        """The value of a node in its own type."""
        if node.op == Op.CONST:
            return literal(node.dtype, node.arg)
        return self._known(self.values, node)

    def operand_64(self, node: UOp) -> str:
        """The value of an integer as an int64."""
        if node.op == Op.CONST:
            return str(int(node.arg))
        return self._known(self.values if _has_64_bits(node) else self.values_64, node)

    def _known(self, table: dict[UOp, str], node: UOp) -> str:
        found = table.get(behind(node))
        if found is None:
            raise InternalError(f"render: a source is not listed before its use: {node!r}")
        return found

    def pointer(self, memory: UOp) -> tuple[str, str]:
        """The type and the operand of the address of some memory."""
        found = self.pointers.get(memory)
        if found is None:
            raise InternalError(f"render: a program does not reach this memory: {memory!r}")
        return found

    def define(self, node: UOp, text: str) -> None:
        """Let `text` stand for a node in its own type."""
        self.values[node] = text
        if node in self.widths.read_as_64:
            self.values_64[node] = widen(self.writer, node.dtype, text)

    def define_64(self, node: UOp, text: str) -> None:
        """Let `text`, an int64, stand for an integer node."""
        if _has_64_bits(node):
            self.values[node] = text
            return
        self.values_64[node] = text
        if node not in self.widths.as_64 or node in self.widths.read_as_own:
            self.values[node] = narrow(self.writer, node.dtype, text)


def _has_64_bits(node: UOp) -> bool:
    return bool(node.dtype.kind & INTEGER) and node.dtype.bits == 64
