"""The ways from an address back to the version and the memory that it is of."""

import pytest

from weft.ir import views
from weft.ir.build import buffer, index, index_of, store
from weft.ir.dtypes import dtypes
from weft.ir.movement import permute, reshape
from weft.ir.ops import Op
from weft.ir.uop import const, make

MEMORY = buffer(1 << 40, dtypes.float32, (2, 3), "CPU")
VERSION = make(Op.AFTER, dtypes.float32, (MEMORY, store(MEMORY, const(dtypes.float32, 1))))
MOVED = permute(reshape(VERSION, (3, 2)), (1, 0))
INDEXED = index_of(MOVED, [index(0)])
NEXT = make(Op.AFTER, dtypes.float32, (VERSION, store(INDEXED, const(dtypes.float32, 2))))


@pytest.mark.parametrize(
    ("way", "node", "end"),
    [
        (views.unmoved, MOVED, VERSION),
        (views.unmoved, INDEXED, INDEXED),
        (views.version_of, INDEXED, VERSION),
        (views.version_of, NEXT, NEXT),
        (views.behind, NEXT, MEMORY),
        (views.behind, MOVED, MOVED),
        (views.memory_of, INDEXED, MEMORY),
        (views.memory_of, reshape(NEXT, (6,)), MEMORY),
        (views.memory_of, MEMORY, MEMORY),
    ],
)
def test_the_way_back(way, node, end):
    assert way(node) is end


def test_the_views_between_lead_from_the_version_to_the_address():
    version, between = views.views_between(INDEXED)
    assert version is VERSION
    assert between == [MOVED.src[0], MOVED, INDEXED]
    assert views.views_between(MEMORY) == (MEMORY, [])
