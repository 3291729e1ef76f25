"""The thread pool: every group runs once, whoever calls, however many threads there are."""

import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.runtime.cpu_kernels import add_number, count_groups, device, work_long
from weft.ir.program import Estimate
from weft.runtime.cpu.launch import RunList, chunk_size, nanoseconds
from weft.runtime.cpu.pool import NativePool, PythonPool, ThreadPool, make_pool, pool_for
from weft.runtime.cpu.pool_code import MOST_CHUNKS
from weft.runtime.host import host_target
from weft.target.cpu import cpu_target

ROOT = Path(__file__).resolve().parents[4]
needs_native = pytest.mark.skipif(
    sys.platform not in ("linux", "darwin"), reason="there is no native pool here"
)
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")


@pytest.fixture(params=["native 1", "native 2", "native 4", "python 2"])
def pool(request: pytest.FixtureRequest) -> Iterator[ThreadPool]:
    kind, _, threads = request.param.partition(" ")
    count = int(threads)
    made = make_pool(count, host_target(count)) if kind == "native" else PythonPool(count)
    yield made
    made.close()


@pytest.mark.parametrize("groups", [1, 2, 3, 7, 64, 1000])
def test_every_group_runs_once(pool: ThreadPool, groups: int):
    cpu = device(pool)
    run = cpu.load(count_groups(groups))
    data = bytearray(4 * groups)
    memory = [cpu.wrap(data)]
    for _ in range(20):
        run(memory, (), (groups,))
    assert memoryview(data).cast("i").tolist() == [20] * groups


@needs_native
def test_more_groups_than_chunks_can_be_counted():
    groups = 2 * MOST_CHUNKS + 5
    pool = NativePool(2, host_target(2))
    cpu = device(pool)
    run = cpu.load(count_groups(groups))
    run._plan = (groups,), groups, 1  # chunks of one group
    data = bytearray(4 * groups)
    pool.run(pool.state, run.record([cpu.wrap(data)], (), (groups,)), 1)
    assert set(memoryview(data).cast("i")) == {1}
    pool.close()


def test_a_list_runs_in_order(pool: ThreadPool):
    cpu = device(pool)
    steps = [cpu.load(add_number(float(i), name=f"add{i}")) for i in range(5)]
    data = [bytearray(256) for _ in range(6)]
    memory = [cpu.wrap(part) for part in data]
    launches = [(step, [memory[i + 1], memory[i]], (), (8,)) for i, step in enumerate(steps)]
    everything = cpu.run_list(launches)
    assert len(everything) == 5
    everything()
    assert memoryview(data[5]).cast("f").tolist() == [10.0] * 64


def test_memory_of_a_list_can_be_exchanged(pool: ThreadPool):
    cpu = device(pool)
    step = cpu.load(add_number(1.0))
    x, out, other = (bytearray(256) for _ in range(3))
    memory, target = [cpu.wrap(out), cpu.wrap(x)], cpu.wrap(other)
    run = RunList([(step, memory, (), (8,)), (step, memory, (), (8,))], pool)
    run.set_memory(1, 0, target)
    run.set_memory(1, 1, memory[0])
    run()
    assert memoryview(out).cast("f")[0] == 1.0
    assert memoryview(other).cast("f")[63] == 2.0


def test_an_empty_list_and_an_empty_grid_do_nothing(pool: ThreadPool):
    cpu = device(pool)
    cpu.run_list([])()
    data = bytearray(4 * 8)
    cpu.load(count_groups(8))([cpu.wrap(data)], (), (0,))
    assert not any(data)


