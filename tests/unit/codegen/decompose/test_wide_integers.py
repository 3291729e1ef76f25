"""64-bit integers as pairs of words: values on the interpreter, programs of a poor machine."""

import dataclasses
import itertools
import math

import numpy as np
import pytest

from tests.unit.codegen.decompose.test_decompose import BASIC_OPS
from tests.unit.codegen.kernels import CASES
from tests.unit.codegen.oracle import check
from tests.unit.machines import ALL_DTYPES, machine
from weft.codegen.generate import generate
from weft.ir.build import index_of, load, param, range_, reduce_ranges, store
from weft.ir.dtypes import DType, dtypes
from weft.ir.ops import Op, name
from weft.ir.scalar import evaluate
from weft.ir.uop import UOp, bool_like, make
from weft.ir.walk import topological
from weft.reference.memory import ElementMemory
from weft.reference.program import run_program
from weft.render.llvm.renderer import render
from weft.runtime.cpu.device import CpuDevice
from weft.runtime.host import host_target
from weft.support.errors import NotSupported

I64, U64 = dtypes.int64, dtypes.uint64
NARROW = frozenset(d for d in ALL_DTYPES if d not in (I64, U64))
POOR = machine(native_dtypes=NARROW)
POOREST = machine(native_dtypes=NARROW, native_ops=BASIC_OPS, has_slow_division=True)

INTEGERS = [0, 1, 2, 3, 7, 31, 32, 33, 63, 64, 1000, 65535, 65536, (1 << 31) - 1, 1 << 31]
INTEGERS += [
    (1 << 32) - 1,
    1 << 32,
    (1 << 33) + 5,
    0x123456789ABCDEF,
    (1 << 62) + 1,
    (1 << 63) - 1,
]


def values(dtype: DType) -> list[int]:
    signs = (
        [-1 - x for x in INTEGERS]
        if not dtype.is_unsigned
        else [(1 << 64) - 1 - x for x in INTEGERS]
    )
    return INTEGERS + signs


def kernel_of(build, outputs: DType, *inputs: DType, count: int) -> UOp:
    i = range_(0, count)
    memory = [param(slot, dtype, (count,)) for slot, dtype in enumerate((outputs, *inputs))]
    loaded = [load(index_of(part, [i])) for part in memory[1:]]
    written = store(index_of(memory[0], [i]), build(*loaded), [i])
    return make(Op.KERNEL, dtypes.void, (written,), ("k", ((0, "loop"),)))


def seen(dtype: DType, data: bytes) -> ElementMemory:
    return ElementMemory.from_bytes(dtypes.uint32 if dtype in (I64, U64) else dtype, data)


def run(kernel: UOp, machine, columns: list[tuple[DType, list]], output: DType) -> list:
    """What the program of a machine without wide integers computes."""
    count = len(columns[0][1])
    program = generate(kernel, machine, ())
    for node in topological(program.instructions):
        assert node.dtype.scalar not in (I64, U64), node
    memory = [seen(output, bytes(count * output.itemsize))]
    memory += [
        seen(dtype, ElementMemory(dtype, count, data).to_bytes()) for dtype, data in columns
    ]
    run_program(program.instructions, memory)
    return ElementMemory.from_bytes(output, memory[0].to_bytes()).values


BINARY = (
    *(Op.ADD, Op.MUL, Op.AND, Op.OR, Op.XOR, Op.MAX, Op.MIN, Op.LESS, Op.LESS_EQUAL, Op.EQUAL),
    *(Op.TRUNCDIV, Op.TRUNCMOD, Op.FLOORDIV, Op.FLOORMOD),
)


@pytest.mark.parametrize("dtype", [I64, U64], ids=lambda d: d.name)
@pytest.mark.parametrize("op", BINARY, ids=name)
def test_binary(op: int, dtype: DType):
    every = 3 if op in BINARY[-4:] else 1  # long division takes its time in Python
    pairs = list(itertools.product(values(dtype)[::every], repeat=2))
    check_binary(op, dtype, [x for x, _ in pairs], [y for _, y in pairs])


@pytest.mark.parametrize("dtype", [I64, U64], ids=lambda d: d.name)
@pytest.mark.parametrize("op", [Op.SHL, Op.SHR], ids=name)
def test_shifts(op: int, dtype: DType):
    amounts = [0, 1, 15, 31, 32, 33, 47, 63, 64, 65, 1 << 40]
    pairs = list(itertools.product(values(dtype), amounts))
    check_binary(op, dtype, [x for x, _ in pairs], [y for _, y in pairs])


