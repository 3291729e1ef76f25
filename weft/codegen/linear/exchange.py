"""Neighbors exchange their sums of a tile, so that each has eight columns side by side.

A matrix unit leaves two columns of each block of eight with each of four threads. Four blocks and
four threads are a square of pairs: its rows and columns are exchanged by two rounds of shuffles,
in which threads that differ in one bit swap what the other one is to have.

    thread:  0  1  2  3           0  1  2  3
    block 0  a0 a1 a2 a3          a0 b0 c0 d0
    block 1  b0 b1 b2 b3    ->    a1 b1 c1 d1
    block 2  c0 c1 c2 c3          a2 b2 c2 d2
    block 3  d0 d1 d2 d3          a3 b3 c3 d3

Sums that are rounded to 16 bits are rounded first, so that a pair is one word to exchange.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.codegen.linear.lines import Lines, number
from weft.ir.dtypes import DType, by_name, dtypes
from weft.ir.ops import Op
from weft.ir.reduction.contract import BLOCK_COLUMNS, THREAD_COLUMNS, WARP_ROWS, ContractParts
from weft.ir.uop import UOp, const


def exchange_sums(lines: Lines, sums: UOp, target: UOp, quad: UOp, parts: ContractParts) -> None:
    """Store the elements of a thread in a target, eight columns of each row side by side."""
    odd = [_has_bit(lines, quad, 1), _has_bit(lines, quad, 2)]
    element = by_name(parts.element)
    is_packed = element is not sums.dtype
    for block in range(parts.tile[1] // BLOCK_COLUMNS):
        for half in range(WARP_ROWS // 8):
            # Of each block of eight a thread has two columns, in two rows.
            firsts = [4 * (4 * block + each) + 2 * half for each in range(4)]
            pairs = [[loaded(lines, sums, first + each) for each in range(2)] for first in firsts]
            if is_packed:
                words = [packed(lines, element, low, high) for low, high in pairs]
                words = _transposed(lines, words, quad, odd)
                values = [part for word in words for part in _unpacked(lines, word)]
            else:
                sides = [[pair[side] for pair in pairs] for side in range(2)]
                low, high = (_transposed(lines, side, quad, odd) for side in sides)
                values = [value for both in zip(low, high, strict=True) for value in both]
            start = (2 * block + half) * THREAD_COLUMNS
            for column, value in enumerate(values):
                lines.store(lines.at(target, number(start + column)), value)


def loaded(lines: Lines, sums: UOp, element: int) -> UOp:
    """An element of register memory."""
    address = lines.at(sums, number(element))
    return lines.add(Op.LOAD, address.dtype, (address,))


def packed(lines: Lines, dtype: DType, low: UOp, high: UOp) -> UOp:
    """Two sums, rounded to 16 bits, as one word."""
    words: list[UOp] = []
    for value in (low, high):
        rounded = lines.add(Op.CAST, dtype, (value,))
        bits = lines.add(Op.BITCAST, dtypes.uint16, (rounded,))
        words.append(lines.add(Op.CAST, dtypes.uint32, (bits,)))
    upper = lines.value(Op.SHL, words[1], const(dtypes.uint32, 16))
    return lines.value(Op.OR, words[0], upper)


def _unpacked(lines: Lines, word: UOp) -> list[UOp]:
    upper = lines.value(Op.SHR, word, const(dtypes.uint32, 16))
    return [lines.add(Op.CAST, dtypes.uint16, (each,)) for each in (word, upper)]


def _has_bit(lines: Lines, counter: UOp, bit: int) -> UOp:
    masked = lines.add(Op.AND, counter.dtype, (counter, const(counter.dtype, bit)))
    return lines.add(Op.NOT, dtypes.bool, (lines.is_zero(masked),))


def _transposed(lines: Lines, values: list[UOp], quad: UOp, odd: Sequence[UOp]) -> list[UOp]:
    """Four values of four threads with rows and columns exchanged."""
    for bit, is_odd in zip((1, 2), odd, strict=True):
        for low in (0, 2) if bit == 1 else (0, 1):
            x, y = values[low], values[low + bit]
            sent = lines.where(is_odd, x, y)
            got = lines.add(Op.SHUFFLE, x.dtype, (sent, quad), (bit,))
            values[low], values[low + bit] = (
                lines.where(is_odd, got, x),
                lines.where(is_odd, y, got),
            )
    return values
