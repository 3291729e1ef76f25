"""How often an element is computed that a loop only sees by quotients."""

from weft.ir.build import range_
from weft.schedule.fuse.cost import iterations_per_element


def test_iterations_per_element():
    r, s = range_(0, 576), range_(1, 4)
    assert iterations_per_element((r // 32,)) == 32
    assert iterations_per_element((s * 18 + r // 32,)) == 32
    assert iterations_per_element((r // 32, r // 16 % 2)) == 16
    assert iterations_per_element((r // 32, r % 16)) == 1
    assert iterations_per_element((r,)) == 1
    assert iterations_per_element((r // 32, r)) == 1
    assert iterations_per_element(()) == 1
