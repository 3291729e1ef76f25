"""The element types of Weft, their promotion, and the canonical form of a constant.

A `DType` is interned: there is one object per type, compared by identity, so it is cheap as a key.
Vectors are lanes of a scalar type (`float32.vector(4)`). `index` is the type of index arithmetic:
exact integers without a width, which the lowering turns into 32 or 64 bits. A complex number is
two floats, which the scheduler takes apart: no kernel sees one.
Python scalars are weak: they take the type of what they meet, unless its kind cannot hold them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from weft.ir.arrays import small_floats
from weft.ir.arrays.small_floats import FloatFormat
from weft.support.errors import DTypeError, UnknownAttribute
from weft.support.message import nearest
from weft.support.settings import settings

Scalar = bool | int | float
Number = Scalar | complex

# The kinds are bits, so that a rule can name several of them in one mask.
VOID: Final = 0
BOOL: Final = 1
INT: Final = 2
UINT: Final = 4
INDEX: Final = 8
FLOAT: Final = 16
COMPLEX: Final = 32
FIXED: Final = INT | UINT
INTEGER: Final = INT | UINT | INDEX
EXACT: Final = BOOL | INT | UINT | INDEX
ANY: Final = BOOL | INT | UINT | INDEX | FLOAT
INEXACT: Final = FLOAT | COMPLEX  # what has gradients


class DType:
    """One element type. Make vectors with `vector`; there is no other way to make a new type."""

    __slots__ = ("_vectors", "bits", "format", "kind", "lanes", "max", "min", "name", "scalar")

    def __init__(
        self, name: str, kind: int, bits: int, lanes: int = 1, scalar: DType | None = None
    ) -> None:
        self.name = name
        self.kind = kind
        self.bits = bits
        self.lanes = lanes
        self.scalar = self if scalar is None else scalar
        self.format: FloatFormat | None = (
            small_floats.FORMATS[name]
            if self.is_scalar_float
            else (self.scalar.format if kind == FLOAT else None)
        )
        self._vectors: dict[int, DType] = {}
        self.min, self.max = _limits(kind, bits, self.format)

    @property
    def is_scalar_float(self) -> bool:
        return self.kind == FLOAT and self.lanes == 1

    @property
    def bitsize(self) -> int:
        """Bits of one element, under tinygrad's name."""
        return self.bits * self.lanes

    @property
    def itemsize(self) -> int:
        """Bytes of one element in memory; a bool takes one byte."""
        return max(self.bits // 8, 1) * self.lanes

    @property
    def is_float(self) -> bool:
        return self.kind == FLOAT

    @property
    def is_complex(self) -> bool:
        return self.kind == COMPLEX

    @property
    def is_inexact(self) -> bool:
        """Whether it holds floats or complex numbers: what can have a gradient."""
        return bool(self.kind & INEXACT)

    @property
    def part(self) -> DType:
        """The dtype of the real and of the imaginary part; a real dtype is its own."""
        return self if self.kind != COMPLEX else SCALARS[f"float{self.bits // 2}"]

    @property
    def is_int(self) -> bool:
        return bool(self.kind & INTEGER)

    @property
    def is_unsigned(self) -> bool:
        return self.kind == UINT

    def vector(self, lanes: int) -> DType:
        """The type of `lanes` values of this scalar type; one lane is the scalar itself."""
        if self.lanes != 1:
            raise DTypeError(
                f"{self.name} is already a vector",
                rule="a vector is made of a scalar type",
                fix=f"write {self.scalar.name}.vector({lanes})",
            )
        if lanes == 1:
            return self
        if lanes not in self._vectors:
            made = DType(f"{self.name}x{lanes}", self.kind, self.bits, lanes, self)
            return self._vectors.setdefault(lanes, made)
        return self._vectors[lanes]

    def __repr__(self) -> str:
        return f"dtypes.{self.name}"

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (by_name, (self.name,))


def _limits(kind: int, bits: int, format: FloatFormat | None) -> tuple[Scalar, Scalar]:
    if kind == INT:
        return -(1 << bits - 1), (1 << bits - 1) - 1
    if kind == UINT:
        return 0, (1 << bits) - 1
    if kind == BOOL:
        return False, True
    if format is not None and format.infinities:
        return -math.inf, math.inf
    if format is not None:
        return small_floats.finfo(format).min, small_floats.finfo(format).max
    return -math.inf, math.inf


def canonical(dtype: DType, value: Scalar) -> Scalar:
    """The constant of `dtype` that `value` becomes: integers wrap, floats round to nearest."""
    kind = dtype.kind
    if kind == FLOAT:
        assert dtype.format is not None
        if isinstance(value, int):
            exact = 2 << dtype.format.mantissa_bits  # up to here every integer is a float
            if -exact <= value <= exact:
                return float(value)
            return small_floats.round_int(dtype.format, value)
        return small_floats.round_to(dtype.format, value)
    if kind == BOOL:
        return bool(value)
    number = int(value)
    if kind == UINT:
        return number & (1 << dtype.bits) - 1
    if kind == INT:
        half = 1 << dtype.bits - 1
        return (number + half & 2 * half - 1) - half
    return number


class DTypes:
    """The names users know: `dtypes.float32`, its aliases, and questions about a type."""

    void = DType("void", VOID, 0)
    index = DType("index", INDEX, 64)
    bool = DType("bool", BOOL, 1)
    int8 = DType("int8", INT, 8)
    int16 = DType("int16", INT, 16)
    int32 = DType("int32", INT, 32)
    int64 = DType("int64", INT, 64)
    uint8 = DType("uint8", UINT, 8)
    uint16 = DType("uint16", UINT, 16)
    uint32 = DType("uint32", UINT, 32)
    uint64 = DType("uint64", UINT, 64)
    fp8e4m3 = DType("fp8e4m3", FLOAT, 8)
    fp8e5m2 = DType("fp8e5m2", FLOAT, 8)
    fp8e4m3fnuz = DType("fp8e4m3fnuz", FLOAT, 8)
    fp8e5m2fnuz = DType("fp8e5m2fnuz", FLOAT, 8)
    float16 = DType("float16", FLOAT, 16)
    bfloat16 = DType("bfloat16", FLOAT, 16)
    float32 = DType("float32", FLOAT, 32)
    float64 = DType("float64", FLOAT, 64)
    complex64 = DType("complex64", COMPLEX, 64)
    complex128 = DType("complex128", COMPLEX, 128)

    half, float, double = float16, float32, float64
    cfloat, cdouble = complex64, complex128
    char, short, int, long = int8, int16, int32, int64
    uchar, ushort, uint, ulong = uint8, uint16, uint32, uint64

    fp8s = (fp8e4m3, fp8e5m2, fp8e4m3fnuz, fp8e5m2fnuz)
    floats = (*fp8s, float16, bfloat16, float32, float64)
    uints = (uint8, uint16, uint32, uint64)
    sints = (int8, int16, int32, int64)
    ints = (*uints, *sints)
    complexes = (complex64, complex128)
    all = (*floats, *ints, bool)

    # Hidden from the type checker, which would accept every misspelling if it saw this.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            guess = nearest(name, [each for each in dir(self) if not each.startswith("_")])
            raise UnknownAttribute(
                f"dtypes has no attribute {name!r}", fix=f"write dtypes.{guess}" if guess else ""
            )

    @property
    def default_float(self) -> DType:
        return by_name(settings.DEFAULT_FLOAT)

    @property
    def default_int(self) -> DType:
        return by_name(settings.DEFAULT_INT)

    def is_float(self, dtype: DType) -> _Bool:
        return dtype.is_float

    def is_int(self, dtype: DType) -> _Bool:
        return dtype.is_int

    def is_unsigned(self, dtype: DType) -> _Bool:
        return dtype.is_unsigned

    def from_py(self, value: object) -> DType:
        """The dtype of a Python number, or of a list of them; of tinygrad."""
        if isinstance(value, (list, tuple)):
            found = [self.from_py(each) for each in value]
            order = (self.bool, self.default_int, self.default_float)
            return max(found, key=order.index) if found else self.default_float
        if value.__class__ is _Bool:
            return self.bool
        if isinstance(value, _NUMBERS):
            return self.default_int if isinstance(value, _NUMBERS[0]) else self.default_float
        raise DTypeError(
            f"from_py: a {type(value).__name__} has no dtype",
            rule="it is of bools, ints, floats and lists of them",
        )

    def min(self, dtype: DType) -> Scalar:
        """The least value of the type; minus infinity where it has one."""
        return dtype.min

    def max(self, dtype: DType) -> Scalar:
        """The greatest value of the type; infinity where it has one."""
        return dtype.max

    def finfo(self, dtype: DType) -> small_floats.FloatInfo:
        if dtype.format is None:
            raise DTypeError(
                f"finfo: expected a float, got {dtype.name}", rule="finfo describes floats"
            )
        return small_floats.finfo(dtype.format)


_Bool = bool  # inside DTypes the plain name is the dtype
_NUMBERS = (int, float)
dtypes = DTypes()

_NAMED: Final[dict[str, DType]] = {
    dtype.name: dtype for dtype in vars(DTypes).values() if isinstance(dtype, DType)
}
# What kernels compute with, and what tensors hold beside it.
SCALARS: Final = {name: dtype for name, dtype in _NAMED.items() if dtype.kind != COMPLEX}
COMPLEXES: Final = {name: dtype for name, dtype in _NAMED.items() if dtype.kind == COMPLEX}
_ALIASES: Final[dict[str, DType]] = {
    name: dtype for name, dtype in vars(DTypes).items() if isinstance(dtype, DType)
}


def by_name(name: str) -> DType:
    """The type called `name`, aliases and vectors (`float32x4`) included."""
    found = _ALIASES.get(name)
    if found is not None:
        return found
    scalar, _, lanes = name.rpartition("x")
    if scalar in SCALARS and lanes.isdecimal():
        return SCALARS[scalar].vector(int(lanes))
    guess = nearest(name, _ALIASES)
    raise DTypeError(
        f"unknown dtype {name!r}",
        rule="the dtypes are " + ", ".join(_NAMED),
        fix=f"write {guess!r}" if guess else "",
    )


_PROMOTED: dict[tuple[DType, DType], DType] = {}


def promote(*types: DType) -> DType:
    """The type in which values of all these types meet.

    Complex numbers win over floats, floats over integers, integers over bool; unlike signs meet
    in the next signed width, and int64 with uint64 in float64, as in NumPy. float16 with bfloat16
    meet in float32.
    """
    result = types[0]
    for other in types[1:]:
        if other is not result:
            found = _PROMOTED.get((result, other))
            if found is None:
                found = _PROMOTED[(result, other)] = _promote_pair(result, other)
            result = found
    return result


def _promote_pair(a: DType, b: DType) -> DType:
    for dtype in (a, b):
        if dtype.lanes != 1 or dtype.kind == VOID:
            raise DTypeError(
                f"promote: {dtype.name} has no common type with others",
                rule="promotion is between scalar types",
            )
    if INDEX in (a.kind, b.kind):  # a size is a weak integer
        other = b if a.kind == INDEX else a
        return other if other.kind != BOOL else dtypes.index
    if COMPLEX in (a.kind, b.kind):
        return _promote_complex(a, b)
    if FLOAT in (a.kind, b.kind):
        return _promote_floats(a, b) if a.kind == b.kind else a if a.kind == FLOAT else b
    if BOOL in (a.kind, b.kind):
        return b if a.kind == BOOL else a
    if a.kind == b.kind:
        return a if a.bits > b.bits else b
    signed, unsigned = (a, b) if a.kind == INT else (b, a)
    bits = max(signed.bits, 2 * unsigned.bits)
    return SCALARS[f"int{bits}"] if bits <= 64 else dtypes.float64


def _promote_complex(a: DType, b: DType) -> DType:
    """A real number takes part where it is a float that is wider than the parts."""
    widest = max(x.part.bits for x in (a, b) if x.kind & INEXACT)
    return dtypes.complex128 if widest == 64 else dtypes.complex64


def complex_of(dtype: DType) -> DType:
    """The complex dtype of numbers whose real part is of this dtype."""
    return dtype if dtype.kind == COMPLEX else _promote_complex(dtypes.complex64, dtype)


def _promote_floats(a: DType, b: DType) -> DType:
    if a.bits != b.bits:
        return a if a.bits > b.bits else b
    return dtypes.float32 if a.bits == 16 else dtypes.float16  # both fp8 kinds fit in float16


def promote_scalar(dtype: DType, value: Number) -> DType:
    """The type of an operation between a tensor of `dtype` and a Python scalar, which is weak."""
    if value.__class__ is complex:
        return complex_of(dtype if dtype.kind & INEXACT else dtypes.default_float)
    if isinstance(value, bool) or dtype.kind & INEXACT:
        return dtype
    if isinstance(value, int):
        return dtypes.default_int if dtype.kind == BOOL else dtype
    return dtypes.default_float


def scalar_dtype(value: Number) -> DType:
    """The type a Python scalar takes alone."""
    if value.__class__ is complex:
        return complex_of(dtypes.default_float)
    if isinstance(value, bool):
        return dtypes.bool
    return dtypes.default_int if isinstance(value, int) else dtypes.default_float


def holds_exactly(wide: DType, narrow: DType) -> bool:
    """Whether every value of `narrow` is one of `wide`, so that a cast there loses nothing."""
    if wide is narrow:
        return True
    w, n = wide.format, narrow.format
    if narrow.kind == BOOL:
        return wide.kind != VOID
    if wide.kind == INDEX:
        return bool(narrow.kind & INTEGER)
    if wide.kind & FIXED and narrow.kind & FIXED:
        return bool(wide.min <= narrow.min and narrow.max <= wide.max)
    if w is not None and narrow.kind & FIXED:
        return narrow.bits - (narrow.kind == INT) <= w.mantissa_bits + 1 and w.bits > narrow.bits
    if w is None or n is None or w.mantissa_bits < n.mantissa_bits:
        return False
    if w.bits <= n.bits:
        return False
    big, small = small_floats.finfo(w), small_floats.finfo(n)
    return big.max >= small.max and big.smallest_subnormal <= small.smallest_subnormal
