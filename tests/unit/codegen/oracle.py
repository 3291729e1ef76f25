"""Compares what a kernel means with what its program does, on random arguments."""

import math
import random
from collections.abc import Sequence

from tests.unit.codegen.kernels import Case
from weft.codegen.generate import generate
from weft.codegen.opts.table import Opt
from weft.ir.dtypes import FLOAT, DType, Scalar
from weft.ir.ops import Op
from weft.ir.program import Program
from weft.ir.scalar import from_bits, to_bits
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.reference.kernel import run_kernel
from weft.reference.lanes import size_value
from weft.reference.memory import ElementMemory
from weft.reference.program import run_program
from weft.target.target import Target


def arguments(kernel: UOp, variables: dict[str, int], seed: int) -> list[ElementMemory]:
    """Random memory for every PARAM."""
    rng = random.Random(seed)
    params = {node.arg[0]: node for node in topological(kernel) if node.op == Op.PARAM}
    return [_memory(params[slot], variables, rng) for slot in sorted(params)]


def _memory(param: UOp, variables: dict[str, int], rng: random.Random) -> ElementMemory:
    sizes = [size_value(s, variables) if isinstance(s, UOp) else s for s in shape_of(param)]
    count = math.prod(sizes)
    return ElementMemory(param.dtype, count, [_number(param.dtype, rng) for _ in range(count)])


def _number(dtype: DType, rng: random.Random) -> float:
    if dtype.kind == FLOAT:
        return rng.choice((-1, 1)) * rng.randrange(1, 64) / 16
    return rng.randrange(2) if dtype.bits == 1 else rng.randrange(-5, 6)


def check(case: Case, machine: Target, opts: Sequence[Opt] | None, seed: int = 0) -> Program:
    """Generate the program of a case, run both, and compare all memory."""
    program = generate(case.kernel, machine, None if opts is None else tuple(opts))
    expected = arguments(case.kernel, case.variables, seed)
    result = arguments(case.kernel, case.variables, seed)
    run_kernel(case.kernel, expected, case.variables)
    run_program(program.instructions, as_seen(program, result), case.variables)
    for slot, (want, got) in enumerate(zip(expected, result, strict=True)):
        for address, (x, y) in enumerate(zip(want.values, got.values, strict=True)):
            assert is_close(x, y, want.dtype, case.exact), f"slot {slot} at {address}: {x} != {y}"
    return program


def as_seen(program: Program, memories: list[ElementMemory]) -> list[ElementMemory]:
    """The memories as the program sees them: by their bits, where the target lacks the dtype."""
    params = {
        node.arg[0]: node for node in topological(program.instructions) if node.op == Op.PARAM
    }
    return [
        _seen(params[slot].dtype, memory)
        if slot in params and params[slot].dtype is not memory.dtype
        else memory
        for slot, memory in enumerate(memories)
    ]


def _seen(dtype: DType, memory: ElementMemory) -> ElementMemory:
    return (_BitsOf if dtype.bits == memory.dtype.bits else _WordsOf)(dtype, memory)


class _WordsOf(ElementMemory):
    """The words of memory of 64-bit integers."""

    def __init__(self, dtype: DType, other: ElementMemory) -> None:
        super().__init__(dtype, 2 * other.size)
        self.other = other

    def get(self, index: int, node: UOp | None = None) -> Scalar:
        bits = to_bits(self.other.dtype, self.other.get(index // 2, node))
        return bits >> 32 * (index % 2) & 0xFFFFFFFF

    def set(self, index: int, value: Scalar, node: UOp | None = None) -> None:
        address, shift = index // 2, 32 * (index % 2)
        bits = to_bits(self.other.dtype, self.other.get(address, node)) & ~(0xFFFFFFFF << shift)
        self.other.set(address, from_bits(self.other.dtype, bits | int(value) << shift), node)


class _BitsOf(ElementMemory):
    """The bits of another memory."""

    def __init__(self, dtype: DType, other: ElementMemory) -> None:
        super().__init__(dtype, other.size)
        self.other = other

    def get(self, index: int, node: UOp | None = None) -> Scalar:
        return to_bits(self.other.dtype, self.other.get(index, node))

    def set(self, index: int, value: Scalar, node: UOp | None = None) -> None:
        self.other.set(index, from_bits(self.other.dtype, int(value)), node)


def is_close(x: float, y: float, dtype: DType, exact: bool) -> bool:
    if x == y or (x != x and y != y):
        return True
    if exact or dtype.kind != FLOAT:
        return False
    assert dtype.format is not None
    return abs(x - y) <= 2.0 ** (4 - dtype.format.mantissa_bits) * max(abs(x), 1.0)
