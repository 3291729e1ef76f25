"""Two products with a softmax between them, which become one kernel or three, never two.

    s = any function of q @ k            (queries, keys)
    m = max of s along the keys          a row
    e = exp(s - m)
    l = sum of e along the keys          a row
    o = sum over the keys of e / l * v   (queries, columns)

In one kernel, blocks of scores stay near the core, and memory never holds a value for each query
and key. That needs the whole chain: what is between the products has no other reader, its
reductions run along the range that the second product sums over, and its body has the form of
which blocks are joined (`rules/joins`, the exponential). All of that is checked here, on the
tensor graph, before the walk; the walk then computes the nodes of a chain where they are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from weft.ir.build import range_
from weft.ir.dtypes import dtypes
from weft.ir.ops import ELEMENTWISE, MOVEMENT, Op
from weft.ir.reduction.contraction import factors_of
from weft.ir.shapes import largest_size, shape_of
from weft.ir.uop import UOp
from weft.ir.walk import topological, users
from weft.schedule.fuse.cost import size_of, sums_reused_products
from weft.schedule.indexing import Address, everywhere, through
from weft.support.settings import settings
from weft.target.compute import Simd
from weft.target.target import Target

ALWAYS: Final = "always"
NEVER: Final = "never"
# Keys from which on a row of scores is worth blocks: shorter ones stay near in memory too.
LEAST_KEYS: Final = 256
# What values pass on their way from the first product to the second.
_THROUGH: Final = ELEMENTWISE | MOVEMENT | {Op.DETACH}
_REDUCE: Final = frozenset((Op.REDUCE,))


class Chain(NamedTuple):
    """What becomes one kernel: the second product, and all between it and the first."""

    result: UOp
    scores: UOp
    values: frozenset[UOp]  # one for each query and key
    rows: frozenset[UOp]  # one for each query, the reductions among them


class Chains:
    """The chains of a graph, by their nodes."""

    def __init__(self, found: Iterable[Chain] = ()) -> None:
        self.results: dict[UOp, Chain] = {}
        self.values: set[UOp] = set()
        self.of: dict[UOp, Chain] = {}
        for chain in found:
            self.results[chain.result] = chain
            self.values |= chain.values
            self.of.update(dict.fromkeys(chain.values | chain.rows, chain))


def find_chains(sink: UOp, order: Sequence[UOp], target: Target) -> Chains:
    """The chains of a graph that are cheaper as one kernel."""
    if settings.FUSE_PRODUCTS == NEVER or not isinstance(target.compute, Simd):
        return Chains()
    products = [node for node in order if node.op == Op.REDUCE and sums_reused_products(node)]
    if len(products) < 2 or not target.access_bits:
        return Chains()
    readers = users(sink)
    found: list[Chain] = []
    taken: set[UOp] = set()
    for result in products:
        chain = _chain(result, readers)
        if chain is not None and not taken & {chain.result, chain.scores} and _wins(chain, target):
            found.append(chain)
            taken |= {chain.result, chain.scores}
    return Chains(found)


def _wins(chain: Chain, target: Target) -> bool:
    """Whether blocks near the core cost less than scores in memory."""
    if settings.FUSE_PRODUCTS == ALWAYS:
        return True
    lanes = target.access_bits // 32
    queries = size_of(chain.scores) // _keys(chain)
    return _keys(chain) >= LEAST_KEYS and queries >= 2 * lanes


def _keys(chain: Chain) -> int:
    return largest_size(shape_of(chain.result.src[0])) // size_of(chain.result)


def _chain(result: UOp, readers: Mapping[UOp, list[UOp]]) -> Chain | None:
    """The chain that ends in a product; None if there is none."""
    factors = factors_of(result)
    if factors is None or len(result.arg[1]) != 1 or result.dtype is not dtypes.float32:
        return None
    for factor in factors:
        chain = _between(result, factor)
        if chain is None:
            continue
        inside = chain.values | chain.rows
        if any(each not in inside and each is not result for n in inside for each in readers[n]):
            continue
        if _has_one_range(chain) and _is_joinable(chain, factor):
            return chain
    return None


def _between(result: UOp, factor: UOp) -> Chain | None:
    """What is between two products, if there is one below a factor."""

    def is_passed(node: UOp) -> bool:
        return node.op in _THROUGH or (node.op == Op.REDUCE and not sums_reused_products(node))

    below = topological(factor, enter=is_passed)
    products = [node for node in below if node.op == Op.REDUCE and not is_passed(node)]
    if len(products) != 1:
        return None
    values, rows = {products[0]}, set[UOp]()
    for node in below:
        if node in values or not is_passed(node):
            continue
        if node.op != Op.REDUCE and not values.isdisjoint(node.src):
            values.add(node)
        elif not (values | rows).isdisjoint(node.src):
            rows.add(node)
    product = topological(result.src[0], enter=lambda each: each is not factor, stop=_REDUCE)
    for node in product:
        if factor in node.src or (node.op != Op.REDUCE and not values.isdisjoint(node.src)):
            values.add(node)  # the product itself, and casts of it
    return Chain(result, products[0], frozenset(values), frozenset(rows))


# ---- one range


def _has_one_range(chain: Chain) -> bool:
    """Whether all reductions of a chain can run along the range of the second product.

    Each value is looked at in one place then, and is computed once.
    """
    body = chain.result.src[0]
    loops = [range_(axis, size) for axis, size in enumerate(shape_of(body))]
    keys = loops[chain.result.arg[1][0]]
    seen: dict[UOp, Address] = {body: everywhere(tuple(loops))}
    inside = (chain.values | chain.rows | {body}) - {chain.scores}
    for node in reversed(topological(body, enter=inside.__contains__)):
        if node not in seen or node is chain.scores:
            continue
        address = _address_below(node, seen[node], keys)
        for source in node.src:
            if address is None:
                return False
            is_inside = source in inside or source is chain.scores
            if is_inside and seen.setdefault(source, address) != address:
                return False
    last = seen[chain.scores].indices
    along = [i for i in last if i.ranges >> keys.arg & 1]
    return along == [keys]


def _address_below(node: UOp, address: Address, keys: UOp) -> Address | None:
    """Where the sources of a value are looked at."""
    if node.op in MOVEMENT:
        return through(node, address) if node.op != Op.PAD else None
    if node.op != Op.REDUCE:
        return address
    axes = node.arg[1]
    if len(axes) != 1 or range_(keys.arg, shape_of(node.src[0])[axes[0]]) is not keys:
        return None
    indices = [keys if axis == axes[0] else i for axis, i in enumerate(address.indices)]
    return Address(tuple(indices), address.mask)


# ---- the form of which blocks are joined


def _is_joinable(chain: Chain, factor: UOp) -> bool:
    """Whether all sums of a chain are linear in one exponential of scores less their maximum."""
    power = _power(chain, factor)
    if power is None:
        return False
    found = _exponent(chain, power.src[0])
    if found is None:
        return False
    score, top = found
    for node in chain.rows:
        if node.op != Op.REDUCE or node is top:
            continue
        is_sum = node.arg[0] == Op.ADD and node.src[0] in chain.values
        if not is_sum or _power(chain, node.src[0]) is not power:
            return False
    return not any(
        node in chain.rows
        for node in topological(score, enter=lambda each: each is not chain.scores)
    )


def _power(chain: Chain, node: UOp) -> UOp | None:
    """The exponential that a value is linear in."""
    while node.op not in (Op.EXP, Op.EXP2):
        at = 0
        if node.op == Op.MUL:
            at = 0 if node.src[0] in chain.values else 1
        elif node.op == Op.WHERE:
            at = 1
            if not _is_zero(node.src[2]):
                return None
        elif node.op not in (*MOVEMENT, Op.CAST, Op.DETACH, Op.NEG, Op.DIV) or node.op == Op.PAD:
            return None
        others = [source for i, source in enumerate(node.src) if i != at]
        if node.src[at] not in chain.values or any(each in chain.values for each in others):
            return None
        node = node.src[at]
    return node if node in chain.values else None


def _exponent(chain: Chain, node: UOp) -> tuple[UOp, UOp] | None:
    """An exponent as scores less the maximum of them: both, or None."""
    if node.op != Op.ADD:
        return None
    for score, other in (node.src, node.src[::-1]):
        if score not in chain.values or other not in chain.rows:
            continue
        top, is_negated = other, False
        while top.op in MOVEMENT or top.op in (Op.DETACH, Op.NEG):
            is_negated ^= top.op == Op.NEG
            top = top.src[0]
        if top.op == Op.WHERE and _is_zero(top.src[1]):
            top = _behind(top.src[2])  # 0 where it is infinite
        is_top = top.op == Op.REDUCE and top.arg[0] == Op.MAX and top.src[0] is score
        if is_negated and is_top:
            return score, top
    return None


def _behind(node: UOp) -> UOp:
    while node.op in MOVEMENT or node.op == Op.DETACH:
        node = node.src[0]
    return node


def _is_zero(node: UOp) -> bool:
    node = _behind(node)
    return node.op == Op.CONST and node.arg == 0
