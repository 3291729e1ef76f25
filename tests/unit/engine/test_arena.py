"""Replays share the memory of their temporaries."""

import gc
import threading

import numpy as np
import pytest

from weft import Tensor, jit
from weft.engine.arena import SharedArena
from weft.engine.counters import GlobalCounters
from weft.engine.devices import device


class Owner:
    title = "a test"

    def parts_of_arena(self):
        return []


def normalized(x):
    return (x - x.mean(0, keepdim=True)).softmax(0).sum(1)


def numbers(rows):
    return Tensor(np.random.default_rng(rows).standard_normal((rows, 64)).astype(np.float32))


def used():
    gc.collect()
    return GlobalCounters.mem_used


def test_traces_of_many_shapes_hold_one_arena():
    gc.collect()
    before = SharedArena.of(device("CPU")).size
    inputs = [numbers(rows).realize() for rows in range(130, 140)]
    jitted = jit(normalized)
    jitted(inputs[-1]).realize()
    one = used()
    for x in inputs:
        jitted(x).realize()
    assert jitted.traces == 10
    assert used() == one
    assert SharedArena.of(device("CPU")).size >= before


def test_memory_goes_with_the_trace_that_needed_it():
    small, large = jit(normalized), jit(normalized)
    x, y = numbers(8).realize(), numbers(4096).realize()
    small(x).realize()
    before = used()
    large(y).realize()
    assert used() > before
    del large
    assert used() <= before
    assert np.array_equal(small(x).numpy(), normalized(x).numpy())


def test_a_second_run_gets_memory_of_its_own():
    arena, owner = SharedArena(device("CPU")), Owner()
    arena.join(100)
    first, second = arena.take(100, owner), arena.take(100, owner)
    assert first is not second
    second.allocated()
    arena.release(second)
    assert second.handle is None
    arena.release(first)
    assert arena.take(50, owner) is first
    arena.leave(100)  # in the middle of a run
    assert arena.size == 100
    arena.release(first)


def test_memory_grows_and_is_given_back():
    arena, owner = SharedArena(device("CPU")), Owner()
    for size in (100, 300):
        arena.join(size)
        arena.release(arena.take(size, owner))
        assert arena.size == size
    arena.leave(300)
    assert arena.size == 0
    arena.release(arena.take(100, owner))
    assert arena.size == 100
    arena.leave(100)
    assert arena.size == 0


@pytest.mark.parametrize("threads", [4])
def test_threads_run_traces_at_once(threads):
    inputs = [numbers(100 + number).realize() for number in range(threads)]
    wanted = [normalized(x).numpy() for x in inputs]
    traced = [jit(normalized) for _ in inputs]
    for function, x in zip(traced, inputs, strict=True):
        function(x).realize()
    wrong = []

    def work(number):
        for _ in range(50):
            if not np.allclose(traced[number](inputs[number]).numpy(), wanted[number], atol=1e-6):
                wrong.append(number)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_a_function_that_makes_memory_holds_none_between_calls():
    def filled(x):
        table = Tensor.zeros(1000, 64).contiguous()
        table[: x.shape[0]] = x * 2
        return table.softmax(0).sum(1)

    x = numbers(20).realize()
    jitted = jit(filled)
    found = jitted(x).numpy()
    assert np.allclose(found, filled(x).numpy(), atol=1e-6)
    held = used()
    others = [jit(filled) for _ in range(4)]
    for each in others:
        each(x).realize()
    assert used() - held < 1000 * 64 * 4
