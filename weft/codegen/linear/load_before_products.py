"""What a loop reads beside products of tiles is loaded before these, and is there when they are.

In and Out: a LINEAR of PROGRAM_SPEC, with CONTRACTs. Nothing moves over the wait for a product, so
a value of global memory that is loaded behind one is waited for again:

    for k:                                  for k:
      store s = CONTRACT(…)                   a = load x[k]
      a = load x[k]                     ->    store s = CONTRACT(…)
      store y = a * s                         store y = a * s

Such are values for each key of a block, or each query: sums of rows, maxima, a bias.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.codegen.context import CodegenContext
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.spec.program import LEAVES
from weft.ir.uop import UOp, make
from weft.ir.views import behind
from weft.ir.walk import topological

WORD_BITS: Final = 32
# Words that a thread has room for beside scores and sums.
MOST_WORDS: Final = 48


def load_before_products(program: UOp, context: CodegenContext) -> UOp:
    """Load what needs no product at the beginning of the loop that the products stand in."""
    lines = program.src
    span = _loop_of_products(lines)
    if span is None:
        return program
    start, end = span
    before, body = lines[: start + 1], lines[start + 1 : end]
    written = {behind(node.src[0].src[0]) for node in lines if node.op == Op.STORE}
    known, moved = set(before), dict[UOp, None]()
    words = 0
    for node in body:
        if node.op != Op.LOAD or behind(node.src[0].src[0]) in written:
            continue
        needed = [each for each in topological(node) if each not in known]
        if all(each.op in LEAVES or each.dtype is not dtypes.void for each in needed):
            words += -(-node.dtype.bits // WORD_BITS)
            moved |= dict.fromkeys(each for each in needed if each.op not in LEAVES)
    if not moved or words > MOST_WORDS:
        return program
    rest = [node for node in body if node not in moved]
    return make(Op.LINEAR, dtypes.void, (*before, *moved, *rest, *lines[end:]))


def _loop_of_products(lines: Sequence[UOp]) -> tuple[int, int] | None:
    """Where the one loop with products of tiles begins and ends."""
    opened: list[int] = []
    found: tuple[int, int] | None = None
    has_product = set[int]()
    for position, node in enumerate(lines):
        if node.op == Op.RANGE:
            opened.append(position)
        elif node.op == Op.STORE and node.src[1].op == Op.CONTRACT and opened:
            has_product.add(opened[-1])
        elif node.op == Op.END:
            start = opened.pop()
            found = (start, position) if start in has_product else found
    return found
