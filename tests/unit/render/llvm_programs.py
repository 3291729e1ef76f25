"""Programs written by hand, run as machine code and in the interpreter, and compared."""

import ctypes
import functools
import mmap
from collections.abc import Mapping, Sequence

from tests.unit.reference.edge_values import same
from weft.ir.dtypes import DType, Scalar, dtypes
from weft.ir.ops import Op
from weft.ir.program import Parameter, Program
from weft.ir.spec.program import LEAVES
from weft.ir.uop import UOp, const, make
from weft.ir.walk import topological
from weft.reference.lanes import size_value
from weft.reference.memory import ElementMemory
from weft.reference.program import run_program
from weft.render.llvm.renderer import render
from weft.runtime.cpu.device import CpuDevice
from weft.runtime.cpu.memory import CpuMemory
from weft.runtime.host import host, host_target
from weft.target.cpu import LEVELS, cpu_target
from weft.target.target import Target

I32, I64, F32 = dtypes.int32, dtypes.int64, dtypes.float32
VOID = dtypes.void
# What was in memory that a program does not write.
FILL = 0x5A


def targets() -> list[Target]:
    """The targets whose code this machine can run, the best first."""
    here = host()
    names = list(LEVELS[here.arch])
    best = names.index(here.features[0] if here.features else "")
    return [cpu_target(here.arch, (name,) if name else ()) for name in names[best:]]


def number(value: int, dtype: DType = I32) -> UOp:
    return const(dtype, value)


def argument(slot: int, dtype: DType = F32, size: int = 64) -> UOp:
    return make(Op.PARAM, dtype, (), (slot, (size,)))


def memory(name: str, space: str, size: int, dtype: DType = F32) -> UOp:
    return make(Op.MEMORY, dtype, (), (name, space, size))


def counter(identity: int, extent: int | UOp, dtype: DType = I32) -> UOp:
    bound = const(dtype, extent) if isinstance(extent, int) else extent
    return make(Op.RANGE, bound.dtype, (bound,), identity)


def special(kind: str, extent: int | UOp, axis: int = 0) -> UOp:
    bound = number(extent) if isinstance(extent, int) else extent
    return make(Op.SPECIAL, bound.dtype, (bound,), (kind, axis))


def end(node: UOp) -> UOp:
    return make(Op.END, VOID, (node,))


def when(number: int, condition: UOp) -> UOp:
    """A loop that runs once where a condition holds, else never."""
    return make(Op.RANGE, dtypes.int32, (condition.cast(dtypes.int32),), number)


def after(node: UOp, *others: UOp) -> UOp:
    return make(Op.AFTER, node.dtype, (node, *others))


def barrier(*nodes: UOp) -> UOp:
    return make(Op.BARRIER, VOID, nodes)


def at(source: UOp, index: UOp | int, mask: UOp | bool = True, lanes: int = 1) -> UOp:
    position = number(index) if isinstance(index, int) else index
    condition = const(dtypes.bool, mask) if isinstance(mask, bool) else mask
    return make(Op.INDEX, source.dtype.vector(lanes), (source, condition, position))


def get(address: UOp) -> UOp:
    return make(Op.LOAD, address.dtype, (address,))


def put(address: UOp, value: UOp) -> UOp:
    return make(Op.STORE, VOID, (address, value))


def vector(*parts: UOp) -> UOp:
    lanes = sum(part.dtype.lanes for part in parts)
    return make(Op.VECTOR, parts[0].dtype.scalar.vector(lanes), parts)


def lanes_of(source: UOp, *numbers: int) -> UOp:
    return make(Op.LANES, source.dtype.scalar.vector(len(numbers)), (source,), numbers)


def linear(*steps: UOp) -> UOp:
    """The steps in order, each behind those of its sources that stand nowhere yet."""
    listed: dict[UOp, None] = {}

    def emit(node: UOp) -> None:
        for source in () if node.op in (Op.END, Op.BARRIER) else node.src:
            while source.op == Op.AFTER:
                source = source.src[0]
            if source not in listed and source.op not in LEAVES:
                emit(source)
        listed[node] = None

    for step in steps:
        if step not in listed:
            emit(step)
    return make(Op.LINEAR, VOID, tuple(listed))


