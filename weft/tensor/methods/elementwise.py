"""Operations on two operands: promotion, broadcasting, operators and their in-place forms.

`binary` is the one way to them. Python scalars are weak: they take the dtype of the tensor, unless
their kind is wider. The dtype of a result depends on the dtypes of the operands and never on their
shapes, as in NumPy 2; PyTorch alone lets a tensor without axes give way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from weft.ir.dtypes import BOOL, FLOAT, INEXACT, INT, DType, dtypes, promote, promote_scalar
from weft.ir.movement import broadcast
from weft.ir.ops import Op
from weft.ir.scalar import KINDS
from weft.ir.shapes import Shape, shape_of
from weft.ir.spec.common import kinds_text
from weft.ir.uop import UOp, const, make
from weft.support.errors import ArgumentError, ArgumentTypeError, DTypeError
from weft.tensor.checks import (
    broadcast_shape,
    kind_of,
    require_number_fits,
    require_one_device,
    symbolic_number,
)
from weft.tensor.complexes.functions import complex_power, is_of_complex
from weft.tensor.methods.examples import with_example
from weft.tensor.turns import tracer

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

Operand = Any  # a tensor, a Python scalar, an array, or a symbolic size
Build = Callable[[UOp, UOp], UOp]


class Operation(NamedTuple):
    """An operation on two operands: what it takes and the node it makes of them."""

    name: str
    kinds: int
    build: Build
    makes_floats: bool = False


def _simple(name: str, op: int, kinds: int | None = None) -> Operation:
    def build(a: UOp, b: UOp) -> UOp:
        return make(op, a.dtype, (a, b))

    return Operation(name, KINDS[op] if kinds is None else kinds, build)


def _compared(name: str, op: int, swapped: bool = False) -> Operation:
    def build(a: UOp, b: UOp) -> UOp:
        return make(op, dtypes.bool, (b, a) if swapped else (a, b))

    return Operation(name, KINDS[op], build)


def _unequal(a: UOp, b: UOp) -> UOp:
    return ~make(Op.EQUAL, dtypes.bool, (a, b))


def _power(a: UOp, b: UOp) -> UOp:
    """Powers of integers by negative exponents are 0, but for the bases 1 and -1."""
    if a.dtype.kind != INT:
        return make(Op.POW, a.dtype, (a, b))
    zero, one = const(a.dtype, 0), const(a.dtype, 1)
    if b.op == Op.CONST:
        return make(Op.POW, a.dtype, (a, b))
    odd = (b & 1).equal(one)
    of_minus_one = make(Op.WHERE, a.dtype, (odd, const(a.dtype, -1), one))
    inverse = make(Op.WHERE, a.dtype, (a.equal(-1), of_minus_one, a.equal(1).cast(a.dtype)))
    power = make(Op.POW, a.dtype, (a, b.maximum(zero)))
    return make(Op.WHERE, a.dtype, (b < 0, inverse, power))


ADD: Final = _simple("add", Op.ADD)
SUBTRACT: Final = Operation("sub", KINDS[Op.NEG], lambda a, b: make(Op.ADD, a.dtype, (a, -b)))
MULTIPLY: Final = _simple("mul", Op.MUL)
DIVIDE: Final = Operation("div", INEXACT, lambda a, b: make(Op.DIV, a.dtype, (a, b)), True)
FLOOR_DIVIDE: Final = _simple("floor division", Op.FLOORDIV)
MODULO: Final = _simple("mod", Op.FLOORMOD)
TRUNCATED_MODULO: Final = _simple("fmod", Op.TRUNCMOD)
POWER: Final = Operation("pow", KINDS[Op.POW], _power)
MAXIMUM: Final = _simple("maximum", Op.MAX)
MINIMUM: Final = _simple("minimum", Op.MIN)
BIT_AND: Final = _simple("bitwise_and", Op.AND)
BIT_OR: Final = _simple("bitwise_or", Op.OR)
BIT_XOR: Final = _simple("bitwise_xor", Op.XOR)
SHIFT_LEFT: Final = _simple("lshift", Op.SHL)
SHIFT_RIGHT: Final = _simple("rshift", Op.SHR)
LESS: Final = _compared("less", Op.LESS)
GREATER: Final = _compared("greater", Op.LESS, swapped=True)
LESS_EQUAL: Final = _compared("less_equal", Op.LESS_EQUAL)
GREATER_EQUAL: Final = _compared("greater_equal", Op.LESS_EQUAL, swapped=True)
EQUAL: Final = _compared("eq", Op.EQUAL)
UNEQUAL: Final = Operation("ne", KINDS[Op.EQUAL], _unequal)


def binary(self: Tensor, other: Operand, operation: Operation, reverse: bool = False) -> Tensor:
    """The operation on a tensor and an operand; NotImplemented for anything else."""
    # The property `uop` is written out: this is the hottest path of all.
    a = self.uop if self._steps or tracer.thread else self._storage.uop
    if other.__class__ is self.__class__:
        b = other.uop if other._steps or tracer.thread else other._storage.uop
        if self._storage.device != other._storage.device:
            require_one_device(operation.name, self, other)
        dtype = a.dtype if a.dtype is b.dtype else promote(a.dtype, b.dtype)
    elif a.dtype.kind == FLOAT and (other.__class__ is float or other.__class__ is int):
        dtype = a.dtype  # a number is weak: it takes the dtype of a float
        b = const(dtype, other)
    else:
        met = try_operand(self, other, operation.makes_floats)
        if met is None:
            _require_own(other, operation.name)
            return NotImplemented  # type: ignore[no-any-return]  # Python asks the other
        b, dtype = met
    if operation.makes_floats and not dtype.kind & INEXACT:
        dtype = dtypes.default_float
    if not operation.kinds & dtype.kind:
        raise _undefined(operation, dtype)
    a = a if a.dtype is dtype else a.cast(dtype)
    b = b if b.dtype is dtype else _as_dtype(b, dtype)
    left, right = a.known_shape, b.known_shape
    if left is None or (left != right and right != ()):  # a scalar stands with any shape
        a, b, left = _broadcast_pair(operation.name, a, b, reverse)
    node = operation.build(b, a) if reverse else operation.build(a, b)
    node.known_shape = left
    return self._new(node)


def _broadcast_pair(name: str, a: UOp, b: UOp, reverse: bool) -> tuple[UOp, UOp, Shape]:
    left, right = shape_of(a), shape_of(b)
    if not left or not right or left == right:
        return a, b, left or right
    shape = broadcast_shape(name, *((right, left) if reverse else (left, right)))
    return broadcast(a, shape), broadcast(b, shape), shape


def _as_dtype(node: UOp, dtype: DType) -> UOp:
    """A cast; a constant is made anew, because a weak scalar has no dtype that could round it."""
    return const(dtype, node.arg) if node.op == Op.CONST else node.cast(dtype)


def try_operand(
    self: Tensor, other: Operand, makes_floats: bool = False
) -> tuple[UOp, DType] | None:
    """An operand that is not a tensor, as a node, and the dtype that both are promoted to."""
    if isinstance(other, np.generic):
        other = other.item()
    if isinstance(other, (bool, int, float, complex)):
        is_widened = makes_floats and not isinstance(other, complex)
        dtype = promote_scalar(self.dtype, 0.0 if is_widened else other)
        # Small integers wrap, as in PyTorch; what no int32 holds is a mistake.
        is_long = other.__class__ is int and other.bit_length() > 31
        if is_long and dtype.is_int and dtype.bits >= 32:
            require_number_fits("operand", other, dtype)
        return const(dtype, other), dtype
    if isinstance(other, UOp) and other.dtype is dtypes.index:
        dtype = promote_scalar(self.dtype, 0)
        return symbolic_number("operand", other, dtype), dtype
    if isinstance(other, np.ndarray):
        lifted = self.__class__(other, device=self.device)
        return lifted.uop, promote(self.dtype, lifted.dtype)
    return None


def _require_own(other: Any, name: str) -> None:
    """Refuse a tensor of another library: neither side would know what to do with the other."""
    if hasattr(type(other), "__dlpack__"):
        raise ArgumentTypeError(
            f"{name}: expected an operand, got {kind_of(other)}",
            rule="an operand is a Tensor, a Python or NumPy number, or a NumPy array",
            fix="make a tensor of it: Tensor(x), or Tensor.from_dlpack(x) to share its memory",
        )


def _undefined(operation: Operation, dtype: DType) -> DTypeError:
    return DTypeError(
        f"{operation.name}: not defined for {dtype.name}",
        rule=f"{operation.name} takes {kinds_text(operation.kinds)}",
        fix="use ^ or logical_not on bools" if dtype.kind == BOOL else "cast the operands first",
    )


def require_result(result: Tensor, name: str, other: Operand) -> Tensor:
    """The result of `binary` for a method, which has no reflected form to fall back on."""
    if result is NotImplemented:
        raise ArgumentTypeError(
            f"{name}: expected an operand, got {kind_of(other)}",
            rule="an operand is a Tensor, a Python or NumPy number, or a NumPy array",
        )
    return result


def lift(self: Tensor, value: Operand, name: str) -> Tensor:
    """An operand as a tensor on this tensor's device; a scalar takes the dtype they meet in."""
    if isinstance(value, self.__class__):
        require_one_device(name, self, value)
        return value
    met = try_operand(self, value)
    if met is None:
        raise ArgumentTypeError(
            f"{name}: expected an operand, got {kind_of(value)}",
            rule="an operand is a Tensor, a Python or NumPy number, or a NumPy array",
        )
    return self._new(met[0])


