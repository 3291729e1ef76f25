"""A driver of CUDA in Python: what runs on it runs in the interpreter, on memory of the host.

It keeps the promises of the real one that the device relies on: arguments of a launch are read
when it is queued, those of a graph when a node is made or patched. A fault is seen by whoever
waits; from then on every call fails. `calls` has the name of each call. `codes` makes a function
fail: name to a list of codes, of which each call takes the first.
"""

import ctypes
import math
from collections import Counter
from typing import Any

from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.program import Program
from weft.ir.shapes import shape_of
from weft.ir.sizes import shape_value, size_value
from weft.ir.walk import topological
from weft.reference.memory import ElementMemory
from weft.reference.program import run_program
from weft.render.llvm.renderer import render
from weft.runtime.cuda.device import CudaDevice
from weft.runtime.cuda.driver import SIGNATURES

NOT_READY = 600
_ATTRIBUTES = {5: 2**31 - 1, 6: 65535, 7: 65535, 16: 132, 38: 50 << 20, 75: 9, 76: 0, 97: 232448}
_NAMES = {2: b"CUDA_ERROR_OUT_OF_MEMORY", 700: b"CUDA_ERROR_ILLEGAL_ADDRESS"}


class FakeDriver:
    """One or several GPUs of `memory` bytes each."""

    def __init__(self, gpus: int = 1, memory: int = 1 << 30, has_pools: bool = True) -> None:
        self.gpus, self.memory = gpus, memory
        self.attributes = {**_ATTRIBUTES, 115: int(has_pools)}
        self.calls: Counter[str] = Counter()
        self.codes: dict[str, list[int]] = {}
        self.blocks: dict[int, Any] = {}
        self.idle: dict[int, Any] = {}  # freed to the pool
        self.objects: list[Any] = [None]
        self.programs: dict[bytes, Program] = {}
        self.launches: list[tuple[str, tuple[int, ...], list[int]]] = []
        self.faulty: set[str] = set()  # kernels that touch memory which is not theirs
        self.endless: set[str] = set()
        self.state = 0  # what the stream answers
        self.is_seen = True  # whether other calls answer that too

    def __getattr__(self, name: str) -> Any:
        if name not in SIGNATURES:
            raise AttributeError(name)

        def call(*arguments: Any) -> int:
            self.calls[name] += 1
            assert len(arguments) == len(SIGNATURES[name]), name
            waiting = self.codes.get(name)
            if waiting:
                return waiting.pop(0)
            if name.endswith("Query"):
                self.is_seen = True
            is_lost = self.state not in (0, NOT_READY) and self.is_seen
            if is_lost and not name.startswith("cuGetError"):
                return self.state
            return getattr(self, f"do_{name}", lambda *_: 0)(*map(_given, arguments)) or 0

        return call

    def handle(self, thing: Any) -> int:
        self.objects.append(thing)
        return len(self.objects) - 1

    # Devices.

    def do_cuDriverGetVersion(self, out: Any) -> None:  # noqa: N802
        out.value = 13000

    def do_cuGetErrorName(self, code: int, out: Any) -> None:  # noqa: N802
        out.value = _NAMES.get(code, b"CUDA_ERROR")

    def do_cuGetErrorString(self, code: int, out: Any) -> None:  # noqa: N802
        out.value = b"it went wrong"

    def do_cuDeviceGetCount(self, out: Any) -> None:  # noqa: N802
        out.value = self.gpus

    def do_cuDeviceGet(self, out: Any, number: int) -> int:  # noqa: N802
        out.value = number
        return 0 if number < self.gpus else 101

    def do_cuDeviceGetName(self, out: Any, size: int, number: int) -> None:  # noqa: N802
        out.value = b"Fake GPU"

    def do_cuDeviceGetAttribute(self, out: Any, which: int, number: int) -> None:  # noqa: N802
        out.value = self.attributes[which]

    def do_cuDeviceTotalMem_v2(self, out: Any, number: int) -> None:  # noqa: N802
        out.value = self.memory

    def do_cuMemGetInfo_v2(self, free: Any, total: Any) -> None:  # noqa: N802
        free.value, total.value = self.memory - self.held, self.memory

    def do_cuDeviceCanAccessPeer(self, out: Any, one: int, other: int) -> None:  # noqa: N802
        out.value = 1

    # Memory.

    @property
    def held(self) -> int:
        return sum(len(b) for b in (*self.blocks.values(), *self.idle.values()))

    def take(self, out: Any, size: int) -> int:
        if self.held + size > self.memory:
            return 2
        block = (ctypes.c_char * (size + 256))()
        address = -(-ctypes.addressof(block) // 256) * 256
        self.blocks[address] = block
        out.value = address
        return 0

    def do_cuMemAlloc_v2(self, out: Any, size: int) -> int:  # noqa: N802
        return self.take(out, size)

    def do_cuMemAllocFromPoolAsync(  # noqa: N802
        self, out: Any, size: int, pool: Any, stream: Any
    ) -> int:
        return self.take(out, size)

    def do_cuMemFree_v2(self, address: int) -> None:  # noqa: N802
        del self.blocks[address]

    def do_cuMemFreeAsync(self, address: int, stream: Any) -> None:  # noqa: N802
        self.idle[address] = self.blocks.pop(address)

    def do_cuMemPoolTrimTo(self, pool: Any, size: int) -> None:  # noqa: N802
        self.idle.clear()

    def do_cuMemPoolCreate(self, out: Any, properties: Any) -> None:  # noqa: N802
        out.value = self.handle("pool")

    def do_cuMemPoolGetAttribute(self, pool: Any, which: int, out: Any) -> None:  # noqa: N802
        out.value = self.held

    def do_cuMemHostAlloc(self, out: Any, size: int, flags: int) -> None:  # noqa: N802
        block = (ctypes.c_char * size)()
        self.objects.append(block)
        out.value = ctypes.addressof(block)

    def do_cuPointerGetAttribute(self, out: Any, which: int, address: int) -> int:  # noqa: N802
        pinned = [o for o in self.objects if isinstance(o, ctypes.Array)]
        found = any(0 <= address - ctypes.addressof(o) < len(o) for o in pinned)
        out.value = 1
        return 0 if found else 1

    def do_cuMemcpyHtoDAsync_v2(self, to: int, host: int, size: int, _: Any) -> None:  # noqa: N802
        ctypes.memmove(to, host, size)

    def do_cuMemcpyDtoHAsync_v2(self, host: int, at: int, size: int, _: Any) -> None:  # noqa: N802
        ctypes.memmove(host, at, size)

    def do_cuMemcpyDtoDAsync_v2(self, to: int, at: int, size: int, _: Any) -> None:  # noqa: N802
        ctypes.memmove(to, at, size)

    def do_cuMemcpyPeerAsync(  # noqa: N802
        self, to: int, one: Any, at: int, other: Any, size: int, stream: Any
    ) -> None:
        ctypes.memmove(to, at, size)

    # Streams and events.

    def do_cuStreamCreate(self, out: Any, flags: int) -> None:  # noqa: N802
        out.value = self.handle("stream")

    def do_cuStreamQuery(self, stream: Any) -> int:  # noqa: N802
        return self.state

    def do_cuEventQuery(self, event: Any) -> int:  # noqa: N802
        return self.state

    def do_cuEventCreate(self, out: Any, flags: int) -> None:  # noqa: N802
        out.value = self.handle("event")

    def do_cuEventElapsedTime(self, out: Any, first: Any, last: Any) -> None:  # noqa: N802
        out.value = 2.5

    def do_cuStreamWriteValue32_v2(  # noqa: N802
        self, stream: Any, address: int, value: int, flags: int
    ) -> None:
        if self.state == 0:
            ctypes.c_uint32.from_address(address).value = value

    # Programs.

    def do_cuLinkCreate_v2(self, count: int, keys: Any, values: Any, out: Any) -> None:  # noqa: N802
        out.value = self.handle({"log": values[0]})

    def do_cuLinkAddData_v2(  # noqa: N802
        self, link: Any, kind: int, data: bytes, size: int, name: bytes, *options: Any
    ) -> int:
        opened = self.objects[link.value]
        if b".f99" in data:
            log = b"ptxas application ptx input, line 5; error   : Unknown modifier '.f99'"
            ctypes.memmove(opened["log"], log, len(log))
            return 218
        opened["data"] = ctypes.create_string_buffer(data, size)
        return 0

    def do_cuLinkComplete(self, link: Any, out: Any, size: Any) -> None:  # noqa: N802
        data = self.objects[link.value]["data"]
        out.value, size.value = ctypes.addressof(data), len(data)

    def do_cuModuleLoadData(self, out: Any, binary: bytes) -> None:  # noqa: N802
        out.value = self.handle(binary)

    def do_cuModuleGetFunction(self, out: Any, module: Any, name: bytes) -> None:  # noqa: N802
        out.value = self.handle((name.decode(), self.objects[module.value]))

    def do_cuLaunchKernel(self, function: Any, *rest: Any) -> int:  # noqa: N802
        grid, pointers = rest[:3], rest[8]
        if grid[1] > 65535 or grid[2] > 65535:
            return 1
        self.run(function.value, grid, self.read(function.value, pointers))
        return 0

    def read(self, function: int, pointers: Any) -> list[int]:
        """The arguments of a kernel, as a launch or a graph takes them now."""
        program = self.programs[self.objects[function][1]]
        count = len(program.parameters) + len(program.variables)
        array = (ctypes.c_void_p * (count + len(program.maps))).from_address(
            pointers if isinstance(pointers, int) else ctypes.addressof(pointers)
        )
        values = [ctypes.c_int64.from_address(at or 0).value for at in array]
        for layout, described in zip(program.maps, values[count:], strict=True):
            wanted = values[layout.position] + layout.offset * layout.itemsize
            assert described == wanted, "a tensor map is of another address"
        return values[:count]

    def do_cuTensorMapEncodeTiled(  # noqa: N802
        self, target: int, kind: int, rank: int, address: int, *rest: Any
    ) -> int:
        sizes, strides, box, steps, *_ = rest
        is_legal = address % 16 == 0 and all(stride % 16 == 0 for stride in strides)
        if target % 64 or not is_legal or [len(x) for x in (sizes, box, steps)] != [rank] * 3:
            return 1
        ctypes.c_int64.from_address(target).value = address
        return 0

    def run(self, function: int, grid: tuple[int, ...], arguments: list[int]) -> None:
        name, binary = self.objects[function]
        self.launches.append((name, tuple(grid), arguments))
        if self.state:
            return
        if name in self.faulty:
            self.state, self.is_seen = 700, False
        elif name in self.endless:
            self.state = NOT_READY
        else:
            interpret(self.programs[binary], tuple(grid), arguments)

    # Graphs.

    def do_cuGraphCreate(self, out: Any, flags: int) -> None:  # noqa: N802
        out.value = self.handle([])

    def do_cuGraphAddKernelNode_v2(  # noqa: N802
        self, out: Any, graph: Any, before: Any, count: int, params: Any
    ) -> None:
        nodes = self.objects[graph.value]
        assert count == 0 or before[0] == nodes[-1]
        node = {"on": True, "before": list(before[:count]), "early": False}
        out.value = self.handle({**node, **self.described(params)})
        nodes.append(out.value)

    def do_cuGraphAddDependencies_v2(  # noqa: N802
        self, graph: Any, one: Any, other: Any, edge: Any, count: int
    ) -> int:
        node = self.objects[other.value]
        program = self.programs[self.objects[node["function"]][1]]
        assert program.waits, f"{program.name} reads what is not there yet"
        node["before"] += one[:count]
        node["early"] = True
        return 0 if (edge.from_port, edge.to_port, edge.kind, count) == (1, 0, 1, 1) else 1

    def parts_of(self, node: dict[str, Any]) -> list[tuple[range, Any]]:
        """The addresses of each argument of a node."""
        program = self.programs[self.objects[node["function"]][1]]
        return [
            (range(address, address + parameter.size), parameter)
            for address, parameter in zip(node["arguments"], program.parameters, strict=False)
        ]

    def described(self, params: Any) -> dict[str, Any]:
        arguments = self.read(params.function, params.arguments)
        return {
            "function": params.function,
            "grid": tuple(params.grid),
            "arguments": arguments,
            "waits_first": self.waits_first(params.function, params.arguments),
        }

    def waits_first(self, function: int, pointers: int) -> bool:
        """Whether a kernel that reads early is told to wait before that."""
        program = self.programs[self.objects[function][1]]
        position = len(program.parameters) + len(program.variables) + len(program.maps)
        if not program.early:
            return False
        (at,) = (ctypes.c_void_p * 1).from_address(pointers + 8 * position)
        return bool(ctypes.c_int32.from_address(at or 0).value)

    def do_cuGraphInstantiateWithFlags(self, out: Any, graph: Any, flags: int) -> None:  # noqa: N802
        nodes = self.objects[graph.value]
        for number, earlier in zip(nodes, [None, *nodes], strict=False):
            assert self.objects[number]["before"] == ([] if earlier is None else [earlier])
        out.value = self.handle(nodes)

    def do_cuGraphExecKernelNodeSetParams_v2(  # noqa: N802
        self, runnable: Any, node: Any, params: Any
    ) -> None:
        self.objects[node.value].update(self.described(params))

    def do_cuGraphNodeSetEnabled(self, runnable: Any, node: Any, is_on: int) -> None:  # noqa: N802
        described = self.objects[node.value]
        assert is_on or not described["early"], "what is switched off waits for nothing"
        described["on"] = bool(is_on)

    def do_cuGraphLaunch(self, runnable: Any, stream: Any) -> None:  # noqa: N802
        nodes = [self.objects[number] for number in self.objects[runnable.value]]
        parts = [self.parts_of(node) for node in nodes]
        written = [part for each in parts for part, parameter in each if parameter.is_written]
        for node, each in zip(nodes, parts, strict=True):
            program = self.programs[self.objects[node["function"]][1]]
            for part, parameter in each if node["early"] and not node["waits_first"] else ():
                is_read = parameter.slot in program.early
                assert not is_read or all(
                    part.stop <= other.start or other.stop <= part.start for other in written
                ), f"{program.name} reads early what another kernel writes"
        for node in nodes:
            if node["on"]:
                self.run(node["function"], node["grid"], node["arguments"])


def _given(argument: Any) -> Any:
    """What an argument by reference refers to."""
    return getattr(argument, "_obj", argument)


def interpret(program: Program, grid: tuple[int, ...], arguments: list[int]) -> None:
    """Run a program on memory at addresses, over the grid that it was launched with."""
    values = arguments[len(program.parameters) :]
    names = [node.arg[0] for node in program.variables]
    variables = dict(zip(names, values, strict=True))
    groups = tuple(size_value(size, variables) for size in program.groups)
    assert grid == (*groups, 1, 1, 1)[:3], f"{program.name}: {grid}, not {groups}"
    params = {n.arg[0]: n for n in topological(program.instructions) if n.op == Op.PARAM}
    opened: dict[
        int, tuple[Any, ElementMemory]
    ] = {}  # by address: two arguments may be one memory
    given = [ElementMemory(dtypes.int8, 0, [])] * (max(params, default=-1) + 1)
    for parameter, address in zip(program.parameters, arguments, strict=False):
        node = params.get(parameter.slot)
        if node is None:
            continue
        count = math.prod(shape_value(shape_of(node), variables))
        if address not in opened:
            raw = (ctypes.c_char * (count * node.dtype.itemsize)).from_address(address)
            opened[address] = raw, ElementMemory.from_bytes(node.dtype, raw.raw)
        given[parameter.slot] = opened[address][1]
    run_program(program.instructions, given, variables)
    for raw, memory in opened.values():
        raw.raw = memory.to_bytes()


class FakeDevice(CudaDevice):
    """A device on the fake driver, which is told what it runs."""

    def __init__(self, api: FakeDriver, name: str = "CUDA") -> None:
        super().__init__(render, name, api)

    def compile(self, program: Program) -> bytes:
        binary = super().compile(program)
        self.api.programs[binary] = program
        return binary
