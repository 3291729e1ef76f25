"""The one table of ops, for every level from tensor to instruction.

`Op.ADD` is a small int: comparing ints is several times cheaper than comparing Enum members, and
the engine compares ops more often than it does anything else. `INFO[op]` is the row of an op: its
name, how many sources it takes, its class, its algebraic properties and its meaning. Everything
that is said about an op in general (the specs, the text form, the interpreters, the docs) reads
this table.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple


class OpClass(Enum):
    """What kind of thing an op is."""

    LEAF = "leaf"
    UNARY = "unary"
    BINARY = "binary"
    COMPARE = "compare"
    TERNARY = "ternary"
    CONVERT = "convert"
    MOVEMENT = "movement"
    REDUCE = "reduce"
    MEMORY = "memory"
    VECTOR = "vector"
    CONTROL = "control"
    STRUCTURE = "structure"


# The properties an op can have on exact numbers; floats round, so their sums are not associative.
COMMUTATIVE: Final = "commutative"
ASSOCIATIVE: Final = "associative"
IDEMPOTENT: Final = "idempotent"


class OpInfo(NamedTuple):
    """A row of the table. `most` is None where any number of sources from `least` on is legal."""

    number: int
    name: str
    op_class: OpClass
    least: int
    most: int | None
    properties: frozenset[str]
    arg: str
    meaning: str


INFO: Final[list[OpInfo]] = []
BY_NAME: Final[dict[str, int]] = {}


def _op(
    name: str, op_class: OpClass, arity: str, meaning: str, *properties: str, arg: str = ""
) -> int:
    """Add a row; `arity` is "2" for exactly two sources, "2+" for two or more, "1-2" for both."""
    low, _, high = arity.partition("-")
    least = int(low.rstrip("+"))
    most = None if arity.endswith("+") else int(high or low)
    number = len(INFO)
    INFO.append(OpInfo(number, name, op_class, least, most, frozenset(properties), arg, meaning))
    BY_NAME[name] = number
    return number


_C = OpClass


class Op:
    """The numbers of the ops. Those of index arithmetic come first: low bits make small masks."""

    # Leaves.
    CONST = _op("CONST", _C.LEAF, "0", "a literal of its dtype", arg="value")
    RANGE = _op("RANGE", _C.LEAF, "1", "a loop counter: 0 <= r < source", arg="id")
    VARIABLE = _op(
        "VARIABLE", _C.LEAF, "0", "a symbolic size, least <= v <= most", arg="(name, least, most)"
    )

    # Integers and values alike. FLOORDIV and FLOORMOD round down, TRUNCDIV and TRUNCMOD to zero.
    ADD = _op("ADD", _C.BINARY, "2", "x + y", COMMUTATIVE, ASSOCIATIVE)
    MUL = _op("MUL", _C.BINARY, "2", "x * y", COMMUTATIVE, ASSOCIATIVE)
    FLOORDIV = _op(
        "FLOORDIV",
        _C.BINARY,
        "2",
        "floor(x / y), of floats as NumPy defines it; 0 where an integer y is 0",
    )
    FLOORMOD = _op(
        "FLOORMOD",
        _C.BINARY,
        "2",
        "x - y * floor(x / y), the sign of y; 0 where an integer y is 0",
    )
    LESS = _op("LESS", _C.COMPARE, "2", "x < y")
    EQUAL = _op("EQUAL", _C.COMPARE, "2", "x == y; NaN equals nothing", COMMUTATIVE)
    AND = _op("AND", _C.BINARY, "2", "x & y, bit by bit", COMMUTATIVE, ASSOCIATIVE, IDEMPOTENT)
    OR = _op("OR", _C.BINARY, "2", "x | y, bit by bit", COMMUTATIVE, ASSOCIATIVE, IDEMPOTENT)
    NOT = _op("NOT", _C.UNARY, "1", "~x, bit by bit; of a bool, its negation")
    WHERE = _op("WHERE", _C.TERNARY, "3", "y where the bool x holds, else z")
    CAST = _op(
        "CAST",
        _C.CONVERT,
        "1",
        "the value in another dtype: floats round to nearest even, integers wrap, bool is x != 0;"
        " a float becomes an integer by truncation to the nearest int32 (int64 for uint32 and"
        " wider targets, where uint64 reaches its own limit), which then wraps; NaN becomes 0",
    )
    MAX = _op(
        "MAX",
        _C.BINARY,
        "2",
        "the greater; NaN if either is",
        COMMUTATIVE,
        ASSOCIATIVE,
        IDEMPOTENT,
    )
    MIN = _op(
        "MIN", _C.BINARY, "2", "the lesser; NaN if either is", COMMUTATIVE, ASSOCIATIVE, IDEMPOTENT
    )

    # The other elementwise ops.
    NEG = _op("NEG", _C.UNARY, "1", "-x; integers wrap")
    LESS_EQUAL = _op("LESS_EQUAL", _C.COMPARE, "2", "x <= y; false where either is NaN")
    TRUNCDIV = _op("TRUNCDIV", _C.BINARY, "2", "x / y of integers rounded to zero; 0 where y is 0")
    TRUNCMOD = _op(
        "TRUNCMOD",
        _C.BINARY,
        "2",
        "x - y * TRUNCDIV(x, y), the sign of x; 0 where an integer y is 0",
    )
    XOR = _op("XOR", _C.BINARY, "2", "x ^ y, bit by bit", COMMUTATIVE, ASSOCIATIVE)
    SHL = _op("SHL", _C.BINARY, "2", "x << y; all bits are gone once y reaches the width")
    SHR = _op("SHR", _C.BINARY, "2", "x >> y; a signed x fills with its sign")
    DIV = _op("DIV", _C.BINARY, "2", "x / y of floats, correctly rounded")
    POW = _op(
        "POW", _C.BINARY, "2", "x ** y of floats, as C's pow; of integers with y >= 0, wrapping"
    )
    LOGADD = _op(
        "LOGADD", _C.BINARY, "2", "log(e ** x + e ** y) of floats", COMMUTATIVE, ASSOCIATIVE
    )
    SQRT = _op("SQRT", _C.UNARY, "1", "the square root of a float, correctly rounded")
    EXP = _op("EXP", _C.UNARY, "1", "e ** x")
    EXP2 = _op("EXP2", _C.UNARY, "1", "2 ** x")
    LOG = _op("LOG", _C.UNARY, "1", "the natural logarithm")
    LOG2 = _op("LOG2", _C.UNARY, "1", "the logarithm to base 2")
    SIN = _op("SIN", _C.UNARY, "1", "the sine of x radians")
    COS = _op("COS", _C.UNARY, "1", "the cosine of x radians")
    TANH = _op("TANH", _C.UNARY, "1", "the hyperbolic tangent")
    ERF = _op("ERF", _C.UNARY, "1", "the error function")
    FLOOR = _op("FLOOR", _C.UNARY, "1", "the greatest integral float <= x")
    TRUNC = _op("TRUNC", _C.UNARY, "1", "the integral part of x")
    ROUND = _op("ROUND", _C.UNARY, "1", "the nearest integral float, halves to even")
    BITCAST = _op("BITCAST", _C.CONVERT, "1", "the same bits read as another dtype of equal width")

    # Tensors. A size or bound that is symbolic is None in the arg and comes as a further source.
    BUFFER = _op(
        "BUFFER",
        _C.LEAF,
        "0+",
        "memory of a device; of several, in a layout as that of SHARD",
        arg="(number, shape, device)",
    )
    PARAM = _op("PARAM", _C.LEAF, "0+", "an argument of the enclosing CALL", arg="(slot, shape)")
    IOTA = _op("IOTA", _C.LEAF, "0-1", "0, 1, 2, … below the size", arg="(size,)")
    RESHAPE = _op("RESHAPE", _C.MOVEMENT, "1+", "the same elements in another shape", arg="shape")
    EXPAND = _op("EXPAND", _C.MOVEMENT, "1+", "axes of size 1 repeated", arg="shape")
    PERMUTE = _op(
        "PERMUTE", _C.MOVEMENT, "1", "axes in another order", arg="source axis of each axis"
    )
    PAD = _op("PAD", _C.MOVEMENT, "1+", "zeros around each axis", arg="((before, after), …)")
    SHRINK = _op("SHRINK", _C.MOVEMENT, "1+", "a box cut out", arg="((start, stop), …)")
    FLIP = _op("FLIP", _C.MOVEMENT, "1", "axes read backwards", arg="axes")
    DETACH = _op("DETACH", _C.STRUCTURE, "1", "the value, without a gradient")
    COPY = _op("COPY", _C.MEMORY, "1", "the value on another device", arg="device")
    BIND = _op("BIND", _C.STRUCTURE, "2", "a VARIABLE and the value it has in this run")

    # Reductions: over axes of a tensor, or over ranges of a kernel.
    REDUCE = _op(
        "REDUCE",
        _C.REDUCE,
        "1+",
        "the reduction of the first source by ADD, MUL, MAX, MIN, AND, OR or LOGADD, over its axes"
        " or over the ranges that follow",
        arg="(op, axes)",
    )

    SCAN = _op(
        "SCAN",
        _C.REDUCE,
        "1-2",
        "all prefixes of such a reduction: over one axis, each element with those before it; or"
        " over a range that stays open, the iterations up to the present one",
        arg="(op, axes)",
    )

    # Memory. An address is an INDEX of memory; LOAD reads it and STORE writes it.
    INDEX = _op(
        "INDEX",
        _C.MEMORY,
        "2+",
        "INDEX(x, mask, i0, i1, …): x at i0, i1, …, and 0 where the mask is false",
    )
    LOAD = _op("LOAD", _C.MEMORY, "1", "the value at an address")
    STORE = _op(
        "STORE",
        _C.MEMORY,
        "2+",
        "STORE(target, value, ranges…): write the value at the target, for all ranges that follow;"
        " where the arg says so one iteration after the other, each seeing what others wrote",
        arg='"ordered", or nothing',
    )
    STAGE = _op(
        "STAGE",
        _C.MEMORY,
        "1+",
        "STAGE(value, indices…, ranges…): the value over its own ranges, materialized at indices;"
        " a symbolic size is None in the arg and comes as a source behind the indices, and behind"
        ' those a mask where the arg is (space, sizes, "masked")',
        arg="(space, sizes)",
    )
    READ = _op(
        "READ",
        _C.MEMORY,
        "2+",
        "READ(stage, mask, i0, …): a stage, or a result of a CALL, at i0, …; 0 where masked",
    )
    MEMORY = _op("MEMORY", _C.LEAF, "0", "memory inside a kernel", arg="(name, space, size)")
    AFTER = _op("AFTER", _C.STRUCTURE, "2+", "the first source, once the others have happened")

    # A reduction of values into another, at indices of it.
    SCATTER = _op(
        "SCATTER",
        _C.REDUCE,
        "4+",
        "SCATTER(x, v, mask, i0, i1, …): x with each v reduced into it at i0, i1, … by ADD, MUL,"
        " MAX, MIN, AND or OR, one after the other, where the mask is true",
        arg="(op,)",
    )

    # Vectors.
    VECTOR = _op("VECTOR", _C.VECTOR, "2+", "a vector of the sources' lanes, in order")
    LANES = _op("LANES", _C.VECTOR, "1", "some lanes of a vector", arg="lane numbers")

    # Control, in a LINEAR of instructions.
    SPECIAL = _op(
        "SPECIAL", _C.CONTROL, "1", "a hardware counter: 0 <= s < source", arg="(kind, axis)"
    )
    END = _op("END", _C.CONTROL, "1", "closes a RANGE")
    BARRIER = _op("BARRIER", _C.CONTROL, "0+", "all threads of a group wait for each other")
    SHUFFLE = _op(
        "SHUFFLE",
        _C.CONTROL,
        "2",
        "SHUFFLE(x, t): x of another thread of the group, whose counter t differs in these bits",
        arg="(bits,)",
    )

    # Matrix units, and copies that run beside the arithmetic.
    CONTRACT = _op(
        "CONTRACT",
        _C.REDUCE,
        "2+",
        "CONTRACT(x, y, starts…, positions…): the product of a tile of x and one of y, summed over"
        " all steps: the element at these positions, or as a vector all elements of a thread. x"
        " may be a tile that threads compute, in registers",
        arg='(tile, stages, steps, factor, factor, dtype), and "pairs" if it stays in registers',
    )
    TENSOR_MAP = _op(
        "TENSOR_MAP",
        _C.MEMORY,
        "1",
        "an argument as a tensor of up to five axes, the contiguous one first: COPY_BOX takes it",
        arg="(offset, sizes, strides, box, traversal)",
    )
    COPY_BOX = _op(
        "COPY_BOX",
        _C.MEMORY,
        "5+",
        "COPY_BOX(target, map, barrier, mask, i0, i1, …): start to copy a box of a TENSOR_MAP to"
        " local memory, in swizzled rows of 128 bytes, 0 outside of the tensor; the barrier counts"
        " its bytes. The last source is what happened before",
    )
    MBARRIER = _op(
        "MBARRIER",
        _C.CONTROL,
        "3+",
        "MBARRIER(barrier, mask, …): make barriers that count arrivals and bytes, arrive, arrive"
        " and say how many bytes are to come, or wait until a phase of this parity is complete."
        " The last source is what happened before",
        arg='("init", count, arrivals), ("arrive",), ("expect", bytes) or ("wait",)',
    )
    MMA = _op(
        "MMA",
        _C.CONTROL,
        "4",
        "MMA(sums, left, right, before): four warps start to add the product of two swizzled tiles"
        " of local memory to a tile in their registers, or let it begin with that; the"
        " left one may lie in registers, two elements in a word",
        arg='(dtypes, sizes, panels), and "start" if sums begin',
    )
    MMA_GROUP = _op(
        "MMA_GROUP",
        _C.CONTROL,
        "2",
        "MMA_GROUP(sums, before): registers may be read by the MMAs that follow, or have their"
        " values here; those before it are a group; or wait until all but some groups are"
        " complete, of which these sums may be one",
        arg='("fence",), ("computed",), ("commit",), ("wait", groups) or ("ready", groups)',
    )

    # Structure.
    TUPLE = _op("TUPLE", _C.STRUCTURE, "0+", "several values")
    ITEM = _op("ITEM", _C.STRUCTURE, "1", "one value of a tuple", arg="position")
    SINK = _op("SINK", _C.STRUCTURE, "0+", "all of these are wanted")
    KERNEL = _op("KERNEL", _C.STRUCTURE, "1+", "stores that run together", arg="(name, loops)")
    LINEAR = _op(
        "LINEAR",
        _C.STRUCTURE,
        "0+",
        "these, in this order; a schedule has the slot of its first temporary, and when memory is"
        " planned the bytes of an arena, and where in it each temporary is",
        arg="nothing, (slot,), or (bytes, ((slot, offset), …))",
    )
    CALL = _op(
        "CALL",
        _C.STRUCTURE,
        "0+",
        "a body with its PARAMs bound to the sources; PARAMs of a KERNEL or PROGRAM beyond those"
        " are memory that it fills, the values of the call",
        arg="body",
    )
    PROGRAM = _op(
        "PROGRAM",
        _C.STRUCTURE,
        "1+",
        "a kernel that is written for a target already; the PARAMs and VARIABLEs are its arguments"
        " in order",
        arg="(name, target, source, binary in hex, written slots, groups, threads)",
    )
    CUSTOM_GRADIENT = _op(
        "CUSTOM_GRADIENT",
        _C.STRUCTURE,
        "1+",
        "CUSTOM_GRADIENT(y, x…): y, whose gradients are what the body gives for inputs, values,"
        " gradients of the values and whatever else it reads",
        arg="(body, inputs, slots)",
    )

    # Several devices.
    SHARD = _op(
        "SHARD",
        _C.MEMORY,
        "1",
        "the value on several devices: whole on each where the axis is None, else cut along it"
        " into parts of these sizes",
        arg="(devices, axis, sizes)",
    )

    # Complex numbers, which the scheduler takes apart before anything else.
    COMPLEX = _op("COMPLEX", _C.CONVERT, "2", "x + y i of two floats")
    REAL = _op("REAL", _C.CONVERT, "1", "the real part of a complex number")
    IMAG = _op("IMAG", _C.CONVERT, "1", "the imaginary part of a complex number")

    # Bodies of calls.
    INLINE = _op(
        "INLINE",
        _C.STRUCTURE,
        "1",
        "the value; a CALL of a body that is one becomes a part of what calls it, as if it were"
        " written out there",
    )

    # Products of bytes; last, so that the numbers of the others, which order terms, stay.
    DOT_BYTES = _op(
        "DOT_BYTES",
        _C.BINARY,
        "2",
        "the sum of the products of bytes: those of x are unsigned, those of y signed; wraps",
    )


COUNT: Final = len(INFO)


def ops_of(*classes: OpClass) -> tuple[int, ...]:
    """The numbers of all ops of these classes."""
    return tuple(row.number for row in INFO if row.op_class in classes)


def mask_of(*ops: int) -> int:
    """The set of these ops as a bit mask, the form of `UOp.ops`."""
    return sum(map((1).__lshift__, set(ops)))  # every pass asks, so an op costs no call


UNARY: Final = frozenset(ops_of(OpClass.UNARY))
BINARY: Final = frozenset(ops_of(OpClass.BINARY))
COMPARE: Final = frozenset(ops_of(OpClass.COMPARE))
ELEMENTWISE: Final = frozenset(ops_of(_C.UNARY, _C.BINARY, _C.COMPARE, _C.TERNARY, _C.CONVERT))
MOVEMENT: Final = frozenset(ops_of(OpClass.MOVEMENT))
# Between complex numbers and their parts: in tensor graphs alone.
COMPLEX_OPS: Final = frozenset((Op.COMPLEX, Op.REAL, Op.IMAG))
# Computed by many instructions on every machine, and correctly rounded nowhere.
TRANSCENDENTAL: Final = frozenset(
    (Op.EXP, Op.EXP2, Op.LOG, Op.LOG2, Op.SIN, Op.COS, Op.TANH, Op.ERF, Op.POW, Op.LOGADD)
)
COMMUTATIVE_OPS: Final = frozenset(row.number for row in INFO if COMMUTATIVE in row.properties)


def name(op: int) -> str:
    return INFO[op].name
