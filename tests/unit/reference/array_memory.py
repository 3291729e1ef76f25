"""Arrays as the memory of the interpreters, and back."""

from collections.abc import Sequence

import numpy as np

from weft.ir.arrays.values import Array, from_storage, storage_dtype, to_storage
from weft.ir.dtypes import DType
from weft.reference.memory import ElementMemory


def to_memory(dtype: DType, values: Array, name: str = "memory") -> ElementMemory:
    """A copy of the values for the interpreters of kernels and programs."""
    return ElementMemory.from_bytes(dtype, to_storage(dtype, values).tobytes(), name)


def from_memory(memory: ElementMemory, shape: Sequence[int]) -> Array:
    """The contents of memory as an array of values."""
    raw = np.frombuffer(memory.to_bytes(), storage_dtype(memory.dtype))
    return from_storage(memory.dtype, raw).reshape(shape)
