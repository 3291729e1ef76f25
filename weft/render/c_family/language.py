"""What a C-like language looks like, as data: `Language` and its parts.

`c.py` and `opencl.py` each hold one `Language`; CUDA, HIP and Metal are further ones. The renderer
in `renderer.py` reads nothing else about a language. Texts carry how tightly their outermost
operator binds, so that parentheses appear only where they are needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from weft.ir.dtypes import BOOL, FLOAT, INDEX, DType, Scalar, dtypes
from weft.ir.program import Program
from weft.support.errors import InternalError

# How tightly an expression binds, loosest first.
TERNARY: Final = 0
OR: Final = 1
AND: Final = 2
COMPARE: Final = 3
BITS: Final = 4
ADD: Final = 5
MULTIPLY: Final = 6
PREFIX: Final = 7
ATOM: Final = 8

# Wide enough for readable statements, narrow enough for short lines.
LONGEST_INLINE: Final = 64


class Text(NamedTuple):
    """An expression of the language."""

    text: str
    binds: int = ATOM

    def at(self, least: int) -> str:
        """The text, in parentheses if it binds less tightly than `least`."""
        return self.text if self.binds >= least else f"({self.text})"


@dataclass(frozen=True)
class VectorForm:
    """How vectors are written; each field is a format string.

    `lanes` are the numbers of lanes that the language has a type for, or none.
    """

    lanes: frozenset[int]
    type: str  # {type}, {name}, {lanes}
    typedef: str  # {scalar}, {type}, {lanes}, {bytes}, {width}; "" where the type is built in
    lane: str  # {vector}, {lane}
    build: str  # {type}, {lanes}
    splat: str = ""  # {type}, {lane}: one value in every lane
    load: str = ""  # {type}, {lanes}, {pointer}; "" where lanes are loaded one by one
    store: str = ""  # and {value}
    widest: int = 1 << 30  # bytes that a load or store moves; wider vectors go lane by lane


# Any language of the family has structs, so any number of lanes has a form.
STRUCT_VECTORS: Final = VectorForm(
    lanes=frozenset(),
    type="{name}",
    typedef="typedef struct {{ {scalar} lane[{lanes}]; }} {type};",
    lane="{vector}.lane[{lane}]",
    build="({type}){{{{{lanes}}}}}",
)


class Pointer(NamedTuple):
    """A memory argument in a signature: `dtype` is what the program sees there."""

    name: str
    dtype: DType
    is_written: bool


class Counter(NamedTuple):
    """A hardware counter that the program reads."""

    name: str
    dtype: DType
    kind: str
    axis: int


class Shell(NamedTuple):
    """What the lines around the body of a kernel are made from."""

    language: Language
    program: Program
    pointers: list[Pointer]
    variables: list[str]
    counters: list[Counter]
    group_sizes: list[str]  # expressions over the variables, one for each axis


@dataclass(frozen=True)
class Language:
    """One language. `open_kernel` gives the lines up to the body; a line that ends in a brace
    opens a block, and all blocks are closed behind the body."""

    name: str
    types: Mapping[DType, str]
    byte: str  # what holds a bool in memory
    suffixes: Mapping[DType, str]  # of literals
    wraps: bool  # whether signed integers may overflow, and wrap
    function: str  # in front of the type of a function
    functions: Mapping[DType, str]  # the name of a math function for a float dtype: {name}
    reinterpret: str  # a conversion of bits: {type}; "" where a copy of memory is the way
    nan: Mapping[DType, str]
    infinity: Mapping[DType, str]
    vectors: VectorForm
    spaces: Mapping[str, str]  # the qualifier of each space, with a blank behind it
    barrier: str  # the statement; "" where a group is one thread
    header: Callable[[str], list[str]]  # given the rest of the text
    open_kernel: Callable[[Shell], list[str]]
    reserved: frozenset[str] = field(default_factory=frozenset)

    def vector_form(self, dtype: DType) -> VectorForm:
        return self.vectors if dtype.lanes in self.vectors.lanes else STRUCT_VECTORS

    def type_name(self, dtype: DType) -> str:
        """The type of a value."""
        if dtype.lanes == 1 and dtype in self.types:
            return self.types[dtype]
        form = self.vector_form(dtype)
        return form.type.format(type=self.memory_type(dtype), name=dtype.name, lanes=dtype.lanes)

    def memory_type(self, dtype: DType) -> str:
        """The type of an element in memory."""
        if dtype.kind == BOOL:
            return self.byte
        if dtype.scalar not in self.types:
            raise InternalError(f"{self.name} has no type for {dtype.scalar.name}")
        return self.types[dtype.scalar]

    def typedef(self, dtype: DType) -> str:
        """The lines that define the type of a vector; none where it is built in."""
        form = self.vector_form(dtype)
        scalar = self.memory_type(dtype)
        return form.typedef.format(
            scalar=scalar,
            type=self.type_name(dtype),
            lanes=dtype.lanes,
            bytes=dtype.itemsize,
            width=dtype.scalar.itemsize,
        )

    def build(self, dtype: DType, lanes: list[str]) -> Text:
        form, type_name = self.vector_form(dtype), self.type_name(dtype)
        if form.splat and len(set(lanes)) == 1:
            return Text(form.splat.format(type=type_name, lane=lanes[0]), PREFIX)
        return Text(form.build.format(type=type_name, lanes=", ".join(lanes)), PREFIX)

    def lane(self, vector: str, dtype: DType, lane: int) -> str:
        hexadecimal = f"{lane:x}"
        form = self.vector_form(dtype)
        return form.lane.format(vector=vector, lane=lane, hexadecimal=hexadecimal)

    def literal(self, dtype: DType, value: Scalar) -> Text:
        """A constant of a scalar dtype, exactly."""
        if dtype.kind == BOOL:
            return Text("true" if value else "false")
        if dtype.kind == FLOAT:
            return self._float(dtype, float(value))
        number, suffix = int(value), self.suffixes.get(dtype, "")
        if dtype.bits >= 32 and number == -(1 << dtype.bits - 1):
            # The literal of the magnitude alone does not fit the type.
            return Text(f"(-{-(number + 1)}{suffix} - 1)")
        return Text(f"{number}{suffix}", PREFIX if number < 0 else ATOM)

    def _float(self, dtype: DType, value: float) -> Text:
        if value != value:
            return Text(self.nan[dtype])
        binds = PREFIX if math.copysign(1.0, value) < 0 else ATOM
        if math.isinf(value):
            return Text(f"-{self.infinity[dtype]}" if value < 0 else self.infinity[dtype], binds)
        return Text(exact_literal(value) + self.suffixes.get(dtype, ""), binds)


def exact_literal(value: float) -> str:
    """A finite number in C: decimal where that is short and exact, else hexadecimal.

    >>> exact_literal(-2.5), exact_literal(0.1)
    ('-2.5', '0x1.999999999999ap-4')
    """
    if abs(value) < 1e6 and (value * 8).is_integer():
        return repr(value)
    mantissa, _, exponent = value.hex().partition("p")
    return f"{mantissa.rstrip('0').rstrip('.')}p{int(exponent)}"


def unsigned(dtype: DType) -> DType:
    """The unsigned dtype of a width; `index` is as wide as int64."""
    by_bits = {
        1: dtypes.uint8,
        8: dtypes.uint8,
        16: dtypes.uint16,
        32: dtypes.uint32,
        64: dtypes.uint64,
    }
    return by_bits[dtype.bits]


def fixed(dtype: DType) -> DType:
    """The dtype, with int64 for `index`."""
    return dtypes.int64 if dtype.kind == INDEX else dtype
