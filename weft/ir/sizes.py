"""Arithmetic on sizes: ints, and index nodes in one normal form.

A symbolic size is a polynomial of variables, bound or not. `plus`, `minus`, `times` and
`normal_size` give polynomials in normal form, so sizes that are equal for every value of their
variables are the same node, and `is` compares them. The tensor layer, the shapes of nodes and the
gradient rules compute sizes here and nowhere else.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from weft.ir.bounds import bounds
from weft.ir.build import Size, index
from weft.ir.dtypes import dtypes
from weft.ir.extremes import (
    Polynomial,
    Product,
    greatest,
    product_polynomial,
    sum_polynomial,
    without_factors,
)
from weft.ir.linear import from_linear, in_order, order
from weft.ir.ops import Op
from weft.ir.scalar import evaluate
from weft.ir.uop import UOp, make
from weft.ir.walk import rebuild, topological
from weft.support.errors import ArgumentError

# Sizes of more terms are not divided by each other.
_MOST_TERMS: Final = 32


def normal_size(size: Size) -> Size:
    """The size in normal form; an int where it is the same for all values.

    >>> from weft.ir.build import variable
    >>> n = variable("n", 1, 8)
    >>> normal_size(1 + n) is normal_size(n + 1), normal_size((n + 3) * 2 - n * 2)
    (True, 6)
    """
    return size if isinstance(size, int) else _size(_polynomial(size))


def plus(a: Size, b: Size) -> Size:
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    total = dict(_polynomial(a))
    for product, factor in _polynomial(b).items():
        total[product] = total.get(product, 0) + factor
    return _size(total)


def minus(a: Size, b: Size) -> Size:
    if isinstance(a, int) and isinstance(b, int):
        return a - b
    return plus(a, times(b, -1))


def times(*sizes: Size) -> Size:
    """The product; 1 for none."""
    if all(isinstance(size, int) for size in sizes):
        return math.prod(sizes)
    total: Polynomial = {(): 1}
    for size in sizes:
        total = _multiplied(total, _polynomial(size))
    return _size(total)


def try_quotient(a: Size, b: Size) -> Size | None:
    """`a / b` where that is a size for all values; None where it is not, or not known to be."""
    dividend, divisor = (sum_polynomial(_polynomial(each), {}) for each in (a, b))
    if dividend == divisor:
        return 1
    if not divisor:
        return None
    result: Polynomial = {}
    first = max(divisor, key=_degree)
    for _ in range(_MOST_TERMS):
        if not dividend:
            return _size(result)
        each = max(dividend, key=_degree)
        rest = without_factors(each, first)
        if rest is None or dividend[each] % divisor[first]:
            return None
        result[rest] = dividend[each] // divisor[first]
        part = product_polynomial({rest: -result[rest]}, divisor)
        dividend = sum_polynomial(dividend, part)
    return None


def _degree(product: Product) -> tuple[object, ...]:
    """The order of terms in which a sum is divided by another."""
    return len(product), *map(order, product)


def floor_quotient(size: Size, divisor: int) -> Size:
    """How many times a divisor above 0 fits into a size.

    >>> from weft.ir.build import variable
    >>> n = variable("n", 1, 8)
    >>> floor_quotient(plus(n, -2), 2) is minus(floor_quotient(n, 2), 1)
    True
    """
    return size // divisor if isinstance(size, int) else _size(_quotient(size, divisor))


def ceil_quotient(size: Size, divisor: int) -> Size:
    """How many parts of at most `divisor` a size has."""
    return floor_quotient(plus(size, divisor - 1), divisor)


def least(size: Size) -> int:
    """The least value that a size can have."""
    if isinstance(size, int):
        return size
    low = bounds(size)[0]
    if size.op in (Op.VARIABLE, Op.BIND):
        return low
    limit = greatest({product: -factor for product, factor in _polynomial(size).items()})
    return low if limit is None else max(low, -limit)


def most(size: Size) -> int:
    """The greatest value that a size can have."""
    if isinstance(size, int):
        return size
    high = bounds(size)[1]
    limit = None if size.op in (Op.VARIABLE, Op.BIND) else greatest(_polynomial(size))
    return high if limit is None else min(high, limit)


def at_least(size: Size, low: int) -> Size:
    """The greater of a size and a number."""
    if isinstance(size, int):
        return max(size, low)
    return size if least(size) >= low else make(Op.MAX, dtypes.index, (size, index(low)))


def at_most(size: Size, high: int) -> Size:
    """The lesser of a size and a number."""
    if isinstance(size, int):
        return min(size, high)
    if most(size) <= high:
        return size
    return high if least(size) >= high else make(Op.MIN, dtypes.index, (size, index(high)))


def size_value(size: Size, variables: Mapping[str, int] | None = None) -> int:
    """A size with the values that its variables are bound to, or have in the mapping.

    >>> from weft.ir.build import bind, variable
    >>> n = variable("n", 1, 8)
    >>> size_value(bind(n, 3) * 2 + 1), size_value(n * 2, {"n": 4})
    (7, 8)
    """
    if isinstance(size, int):
        return size
    values: dict[UOp, int] = {}
    for node in topological(size, enter=lambda node: node.op != Op.BIND):
        if node.op == Op.CONST:
            values[node] = int(node.arg)
        elif node.op == Op.BIND:
            values[node] = int(node.src[1].arg)
        elif node.op == Op.VARIABLE:
            values[node] = _given(node, variables or {})
        else:
            sources = tuple(values[source] for source in node.src)
            values[node] = int(evaluate(node.op, node.dtype, sources, node.src[-1].dtype))
    return values[size]


def shape_value(
    shape: Sequence[Size], variables: Mapping[str, int] | None = None
) -> tuple[int, ...]:
    """A shape with the values of its variables."""
    for size in shape:
        if not isinstance(size, int):
            return tuple(size_value(each, variables) for each in shape)
    return tuple(shape)  # type: ignore[arg-type]  # ints, as has been seen


def _given(variable: UOp, variables: Mapping[str, int]) -> int:
    name = variable.arg[0]
    if name not in variables:
        raise ArgumentError(
            f"Variable {name!r} has no value",
            rule="a size is computed when every variable in it is bound",
            fix=f"bind it: {name}.bind({variable.arg[1]})",
        )
    return variables[name]


def _polynomial(size: Size) -> Polynomial:
    if isinstance(size, int):
        return {(): size} if size else {}
    if size.op == Op.CONST:
        return _polynomial(int(size.arg))
    if size.op == Op.ADD:
        total = dict(_polynomial(size.src[0]))
        for product, factor in _polynomial(size.src[1]).items():
            total[product] = total.get(product, 0) + factor
        return total
    if size.op == Op.MUL:
        return _multiplied(_polynomial(size.src[0]), _polynomial(size.src[1]))
    if size.op == Op.NEG:
        return {product: -factor for product, factor in _polynomial(size.src[0]).items()}
    if size.op in (Op.VARIABLE, Op.BIND):
        return {(size,): 1}
    parts = tuple(index(normal_size(source)) for source in size.src)
    if size.op == Op.FLOORDIV:
        if (exact := try_quotient(*parts)) is not None:
            return _polynomial(exact)
        if parts[1].op == Op.CONST and parts[1].arg > 0:
            return _quotient(parts[0], int(parts[1].arg))
    return {(rebuild(size, parts),): 1}


def _quotient(size: UOp, divisor: int) -> Polynomial:
    """A quotient with the multiples of its divisor taken out: (n*2 + 3)//2 is n + 1.

    What is left has one form, in which sizes that were computed in different ways meet.
    """
    total = _polynomial(size)
    whole: Polynomial = {}
    rest: Polynomial = {}
    for product, factor in total.items():
        residue = factor % divisor if factor > 0 or not product else -(-factor % divisor)
        if factor != residue:
            whole[product] = (factor - residue) // divisor
        if residue:
            rest[product] = residue
    for product, factor in _proper_quotient(rest, divisor).items():
        whole[product] = whole.get(product, 0) + factor
    return whole


def _proper_quotient(total: Polynomial, divisor: int) -> Polynomial:
    """A quotient of a sum whose factors are all smaller than the divisor."""
    constant = total.get((), 0)
    factors = [factor for product, factor in total.items() if product]
    low, high = bounds(index(_size(total)))
    if not factors or low // divisor == high // divisor:
        return {(): low // divisor} if low // divisor else {}
    common = math.gcd(divisor, *factors)
    if common > 1:
        less = {product: factor // common for product, factor in total.items() if product}
        return _quotient(index(_size({**less, (): constant // common})), divisor // common)
    (product, factor), *others = [pair for pair in total.items() if pair[0]]
    inner = product[0]
    is_one = not others and factor == len(product) == 1
    if is_one and inner.op == Op.FLOORDIV and inner.src[1].op == Op.CONST:
        by = int(inner.src[1].arg)  # (a//c + b)//d is (a + b*c)//(c*d)
        return _quotient(index(plus(inner.src[0], constant * by)), by * divisor)
    return {(index(_size(total)) // divisor,): 1}


def _multiplied(a: Polynomial, b: Polynomial) -> Polynomial:
    total: Polynomial = {}
    for x, c in a.items():
        for y, d in b.items():
            product = tuple(sorted(x + y, key=order))
            total[product] = total.get(product, 0) + c * d
    return total


def _size(polynomial: Polynomial) -> Size:
    """The size that a polynomial stands for, in the normal form of index arithmetic."""
    factors = {_product(product): factor for product, factor in polynomial.items() if product}
    terms = in_order(dtypes.index, factors)
    constant = polynomial.get((), 0)
    return from_linear(dtypes.index, constant, terms) if terms else constant


def _product(factors: Product) -> UOp:
    made = factors[0]
    for factor in factors[1:]:
        made = make(Op.MUL, dtypes.index, tuple(sorted((made, factor), key=order)))
    return made
