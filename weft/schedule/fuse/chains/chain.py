"""What becomes one kernel although it holds two products: see `chains.py`."""

from __future__ import annotations

from typing import NamedTuple

from weft.ir.uop import UOp


class Chain(NamedTuple):
    """What becomes one kernel: the second product, and all between it and the first."""

    result: UOp
    products: tuple[UOp, ...]  # of which the weights are computed; one, if there is a softmax
    values: frozenset[UOp]  # one for each query and key
    rows: frozenset[UOp]  # one for each query, the reductions among them; none without a softmax

    @property
    def scores(self) -> UOp:
        return self.products[0]
