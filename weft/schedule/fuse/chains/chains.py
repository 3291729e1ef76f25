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
from weft.ir.dtypes import FLOAT, dtypes
from weft.ir.ops import ELEMENTWISE, MOVEMENT, Op
from weft.ir.reduction.contraction import expansion_of, factors_of
from weft.ir.shapes import largest_size, shape_of
from weft.ir.uop import UOp
from weft.ir.views import unmoved
from weft.ir.walk import topological, users
from weft.schedule.fuse.chains.chain import Chain
from weft.schedule.fuse.chains.tensor_chains import (
    factors_on_units,
    fits_units,
    has_tile_units,
    wins_on_units,
)
from weft.schedule.fuse.cost import size_of, sums_reused_products
from weft.schedule.indexing import Address, everywhere, through
from weft.support.settings import settings
from weft.target.compute import Simd
from weft.target.target import Target

ALWAYS: Final = "always"
NEVER: Final = "never"
# Keys from which on a row of scores is worth blocks: fewer are too few to share a join.
LEAST_KEYS: Final = 256
# Keys below which scores in memory are as fast, if all of them take this share of the last cache.
# Measured: 4 to 19 % faster for 257 to 384 keys and queries, and 5 % slower from 512 on.
LONG_ROW: Final = 512
NEAR_SHARE: Final = 0.25
# Keys from which on a gradient computes full rows of scores anew: memory is linear in them.
LINEAR_ROW: Final = 1024
# Products of which weights are computed without a softmax, and columns of these: more would not
# leave room near the core for a block.
MOST_PRODUCTS: Final = 2
MOST_COLUMNS: Final = 128
# What values pass on their way from the first product to the second.
_THROUGH: Final = ELEMENTWISE | MOVEMENT | {Op.DETACH}
_REDUCE: Final = frozenset((Op.REDUCE,))


class Chains:
    """The chains of a graph, by their nodes, and how many have those of a gradient with them."""

    def __init__(self, found: Iterable[Chain] = (), gradients: int = 0) -> None:
        self.gradients = gradients
        self.is_on_units = False
        self.factors: set[UOp] = set()  # that copies bring to matrix units from memory
        self.results: dict[UOp, Chain] = {}
        self.beside: set[UOp] = set()  # results in the kernel of another one
        self.values: set[UOp] = set()
        self.of: dict[UOp, Chain] = {}
        self.long: list[Chain] = []  # whose memory is to be linear in the keys
        for chain in found:
            self.results[chain.result] = chain
            self.values |= chain.values
            self.long += [chain] if _keys(chain) >= LINEAR_ROW else []
            self.of.update(dict.fromkeys(chain.values | chain.rows, chain))

    def result_of(self, node: UOp) -> UOp | None:
        """The second product that a value is, as it is or rounded; None for other values."""
        if node.op == Op.CAST and node.dtype.bits < node.src[0].dtype.bits:
            node = unmoved(node.src[0])
        return node if node in self.results else None


def find_chains(sink: UOp, order: Sequence[UOp], target: Target) -> Chains:
    """The chains of a graph that are cheaper as one kernel."""
    if settings.FUSE_PRODUCTS == NEVER:
        return Chains()
    if not can_chain(target):
        return Chains()
    products = [node for node in order if node.op == Op.REDUCE and sums_reused_products(node)]
    if len(products) < 2:
        return Chains()
    readers = users(sink)
    found: list[Chain] = []
    taken: set[UOp] = set()
    gradients = 0
    for product in products:
        chains = _chains(product, readers, target)
        nodes = {node for chain in chains for node in (chain.result, *chain.products)}
        if taken.isdisjoint(nodes):
            found += chains
            taken |= nodes
            gradients += len(chains) > 1
    every = Chains(found, gradients)
    if not _is_on_cores(target):
        every.is_on_units = True
        every.factors = {factor for chain in found for factor in factors_on_units(chain)}
    return every


def can_chain(target: Target) -> bool:
    """Whether a target has kernels that are chains."""
    return _is_on_cores(target) or has_tile_units(target)


def _is_on_cores(target: Target) -> bool:
    return isinstance(target.compute, Simd) and bool(target.access_bits)


def _chains(result: UOp, readers: Mapping[UOp, list[UOp]], target: Target) -> list[Chain]:
    """The chain that ends in a product, and those of its gradient; none if memory costs less."""
    chain = _chain(result)
    if chain is None:
        return []
    if not isinstance(target.compute, Simd):
        return _chains_on_units(chain, readers, target)
    if not _wins(chain, target):
        return []
    if not _is_read_elsewhere(chain, readers):
        return [chain]
    if not chain.rows or not _gradient_wins(chain):
        return []
    others = _gradient_chains(chain, readers)
    return [] if others is None else [*others, chain]


