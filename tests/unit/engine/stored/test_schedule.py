"""Schedules that another process left on disk."""

import numpy as np
import pytest

from weft import Context, Tensor, Variable, jit
from weft.engine import compile as compiling
from weft.engine import work
from weft.engine.compile import CompileStatistics
from weft.engine.counters import GlobalCounters
from weft.engine.stored import schedule as schedule_store
from weft.schedule import schedule as scheduling
from weft.support.cache import DiskCache


@pytest.fixture
def scheduled(monkeypatch):
    """The graphs that are scheduled; `forget` is the start of another process."""
    graphs = []
    make = scheduling.make_schedule

    def noted(body, target):
        graphs.append(body)
        return make(body, target)

    def forget():
        graphs.clear()
        for table in (work._PREPARED, work._WORK, compiling._LOADED, compiling._KEYS):
            table.clear()

    monkeypatch.setattr(scheduling, "make_schedule", noted)
    monkeypatch.setattr(schedule_store, "_CACHE", DiskCache("schedules-test", 1))
    forget()
    noted.graphs, noted.forget = graphs, forget
    with Context(SPEC=0):
        yield noted


def three(x: Tensor) -> Tensor:
    """Several kernels, with temporaries."""
    y = (x @ x).softmax()
    return (y @ x + y.sum(0)).sort()[0]


def test_a_second_process_schedules_nothing(scheduled):
    x = Tensor(np.arange(64, dtype=np.float32).reshape(8, 8) % 7).realize()
    GlobalCounters.reset()
    first = three(x).numpy()
    kernels, generated = GlobalCounters.kernel_count, CompileStatistics.generated
    assert scheduled.graphs
    scheduled.forget()
    GlobalCounters.reset()
    np.testing.assert_array_equal(three(x).numpy(), first)
    assert not scheduled.graphs
    assert (GlobalCounters.kernel_count, CompileStatistics.generated) == (kernels, generated)


def test_a_traced_function_with_symbolic_sizes(scheduled):
    n = Variable("n", 1, 9)
    data = np.arange(9, dtype=np.float32)

    def run() -> list[list[float]]:
        f = jit(lambda x: (x * 2).cumsum(0) + x.sum())
        x = Tensor(data).realize()
        return [f(x[: n.bind(size)]).tolist() for size in (3, 9)]

    first = run()
    assert scheduled.graphs
    scheduled.forget()
    assert run() == first
    assert not scheduled.graphs


def test_a_program_that_the_disk_lost_is_made_again(scheduled, monkeypatch):
    x = Tensor([3.0, 1.0, 2.0]).realize()
    assert (x.exp() / 3).sum().item() == pytest.approx((np.exp([3.0, 1, 2]) / 3).sum())
    scheduled.forget()
    monkeypatch.setattr(compiling, "_CACHE", DiskCache("programs-test", 1))
    assert (x.exp() / 3).sum().item() == pytest.approx((np.exp([3.0, 1, 2]) / 3).sum())
    assert scheduled.graphs


@pytest.mark.parametrize("change", [{"CHECK": "memory"}, {"SPEC": 1}, {"NOOPT": 1}])
def test_what_is_checked_or_changed_is_scheduled(scheduled, change):
    x = Tensor([3.0, 1.0, 2.0]).realize()
    assert (x * 5 - 1).tolist() == [14, 4, 9]
    scheduled.forget()
    with Context(**change):
        assert (x * 5 - 1).tolist() == [14, 4, 9]
    assert scheduled.graphs


def test_memory_is_checked_although_the_schedule_came_from_the_disk(scheduled):
    """The steps have the memory of their arguments, of symbolic sizes too."""
    n = Variable("n", 1, 9)
    x, y = Tensor([3.0, 1.0, 2.0]).realize(), Tensor.arange(9).realize()

    def run() -> list[list[float]]:
        return [(x * 7 - 1).tolist(), (y[: n.bind(4)] * 3 + 1).tolist()]

    wanted = run()
    scheduled.forget()
    assert run() == wanted and not scheduled.graphs
    with Context(CHECK="memory"):
        assert run() == wanted
