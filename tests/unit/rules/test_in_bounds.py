"""Proofs of bounds that need more than intervals."""

from weft.ir.build import range_
from weft.rules.in_bounds import is_in_bounds
from weft.rules.simplify import simplify


def test_every_quotient_of_a_sum_is_tried():
    """Tiles of 11 rows over an axis of 3 x 7: the first quotient is that of the tile."""
    i, k = range_(0, 11), range_(1, 2)
    row = i * 2 + k
    tile, rest = row // 11, row % 11
    index = simplify(tile + (tile * 4 + rest) // 7)
    assert is_in_bounds(index, 3, simplify(row < 21))
    assert not is_in_bounds(index, 3, None)
    assert not is_in_bounds(index, 3, simplify(row < 22))