def program(*steps: UOp, name: str = "under_test", threads: tuple[int, ...] = ()) -> Program:
    """The program of these steps; its arguments, variables and grid are those it names."""
    instructions = linear(*steps)
    nodes = topological(instructions)
    params = sorted((node for node in nodes if node.op == Op.PARAM), key=lambda node: node.arg[0])
    grid = {node.arg[1]: node.src[0] for node in nodes if node.arg and node.op == Op.SPECIAL}
    groups = tuple(
        int(grid[axis].arg) if grid[axis].op == Op.CONST else grid[axis] for axis in sorted(grid)
    )
    return Program(
        name=name,
        target="",
        instructions=instructions,
        parameters=tuple(Parameter(node.arg[0], node.dtype, True, True) for node in params),
        variables=tuple(node for node in nodes if node.op == Op.VARIABLE),
        groups=() if threads else groups,
        threads=threads,
    )


def contents(memory_: ElementMemory) -> bytearray:
    """Memory as bytes, with a mark where nobody wrote."""
    width = memory_.dtype.itemsize
    data = bytearray([1 if memory_.dtype is dtypes.bool else FILL]) * (memory_.size * width)
    for position, value in enumerate(memory_.values):
        if value is not None:
            one = ElementMemory(memory_.dtype, 1, [value]).to_bytes()
            data[position * width : (position + 1) * width] = one
    return data


@functools.cache
def device(target: Target, contract: bool = False) -> CpuDevice:
    return CpuDevice(functools.partial(render, contract=contract), target)


def run_native(
    code: Program,
    arguments: Sequence[ElementMemory],
    variables: Mapping[str, int],
    cpu: CpuDevice,
) -> list[ElementMemory]:
    """What the machine code of a program leaves in its arguments."""
    executable = cpu.load(code)
    data = [contents(part) for part in arguments]
    values = [variables[node.arg[0]] for node in code.variables]
    groups = tuple(
        size_value(size, variables) if isinstance(size, UOp) else size for size in code.groups
    )
    executable([cpu.wrap(part) for part in data], values, groups)
    return [
        ElementMemory.from_bytes(part.dtype, bytes(found))
        for part, found in zip(arguments, data, strict=True)
    ]


def differences(
    code: Program,
    arguments: Sequence[ElementMemory],
    variables: Mapping[str, int] | None = None,
    cpu: CpuDevice | None = None,
) -> list[tuple[int, int, Scalar | None, Scalar | None]]:
    """(argument, position, machine code, interpreter) wherever the two differ."""
    given = variables or {}
    found = run_native(code, arguments, given, cpu or device(host_target(1)))
    wanted = [part.copy() for part in arguments]
    run_program(code.instructions, wanted, given)
    untouched = [ElementMemory.from_bytes(part.dtype, bytes(contents(part))) for part in arguments]
    result = []
    for slot, (left, right) in enumerate(zip(found, wanted, strict=True)):
        for position, value in enumerate(right.values):
            expected = untouched[slot].values[position] if value is None else value
            actual = left.values[position]
            assert actual is not None and expected is not None
            if not same(actual, expected):
                result.append((slot, position, actual, expected))
    return result


def agree(
    code: Program, arguments: Sequence[ElementMemory], variables: Mapping[str, int] | None = None
) -> None:
    """Assert that machine code and interpreter leave the same bits, for every level of CPU."""
    for target in targets():
        found = differences(code, arguments, variables, device(target))
        assert not found, f"{target.name}: (argument, position, found, expected) {found[:8]}"


def numbers(size: int, dtype: DType = F32, start: int = 0) -> ElementMemory:
    return ElementMemory(dtype, size, [start + i for i in range(size)])


class GuardedPage:
    """A page between two that may not be touched; `memory` are its last or first bytes."""

    def __init__(self, size: int, is_first: bool = False) -> None:
        self._map = mmap.mmap(-1, 3 * mmap.PAGESIZE)
        whole = (ctypes.c_char * len(self._map)).from_buffer(self._map)
        start = ctypes.addressof(whole)
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        for page in (0, 2):
            assert libc.mprotect(start + page * mmap.PAGESIZE, mmap.PAGESIZE, 0) == 0
        offset = mmap.PAGESIZE if is_first else 2 * mmap.PAGESIZE - size
        self.memory = CpuMemory(start + offset, size, whole)
