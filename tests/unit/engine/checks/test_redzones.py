"""`CHECK=memory`: kernels that touch what is not theirs are found and named."""

import gc
import shutil

import numpy as np
import pytest

import weft
from tests.opencl import require_opencl
from tests.unit.runtime.cpu_kernels import device as one_thread
from weft import Context, Tensor, custom_kernel, jit
from weft.engine.buffers import Buffer, buffer_of
from weft.engine.checks.redzones import PATTERNS, run_between_redzones
from weft.engine.contents import buffer_from
from weft.engine.devices import device
from weft.engine.replay import Replay
from weft.engine.work import prepare
from weft.ir.build import param, sink, store
from weft.ir.dtypes import dtypes
from weft.ir.program import written_program

LLVM = """
define void @shift(ptr %args, ptr %vars, i64 %begin, i64 %end) {{
entry:
  %out = load ptr, ptr %args
  %next = getelementptr ptr, ptr %args, i64 1
  %in = load ptr, ptr %next
  br label %loop
loop:
  %i = phi i64 [ %begin, %entry ], [ %after, %loop ]
  %m = add i64 %i, {read}
  %from = getelementptr i32, ptr %in, i64 %m
  %x = load i32, ptr %from
  %y = {value}
  %n = add i64 %i, {write}
  %to = getelementptr i32, ptr %{pointer}, i64 %n
  store i32 %y, ptr %to
  %after = add i64 %i, 1
  %more = icmp slt i64 %after, %end
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""
COUNT = 5
DATA = np.arange(COUNT, dtype=np.int32)


def shift(read=0, write=0, value="mul i32 %x, 3", pointer="out"):
    """`out[i + write] = in[i + read] * 3`, as a program that a person wrote."""
    source = LLVM.format(read=read, write=write, value=value, pointer=pointer)
    kinds = [dtypes.int32], [dtypes.int32]
    return written_program("shift", device("CPU").target.name, source, *kinds, groups=(COUNT,))


def run(program, data=DATA):
    return custom_kernel(program, Tensor(data, device="CPU"), shape=(COUNT,))


def pattern_of(number):
    """An int32 that is what a redzone is filled with."""
    return int.from_bytes(PATTERNS[number] * 2, "little", signed=True)


WRONG = [
    ({"write": 1}, r"slot 0: stores outside of its memory, at byte 20 of 20", "element 5"),
    ({"write": -1}, r"slot 0: stores outside of its memory, at byte -4 of 20", "element -1"),
    ({"write": 900}, r"slot 0: stores outside of its memory, at byte 3600 of 20", "element 900"),
    (
        {"pointer": "in"},
        r"slot 1: stores to memory that it only reads, at byte 4 of 20",
        "element",
    ),
    ({"read": 1}, r"slot 0: depends on memory outside of what it reads, at byte 16", "element 4"),
    ({"read": -1}, r"slot 0: depends on memory outside of what it reads, at byte 0", "element 0"),
    ({"write": 1, "value": f"add i32 {pattern_of(0)}, 0"}, "slot 0: stores outside", "element 5"),
    ({"write": 1, "value": f"add i32 {pattern_of(1)}, 0"}, "slot 0: stores outside", "element 5"),
]


@pytest.mark.parametrize(("program", "what", "where"), WRONG)
def test_a_stray_access_is_named(program, what, where):
    with Context(CHECK="memory"), pytest.raises(weft.InternalError) as caught:
        run(shift(**program)).realize()
    assert caught.match("kernel 'shift', " + what)
    assert caught.match(rf"first at +{where}")
    assert caught.match("5 of int32 +20 bytes")


@pytest.mark.parametrize(("program", "what", "where"), WRONG)
def test_a_stray_access_of_a_list_is_named(program, what, where):
    function = jit(lambda x: custom_kernel(shift(**program), x, shape=(COUNT,)) + 1)
    with Context(CHECK="memory"), pytest.raises(weft.InternalError) as caught:
        function(Tensor(DATA, device="CPU"))
    assert caught.match("kernel 'shift', " + what)
    assert caught.match(rf"first at +{where}")


def test_a_kernel_that_keeps_to_its_memory_is_left_alone():
    function = jit(lambda x: custom_kernel(shift(), x, shape=(COUNT,)) + 1)
    with Context(CHECK="memory"):
        assert run(shift()).tolist() == [0, 3, 6, 9, 12]
        for start in range(3):
            found = function(Tensor(DATA + start, device="CPU"))
            assert found.tolist() == ((DATA + start) * 3 + 1).tolist()


@pytest.mark.parametrize("name", ["CPU", "C", "OPENCL", "NULL"])
def test_every_device_that_runs_kernels_has_redzones(name):
    if name == "OPENCL":
        require_opencl()
    if name == "C" and not shutil.which("cc"):
        pytest.skip("no C compiler is on PATH")
    with Context(CHECK="memory"):
        x = Tensor(DATA, device=name)
        found = ((x * 2).cumsum(0) + x.sum()).realize()
    if name != "NULL":  # it plans and counts, and has no memory to look at
        assert found.tolist() == ((DATA * 2).cumsum() + DATA.sum()).tolist()


def test_a_stray_store_ruins_nothing():
    memory = np.arange(3 * COUNT, dtype=np.int32)
    with Context(CHECK="memory"), pytest.raises(weft.InternalError):
        run(shift(write=1), memory[COUNT : 2 * COUNT]).realize()
    gc.collect()
    assert memory.tolist() == list(range(3 * COUNT))


def test_arguments_that_overlap_are_one_block():
    cpu = one_thread()  # the iterations follow each other
    whole = cpu.allocate(64)
    cpu.copy_in(whole, memoryview(np.arange(16, dtype=np.int32)))
    program = shift()
    execute = cpu.load(program)

    def launch(memory):
        execute(memory, [], (COUNT,))

    # out[i] is in[i - 1], so that each iteration reads what the iteration before it wrote.
    parts = [cpu.view(whole, 12, 20), cpu.view(whole, 8, 20)]
    run_between_redzones(cpu, program, parts, [20, 20], launch)
    found = np.frombuffer(whole.view, np.int32).tolist()
    assert found == [0, 1, 2, 6, 18, 54, 162, 486, *range(8, 16)]
    with pytest.raises(weft.InternalError, match=r"slot 1: .* at byte 24 of 24"):
        run_between_redzones(cpu, shift(write=1), parts, [20, 20], _stray(cpu))
    assert np.frombuffer(whole.view, np.int32).tolist() == found


def _stray(cpu):
    execute = cpu.load(shift(write=1))
    return lambda memory: execute(memory, [], (COUNT,))


@pytest.mark.parametrize("is_list", [False, True])
def test_memory_that_nobody_wrote_is_filled(is_list):
    x, out = (param(slot, dtypes.float32, (4,)) for slot in range(2))
    body = sink(store(out, x + 1))
    cpu = device("CPU")
    with Context(CHECK="memory"):
        memory = [Buffer(cpu, 16), Buffer(cpu, 16)]
        if is_list:
            Replay(body, "CPU", 2).run(memory)
        else:
            prepare(body, "CPU").run(memory, {})
    assert np.isnan(np.frombuffer(memory[1].handle.view, np.float32)).all()
    for part in memory:
        part.free()


def test_a_run_without_the_setting_has_no_redzones():
    x, out = (param(slot, dtypes.float32, (4,)) for slot in range(2))
    body = sink(store(out, x + 1))
    nodes = [buffer_from(dtypes.float32, (4,), "CPU", memoryview(bytes(16))) for _ in range(2)]
    with Context(CHECK="memory"):
        checked = Replay(body, "CPU", 2)
    plain = Replay(body, "CPU", 2)
    assert checked.is_native and plain.is_native
    assert type(plain._native).run is not type(checked._native).run
    plain.run([buffer_of(node) for node in nodes])
    assert np.frombuffer(buffer_of(nodes[1]).handle.view, np.float32).tolist() == [1.0] * 4
