"""Writes through views, as values: a write is a patch, and a version of a buffer is a new array.

Which elements of a buffer a view names is found by pushing their numbers through the same movement
ops that make the view. The numbers start at 1, so what a PAD or a false mask fills in is 0 and
names nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from weft.ir.arrays.values import Array
from weft.ir.ops import Op, name
from weft.ir.uop import UOp
from weft.ir.views import memory_of
from weft.reference.fault import fault
from weft.reference.numpy_movement import SizeOf, move, pick

# The new contents of some buffers and params, by their nodes.
Contents = dict[UOp, Array]


class Write(NamedTuple):
    """A STORE that has been evaluated: `values` go to the elements `numbers` of the memory.

    `before` is the version of the memory that the STORE was built on.
    """

    memory: UOp
    before: Array
    numbers: Array
    values: Array

    def apply(self, contents: Array) -> Array:
        """The contents after this write; the last of several values for one element stays."""
        after = contents.flatten()
        named = self.numbers > 0
        after[self.numbers[named] - 1] = self.values[named]
        return after.reshape(contents.shape)


def memory_below(address: UOp) -> UOp:
    """The BUFFER or PARAM that an address is a view of."""
    node = memory_of(address)
    if node.op not in (Op.BUFFER, Op.PARAM):
        raise fault(f"STORE: expected memory, got {name(node.op)}", address)
    return node


def element_numbers(
    address: UOp, shape: tuple[int, ...], values: Mapping[UOp, Array], size_of: SizeOf
) -> Array:
    """For each element of a view, the number of the element of the memory it is, from 1; or 0."""
    chain: list[UOp] = []
    node = address
    while node.op not in (Op.BUFFER, Op.PARAM):
        if node.op != Op.AFTER:
            chain.append(node)
        node = node.src[0]
    numbers = np.arange(1, 1 + int(np.prod(shape)), dtype=np.int64).reshape(shape)
    for step in reversed(chain):
        before = numbers.size
        if step.op == Op.INDEX:
            mask, *indices = (values[source] for source in step.src[1:])
            numbers = pick(step, numbers, mask, indices)
        else:
            numbers = move(step, numbers, size_of)
        if step.op == Op.EXPAND and numbers.size > before:
            raise fault("STORE through an expanded view, whose elements share memory", step)
    return numbers
