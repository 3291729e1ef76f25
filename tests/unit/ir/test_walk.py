"""Orders, users, substitution and scopes of a graph."""

from weft.ir.build import call, param, range_, reduce_ranges, sink, variable
from weft.ir.dtypes import dtypes
from weft.ir.linear import order as sort_key
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.uop import const
from weft.ir.walk import bodies, rebuild, substitute, substitute_all, topological, users
from weft.support.source_line import user_line

i, j = range_(0, 8), range_(1, 4)


def test_topological_order_has_sources_first_and_no_node_twice():
    node = (i + j) * (i + j) + i
    order = topological(node)
    assert len(order) == len(set(order))
    assert order[-1] is node
    for position, part in enumerate(order):
        assert all(source in order[:position] for source in part.src)


def test_enter_stops_the_walk():
    node = (i + j) * 2
    assert i not in topological(node, enter=lambda part: part.op != Op.ADD)


def test_users_are_listed_once_per_use():
    shared = i + j
    node = shared * shared
    assert users(node)[shared] == [node, node]


def test_substitution_replaces_from_the_top():
    node = (i + j) * 2
    assert substitute(node, {i + j: j}) is j * 2
    assert substitute(node, {i: j}) is (j + j) * 2
    assert substitute(node, {}) is node


def test_substitution_below_several_roots_is_that_below_each():
    roots = [i, i + j, (i + j) * 2, j]
    assert substitute_all(roots, {i: j}) == [substitute(root, {i: j}) for root in roots]
    assert substitute_all(roots, {}) == roots
    assert substitute_all([], {i: j}) == []


def test_substitution_reaches_ranges_inside_folds():
    value = (i * 4 + j).cast(dtypes.float32)
    folded = reduce_ranges(value, Op.ADD, [j])
    k = range_(2, 4)
    swapped = substitute(folded, {j: k})
    assert swapped is reduce_ranges((i * 4 + k).cast(dtypes.float32), Op.ADD, [k])


def test_walks_do_not_enter_bodies():
    n = variable("n", 1, 9)
    body = param(0, dtypes.index, ()) + n
    root = call(body, i)
    assert n not in topological(root)
    assert bodies(sink(root, call(sink(root), j))) == [body, sink(root)]


def test_deep_graphs_are_walked():
    node = i
    for _ in range(100_000):
        node = node + 1
    assert len(topological(node)) == 100_003
    assert substitute(node, {i: j}).ranges == j.ranges
    assert const(dtypes.index, 1) in users(node)


def test_a_rebuilt_node_is_from_the_same_line():
    x, y = (param(slot, dtypes.float32, (4,)) for slot in (70, 71))
    node = -x
    node.line = user_line()
    assert rebuild(node, (y,)).line is node.line
    assert substitute(node, {x: y}).line is node.line


def test_calls_nest_deeper_than_the_stack():
    body = param(0, dtypes.float32, (4, 5)) * 3.0
    for _ in range(1200):
        body = call(body, param(0, dtypes.float32, (4, 5)))
    node = call(body, param(1, dtypes.float32, (4, 5)))
    assert shape_of(node) == (4, 5)
    assert sort_key(node)[1] == Op.CALL
    assert len(bodies(node)) == 1201
