"""Workers: calls beside the caller, errors, cancelled calls, forks, and no thread to be had."""

import gc
import os
import threading
import time

import pytest

from weft.support.workers import Workers


def test_results_come_in_the_order_of_the_calls():
    with Workers(3) as workers:
        tasks = [workers.submit(lambda number=number: number * number) for number in range(50)]
        assert [task.result() for task in tasks] == [number * number for number in range(50)]


def test_as_many_threads_as_there_is_work():
    before = threading.active_count()
    started = threading.Barrier(3, timeout=10)
    with Workers(3) as workers:
        assert threading.active_count() == before
        tasks = [workers.submit(started.wait) for _ in range(3)]  # all three at once, or never
        assert sorted(task.result() for task in tasks) == [0, 1, 2]
        for _ in range(20):
            workers.submit(int).result()
        assert threading.active_count() <= before + 3
    assert threading.active_count() == before


def test_what_a_call_raises_is_raised_by_its_result():
    with Workers(1) as workers:
        task = workers.submit(lambda: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            task.result()
        assert workers.submit(int).result() == 0


def test_the_end_of_a_scope_waits_for_all_calls():
    done = []
    with Workers(2) as workers:
        for number in range(6):
            workers.submit(lambda number=number: (time.sleep(0.01), done.append(number)))
    assert sorted(done) == list(range(6))


def test_a_call_that_is_cancelled_in_time_does_not_run():
    ran, go = [], threading.Event()
    with Workers(1) as workers:
        workers.submit(go.wait)
        task = workers.submit(ran.append, 1)
        task.cancel()
        go.set()
    assert not ran


def test_threads_end_with_what_started_them():
    before = threading.active_count()
    workers = Workers(2)
    workers.submit(int).result()
    assert threading.active_count() > before
    del workers
    gc.collect()
    end = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < end:
        time.sleep(0.001)
    assert threading.active_count() == before


def test_without_threads_the_caller_works(monkeypatch):
    """As newer interpreters have it while they end, and machines with too many threads."""

    def refuse(self):
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with Workers(2) as workers:
        assert workers.submit(threading.get_ident).result() == threading.get_ident()
        with pytest.raises(ZeroDivisionError):
            workers.submit(lambda: 1 // 0).result()


def test_the_child_of_a_fork_has_threads_of_its_own(monkeypatch):
    workers = Workers(1)
    first = workers.submit(threading.get_ident).result()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert workers.submit(threading.get_ident).result() is not None
    assert workers._process == -1 and len(workers._threads) == 1
    assert workers._threads[0].ident != first
    workers.close()
