"""Opts for two products of matrices with a softmax or other values between them, on matrix units.

A group has the queries of a tile and all columns of their result; its loop is over blocks of keys.
`schedule/fuse/chains/tensor_chains.py` makes such kernels where all factors are what copies bring.
"""

from __future__ import annotations

import itertools
from typing import Final

from weft.codegen.analysis.loops import nodes_of
from weft.codegen.analysis.tensor_chains import chain_of
from weft.codegen.choose.chooser import Chooser
from weft.codegen.choose.simt.tensor_core import unit_for
from weft.codegen.opts.table import TensorChain
from weft.ir.ops import Op
from weft.ir.program import DYNAMIC_ALIGNMENT
from weft.ir.reduction.contraction import contraction_of
from weft.ir.spec.program import DYNAMIC
from weft.ir.uop import range_ids
from weft.support.settings import settings
from weft.target.compute import Simt

# Rows of a group and keys of a block, the fastest first.
TILES: Final = ((128, 128), (128, 64), (64, 64))
# Registers of a thread for sums, scores, and weights in pairs: others are for what is computed.
MOST_REGISTERS: Final = 208
# Blocks of keys and values that are in local memory at once: with a third one, no group of warps
# waits for another one to be done with the block that it has just read itself.
STAGES: Final = (3, 2)


def use_tensor_chain(chooser: Chooser, compute: Simt) -> bool:
    """Tiles of a kernel that is a chain."""
    found = _loops(chooser)
    if found is None:
        return False
    reason = _tiled(chooser, *found)
    if reason and settings.DEBUG >= 5:
        print(f"{chooser.kernel.arg[0]}: no matrix units, {reason}")
    return not reason


def _loops(chooser: Chooser) -> tuple[int, int] | None:
    """The loops over queries and columns of the product that a chain ends in."""
    for node in nodes_of(chooser.kernel):
        if node.op != Op.REDUCE or not node.src[0].ops >> Op.REDUCE & 1:
            continue
        found = contraction_of(node)
        if found is None:
            continue
        rows, columns = found.rows, found.columns
        if not found.left.ops >> Op.REDUCE & 1:
            rows, columns = columns, rows
        queries = max(range_ids(rows), key=lambda n: chooser.extent(n) or 0, default=-1)
        column = max(range_ids(columns), key=lambda n: chooser.extent(n) or 0, default=-1)
        if min(queries, column) >= 0:
            return queries, column
    return None


def _tiled(chooser: Chooser, row: int, column: int) -> str:
    """Take the fastest tile; why there is none, in words."""
    chooser.take_apart()
    chain = chain_of(chooser.kernel, row, column)
    if isinstance(chain, str):
        return chain
    target = chooser.target
    dtype = chain.results[0].load.dtype
    copies = any(copy.box_limits for copy in target.copies)
    if unit_for(target, dtype, dtype) is None or not copies:
        return f"there are none for {dtype.name}"
    reason = ""
    for tile, stages in itertools.product(TILES, STAGES):
        opt = TensorChain(row, column, tile, stages)
        reason = next(iter(opt.reasons(chooser.kernel)), "")
        if not reason and opt.registers(chooser.kernel) > MOST_REGISTERS:
            reason = f"sums and scores of {tile[1]} keys do not fit into registers"
        bytes_ = opt.local_bytes(chooser.kernel) if not reason else 0
        if bytes_ > target.memory(DYNAMIC).size - 2 * DYNAMIC_ALIGNMENT:
            reason = f"{bytes_} bytes of local memory are more than a group has"
        if not reason and chooser.take(opt):
            return ""
    return reason
