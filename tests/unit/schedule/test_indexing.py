"""Indices of views are remembered, and a trace still sees the rules that give them."""

from weft.ir.build import range_
from weft.ir.uop import sweep
from weft.rewrite.trace import tracing
from weft.schedule.indexing import _known_reshaped, reshape_indices


def test_equal_views_at_equal_indices_are_computed_once():
    sweep()
    indices = (range_(0, 6), range_(1, 8))
    first = reshape_indices(indices, (6, 8), (3, 16))
    before = _known_reshaped.cache_info().misses
    assert reshape_indices(indices, (6, 8), (3, 16)) == first
    assert _known_reshaped.cache_info().misses == before
    assert reshape_indices(indices, (6, 8), (12, 4)) != first


def test_a_trace_sees_rules_of_indices_that_are_remembered():
    indices = (range_(0, 6), range_(1, 8))
    plain = reshape_indices(indices, (6, 8), (3, 16))
    fired = []
    for _ in range(2):
        with tracing() as trace:
            assert reshape_indices(indices, (6, 8), (3, 16)) == plain
        fired.append(sum(len(each.steps) for each in trace.passes))
    assert fired[0] == fired[1] > 0


def test_a_sweep_forgets_them():
    reshape_indices((range_(0, 6),), (6,), (2, 3))
    assert _known_reshaped.cache_info().currsize
    sweep()
    assert not _known_reshaped.cache_info().currsize