def check_binary(op: int, dtype: DType, left: list[int], right: list[int]) -> None:
    compares = op in (Op.LESS, Op.LESS_EQUAL, Op.EQUAL)

    def build(x, y):
        return make(op, bool_like(x) if compares else dtype, (x, y))

    output = dtypes.bool if compares else dtype
    kernel = kernel_of(build, output, dtype, dtype, count=len(left))
    got = run(kernel, POOR, [(dtype, left), (dtype, right)], output)
    for x, y, result in zip(left, right, got, strict=True):
        assert result == evaluate(op, output, (x, y), dtype), (x, y)


@pytest.mark.parametrize("dtype", [I64, U64], ids=lambda d: d.name)
@pytest.mark.parametrize("divisor", [1, 3, 10, 1000, 65535, 65536, 1 << 20, 10**12])
def test_constant_divisors(dtype: DType, divisor: int):
    data = values(dtype)
    kernel = kernel_of(lambda x: x // divisor + x % divisor, dtype, dtype, count=len(data))
    for x, result in zip(data, run(kernel, POOREST, [(dtype, data)], dtype), strict=True):
        assert (result - (x // divisor + x % divisor)) % (1 << 64) == 0, x


@pytest.mark.parametrize("machine", [POOR, POOREST], ids=["poor", "poorest"])
@pytest.mark.parametrize("dtype", [I64, U64], ids=lambda d: d.name)
def test_casts(dtype: DType, machine):
    data = values(dtype)
    for other in (dtypes.bool, dtypes.int8, dtypes.uint32, dtypes.float32, U64, I64):
        kernel = kernel_of(lambda x, other=other: x.cast(other), other, dtype, count=len(data))
        got = run(kernel, machine, [(dtype, data)], other)
        for x, result in zip(data, got, strict=True):
            assert result == evaluate(Op.CAST, other, (x,), dtype), (other.name, x)
    for other in (dtypes.bool, dtypes.int8, dtypes.uint8, dtypes.int32, dtypes.uint32):
        narrow = [int(other.min), int(other.max), 0, 1]
        kernel = kernel_of(lambda x: x.cast(dtype), dtype, other, count=4)
        got = run(kernel, machine, [(other, narrow)], dtype)
        assert got == [evaluate(Op.CAST, dtype, (x,), other) for x in narrow]


@pytest.mark.parametrize("machine", [POOR, POOREST], ids=["poor", "poorest"])
@pytest.mark.parametrize("dtype", [I64, U64, dtypes.uint32], ids=lambda d: d.name)
def test_floats_become_integers(dtype: DType, machine):
    data = [0.0, -0.0, 0.9, -0.9, 1.5, -1.5, 65535.5, 2.0**31, -(2.0**31), 3e9, 2.0**32, 1e15]
    data += [-1e15, 2.0**62, 2.0**63, -(2.0**63), 2.0**64, 1e30, -1e30, 9e18, 1.8e19]
    data += [math.inf, -math.inf, math.nan]
    data = [float(np.float32(x)) for x in data]
    kernel = kernel_of(lambda x: x.cast(dtype), dtype, dtypes.float32, count=len(data))
    got = run(kernel, machine, [(dtypes.float32, data)], dtype)
    for x, result in zip(data, got, strict=True):
        assert result == evaluate(Op.CAST, dtype, (x,), dtypes.float32), x


def test_integers_become_the_nearest_float(seed):
    rng = np.random.default_rng(seed)
    numbers, shifts = rng.integers(0, 1 << 63, 300), rng.integers(0, 40, 300)
    data = (numbers >> shifts).tolist()
    data += [
        (1 << 40) + (1 << 16),
        (1 << 40) + (1 << 16) + 1,
        (1 << 40) + (3 << 16),
        (1 << 63) - 1,
    ]
    kernel = kernel_of(lambda x: x.cast(dtypes.float32), dtypes.float32, I64, count=len(data))
    got = run(kernel, POOREST, [(I64, data)], dtypes.float32)
    assert got == [float(np.float32(np.int64(x))) for x in data]


@pytest.mark.parametrize("machine", [POOR, POOREST], ids=["poor", "poorest"])
@pytest.mark.parametrize("case", CASES)
def test_programs(case: str, machine, seed: int):
    if any(n.dtype.scalar is dtypes.float64 for n in topological(CASES[case]().kernel)):
        machine = dataclasses.replace(machine, native_dtypes=NARROW | {I64, U64})
    check(CASES[case](), machine, None if machine is POOR else (), seed)


def reduction_kernel(count: int) -> UOp:
    i, j = range_(0, count), range_(1, count)
    out, x, y = (param(slot, I64, (count, count)[: 1 if slot == 0 else 2]) for slot in range(3))
    terms = load(index_of(x, [i, j])) * load(index_of(y, [j, i])) + (i * 3 + j).cast(I64)
    total = reduce_ranges(terms, Op.ADD, [j])
    written = store(index_of(out, [i]), total // 7, [i])
    return make(Op.KERNEL, dtypes.void, (written,), ("reduction", ((0, "loop"), (1, "loop"))))


def test_a_real_machine_runs_it(seed: int):
    """A CPU that is said to have no wide integers gives what NumPy gives."""
    poor = dataclasses.replace(
        host_target(), native_dtypes=host_target().native_dtypes - {I64, U64}
    )
    device = CpuDevice(render, poor)
    count = 24
    rng = np.random.default_rng(seed)
    x, y = (rng.integers(-(1 << 62), 1 << 62, (count, count)) for _ in range(2))
    for opts in (None, ()):
        program = generate(reduction_kernel(count), poor, opts)
        program = program.with_source(device.render(program))
        memory = [device.allocate(count * 8), device.allocate(x.nbytes), device.allocate(y.nbytes)]
        device.copy_in(memory[1], memoryview(x))
        device.copy_in(memory[2], memoryview(y))
        device.load(program.with_binary(device.compile(program)))(memory, [], program.groups)
        got = np.zeros(count, np.int64)
        device.copy_out(memoryview(got), memory[0])
        for part in memory:
            device.free(part)
        with np.errstate(all="ignore"):
            i, j = np.indices((count, count))
            want = (x * y.T + i * 3 + j).sum(1) // 7
        assert got.tolist() == want.tolist()


@pytest.mark.parametrize("dtype", [dtypes.int32, dtypes.uint32, dtypes.int16, dtypes.uint8])
@pytest.mark.parametrize("divisor", [1, 2, 3, 5, 7, 10, 25, 125, 641, 6700417, (1 << 31) - 1])
def test_division_by_multiplication(dtype: DType, divisor: int, seed: int):
    if divisor > int(dtype.max):
        pytest.skip("no divisor of this dtype")
    rng = np.random.default_rng(seed)
    low, high = int(dtype.min), int(dtype.max)
    data = [low, low + 1, high, high - 1, 0, 1, divisor, divisor - 1]
    data += rng.integers(low, high, 200, endpoint=True).tolist()
    data += [k for n in range(1, 60) if low <= (k := n * divisor - 1) <= high]
    slow = machine(has_slow_division=True)
    for by in (divisor, -divisor) if low else (divisor,):
        for op in (Op.TRUNCDIV, Op.TRUNCMOD, Op.FLOORDIV, Op.FLOORMOD):
            kernel = kernel_of(
                lambda x, op=op, by=by: make(op, dtype, (x, x.const_like(by))),
                *(dtype, dtype),
                count=len(data),
            )
            program = generate(kernel, slow, ())
            if op in (Op.TRUNCDIV, Op.TRUNCMOD):
                assert not {Op.TRUNCDIV, Op.TRUNCMOD} & {n.op for n in program.instructions.src}
            memory = [ElementMemory(dtype, len(data)), ElementMemory(dtype, len(data), data)]
            run_program(program.instructions, memory)
            for x, result in zip(data, memory[0].values, strict=True):
                assert result == evaluate(op, dtype, (x, by), dtype), (x, by, name(op))


def test_indices_take_the_short_way():
    """An index of a few thousand is divided by one multiplication and a shift."""
    i = range_(0, 4096)
    out, x = param(0, dtypes.int32, (4096,)), param(1, dtypes.int32, (1366,))
    written = store(index_of(out, [i]), load(index_of(x, [i // 3])), [i])
    kernel = make(Op.KERNEL, dtypes.void, (written,), ("k", ((0, "loop"),)))
    program = generate(kernel, machine(has_slow_division=True), ())
    listed = [node.op for node in program.instructions.src]
    assert listed.count(Op.MUL) == 1
    assert not {Op.TRUNCDIV, Op.FLOORDIV} & set(listed)


def test_what_has_no_words_is_refused():
    def bits(x):
        return make(Op.BITCAST, I64, (x,))

    with pytest.raises(NotSupported, match="the bits of float64 on TEST"):
        generate(kernel_of(bits, I64, dtypes.float64, count=2), POOR, ())
    with pytest.raises(NotSupported, match="wide integers on TEST"):
        generate(kernel_of(lambda x: x + 1, I64, I64, count=1 << 31), POOR, ())