def _operators(operation: Operation) -> tuple[Callable[[Tensor, Operand], Tensor], ...]:
    """The operator, its reflected and its in-place form."""

    def forward(self: Tensor, other: Operand) -> Tensor:
        return binary(self, other, operation)

    def reflected(self: Tensor, other: Operand) -> Tensor:
        return binary(self, other, operation, True)

    def in_place(self: Tensor, other: Operand) -> Tensor:
        result = binary(self, other, operation)
        return result if result is NotImplemented else self._update(result, operation.name)

    return forward, reflected, in_place


def _method(operation: Operation, doc: str, at: str, shown: str) -> Callable[..., Tensor]:
    def method(self: Tensor, x: Operand, reverse: bool = False) -> Tensor:
        result = binary(self, x, operation, reverse)
        return require_result(result, operation.name, x)

    name = operation.name.replace(" division", "_divide")
    method.__name__ = method.__qualname__ = name
    call = "Tensor({}).{}({}).tolist()".format(at.split("; ")[0], name, at.split("; ")[1])
    more = "\n\nShapes broadcast and dtypes are promoted."
    method.__doc__ = with_example(doc, call, shown, more)
    return method


plus, reflected_plus, in_place_plus = _operators(ADD)
minus, reflected_minus, in_place_minus = _operators(SUBTRACT)
times, reflected_times, in_place_times = _operators(MULTIPLY)
over, reflected_over, in_place_over = _operators(DIVIDE)
floor_over, reflected_floor_over, in_place_floor_over = _operators(FLOOR_DIVIDE)
modulo, reflected_modulo, in_place_modulo = _operators(MODULO)
and_, reflected_and, in_place_and = _operators(BIT_AND)
or_, reflected_or, in_place_or = _operators(BIT_OR)
xor, reflected_xor, in_place_xor = _operators(BIT_XOR)
shifted_left, reflected_shifted_left, in_place_shifted_left = _operators(SHIFT_LEFT)
shifted_right, reflected_shifted_right, in_place_shifted_right = _operators(SHIFT_RIGHT)
less = _operators(LESS)[0]
greater = _operators(GREATER)[0]
less_equal = _operators(LESS_EQUAL)[0]
greater_equal = _operators(GREATER_EQUAL)[0]
equals = _operators(EQUAL)[0]
differs = _operators(UNEQUAL)[0]