def _chains_on_units(
    chain: Chain, readers: Mapping[UOp, list[UOp]], target: Target
) -> list[Chain]:
    """A chain and those of its gradient if matrix units multiply the tiles of all; else none."""
    if not fits_units(chain) or not _wins(chain, target):
        return []
    others: list[Chain] | None = []
    if _is_read_elsewhere(chain, readers):
        others = _gradient_chains(chain, readers) if chain.rows else None
    return [*others, chain] if others is not None and all(map(fits_units, others)) else []


def _is_read_elsewhere(chain: Chain, readers: Mapping[UOp, list[UOp]]) -> bool:
    inside = chain.values | chain.rows | {chain.result}
    return any(each not in inside for n in chain.values | chain.rows for each in readers[n])


def _gradient_wins(chain: Chain) -> bool:
    """Whether scores that are computed three times more are worth the memory for each of them.

    Measured: where a mask leaves half of them out it is 1.2 times faster at 512 queries and keys,
    and 1.8 times at 2,048. Full rows are 1.2 times slower, and 1.6 times as fast as those of other
    libraries; from some length on it is the memory that ends a program.
    """
    if settings.FUSE_PRODUCTS == ALWAYS:
        return True
    keys = _keys(chain)
    return keys >= LINEAR_ROW or (_ends_early(chain) and keys >= LONG_ROW)


def _wins(chain: Chain, target: Target) -> bool:
    """Whether blocks near the core cost less than scores in memory."""
    if not size_of(chain.scores) or not size_of(chain.result):
        return False
    if settings.FUSE_PRODUCTS == ALWAYS:
        return True
    if not isinstance(target.compute, Simd):
        return wins_on_units(chain, target)
    lanes = target.access_bits // 32  # of which each has a query
    queries = size_of(chain.scores) // _keys(chain)
    of_head = max(map(expansion_of, _others(chain)))
    if _keys(chain) < LEAST_KEYS or queries < 2 * lanes or of_head < lanes:
        return False
    if not chain.rows:  # blocks save the way to memory alone, and one pass over it
        is_long = _keys(chain) >= LONG_ROW or _ends_early(chain)
        return is_long and _is_narrow(chain)
    size = size_of(chain.scores) * chain.scores.dtype.itemsize
    is_near = _keys(chain) < LONG_ROW and size <= NEAR_SHARE * target.caches[-1].size
    return not is_near or _ends_early(chain) or _is_converted(chain)


