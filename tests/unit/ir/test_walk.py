"""Orders, users, substitution and scopes of a graph."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from weft.ir.build import call, param, range_, reduce_ranges, sink, variable
from weft.ir.dtypes import dtypes
from weft.ir.linear import order as sort_key
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.uop import const
from weft.ir.walk import (
    bodies,
    map_graph,
    rebuild,
    substitute,
    substitute_all,
    topological,
    users,
    with_sources,
)
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


def test_substitution_reaches_ranges_inside_reductions():
    value = (i * 4 + j).cast(dtypes.float32)
    reduced = reduce_ranges(value, Op.ADD, [j])
    k = range_(2, 4)
    swapped = substitute(reduced, {j: k})
    assert swapped is reduce_ranges((i * 4 + k).cast(dtypes.float32), Op.ADD, [k])


def test_walks_do_not_enter_bodies():
    n = variable("n", 1, 9)
    body = param(0, dtypes.index, ()) + n
    root = call(body, i)
    assert n not in topological(root)
    assert bodies(sink(root, call(sink(root), j))) == [body, sink(root)]


def test_bodies_are_looked_at_once_each():
    """However many a scope calls, it is walked through once."""
    calls = [call(param(0, dtypes.index, ()) + number, i) for number in range(400)]

    def steps(count: int) -> int:
        lines = 0

        def note(frame: FrameType, event: str, arg: object) -> Callable[..., Any]:
            nonlocal lines
            lines += event == "line"
            return note

        sys.settrace(note)
        try:
            assert len(bodies(sink(*calls[:count]))) == count
        finally:
            sys.settrace(None)
        return lines

    assert steps(400) < 2.2 * steps(200)


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


def test_map_graph_changes_each_node_once_after_its_sources():
    seen = []

    def doubled(node, made):
        seen.append(node)
        assert all(source in made for source in node.src)
        new = with_sources(node, made)
        return new * 2 if new.op == Op.RANGE else new

    node = (i + j) * (i + j)
    assert map_graph(node, doubled) is (i * 2 + j * 2) * (i * 2 + j * 2)
    assert seen == topological(node)


def test_map_graph_keeps_what_does_not_change():
    node = (i + j) * 3
    assert map_graph(node, with_sources) is node
    assert map_graph(node, with_sources, order=topological(node)) is node


def test_map_graph_takes_what_is_known():
    assert map_graph((i + j) * 3, with_sources, known={i + j: j}) is j * 3


def test_map_graph_looks_below_what_it_is_told():
    def entered(node):
        return node.op != Op.MUL

    def replaced(node, made):
        return const(dtypes.index, 7) if node.op == Op.MUL else with_sources(node, made)

    assert map_graph(i * 4 + j, replaced, enter=entered) is const(dtypes.index, 7) + j
    other = {i: (j,)}  # i is computed from j

    def of_others(node, made):
        return made[j] + 1 if node is i else with_sources(node, made)

    found = map_graph(i * 4, of_others, sources=lambda node: other.get(node, node.src))
    assert found is (j + 1) * 4


def test_map_graph_walks_deep_graphs():
    node = i
    for _ in range(50_000):
        node = node + 1
    assert map_graph(node, with_sources, known={i: j}).ranges == j.ranges