def add(self: Tensor, x: Operand, reverse: bool = False, alpha: Any = 1) -> Tensor:
    """Add elementwise: `self + alpha * x`, broadcast and promoted. PyTorch and NumPy: add.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 2]).add(3).tolist(), Tensor([1, 2]).add(Tensor([10]), alpha=2).tolist()
    ([4, 5], [21, 22])
    """
    return require_result(binary(self, _scaled(x, alpha), ADD, reverse), "add", x)


def sub(self: Tensor, x: Operand, reverse: bool = False, alpha: Any = 1) -> Tensor:
    """Subtract elementwise: `self - alpha * x`, or `x - self` in reverse. PyTorch: sub.

    The name in NumPy is subtract.

    >>> from weft.tensor import Tensor
    >>> Tensor([1, 2]).sub(3).tolist(), Tensor([1, 2]).sub(3, reverse=True).tolist()
    ([-2, -1], [2, 1])
    """
    return require_result(binary(self, _scaled(x, alpha), SUBTRACT, reverse), "sub", x)


def _scaled(x: Operand, alpha: Any) -> Operand:
    return x if alpha == 1 else x * alpha


mul = _method(
    MULTIPLY,
    "Multiply elementwise: `self * x`. PyTorch: mul; NumPy: multiply.",
    "[1, 2]; 10",
    "[10, 20]",
)
mod = _method(
    MODULO,
    "Return what floor division leaves, with the sign of the divisor."
    " PyTorch: remainder; NumPy: mod.",
    "[7, -7]; 3",
    "[1, 2]",
)
remainder = mod
floor_divide = _method(
    FLOOR_DIVIDE,
    "Divide and round down: `self // x`. PyTorch and NumPy: floor_divide.",
    "[7, -7]; 2",
    "[3, -4]",
)
fmod = _method(
    TRUNCATED_MODULO,
    "Return what division leaves, with the sign of the dividend. PyTorch and NumPy: fmod.",
    "[7, -7]; 3",
    "[1, -1]",
)
maximum = _method(
    MAXIMUM,
    "Return the greater of two values; NaN if either is NaN. PyTorch and NumPy: maximum.",
    "[1, 5]; 3",
    "[3, 5]",
)
minimum = _method(
    MINIMUM,
    "Return the lesser of two values; NaN if either is NaN. PyTorch and NumPy: minimum.",
    "[1, 5]; 3",
    "[1, 3]",
)
bitwise_and = _method(
    BIT_AND,
    "Return `self & x`, bit by bit. PyTorch and NumPy: bitwise_and.",
    "[6, 3]; 5",
    "[4, 1]",
)
bitwise_or = _method(
    BIT_OR,
    "Return `self | x`, bit by bit. PyTorch and NumPy: bitwise_or.",
    "[6, 3]; 5",
    "[7, 7]",
)
bitwise_xor = _method(
    BIT_XOR,
    "Return `self ^ x`, bit by bit. PyTorch and NumPy: bitwise_xor.",
    "[6, 3]; 5",
    "[3, 6]",
)
lshift = _method(
    SHIFT_LEFT,
    "Shift bits to the left: `self << x`. PyTorch: bitwise_left_shift; NumPy: left_shift.",
    "[1, 3]; 2",
    "[4, 12]",
)
rshift = _method(
    SHIFT_RIGHT,
    "Shift bits to the right; a signed value fills with its sign."
    " PyTorch: bitwise_right_shift; NumPy: right_shift.",
    "[4, -3]; 1",
    "[2, -2]",
)
eq = _method(
    EQUAL,
    "Compare elementwise: `self == x`. NaN equals nothing. PyTorch: eq; NumPy: equal.",
    "[1, 2]; 2",
    "[False, True]",
)
ne = _method(
    UNEQUAL,
    "Compare elementwise: `self != x`. PyTorch: ne; NumPy: not_equal.",
    "[1, 2]; 2",
    "[True, False]",
)
lt = _method(
    LESS,
    "Compare elementwise: `self < x`. PyTorch: lt; NumPy: less.",
    "[1, 2, 3]; 2",
    "[True, False, False]",
)
gt = _method(
    GREATER,
    "Compare elementwise: `self > x`. PyTorch: gt; NumPy: greater.",
    "[1, 2, 3]; 2",
    "[False, False, True]",
)
le = _method(
    LESS_EQUAL,
    "Compare elementwise: `self <= x`. PyTorch: le; NumPy: less_equal.",
    "[1, 2, 3]; 2",
    "[True, True, False]",
)
ge = _method(
    GREATER_EQUAL,
    "Compare elementwise: `self >= x`. PyTorch: ge; NumPy: greater_equal.",
    "[1, 2, 3]; 2",
    "[False, True, True]",
)