def _is_narrow(chain: Chain) -> bool:
    """Whether all products are short enough to be near with a block, as heads of attention are."""
    columns = max(map(expansion_of, _weights(chain)))
    depths = [size_of(node.src[0]) // size_of(node) for node in chain.products]
    return max(columns, *depths) <= MOST_COLUMNS


def _weights(chain: Chain) -> list[UOp]:
    return [each for each in factors_of(chain.result) or () if each in chain.values]


def _others(chain: Chain) -> list[UOp]:
    """What the weights are multiplied by: values, expanded over the queries of a head."""
    return [each for each in factors_of(chain.result) or () if each not in chain.values]


def _ends_early(chain: Chain) -> bool:
    """Whether a mask by position leaves scores out: blocks of these are not computed."""
    for node in chain.values:
        if node.op == Op.WHERE and node.src[0] not in chain.values:
            below = topological(node.src[0])
            leaves = {each.op for each in below if not each.src}
            if Op.IOTA in leaves and leaves <= {Op.IOTA, Op.CONST}:
                return True
    return False


def _is_converted(chain: Chain) -> bool:
    """Whether products are of small floats: each kernel converts them, and weights once more."""
    body = topological(chain.result.src[0], enter=lambda each: each not in chain.products)
    casts = [node for node in body if node.op == Op.CAST]
    return any(node.src[0].dtype.kind == FLOAT and node.src[0].dtype.bits < 32 for node in casts)


def _keys(chain: Chain) -> int:
    return largest_size(shape_of(chain.result.src[0])) // size_of(chain.result)


def _chain(result: UOp) -> Chain | None:
    """The chain that ends in a product; None if there is none."""
    factors = factors_of(result)
    if factors is None or len(result.arg[1]) != 1 or result.dtype is not dtypes.float32:
        return None
    for factor in factors:
        chain = _between(result, factor)
        if chain is None:
            continue
        is_plain = not chain.rows and len(chain.products) <= MOST_PRODUCTS
        is_joined = len(chain.products) == 1 and _is_joinable(chain, factor)
        if (is_plain or is_joined) and _has_one_range(chain):
            return chain
    return None


def _between(result: UOp, factor: UOp) -> Chain | None:
    """What is between two products, if there is one below a factor."""

    def is_passed(node: UOp) -> bool:
        return node.op in _THROUGH or (node.op == Op.REDUCE and not sums_reused_products(node))

    below = topological(factor, enter=is_passed)
    products = [node for node in below if node.op == Op.REDUCE and not is_passed(node)]
    if not products or any(len(node.arg[1]) != 1 for node in products):
        return None
    values, rows = set(products), set[UOp]()
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
    return Chain(result, tuple(products), frozenset(values), frozenset(rows))


# ---- the gradient


def _gradient_chains(chain: Chain, readers: Mapping[UOp, list[UOp]]) -> list[Chain] | None:
    """The products that read what is between those of a chain, each a chain of its own.

    They compute it anew, from the sums of rows, which the kernel of the chain stores. None where
    something else reads it: then it has memory, and whoever reads it reads that.
    """
    elsewhere = _read_elsewhere(chain, readers)
    if elsewhere is None:
        return None
    found = [_gradient_chain(result, elsewhere.values) for result in elsewhere.results]
    made = [each for each in found if each is not None]
    return made if len(made) == len(found) else None


def _gradient_chain(result: UOp, values: set[UOp]) -> Chain | None:
    inside = [factor for factor in factors_of(result) or () if factor in values]
    if len(inside) != 1 or len(result.arg[1]) != 1 or result.dtype is not dtypes.float32:
        return None
    below = topological(result.src[0], enter=lambda each: each in values and each.op != Op.REDUCE)
    own = [each for each in below if each in values]
    products = tuple([each for each in own if each.op == Op.REDUCE])
    chain = Chain(result, products, frozenset(own), frozenset())
    is_known = 0 < len(products) <= MOST_PRODUCTS
    return chain if is_known and _has_one_range(chain) else None


class _Elsewhere(NamedTuple):
    """Values for each query and key that are made of those of a chain, and products of them."""

    values: set[UOp]
    results: list[UOp]


def _read_elsewhere(chain: Chain, readers: Mapping[UOp, list[UOp]]) -> _Elsewhere | None:
    """What reads values of a chain; None if it is something else than further products."""
    found = _Elsewhere(set(chain.values), [])
    seen = {*chain.values, *chain.rows, chain.result}
    stack = [each for node in chain.values for each in readers[node]]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if node.op == Op.REDUCE and sums_reused_products(node):
            found.results.append(node)
        elif node.op in _THROUGH:
            beside = _beside(node, chain, found.values)
            found.values.update(beside, [node])
            seen |= beside
            stack += [each for value in (node, *beside) for each in readers[value]]
        else:
            return None
    return found


def _beside(node: UOp, chain: Chain, values: set[UOp]) -> set[UOp]:
    """Other products for each query and key that a value is made of, and what is made of them."""

    def is_passed(each: UOp) -> bool:
        return each.op in _THROUGH and each not in values and each not in chain.rows

    held: set[UOp] = set()
    for each in topological(*node.src, enter=is_passed):
        is_product = each.op == Op.REDUCE and sums_reused_products(each)
        is_slope = is_product and size_of(each) == size_of(chain.scores) and each not in values
        if is_slope or (is_passed(each) and not held.isdisjoint(each.src)):
            held.add(each)
    return held


# ---- one range


def _has_one_range(chain: Chain) -> bool:
    """Whether all reductions of a chain can run along the range of the second product.

    Each value is read at one index then, and is computed once.
    """
    found = product_addresses(chain)
    keys = chain.result.arg[1][0]
    return found is not None and all(
        [i.arg for i in at.indices if i.ranges >> keys & 1 and i.op == Op.RANGE] == [keys]
        and sum(i.ranges >> keys & 1 for i in at.indices) == 1
        for at in found.values()
    )


def product_addresses(chain: Chain) -> dict[UOp, Address] | None:
    """Where the products of a chain are looked at, for ranges along the axes of its last one.

    None where a value is read at several indices.
    """
    body = chain.result.src[0]
    loops = [range_(axis, size) for axis, size in enumerate(shape_of(body))]
    keys = loops[chain.result.arg[1][0]]
    seen: dict[UOp, Address] = {body: everywhere(tuple(loops))}
    inside = (chain.values | chain.rows | {body}) - set(chain.products)
    for node in reversed(topological(body, enter=inside.__contains__)):
        if node not in seen or node in chain.products:
            continue
        address = _address_below(node, seen[node], keys)
        for source in node.src:
            if address is None:
                return None
            is_inside = source in inside or source in chain.products
            if is_inside and seen.setdefault(source, address) != address:
                return None
    return {product: seen[product] for product in chain.products}


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
