"""Tensor maps: how the copy engine of a GPU sees the arguments of a kernel as tensors.

A kernel that copies boxes takes a map of 128 bytes for each tensor behind its other arguments. The
driver makes it from an address and what the program says of sizes and strides, so a map is made
anew where an argument lies elsewhere than in the launch before.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from weft.ir.program import Program, TensorMap
from weft.runtime.cuda.driver import require_success

if TYPE_CHECKING:
    from weft.runtime.cuda.device import CudaDevice

MAP_BYTES: Final = 128
_ALIGNMENT: Final = 64
# CUtensorMapDataType by the bytes of an element: unsigned integers, which are copied as they are.
_KINDS: Final = {1: 0, 2: 1, 4: 2}
_NOT_INTERLEAVED: Final = 0
_SWIZZLE_128: Final = 3
_PROMOTE_TO_128: Final = 2
_ZEROS_OUTSIDE: Final = 0
_MOST_DYNAMIC_BYTES: Final = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES


def ask_for_memory(device: CudaDevice, function: Any, program: Program) -> None:
    """Let a kernel have the local memory that its launches ask for."""
    code = device.api.cuFuncSetAttribute(function, _MOST_DYNAMIC_BYTES, program.dynamic_bytes)
    what = f"giving {program.name!r} {program.dynamic_bytes} bytes of shared memory"
    require_success(device.api, code, what)


class TensorMaps:
    """The maps of one kernel in one list of arguments; `addresses` are where they stay."""

    def __init__(self, api: Any, layouts: Sequence[TensorMap]) -> None:
        self._api = api
        self._layouts = layouts
        self._memory = ctypes.create_string_buffer(MAP_BYTES * len(layouts) + _ALIGNMENT)
        start = -(-ctypes.addressof(self._memory) // _ALIGNMENT) * _ALIGNMENT
        self.addresses = [start + MAP_BYTES * number for number in range(len(layouts))]
        self._described = [0] * len(layouts)

    def describe(self, words: Any) -> None:
        """Make the maps for the addresses of the arguments, which come first among the words."""
        for number, layout in enumerate(self._layouts):
            address = words[layout.position] + layout.offset * layout.itemsize
            if self._described[number] != address:
                self._encode(self.addresses[number], layout, address)
                self._described[number] = address

    def _encode(self, target: int, layout: TensorMap, address: int) -> None:
        rank = len(layout.sizes)
        strides = [stride * layout.itemsize for stride in layout.strides[1:]]
        # The driver is told from where to where a box reaches, not how many elements it has.
        spans = [n * step for n, step in zip(layout.box, layout.traversal, strict=True)]
        code = self._api.cuTensorMapEncodeTiled(
            *(target, _KINDS[layout.itemsize], rank, address),
            (ctypes.c_uint64 * rank)(*layout.sizes),
            (ctypes.c_uint64 * (rank - 1))(*strides),
            (ctypes.c_uint32 * rank)(*spans),
            (ctypes.c_uint32 * rank)(*layout.traversal),
            *(_NOT_INTERLEAVED, _SWIZZLE_128, _PROMOTE_TO_128, _ZEROS_OUTSIDE),
        )
        require_success(self._api, code, f"describing an argument as a tensor of {layout.sizes}")
