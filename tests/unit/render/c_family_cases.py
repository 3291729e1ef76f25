"""Programs written by hand, and how to run them on a device and in the interpreter."""

import functools
import os
import shutil
from collections.abc import Mapping, Sequence

import pytest

from tests.opencl import needs_opencl
from tests.unit.codegen.oracle import as_seen
from weft.ir.dtypes import DType, Scalar, dtypes
from weft.ir.ops import Op
from weft.ir.program import Parameter, Program
from weft.ir.spec.program import LEAVES, PROGRAM_SPEC
from weft.ir.spec.spec import verify
from weft.ir.uop import UOp, const, make
from weft.ir.walk import topological
from weft.reference.memory import ElementMemory
from weft.reference.program import run_program
from weft.render.c_family import c, opencl
from weft.runtime.c.compiler import COMPILERS
from weft.runtime.c.device import CDevice
from weft.runtime.device import Device
from weft.runtime.opencl.device import OpenclDevice

i32, f32 = dtypes.int32, dtypes.float32

HAS_COMPILER = any(map(shutil.which, COMPILERS))
needs_compiler = pytest.mark.skipif(not HAS_COMPILER, reason="no C compiler is on PATH")
DEVICES = [
    pytest.param("C", marks=needs_compiler),
    pytest.param("OPENCL", marks=needs_opencl),
]


@functools.cache
def device(name: str) -> Device:
    """The device of a name; PoCL keeps its files where the tests remove them again."""
    if name == "C":
        return CDevice(c.render)
    os.environ.setdefault("POCL_CACHE_DIR", os.path.join(os.environ["WEFT_CACHE_DIR"], "pocl"))
    return OpenclDevice(opencl.render)


# Builders.


def number(value: int) -> UOp:
    return const(i32, value)


def memory(name: str, space: str, size: int, dtype: DType = f32) -> UOp:
    return make(Op.MEMORY, dtype, (), (name, space, size))


def argument(slot: int, size: int, dtype: DType = f32) -> UOp:
    return make(Op.PARAM, dtype, (), (slot, (size,)))


def loop(identity: int, extent: int | UOp) -> UOp:
    bound = number(extent) if isinstance(extent, int) else extent
    return make(Op.RANGE, bound.dtype, (bound,), identity)


def special(kind: str, extent: int | UOp, axis: int = 0) -> UOp:
    bound = number(extent) if isinstance(extent, int) else extent
    return make(Op.SPECIAL, bound.dtype, (bound,), (kind, axis))


def end(node: UOp) -> UOp:
    return make(Op.END, dtypes.void, (node,))


def when(number: int, condition: UOp) -> UOp:
    """A loop that runs once where a condition holds, else never."""
    return make(Op.RANGE, dtypes.int32, (condition.cast(dtypes.int32),), number)


def after(node: UOp, *others: UOp) -> UOp:
    return make(Op.AFTER, node.dtype, (node, *others))


def barrier(*nodes: UOp) -> UOp:
    return make(Op.BARRIER, dtypes.void, nodes)


def at(source: UOp, index: UOp | int, mask: UOp | None = None, lanes: int = 1) -> UOp:
    position = number(index) if isinstance(index, int) else index
    condition = const(dtypes.bool, True) if mask is None else mask
    return make(Op.INDEX, source.dtype.vector(lanes), (source, condition, position))


def linear(*steps: UOp) -> UOp:
    """The steps in order, each behind those of its sources that stand nowhere yet."""
    listed: list[UOp] = []

    def emit(node: UOp) -> None:
        for source in () if node.op in (Op.END, Op.BARRIER) else node.src:
            while source.op == Op.AFTER:
                source = source.src[0]
            if source not in listed and source.op not in LEAVES:
                emit(source)
        listed.append(node)

    for step in steps:
        if step not in listed:
            emit(step)
    return make(Op.LINEAR, dtypes.void, tuple(listed))


def program(
    *steps: UOp,
    groups: Sequence[int | UOp] = (),
    threads: Sequence[int] = (),
    variables: Sequence[UOp] = (),
    name: str = "kernel_under_test",
) -> Program:
    """A legal program of these steps; its parameters are the PARAMs it names."""
    instructions = linear(*steps)
    verify(instructions, PROGRAM_SPEC)
    nodes = topological(instructions)
    stored = {_root(node.src[0]) for node in nodes if node.op == Op.STORE}
    params = sorted({node for node in nodes if node.op == Op.PARAM}, key=lambda node: node.arg[0])
    parameters = tuple(
        Parameter(node.arg[0], node.dtype, is_written=node in stored, is_read=True)
        for node in params
    )
    return Program(
        name, "", instructions, parameters, tuple(variables), tuple(groups), tuple(threads)
    )


def _root(address: UOp) -> UOp:
    source = address.src[0]
    while source.op == Op.AFTER:
        source = source.src[0]
    return source


# Running.


def run_on(
    target: Device,
    code: Program,
    arguments: Sequence[ElementMemory],
    variables: Mapping[str, int],
    groups: Sequence[int],
) -> None:
    """Render, compile, load and run; the arguments are written in place."""
    code = code.with_source(target.render(code))
    executable = target.load(code.with_binary(target.compile(code)))
    handles = []
    for given in arguments:
        data = bytearray(_bytes(given))
        handle = target.allocate(len(data))
        target.copy_in(handle, memoryview(data))
        handles.append(handle)
    executable(handles, [variables[node.arg[0]] for node in code.variables], tuple(groups))
    target.synchronize()
    for given, handle in zip(arguments, handles, strict=True):
        data = bytearray(given.size * given.dtype.itemsize)
        target.copy_out(memoryview(data), handle)
        given.values = ElementMemory.from_bytes(given.dtype, bytes(data)).values
        target.free(handle)


def _bytes(given: ElementMemory) -> bytes:
    """The bytes of memory, with a mark where nobody wrote."""
    values: list[Scalar] = [1 if value is None else value for value in given.values]
    return ElementMemory(given.dtype, given.size, values).to_bytes()


def check(
    name: str,
    code: Program,
    arguments: Sequence[ElementMemory],
    variables: Mapping[str, int] | None = None,
    groups: Sequence[int] | None = None,
) -> None:
    """Run on a device and in the interpreter, and compare all arguments bit for bit."""
    wanted = [given.copy() for given in arguments]
    run_program(code.instructions, as_seen(code, wanted), variables or {})
    found = [given.copy() for given in arguments]
    sizes = [int(size) for size in code.groups] if groups is None else groups  # type: ignore[call-overload]
    run_on(device(name), code, found, variables or {}, sizes)
    for slot, (expected, result) in enumerate(zip(wanted, found, strict=True)):
        for position, value in enumerate(expected.values):
            given = 1 if value is None else value
            got = result.values[position]
            is_nan = given != given and got != got
            assert is_nan or repr(got) == repr(type(got)(given)), (
                f"argument {slot} at {position}: {got!r}, not {given!r}"
            )