def test_several_python_threads_at_once(pool: ThreadPool):
    cpu = device(pool)
    run = cpu.load(count_groups(50))
    buffers = [bytearray(4 * 50) for _ in range(4)]

    def launch(data: bytearray) -> None:
        memory = [cpu.wrap(data)]
        for _ in range(200):
            run(memory, (), (50,))

    threads = [threading.Thread(target=launch, args=(data,)) for data in buffers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for data in buffers:
        assert memoryview(data).cast("i").tolist() == [200] * 50


def test_workers_that_sleep_are_woken(pool: ThreadPool):
    cpu = device(pool)
    run = cpu.load(work_long(16, 20_000))
    data = bytearray(4 * 16)
    memory = [cpu.wrap(data)]
    for _ in range(3):
        run(memory, (), (16,))
        time.sleep(0.02)  # longer than a worker spins
    assert memoryview(data).cast("i").tolist() == [60_000] * 16


def test_a_closed_pool_runs_on_the_callers_thread(pool: ThreadPool):
    cpu = device(pool)
    run = cpu.load(count_groups(9))
    data = bytearray(4 * 9)
    memory = [cpu.wrap(data)]
    run(memory, (), (9,))
    pool.close()
    run(memory, (), (9,))
    pool.close()
    assert memoryview(data).cast("i").tolist() == [2] * 9


@needs_native
def test_threads_start_at_the_first_run():
    pool = NativePool(3, host_target(3))
    assert pool.state is None
    cpu = device(pool)
    data = bytearray(4 * 9)
    before = set(os.listdir("/proc/self/task")) if sys.platform == "linux" else set()
    cpu.load(count_groups(9))([cpu.wrap(data)], (), (9,))
    assert pool.state is not None
    if sys.platform == "linux":
        assert len(set(os.listdir("/proc/self/task")) - before) == 2
    pool.close()
    if sys.platform == "linux":
        assert set(os.listdir("/proc/self/task")) <= before


@needs_native
def test_workers_block_signals():
    pool = NativePool(2, host_target(2))
    cpu = device(pool)
    data = bytearray(4 * 9)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    cpu.load(count_groups(9))([cpu.wrap(data)], (), (9,))
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
    pool.close()


@needs_native
@needs_fork
def test_a_forked_child_has_threads_of_its_own(pool: ThreadPool):
    cpu = device(pool)
    run = cpu.load(count_groups(100))
    data = bytearray(4 * 100)
    memory = [cpu.wrap(data)]
    run(memory, (), (100,))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python sees the native threads
        child = os.fork()
    if child == 0:
        status = 1
        try:
            was_reset = pool.state is None
            for _ in range(10):
                run(memory, (), (100,))
            counted = memoryview(data).cast("i").tolist() == [11] * 100
            status = 0 if was_reset and counted else 1
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    run(memory, (), (100,))
    assert memoryview(data).cast("i").tolist() == [2] * 100


EXITS = """
import sys, threading
sys.path.insert(0, {root!r})
from tests.unit.runtime.cpu_kernels import count_groups, device
from weft.runtime.cpu.pool import make_pool
from weft.runtime.host import host_target
cpu = device(make_pool(4, host_target(4)))
run, data = cpu.load(count_groups(100)), bytearray(400)
memory = [cpu.wrap(data)]
run(memory, (), (100,))
def forever():
    while True:
        run(memory, (), (100,))
threading.Thread(target=forever, daemon={daemon}).start() if {daemon} else None
print("done")
"""


@pytest.mark.parametrize("daemon", [False, True])
def test_a_process_exits_while_threads_wait_or_run(daemon: bool):
    program = EXITS.format(root=str(ROOT), daemon=daemon)
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (0, "done\n"), result.stderr


def test_devices_share_a_pool():
    assert pool_for(host_target(2)) is pool_for(host_target(2))
    assert pool_for(host_target(2)) is not pool_for(host_target(3))


def test_small_work_is_not_shared():
    target = cpu_target()
    wake = target.costs.wake
    assert nanoseconds(Estimate(), target) == float("inf")
    small = nanoseconds(Estimate(operations=1000, bytes_read=4000), target)
    assert chunk_size(64, 8, small, wake) == 64
    large = nanoseconds(Estimate(operations=10**9), target)
    assert chunk_size(64, 8, large, wake) == 2
    assert chunk_size(64, 1, large, wake) == 64
    assert chunk_size(3, 8, large, wake) == 1
    assert chunk_size(0, 8, large, wake) == 1
