"""The ranges of a kernel that is one contraction, as its opts need them.

`choose/simd/contraction.py` asks here which factor has the columns, the ranges that are vectors,
and in which order the others stand.
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.codegen.analysis.accesses import Access
from weft.codegen.analysis.loops import kinds_of, nodes_of, own_ranges
from weft.codegen.choose.chooser import Chooser
from weft.ir.ops import Op
from weft.ir.reduction.contraction import Contraction, contraction_of
from weft.ir.uop import UOp, range_ids


@dataclass
class ContractionShape:
    """The ranges of a contraction by their part, outermost first, and the sizes that decide."""

    contraction: Contraction
    factor: int  # which one is kept in panels: the one with the columns
    batch: list[int]
    rows: list[int]
    columns: list[int]  # the last one is contiguous in the result
    reduced: list[int]

    @property
    def panel(self) -> UOp:
        return self.contraction.right if self.factor else self.contraction.left

    @staticmethod
    def of(chooser: Chooser) -> ContractionShape | None:
        reductions = [n for n in nodes_of(chooser.kernel) if n.op in (Op.REDUCE, Op.STAGE)]
        found = contraction_of(reductions[0]) if len(reductions) == 1 else None
        stores = chooser.stores()
        if found is None or not stores:
            return None
        own = {r.arg for r in own_ranges(stores[0])}
        if any({r.arg for r in own_ranges(store)} != own for store in stores):
            return None
        if set(range_ids(found.reduction.ranges)) != own:
            return None
        (result,) = chooser.accesses(stores[0].src[0])
        contiguous = [n for n in own if result.stride(n) == 1]
        if not contiguous or any(chooser.extent(n) is None for n in kinds_of(chooser.kernel)):
            return None
        last = contiguous[0]
        factor = found.columns >> last & 1
        rows, columns = found.rows, found.columns
        if not factor:
            rows, columns = columns, rows
        if not columns >> last & 1:
            return None
        return ContractionShape(
            found,
            factor,
            _listed(chooser, found.batch),
            _listed(chooser, rows),
            _by_stride(_listed(chooser, columns), result),
            _listed(chooser, found.reduced),
        )


def _listed(chooser: Chooser, numbers: int) -> list[int]:
    """The ranges of a set in the order of the loops."""
    return [number for number in kinds_of(chooser.kernel) if numbers >> number & 1]


def _by_stride(numbers: list[int], result: Access) -> list[int]:
    return sorted(numbers, key=lambda number: -abs(result.stride(number) or 1 << 60))