def div(
    self: Tensor, x: Operand, reverse: bool = False, rounding_mode: str | None = None
) -> Tensor:
    """Divide elementwise; integers give floats unless `rounding_mode` is "floor" or "trunc".

    >>> from weft.tensor import Tensor
    >>> Tensor([7, -7]).div(2).tolist()
    [3.5, -3.5]
    >>> Tensor([7, -7]).div(2, rounding_mode="trunc").tolist()
    [3, -3]
    """
    if rounding_mode is None:
        return require_result(binary(self, x, DIVIDE, reverse), "div", x)
    if rounding_mode == "floor":
        return require_result(binary(self, x, FLOOR_DIVIDE, reverse), "div", x)
    if rounding_mode != "trunc":
        raise ArgumentError(
            f"div: unknown rounding_mode {rounding_mode!r}",
            rule='rounding_mode is None, "floor" or "trunc"',
        )
    return require_result(binary(self, x, _TRUNCATED_DIVIDE, reverse), "div", x)


def _truncated_quotient(a: UOp, b: UOp) -> UOp:
    if a.dtype.kind == FLOAT:
        return make(Op.TRUNC, a.dtype, (make(Op.DIV, a.dtype, (a, b)),))
    return make(Op.TRUNCDIV, a.dtype, (a, b))


