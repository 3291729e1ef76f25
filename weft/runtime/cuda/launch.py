"""Kernels on a GPU: one at a time (`CudaExecutable`). `graph.py` has whole lists of them."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from weft.ir.program import Program
from weft.runtime.cuda.driver import SUCCESS, describe
from weft.runtime.cuda.memory import CudaMemory
from weft.runtime.cuda.tensor_maps import TensorMaps, ask_for_memory
from weft.runtime.cuda.watch import FAULTS
from weft.support.errors import DeviceError, InternalError

if TYPE_CHECKING:
    from weft.runtime.cuda.device import CudaDevice

Grid = tuple[int, int, int]


def three(sizes: Sequence[int]) -> Grid:
    """Sizes of all three axes.

    >>> three((5,)), three(())
    ((5, 1, 1), (1, 1, 1))
    """
    x, y, z = (*sizes, 1, 1, 1)[:3]
    return x, y, z


class CudaExecutable:
    """A kernel that is loaded. Its arguments are addresses, then the values of its variables."""

    def __init__(self, device: CudaDevice, function: Any, module: Any, program: Program) -> None:
        self.device = device
        weakref.finalize(self, device.unload, module).atexit = False
        self.function = function
        self.name = program.name
        self.threads = three(program.threads)
        self.count = len(program.parameters) + len(program.variables)
        self.shared_bytes = program.dynamic_bytes
        self.layouts = program.maps
        self.waits = program.waits
        self.parameters = program.parameters
        self.early = program.early
        if self.shared_bytes:
            ask_for_memory(device, function, program)
        self._values = (ctypes.c_int64 * self.count)()
        self.maps = TensorMaps(device.api, self.layouts)
        # Nothing runs beside a kernel that is queued by itself, so it need not wait.
        self._waits_first = ctypes.c_int32(0)
        flags = [ctypes.addressof(self._waits_first)] if self.early else []
        self._pointers = pointers_to(self._values, maps=self.maps, flags=flags)

    def __call__(
        self, memory: Sequence[CudaMemory], variables: Sequence[int], groups: tuple[int, ...]
    ) -> None:
        """Queue a run over a grid of groups."""
        if len(memory) + len(variables) != self.count:
            raise InternalError(
                f"{self.name}: the arguments do not fit the program",
                facts=[("memory", len(memory)), ("variables", len(variables))],
            )
        self.queue(self._pointers, [part.address for part in memory] + list(variables), groups)

    def queue(self, pointers: Any, values: Any, groups: tuple[int, ...]) -> None:
        """Queue a run; without `values` the arguments are what the pointers point to."""
        if 0 in groups:  # a driver refuses an empty grid
            return
        device, grid = self.device, three(groups)
        device.enter()
        with device.lock:
            if values:
                self._values[:] = values
                self.maps.describe(self._values)
            code = device.api.cuLaunchKernel(
                *(self.function, *grid, *self.threads),
                *(self.shared_bytes, device.stream, pointers, None),
            )
            if code == SUCCESS:
                device.watch.launched((self.name,), grid)
        if code != SUCCESS:
            raise launch_error(device, code, self, grid)


def pointers_to(
    words: Any,
    first: int = 0,
    count: int | None = None,
    maps: TensorMaps | None = None,
    flags: Sequence[int] = (),
) -> Any:
    """The addresses of some words, tensor maps and flags, as a launch takes its arguments."""
    start = ctypes.addressof(words)
    last = len(words) if count is None else first + count
    addresses = [start + 8 * position for position in range(first, last)]
    if maps is not None:
        addresses += maps.addresses
    addresses += flags
    return (ctypes.c_void_p * max(len(addresses), 1))(*addresses)


def launch_error(device: CudaDevice, code: int, kernel: CudaExecutable, grid: Grid) -> DeviceError:
    """The error of a launch that was refused, or that found an earlier fault."""
    if code in FAULTS:
        return device.watch.fault(code)
    limits = device.gpu.grid_limits
    return DeviceError(
        f"{device.name}: kernel {kernel.name!r} cannot be launched",
        facts=[
            ("the driver says", describe(device.api, code)),
            ("grid", grid, f"at most {limits}"),
            ("threads of a group", kernel.threads),
            ("arguments", kernel.count),
        ],
    )
