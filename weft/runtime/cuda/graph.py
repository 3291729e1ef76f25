"""Kernels one after the other as one CUDA graph: a jitted call is one call of the driver.

A `CudaGraph` keeps the protocol of lists in `weft.runtime.device`. `words` has the arguments of
all kernels; whoever runs the list writes other addresses and values there. Before a launch the
words are compared with those of the last one, and the kernels whose arguments or grids changed are
patched in the graph that the driver holds. A kernel whose grid is empty is switched off.

A kernel that waits for others by itself starts as soon as all groups of the one before have: its
groups are there when those are done, and the time of a launch is not lost. As each such kernel
waits for the one before it, all that came earlier is done as well. What is switched off waits for
nothing, so there each kernel starts behind the end of the one before. A kernel that reads
arguments early is told to wait before that where another kernel of the list writes them.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weft.runtime.cuda.driver import SUCCESS, require_success
from weft.runtime.cuda.early_reads import EarlyReads
from weft.runtime.cuda.launch import CudaExecutable, Grid, launch_error, pointers_to, three
from weft.runtime.cuda.memory import CudaMemory
from weft.runtime.cuda.tensor_maps import TensorMaps
from weft.support.errors import DeviceError, InternalError

if TYPE_CHECKING:
    from weft.runtime.cuda.device import CudaDevice

# A kernel, its memory (None: a run brings it), its variables and its grid.
Launch = tuple[CudaExecutable, Sequence[CudaMemory | None], Sequence[int], tuple[int, ...]]


class NodeParams(ctypes.Structure):
    """CUDA_KERNEL_NODE_PARAMS_v2."""

    _fields_ = (
        ("function", ctypes.c_void_p),
        ("grid", ctypes.c_uint * 3),
        ("threads", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("arguments", ctypes.c_void_p),
        ("extra", ctypes.c_void_p),
        ("kernel", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
    )


class EdgeData(ctypes.Structure):
    """CUgraphEdgeData: which event of one node another one waits for."""

    _fields_ = (
        ("from_port", ctypes.c_ubyte),
        ("to_port", ctypes.c_ubyte),
        ("kind", ctypes.c_ubyte),
        ("reserved", ctypes.c_ubyte * 5),
    )


# All groups of a kernel have let the next one start, or are done.
_ALL_LET_START: Final = EdgeData(from_port=1, to_port=0, kind=1)


class CudaGraph:
    """A list of kernels. The graph is made at the first run, when there are addresses."""

    is_timed = False  # the driver runs it as a whole

    def run_timed(self) -> list[float]:
        """Nothing here has the times of single kernels."""
        raise InternalError("a CUDA graph has no times of its kernels")

    def __init__(self, device: CudaDevice, launches: Sequence[Launch]) -> None:
        self.device = device
        self._kernels = [kernel for kernel, _, _, _ in launches]
        self._names = tuple([kernel.name for kernel in self._kernels])
        self._starts: list[int] = []
        words: list[int] = []
        for _, memory, values, _ in launches:
            self._starts.append(len(words))
            words += [0 if part is None else part.address for part in memory]
            words += values
        self.words = (ctypes.c_int64 * max(len(words), 1))(*words)
        self._grids = [three(groups) for _, _, _, groups in launches]
        self._changed_grids: set[int] = set()
        self._sometimes_empty: set[int] = set()
        self._early_reads = EarlyReads(self._kernels, self._starts)
        self._waits_first = (ctypes.c_int32 * max(len(launches), 1))()
        # The same words as an array, which finds those that changed.
        self._now = np.frombuffer(memoryview(self.words), np.int64)
        self._last = self._now.copy()
        counts = [kernel.count for kernel in self._kernels]
        self._owners = np.repeat(np.arange(len(counts)), counts)
        self._maps = [TensorMaps(device.api, kernel.layouts) for kernel in self._kernels]
        self._pointers = [
            pointers_to(self.words, start, kernel.count, maps, self._flag(number))
            for number, (kernel, start, maps) in enumerate(
                zip(self._kernels, self._starts, self._maps, strict=True)
            )
        ]
        self._params = [self._described(number) for number in range(len(launches))]
        self._nodes: list[Any] = []
        self._runnable: Any = None
        self._destroy: Any = None

    def _flag(self, number: int) -> Sequence[int]:
        """The address of what tells a kernel to wait first, if it takes that."""
        first = ctypes.addressof(self._waits_first)
        return [first + 4 * number] if self._kernels[number].early else []

    def __len__(self) -> int:
        return len(self._kernels)

    def position(self, number: int, slot: int) -> int:
        """Which of the words is an argument of a kernel: an address, or behind those a value."""
        return self._starts[number] + slot

    def set_grid(self, numbers: Sequence[int], groups: tuple[int, ...]) -> None:
        """Let some launches run over another grid."""
        grid = three(groups)
        for number in numbers:
            if self._grids[number] != grid:
                self._grids[number] = grid
                self._changed_grids.add(number)
            if 0 in grid and number not in self._sometimes_empty:
                self._runnable = None  # made again, with other edges

    def memory_at(self, number: int, slot: int, size: int) -> CudaMemory:
        """The memory that an argument of a kernel has now."""
        return CudaMemory(self.words[self.position(number, slot)], size)

    def run_one(self, number: int, memory: Sequence[CudaMemory]) -> None:
        """Run one kernel of the list on other memory; the list stays as it is."""
        kernel, start = self._kernels[number], self._starts[number]
        values = self.words[start + len(memory) : start + kernel.count]
        kernel(memory, values, self._grids[number])

    def __call__(self) -> None:
        device = self.device
        if not self._kernels:
            return
        device.watch.require_alive()
        device.enter()
        if self._runnable is None:
            self._make()
        else:
            self._patch()
        with device.lock:
            code = device.api.cuGraphLaunch(self._runnable, device.stream)
            if code == SUCCESS:
                device.watch.launched(self._names)
        if code != SUCCESS:
            raise launch_error(device, code, self._kernels[0], self._grids[0])

    def _described(self, number: int) -> NodeParams:
        """What the driver wants to know of a launch; an empty grid is one that is switched off."""
        kernel = self._kernels[number]
        return NodeParams(
            function=kernel.function,
            grid=self._shown_grid(number),
            threads=kernel.threads,
            shared_bytes=kernel.shared_bytes,
            arguments=ctypes.addressof(self._pointers[number]),
        )

    def _describe(self, number: int) -> None:
        """Make the tensor maps of a kernel for the addresses that it has now."""
        kernel, start = self._kernels[number], self._starts[number]
        if kernel.layouts:
            self._maps[number].describe(self.words[start : start + kernel.count])

    def _shown_grid(self, number: int) -> Grid:
        grid = self._grids[number]
        return (1, 1, 1) if 0 in grid else grid

    def _make(self) -> None:
        """Make the graph: each kernel behind the one before.

        The driver names the nodes of what it runs by those of what it was made of, so both stay.
        """
        self.device.synchronize()  # the driver may wait for what runs, and this finds its faults
        if self._destroy is not None:
            self._destroy()
        self._sometimes_empty |= {n for n, grid in enumerate(self._grids) if 0 in grid}
        self._tell_to_wait()
        api, graph, runnable = self.device.api, ctypes.c_void_p(), ctypes.c_void_p()
        require_success(api, api.cuGraphCreate(ctypes.byref(graph), 0), "making a graph")
        try:
            nodes = self._add_nodes(graph)
            code = api.cuGraphInstantiateWithFlags(ctypes.byref(runnable), graph, 0)
            require_success(api, code, f"making a graph of {len(nodes)} kernels ready")
        except DeviceError:
            api.cuGraphDestroy(graph)
            raise
        self._destroy = weakref.finalize(self, self.device.destroy_graph, graph, runnable)
        self._destroy.atexit = False
        self._nodes, self._runnable = nodes, runnable
        for number, grid in enumerate(self._grids):
            if 0 in grid:
                self._switch(number, False)
        self._last[:] = self._now
        self._changed_grids.clear()

    def _add_nodes(self, graph: Any) -> list[Any]:
        nodes: list[Any] = []
        for number, params in enumerate(self._params):
            params.grid = self._shown_grid(number)
            self._describe(number)
            node = ctypes.c_void_p()
            before, is_early = nodes[-1:], self._is_early(number)
            others = (ctypes.c_void_p * 1)(*[each.value for each in before])
            code = self.device.api.cuGraphAddKernelNode_v2(
                *(ctypes.byref(node), graph, others),
                *(0 if is_early else len(before), ctypes.byref(params)),
            )
            if is_early and code == SUCCESS:
                code = self.device.api.cuGraphAddDependencies_v2(
                    graph, others, ctypes.byref(node), ctypes.byref(_ALL_LET_START), 1
                )
            if code != SUCCESS:
                kernel, grid = self._kernels[number], self._grids[number]
                raise launch_error(self.device, code, kernel, grid)
            nodes.append(node)
        return nodes

    def _is_early(self, number: int) -> bool:
        """Whether a kernel starts while the one before it runs."""
        return (
            number > 0
            and self._kernels[number].waits
            and self._sometimes_empty.isdisjoint((number - 1, number))
            and self.device.api.cuGraphAddDependencies_v2 is not None
        )

    def _tell_to_wait(self) -> list[int]:
        """Let kernels that read early what is written now wait first; those that are told anew."""
        found = self._early_reads.of_what_is_written(self._now)
        told = [n for n in self._early_reads.numbers if self._waits_first[n] != (n in found)]
        for number in told:
            self._waits_first[number] = number in found
        return told

    def _patch(self) -> None:
        """Tell the driver of the kernels whose arguments or grids are not those of last time."""
        different = np.flatnonzero(self._now != self._last)
        changed = self._changed_grids
        if not different.size and not changed:
            return
        told = self._tell_to_wait() if different.size else []
        numbers = {*self._owners[different].tolist(), *changed, *told}
        api = self.device.api
        for number in sorted(numbers):
            params = self._params[number]
            self._describe(number)
            if number in changed:
                params.grid = self._shown_grid(number)
                self._switch(number, 0 not in self._grids[number])
            code = api.cuGraphExecKernelNodeSetParams_v2(
                self._runnable, self._nodes[number], ctypes.byref(params)
            )
            if code != SUCCESS:
                raise launch_error(self.device, code, self._kernels[number], self._grids[number])
        self._last[:] = self._now
        changed.clear()

    def _switch(self, number: int, is_on: bool) -> None:
        api = self.device.api
        code = api.cuGraphNodeSetEnabled(self._runnable, self._nodes[number], int(is_on))
        require_success(api, code, f"switching {self._names[number]!r}")