_TRUNCATED_DIVIDE: Final = Operation("div", KINDS[Op.TRUNCDIV] | FLOAT, _truncated_quotient)


def pow_(self: Tensor, x: Operand, reverse: bool = False) -> Tensor:
    """Raise to a power elementwise.

    >>> from weft.tensor import Tensor
    >>> (Tensor([1, 2, 3]) ** 2).tolist()
    [1, 4, 9]
    """
    return require_result(raised(self, x, reverse), "pow", x)


def raised(self: Tensor, other: Operand, reverse: bool = False) -> Tensor:
    if is_of_complex(self, other):
        return complex_power(self, other, reverse)
    is_negative = other.__class__ is int and other < 0
    if is_negative and not reverse and not self.dtype.is_inexact:
        raise ArgumentError(
            "pow: an integer to a negative power is not an integer",
            facts=[("base", self.dtype.name), ("exponent", other)],
            rule="an integer to the power of an int needs an exponent from 0 on",
            fix=f"use floats: x.float() ** {other}",
        )
    return binary(self, other, POWER, reverse)


def reflected_raised(self: Tensor, other: Operand) -> Tensor:
    return raised(self, other, True)


def in_place_raised(self: Tensor, other: Operand) -> Tensor:
    result = raised(self, other)
    return result if result is NotImplemented else self._update(result, "pow")


def where(self: Tensor, x: Operand, y: Operand) -> Tensor:
    """Choose `x` where this condition holds, else `y`.

    >>> from weft.tensor import Tensor
    >>> Tensor([True, False]).where(Tensor([1, 2]), 0).tolist()
    [1, 0]
    """
    if self.dtype.kind != BOOL and isinstance(x, self.__class__) and x.dtype is dtypes.bool:
        return x.where(self, y)  # PyTorch's method: x.where(condition, other)
    if self.dtype.kind != BOOL:
        raise DTypeError(
            f"where: the condition is {self.dtype.name}",
            rule="a condition is bool",
            fix="compare it: (condition != 0).where(x, y)",
        )
    left, right, dtype = _alternatives(self, x, y)
    condition = self.uop
    shapes = [shape_of(node) for node in (condition, left, right)]
    shape = broadcast_shape("where", *shapes)
    sources = tuple(
        node if not own else broadcast(node, shape)
        for node, own in zip((condition, left, right), shapes, strict=True)
    )
    return self._new(make(Op.WHERE, dtype, sources))


def _alternatives(self: Tensor, x: Operand, y: Operand) -> tuple[UOp, UOp, DType]:
    """Both values of `where` as nodes of one dtype. A scalar is weak unless both are scalars."""
    kind = self.__class__
    tensors = [each for each in (x, y) if isinstance(each, kind)]
    require_one_device("where", self, *tensors)
    if not tensors:
        x = kind(x, device=self.device)
        y = kind(y, device=self.device)
    first: Tensor = tensors[0] if tensors else x
    a, b = lift(first, x, "where"), lift(first, y, "where")
    dtype = promote(a.dtype, b.dtype)
    return _as_dtype(a.uop, dtype), _as_dtype(b.uop, dtype), dtype
