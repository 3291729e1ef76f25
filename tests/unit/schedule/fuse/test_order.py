"""Who waits for whom among kernels, and that the question stays cheap."""

import pytest

import weft
from weft.schedule.fuse.kernel import Kernel
from weft.schedule.fuse.order import (
    depends_on,
    follow,
    forget_after,
    need,
    producers_first,
    waiting_for,
)


def kernels(count: int) -> list[Kernel]:
    return [Kernel(number, ()) for number in range(count)]


def test_waiting_reaches_through_others_in_any_order_of_edges():
    a, b, c, d = kernels(4)
    need(b, c)
    need(a, b)
    follow(c, d)
    assert depends_on(a, d)
    assert depends_on(a, a)
    assert not depends_on(d, a)
    assert waiting_for([c]) == 0b111


def test_order_without_writes_leaves_only_data():
    a, b, c = kernels(3)
    need(a, b)
    follow(b, c)
    forget_after([a, b, c])
    assert depends_on(a, b)
    assert not depends_on(a, c)


def test_producers_come_first():
    a, b, c = made = kernels(3)
    need(a, b)
    need(b, c)
    need(a, c)
    assert producers_first(made) == [c, b, a]


def test_kernels_that_wait_for_each_other_are_refused():
    a, b = made = kernels(2)
    need(a, b)
    follow(b, a)
    assert depends_on(a, b)
    assert depends_on(b, a)
    with pytest.raises(weft.InternalError, match="wait for each other"):
        producers_first(made)


def test_a_cycle_of_data_shows_after_writes_are_forgotten():
    a, b = made = kernels(2)
    need(a, b)
    need(b, a)
    forget_after(made)
    assert depends_on(a, b)
    assert depends_on(b, a)
