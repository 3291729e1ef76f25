"""A schedule that runs again on other memory, as one native call on CPU."""

import array
import gc

import numpy as np
import pytest

from weft.engine.buffer_nodes import new_buffer
from weft.engine.buffers import Buffer, buffer_of
from weft.engine.contents import buffer_from, read_bytes
from weft.engine.counters import GlobalCounters
from weft.engine.realize import realize
from weft.engine.replay import Replay, TapeRun
from weft.engine.request import Request
from weft.engine.run import Prepared
from weft.engine.tape import Tape
from weft.ir.build import bind, param, reduce_axes, sink, store, variable
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.uop import UOp, make
from weft.support.errors import ArgumentError
from weft.support.settings import Context


def body():
    """p2 = the sums of p0 + p1 over rows, by way of a temporary."""
    shapes = [(4, 8), (4, 8), (4, 1)]
    x, y, out = (param(slot, dtypes.int32, shape) for slot, shape in enumerate(shapes))
    kept = make(Op.STAGE, dtypes.int32, (x + y,), ("global", ()))
    return sink(store(out, reduce_axes(kept, Op.ADD, (1,))))


def buffers(name, *arrays):
    nodes = [
        buffer_from(dtypes.int32, array.shape, name, memoryview(array.tobytes()))
        for array in arrays
    ]
    return nodes, [buffer_of(node) for node in nodes]


@pytest.mark.parametrize("name", ["CPU", "NULL"])
def test_memory_is_exchanged(name):
    replay = Replay(body(), name, 3)
    assert replay.is_native == (name == "CPU")
    for n in range(4):
        x = np.arange(32, dtype=np.int32).reshape(4, 8) + n
        y, out = np.full((4, 8), n, np.int32), np.zeros((4, 1), np.int32)
        nodes, memory = buffers(name, x, y, out)
        replay.run(memory)
        if name == "CPU":
            got = np.frombuffer(read_bytes(nodes[2]), np.int32)
            assert got.tolist() == (x + y).sum(1).tolist()


@pytest.mark.parametrize("name", ["CPU", "NULL"])
def test_a_slot_that_no_kernel_has_needs_no_memory(name):
    replay = Replay(body(), name, 4)
    _, memory = buffers(name, *[np.ones((4, 8), np.int32)] * 2, np.zeros((4, 1), np.int32))
    for level in (0, 2):
        with Context(DEBUG=level):
            replay.run([*memory, None])


def test_counters_and_memory():
    gc.collect()  # runs of other tests that wait for the collector share the memory
    replay = Replay(body(), "CPU", 3)
    _, memory = buffers("CPU", *[np.ones((4, 8), np.int32)] * 2, np.zeros((4, 1), np.int32))
    replay.run(memory)
    kernels, used = GlobalCounters.kernel_count, GlobalCounters.mem_used
    replay.run(memory)
    assert GlobalCounters.kernel_count == kernels + len(replay.prepared.steps) == kernels + 2
    assert GlobalCounters.mem_used == used
    del replay
    assert GlobalCounters.mem_used == used - 256  # the temporary goes with it


def test_debug_prints_each_kernel(capsys):
    replay = Replay(body(), "CPU", 3)
    _, memory = buffers("CPU", *[np.ones((4, 8), np.int32)] * 2, np.zeros((4, 1), np.int32))
    with Context(DEBUG=2):
        replay.run(memory)
    assert capsys.readouterr().out.count("GFLOP/s") == 2


def test_memory_that_is_not_there_yet_is_made():
    replay = Replay(body(), "CPU", 3)
    _, memory = buffers("CPU", *[np.ones((4, 8), np.int32)] * 2)
    out = Buffer(memory[0].device, 16)
    replay.run([*memory, out])
    assert np.frombuffer(out.handle.view, np.int32).tolist() == [16] * 4
    out.free()


N = variable("n", 0, 300)


