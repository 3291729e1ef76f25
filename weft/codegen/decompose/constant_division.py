"""Division of integers by constants through multiplication, where a target's compiler leaves it.

x // d is (x * m) >> s for all x from 0 to X if m * d = 2**s + e with 0 <= e and X * e < 2**s; see
T. Granlund and P. Montgomery, "Division by invariant integers using multiplication", 1994. The
interval of x says how large X is: small indices take one multiplication of words, others the upper
word of a product.
"""

from __future__ import annotations

from weft.codegen.decompose import words
from weft.ir.bounds import bounds
from weft.ir.dtypes import FIXED, dtypes
from weft.ir.ops import Op
from weft.ir.uop import UOp, make


def multiplied_quotient(node: UOp) -> UOp | None:
    """TRUNCDIV by a constant as a multiplication and a shift."""
    x, y = node.src
    if not _is_suited(node):
        return None
    divisor = int(y.arg)
    least, most = bounds(x)
    if least >= 0:
        made = _quotient(words.cast(x, dtypes.uint32), abs(divisor), most)
        quotient = words.cast(made, node.dtype.scalar)
        return -quotient if divisor < 0 else quotient
    is_below = x < 0
    size = words.cast(is_below.where(-x, x), dtypes.uint32)
    if node.dtype.bits < 32:  # the magnitude of the least number is right only without its sign
        size = size & ((1 << node.dtype.bits) - 1)
    made = words.cast(_quotient(size, abs(divisor), max(-least, most)), node.dtype.scalar)
    is_below = ~is_below if divisor < 0 else is_below
    return is_below.where(-made, made)


def multiplied_remainder(node: UOp) -> UOp | None:
    """TRUNCMOD by a constant as what the quotient leaves."""
    x, y = node.src
    if not _is_suited(node):
        return None
    return x - make(Op.TRUNCDIV, node.dtype, (x, y)) * y


def _is_suited(node: UOp) -> bool:
    y = node.src[1]
    is_word = bool(node.dtype.kind & FIXED) and node.dtype.bits <= 32
    return is_word and y.op == Op.CONST and y.arg != 0


def _quotient(x: UOp, divisor: int, most: int) -> UOp:
    """A word, at most `most`, divided by a constant."""
    if divisor == 1:
        return x
    for shift in range(64):
        factor = -(-(1 << shift) // divisor)
        if most * (factor * divisor - (1 << shift)) < 1 << shift:
            break
    if most * factor <= words.WORD:
        return (x * factor) >> shift
    if factor <= words.WORD:
        product = words.product_of_words(x, x.const_like(factor))
        return product.high >> (shift - 32) if shift >= 32 else _shifted(product, shift)
    # The factor has 33 bits: its highest one is x itself, added so that nothing overflows.
    product = words.product_of_words(x, x.const_like(factor - (1 << 32)))
    half = (x - product.high) >> 1
    return (half + product.high) >> (shift - 33)


def _shifted(product: words.Wide, shift: int) -> UOp:
    """The word at a position inside a product."""
    return product.low >> shift | product.high << (32 - shift)
