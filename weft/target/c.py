"""Targets of C compilers, and the names of functions in C.

`c_target` describes a CPU that gcc or clang compiles for. Nothing here asks the host; the runtime
does, and picks.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from weft.ir.dtypes import SCALARS, dtypes
from weft.ir.ops import COMPARE, Op
from weft.target.compute import Simd
from weft.target.memory import GLOBAL
from weft.target.target import USUAL_MEMORIES, Target

# What C and OpenCL C say exactly. Transcendental functions are missing on purpose: each library
# rounds them in its own way, so codegen writes them in terms of these.
EXACT_OPS: Final = COMPARE | {
    *(Op.ADD, Op.MUL, Op.NEG, Op.DIV, Op.FLOORDIV, Op.FLOORMOD, Op.TRUNCDIV, Op.TRUNCMOD),
    *(Op.AND, Op.OR, Op.XOR, Op.NOT, Op.SHL, Op.SHR, Op.MAX, Op.MIN, Op.WHERE),
    *(Op.SQRT, Op.FLOOR, Op.TRUNC, Op.ROUND, Op.CAST, Op.BITCAST),
}
INTEGERS: Final = frozenset(dtype for dtype in SCALARS.values() if dtype.is_int) - {dtypes.index}
STORED: Final = frozenset(SCALARS.values()) - {dtypes.void, dtypes.index}

# The bits of a vector register by the level of an x86 processor (`-march=x86-64-v3`).
X86_VECTOR_BITS: Final = {"x86-64": 128, "x86-64-v2": 128, "x86-64-v3": 256, "x86-64-v4": 512}


def c_target(arch: str = "x86-64", device: str = "C") -> Target:
    """The target of a C compiler; `arch` is a level of x86-64 or the name of another processor."""
    vector_bits = X86_VECTOR_BITS.get(arch, 128)
    return Target(
        device=device,
        renderer="C",
        arch=arch,
        native_ops=EXACT_OPS,
        native_dtypes=INTEGERS | {dtypes.bool, dtypes.float32, dtypes.float64},
        stored_dtypes=STORED,
        compute=Simd(vector_bits=vector_bits, vector_registers=32 if vector_bits == 512 else 16),
        memories=tuple(
            replace(memory, access_bits=vector_bits if memory.name == GLOBAL else 0)
            for memory in USUAL_MEMORIES
        ),
    )


# Words that cannot name a function, in C or in OpenCL C: keywords, and functions that exist.
_WORDS: Final = """
    auto break case char const continue default do double else enum extern float for goto if inline
    int long register restrict return short signed sizeof static struct switch typedef union
    unsigned void volatile while bool true false half uchar ushort uint ulong size_t kernel global
    local constant private read_only write_only image1d_t image2d_t image3d_t sampler_t event_t
    main memcpy memset malloc free exit abort abs fabs fmax fmin max min clamp exp exp2 exp10 log
    log2 log10 sqrt rsqrt cbrt pow powr sin cos tan asin acos atan sinh cosh tanh erf erfc tgamma
    lgamma floor ceil round trunc rint fmod remainder fma mad copysign ldexp frexp hypot nan sign
    step mix dot cross length distance normalize select any all barrier shuffle printf popcount
    rotate degrees radians isnan isinf isfinite signbit prefetch j0 j1 jn y0 y1 yn gamma INFINITY
    NAN
"""
RESERVED: Final = frozenset(_WORDS.split())


def entry_name(name: str) -> str:
    """The name of the function of a program: its own, unless C keeps that for itself."""
    return f"{name}_kernel" if name in RESERVED else name