def symbolic_body(rows: UOp) -> UOp:
    """p1 = p0 + rows, for `rows` rows of 256; p2 = the sums of its columns."""
    x = param(0, dtypes.int32, (rows, 256))
    kept = make(
        Op.STAGE, dtypes.int32, (x + make(Op.CAST, dtypes.int32, (rows,)),), ("global", ())
    )
    out, sums = param(1, dtypes.int32, (rows, 256)), param(2, dtypes.int32, (1, 256))
    return sink(store(out, kept), store(sums, reduce_axes(kept, Op.ADD, (0,))))


@pytest.mark.parametrize("name", ["CPU", "NULL"])
def test_values_and_grids_are_exchanged(name, monkeypatch):
    replay = Replay(symbolic_body(N), name, 3)
    assert replay.is_native == (name == "CPU")
    if name == "CPU":  # where a run is one native call, nothing else runs
        monkeypatch.setattr(Prepared, "run", None)
    x = np.arange(300 * 256, dtype=np.int32)
    for n in (7, 300, 0, 1, 300):
        nodes, memory = buffers(name, x, np.zeros_like(x), np.full(256, -1, np.int32))
        replay.run(memory, {"n": n})
        if name == "CPU":
            out, sums = (np.frombuffer(read_bytes(node), np.int32) for node in nodes[1:])
            assert out[: n * 256].tolist() == (x[: n * 256] + n).tolist()
            assert not out[n * 256 :].any()
            assert sums.tolist() == (x[: n * 256] + n).reshape(n, 256).sum(0).tolist()


def test_a_bound_variable_keeps_its_value():
    replay = Replay(symbolic_body(bind(N, 2)), "CPU", 3)
    x = np.arange(300 * 256, dtype=np.int32)
    nodes, memory = buffers("CPU", x, np.zeros_like(x), np.zeros(256, np.int32))
    replay.run(memory)
    assert np.frombuffer(read_bytes(nodes[1]), np.int32)[:512].tolist() == (x[:512] + 2).tolist()
    replay.run(memory, {"n": 2})
    with pytest.raises(ArgumentError, match="bound to 2 and to 3"):
        replay.run(memory, {"n": 3})


def test_values_are_inside_of_their_bounds():
    replay = Replay(symbolic_body(N), "CPU", 3)
    x = np.zeros(300 * 256, np.int32)
    _, memory = buffers("CPU", x, x, np.zeros(256, np.int32))
    with pytest.raises(ArgumentError, match="'n' has no value"):
        replay.run(memory)
    with pytest.raises(ArgumentError, match="301 is out of its range"):
        replay.run(memory, {"n": 301})


def test_a_tape_holds_what_several_devices_do():
    """Nothing runs while it is made; then it runs on other memory, again and again."""
    x = new_buffer(dtypes.float32, (4,), "CPU")
    w = new_buffer(dtypes.float32, (4,), "CPU:1")
    there = make(Op.COPY, dtypes.float32, (x * 2.0,), "CPU:1")
    written = make(Op.AFTER, dtypes.float32, (w, store(w, w + there)))
    back = make(Op.COPY, dtypes.float32, (written * 10.0,), "CPU")
    given = [buffer_of(x), buffer_of(w)]
    tape = Tape()
    made = realize(Request([written, back]), (), tape)
    given.append(buffer_of(made[back]))
    assert not any(part.has_contents for part in given)
    run = TapeRun(tape, given)
    memory = [
        buffer_from(dtypes.float32, (4,), device, memoryview(array.array("f", [n] * 4)))
        for device, n in (("CPU", 1.0), ("CPU:1", 5.0), ("CPU", 0.0))
    ]
    run.run([buffer_of(node) for node in memory])
    run.run([buffer_of(node) for node in memory])
    found = [memoryview(read_bytes(node)).cast("f").tolist() for node in memory]
    assert found == [[1.0] * 4, [9.0] * 4, [90.0] * 4]
