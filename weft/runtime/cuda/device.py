"""`CUDA:n`: an NVIDIA GPU, through its driver.

One stream runs everything in order; calls return before the GPU is done. The context is the one
that other libraries of the process use too (the primary one), and the stream waits for their
default stream and they for it, so that memory can be shared with PyTorch. A program is PTX that
LLVM writes and the driver compiles.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

from weft.ir.program import Program
from weft.runtime.cuda.compiler import assemble
from weft.runtime.cuda.copies import Copies
from weft.runtime.cuda.driver import SUCCESS, load_driver, require_success, version_text
from weft.runtime.cuda.gpus import gpu_count, number_of, require_gpu
from weft.runtime.cuda.graph import CudaGraph, Launch
from weft.runtime.cuda.launch import CudaExecutable
from weft.runtime.cuda.memory import CudaMemory, MemoryPool
from weft.runtime.cuda.watch import LaunchWatch
from weft.runtime.device import Abilities
from weft.runtime.llvm.compiler import compile_ptx, llvm_name
from weft.support.errors import ArgumentError
from weft.target.cuda import ARGUMENT_ALIGNMENT, cuda_target
from weft.target.target import Target

Renderer = Callable[[Program, Target], str]
# How many programs the driver compiles side by side.
COMPILERS: Final = 12
DLPACK_KIND: Final = 2
# Streams by number in the protocols of other libraries: the default one, and "no matter".
_LEGACY_STREAM: Final = 1
_NO_STREAM: Final = -1

_CURRENT: Final = threading.local()  # `.device`: whose context is current in this thread


class CudaDevice(Abilities):
    """One GPU. `lock` orders what several threads queue; `watch` waits and finds faults."""

    compile_threads = COMPILERS
    reuses_memory = True
    has_addresses = True

    def __init__(self, renderer: Renderer, name: str = "CUDA", api: Any = None) -> None:
        self.name = name
        self.lists = self.peers = self.timer = self.foreign = self
        self.api = api = load_driver() if api is None else api
        self.gpu = require_gpu(api, number_of(name))
        self.target = cuda_target(self.gpu.arch)
        self.lock = threading.Lock()
        self._renderer = renderer
        self._is_alone = gpu_count(api) == 1
        self._context = self._new("cuDevicePrimaryCtxRetain", self.gpu.number)
        self.enter()
        self.stream = self._new("cuStreamCreate", 0)
        self.watch = LaunchWatch(api, self.stream, name)
        self.pool = MemoryPool(api, self.watch, self.enter, self.stream, self.gpu.number)
        if self.gpu.has_pools:
            self.pool.open()
        self.copies = Copies(api, self.watch, self.enter, self.stream)
        self._events: dict[bool, list[Any]] = {}
        self._neighbors: set[int] = set()
        self.facts = self._facts()

    def _facts(self) -> tuple[str, ...]:
        """What a user wants to know of this GPU and of others beside it."""
        free, total = self.pool.free_and_total()
        version = version_text(self.gpu.driver)
        count = gpu_count(self.api)
        others = f"CUDA:0 to CUDA:{count - 1}" if count > 1 else ""
        return (
            self.gpu.name,
            f"{total / 2**30:.1f} GiB, {free / 2**30:.1f} free",
            f"driver for CUDA {version}",
            others,
        )

    def enter(self) -> None:
        """Make the context current: each thread has one of its own."""
        if self._is_alone and getattr(_CURRENT, "device", None) is self:
            return
        require_success(self.api, self.api.cuCtxSetCurrent(self._context), "entering the context")
        _CURRENT.device = self

    def _new(self, function: str, *arguments: Any) -> Any:
        made = ctypes.c_void_p()
        code = getattr(self.api, function)(ctypes.byref(made), *arguments)
        require_success(self.api, code, function)
        return made

    # Memory.

    def allocate(self, size: int) -> CudaMemory:
        return self.pool.take(size)

    def free(self, handle: CudaMemory) -> None:
        handle.free()

    def release(self) -> None:
        """Give idle memory back to the driver."""
        self.pool.release()

    def view(self, handle: CudaMemory, offset: int, size: int) -> CudaMemory:
        if offset < 0 or size < 0 or offset + size > handle.size:
            raise ArgumentError(
                f"view: bytes {offset} to {offset + size} are not inside {handle.size} bytes",
                rule="a view is a part of some memory",
            )
        return CudaMemory(handle.address + offset, size)

    def adopt(self, address: int, size: int) -> tuple[CudaMemory, bool]:
        """Memory of another library on this GPU, and whether kernels can use it as it is."""
        return CudaMemory(address, size), address % ARGUMENT_ALIGNMENT == 0

    def copy_in(self, handle: CudaMemory, data: memoryview) -> None:
        if data.nbytes:
            self.copies.copy_in(handle.address, data)

    def copy_out(self, data: memoryview, handle: CudaMemory) -> None:
        if data.nbytes:
            self.copies.copy_out(data, handle.address)

    def try_copy_from(
        self, handle: CudaMemory, source: object, other: CudaMemory, size: int
    ) -> bool:
        """Copy from memory of this or another GPU; False where the host has to be in between."""
        if not isinstance(source, CudaDevice):
            return False
        self.watch.require_alive()
        if source is self:
            self.enter()
            code = self.api.cuMemcpyDtoDAsync_v2(handle.address, other.address, size, self.stream)
        else:
            code = self._copy_from_peer(handle, source, other, size)
        if code != SUCCESS:
            raise self.watch.fault(code)
        return True

    def _copy_from_peer(
        self, handle: CudaMemory, source: CudaDevice, other: CudaMemory, size: int
    ) -> int:
        source.join(self)
        source.wait_for_stream(self.stream)
        self.enter()
        code: int = self.api.cuMemcpyPeerAsync(
            *(handle.address, self._context, other.address, source._context),
            *(size, self.stream),
        )
        self.wait_for_stream(source.stream)  # memory that is freed there may be used again
        return code

    def join(self, other: CudaDevice) -> None:
        """Let another GPU read this memory over a direct link, where there is one."""
        if other.gpu.number in self._neighbors:
            return
        self._neighbors.add(other.gpu.number)
        can = ctypes.c_int()
        numbers = (other.gpu.number, self.gpu.number)
        require_success(
            self.api, self.api.cuDeviceCanAccessPeer(ctypes.byref(can), *numbers), "joining GPUs"
        )
        if can.value:
            self.pool.allow(other.gpu.number)

    # Other streams.

    def wait_for_stream(self, stream: Any) -> None:
        """Let another stream go on when all that was queued here is done."""
        self.enter()
        with self.lock:
            (event,) = self._take_events(1, has_times=False)
            try:
                code = self.api.cuEventRecord(event, self.stream)
                code = code or self.api.cuStreamWaitEvent(stream, event, 0)
            finally:
                self._events[False].append(event)
        if code != SUCCESS:
            raise self.watch.fault(code)

    def hand_to(self, stream: int | None) -> None:
        """Let the stream of a consumer, by DLPack's number, see all that was queued here."""
        if stream != _NO_STREAM:
            # The default stream waits by itself.
            is_default = stream in (None, 0, _LEGACY_STREAM)
            self.wait_for_stream(None if is_default else ctypes.c_void_p(stream))

    @property
    def dlpack_device(self) -> tuple[int, int]:
        """The kind and the number of this device in DLPack."""
        return DLPACK_KIND, self.gpu.number

    @property
    def stream_number(self) -> int:
        """The stream, as producers of DLPack want to know it."""
        return int(self.stream.value)

    # Programs.

    @property
    def compiler(self) -> str:
        """What `compile` depends on besides the source and the target, for the key of a cache."""
        return f"driver {self.gpu.driver} {llvm_name()}"

    def render(self, program: Program) -> str:
        return self._renderer(program, self.target)

    def compile(self, program: Program) -> bytes:
        ptx = compile_ptx(program.source or self.render(program), self.target)
        self.enter()
        return assemble(self.api, ptx, program.name)

    def load(self, program: Program) -> CudaExecutable:
        self.synchronize()  # loading may wait for what runs, without an end where that has none
        module = self._new("cuModuleLoadData", program.binary or self.compile(program))
        function = self._new("cuModuleGetFunction", module, program.name.encode())
        return CudaExecutable(self, function, module, program)

    def unload(self, module: Any) -> None:
        """Unload a program, once it has run."""
        if self.watch.lost is None:
            self.enter()
            self.watch.wait()
            self.api.cuModuleUnload(module)

    def run_list(self, launches: Sequence[Launch]) -> CudaGraph:
        """Several kernels as one graph."""
        return CudaGraph(self, launches)

    def destroy_graph(self, graph: Any, runnable: Any) -> None:
        if self.watch.lost is None:
            self.enter()
            self.api.cuGraphExecDestroy(runnable)
            self.api.cuGraphDestroy(graph)

    def synchronize(self) -> None:
        self.enter()
        self.watch.wait()

    def measure(self, run: Callable[[], None]) -> float:
        """The seconds on the GPU of what `run` queues."""
        self.enter()
        with self.lock:
            first, last = self._take_events(2, has_times=True)
        try:
            code = self.api.cuEventRecord(first, self.stream)
            run()
            code = code or self.api.cuEventRecord(last, self.stream)
            self.watch.wait()
            spent = ctypes.c_float()
            code = code or self.api.cuEventElapsedTime(ctypes.byref(spent), first, last)
        finally:
            self._events[True] += [first, last]
        require_success(self.api, code, "taking the time")
        return spent.value * 1e-3

    def _take_events(self, count: int, has_times: bool) -> list[Any]:
        """Events that are not in use; whoever takes them gives them back."""
        idle = self._events.setdefault(has_times, [])
        while len(idle) < count:
            idle.append(self._new("cuEventCreate", 0 if has_times else 2))
        return [idle.pop() for _ in range(count)]
