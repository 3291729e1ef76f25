"""Computed tensors whose sizes are written otherwise: as ints, or as variables with their values.

A function that is traced for symbolic sizes is called with these, on memory that is just as large
as its elements.
"""

from __future__ import annotations

from weft.engine.buffer_nodes import BufferKind, with_shape
from weft.engine.buffers import Buffer, buffer_of
from weft.ir.shapes import Shape
from weft.ir.sizes import shape_value
from weft.tensor.core import realize_all
from weft.tensor.storage import Storage
from weft.tensor.tensor import Tensor


def resized(tensor: Tensor, shape: Shape) -> Tensor:
    """The elements of a tensor on one device, in its memory, with a shape of the same values.

    No graph and no gradient connects the two, so neither is to be written while the other is used.
    """
    whole = tensor.clone() if tensor._steps else tensor
    realize_all([whole])
    storage = whole._storage
    memory = buffer_of(storage.uop)
    part = Buffer(memory.device, memory.size)
    part.handle, part.keep = memory.allocated(), storage  # it frees nothing
    kind = BufferKind(tensor.dtype, shape, storage.device)
    return Tensor._of(Storage.over(kind.holding(part), storage.device))


def settle_sizes(tensors: list[Tensor]) -> list[Tensor]:
    """The tensors, computed, with ints for their sizes, in the memory that they have.

    They are to be the only ones that show that memory.
    """
    settled = [each.clone() if each._steps and _is_symbolic(each) else each for each in tensors]
    symbolic = [each for each in settled if _is_symbolic(each)]
    realize_all(symbolic)
    for each in symbolic:
        storage = each._storage
        if storage.uop.src:
            storage.take_over(with_shape(storage.uop, shape_value(each.shape)))
    return settled


def _is_symbolic(tensor: Tensor) -> bool:
    return any(not isinstance(size, int) for size in (*tensor.shape, *tensor._storage.uop.src))
