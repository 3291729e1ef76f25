"""Products of matrices as kernels, and their results by NumPy, for tests of matrix units."""

from typing import NamedTuple

import numpy as np

from weft.ir.dtypes import DType, dtypes
from weft.ir.ops import Op
from weft.ir.scalar import from_bits, to_bits
from weft.ir.text import parse
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.reference.memory import ElementMemory as Memory

# How the factors lie: rows or columns first, or the sum.
LAYOUTS = ("mk,kn", "mk,nk", "km,kn", "km,nk")


class Product(NamedTuple):
    """A kernel, the memory of its factors as NumPy has it, and the result."""

    kernel: UOp
    factors: tuple[np.ndarray, ...]
    result: np.ndarray


def product(
    m: int,
    n: int,
    k: int,
    layout: str = "mk,nk",
    dtype: str = "bfloat16",
    out: str = "",
    epilogue: str = "v0",
    sums: str = "float32",
) -> Product:
    """`out[m, n] = epilogue(sum over k)`; of argument 3, an epilogue loads one of each column."""
    sizes, ranges = {"m": m, "n": n, "k": k}, {"m": "r0", "n": "r1", "k": "r2"}
    left, right = layout.split(",")
    out = out or dtype

    def element(slot: int, axes: str) -> str:
        return f"p{slot}[{', '.join(ranges[axis] for axis in axes)}]"

    def param(slot: int, axes: str, kind: str) -> str:
        return f"p{slot} = param {slot}: {kind}[{', '.join(str(sizes[axis]) for axis in axes)}]"

    kernel = parse(
        "\n".join(
            [
                *(param(0, "mn", out), param(1, left, dtype), param(2, right, dtype)),
                *([param(3, "n", dtype)] if "p3" in epilogue else []),
                *(f"r{number} < {size}" for number, size in enumerate((m, n, k))),
                'kernel "product" r0 loop, r1 loop, r2 loop:',
                f"  v0 = reduce ADD over r2: {sums}(load {element(1, left)})"
                f" * {sums}(load {element(2, right)})",
                f"  store p0[r0, r1] = {out}({epilogue}) for r0, r1",
            ]
        )
    )
    rng = np.random.default_rng(m * n + k)
    step = 8 if "float" in dtype else 1
    x, y, bias = (rng.integers(-8, 9, sizes) / step for sizes in ((m, k), (n, k), (n,)))
    factors = (x if left == "mk" else x.T, y if right == "nk" else y.T)
    more = (bias,) if "p3" in epilogue else ()
    result = x @ y.T
    if more:
        result = np.maximum(result + bias, 0)
    return Product(kernel, (*factors, *more), result)


def memories(case: Product, program: UOp) -> list[Memory]:
    """The arguments as a program has them, which may be bits."""
    kinds = {p.arg[0]: p.dtype for p in topological(case.kernel) if p.op == Op.PARAM}
    seen = {p.arg[0]: p.dtype for p in topological(program) if p.op == Op.PARAM}
    found = [Memory(seen[0], case.result.size)]
    for slot, factor in enumerate(case.factors, 1):
        values = [encoded(x, kinds[slot], seen.get(slot, kinds[slot])) for x in factor.ravel()]
        found.append(Memory(seen.get(slot, kinds[slot]), factor.size, values))
    return found


def encoded(value: object, dtype: DType, stored: DType) -> object:
    number = float(value) if dtype.is_float else int(value)
    return number if stored is dtype else to_bits(dtype, number)


def decoded(memory: Memory, dtype: DType) -> np.ndarray:
    """The contents of memory as numbers."""
    return np.array(
        [
            float(x if memory.dtype is dtype else from_bits(dtype, x))
            for x in memory.values
            if x is not None
        ]
    )


def rounded(values: np.ndarray, dtype: DType) -> np.ndarray:
    """Numbers as a dtype keeps them."""
    kind = dtype if dtype.is_float else dtypes.float64
    return np.array([float(from_bits(kind, to_bits(kind, float(x)))) for x in values.ravel()])
