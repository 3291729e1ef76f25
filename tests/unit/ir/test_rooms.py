"""Room for values of symbolic size: enough for the value, and the same for values around it."""

import random

from weft.ir.build import bind, index, variable
from weft.ir.rooms import class_of, room
from weft.ir.sizes import shape_value


def test_there_is_room_for_every_value_of_a_class(seed: int) -> None:
    """Sums, differences, products and quotients of two variables, with all of their values."""
    n, m = variable("n", 0, 40), variable("m", 1, 9)
    shapes = [(n,), (n + m, 2), (n * m,), (40 - n,), (n // 3 + 1, m), ((n + 1) * (m + 2), 3)]
    random.Random(seed).shuffle(shapes)
    for shape in shapes:
        rooms = {}
        for first in range(41):
            for second in range(1, 10):
                values = {"n": first, "m": second}
                count = 1
                for size in shape_value(shape, values):
                    count *= size
                found = room(shape, values)
                assert found >= count
                classes = class_of(first), class_of(second)
                assert rooms.setdefault(classes, found) == found


def test_bound_variables_have_their_value() -> None:
    n = variable("n", 1, 1 << 40)
    assert room((bind(n, 5), 3), {}) == 24
    assert room((index(2) * bind(n, 5),), {"n": 1}) == 16
