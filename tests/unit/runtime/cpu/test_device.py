"""The CPU as a device: memory, compilation, loading, and what a long run leaves behind."""

import gc
import os
import sys
from array import array

import numpy as np
import pytest

from tests.unit.render.llvm_programs import argument, at, get, program, put
from tests.unit.runtime.cpu_kernels import add_number, device
from weft.ir.build import variable
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.uop import make
from weft.runtime.cpu.memory import ALIGNMENT
from weft.runtime.device import Device
from weft.runtime.llvm.compiler import compile_object
from weft.support.errors import ArgumentError, InternalError, OutOfMemory
from weft.target.cpu import cpu_target


def resident_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_it_keeps_the_protocol():
    cpu: Device = device()
    assert cpu.name == "CPU" and cpu.target.renderer == "LLVM"
    cpu.synchronize()


@pytest.mark.parametrize("size", [0, 1, 63, 4096, 1 << 20])
def test_memory_is_aligned_and_holds_what_was_copied(size: int):
    cpu = device()
    memory = cpu.allocate(size)
    assert memory.address % ALIGNMENT == 0 and memory.size == size
    data = bytes(i % 251 for i in range(size))
    cpu.copy_in(memory, memoryview(data))
    found = bytearray(size)
    cpu.copy_out(memoryview(found), memory)
    assert found == data
    cpu.free(memory)
    cpu.free(memory)


def test_copies_take_any_item_format():
    cpu = device()
    memory = cpu.allocate(16)
    cpu.copy_in(memory, memoryview(array("f", [1, 2, 3, 4])))
    found = array("f", [0] * 4)
    cpu.copy_out(memoryview(found), memory)
    assert found.tolist() == [1, 2, 3, 4]


def test_a_view_is_a_part_without_a_copy():
    cpu = device()
    memory = cpu.allocate(64)
    cpu.copy_in(memory, memoryview(bytes(64)))
    part = cpu.view(memory, 16, 8)
    cpu.copy_in(part, memoryview(b"abcdefgh"))
    assert bytes(memory.view[16:24]) == b"abcdefgh"
    cpu.free(part)
    assert bytes(memory.view[16:24]) == b"abcdefgh"
    for offset, size in ((60, 8), (-1, 4), (0, 65)):
        with pytest.raises(ArgumentError, match="not inside 64 bytes"):
            cpu.view(memory, offset, size)


def test_too_much_memory_is_refused():
    with pytest.raises(OutOfMemory, match="not to be had"):
        device().allocate(1 << 60)


def test_foreign_memory_is_used_in_place():
    cpu = device()
    x, out = np.arange(64, dtype=np.float32), np.zeros(64, dtype=np.float32)
    x.flags.writeable = False
    memory = [cpu.wrap(out), cpu.wrap(x)]
    assert memory[1].address == x.ctypes.data and memory[1].size == 256
    cpu.load(add_number(1.5))(memory, (), (8,))
    assert (out == x + np.float32(1.5)).all()


def test_foreign_memory_lives_as_long_as_it_is_used():
    cpu = device()
    data = bytearray(b"12345678")
    memory = cpu.wrap(data)
    with pytest.raises(BufferError):
        data.append(1)  # the buffer is exported
    del memory
    data.append(1)  # nothing exports it any more


def test_foreign_memory_with_gaps_is_refused():
    with pytest.raises(ArgumentError, match="gaps"):
        device().wrap(np.zeros((4, 4))[:, ::2])


def test_render_compile_and_load_are_steps_of_their_own():
    cpu = device()
    code = add_number(2.0)
    with_source = code.with_source(cpu.render(code))
    binary = cpu.compile(with_source)
    assert binary == cpu.compile(with_source)
    run = cpu.load(with_source.with_binary(binary))
    x, out = np.arange(64, dtype=np.float32), np.zeros(64, dtype=np.float32)
    run([cpu.wrap(out), cpu.wrap(x)], (), (8,))
    assert (out == x + 2).all()


def test_code_for_another_machine_is_made_here():
    code = add_number(2.0)
    for arch in ("x86_64", "aarch64"):
        target = cpu_target(arch)
        assert compile_object(device().render(code), target)[:4] in (
            b"\x7fELF",
            b"\xcf\xfa\xed\xfe",
        )


def test_programs_of_one_name_stand_side_by_side():
    cpu = device()
    first, second = cpu.load(add_number(1.0)), cpu.load(add_number(2.0))
    x, out = np.zeros(64, dtype=np.float32), np.zeros(64, dtype=np.float32)
    for run, expected in ((first, 1.0), (second, 2.0), (first, 1.0)):
        run([cpu.wrap(out), cpu.wrap(x)], (), (8,))
        assert (out == expected).all()


def test_negative_and_large_variables_arrive_whole():
    name = variable("n", -(1 << 62), 1 << 62)
    code = program(
        name, put(at(argument(0, dtypes.int64), 0), make(Op.CAST, dtypes.int64, (name,)))
    )
    cpu = device()
    run = cpu.load(code)
    data = array("q", [0])
    for value in (-5, 1 << 61, -(1 << 61)):
        run([cpu.wrap(data)], (value,), ())
        assert data[0] == value


def test_wrong_arguments_are_refused():
    cpu = device()
    run = cpu.load(add_number(1.0))
    with pytest.raises(InternalError, match="do not fit"):
        run([cpu.allocate(256)], (), (8,))
    with pytest.raises(InternalError, match="do not fit"):
        run([cpu.allocate(256)] * 2, (3,), (8,))


def test_a_module_that_llvm_refuses_is_an_internal_error():
    cpu = device()
    with pytest.raises(InternalError, match="LLVM refuses a module"):
        cpu.compile(add_number(1.0).with_source("define nonsense"))


@pytest.mark.skipif(sys.platform != "linux", reason="memory use is read from /proc")
def test_ten_thousand_launches_leave_nothing_behind():
    cpu = device()
    run = cpu.load(add_number(1.0))
    memory = [cpu.allocate(256) for _ in range(2)]

    def launch(times: int) -> None:
        for _ in range(times):
            run(memory, (), (8,))
            cpu.free(cpu.allocate(1 << 12))

    launch(1000)
    gc.collect()
    blocks, resident = sys.getallocatedblocks(), resident_bytes()
    launch(10_000)
    gc.collect()
    assert sys.getallocatedblocks() - blocks < 100
    assert resident_bytes() - resident < 1 << 20


@pytest.mark.skipif(sys.platform != "linux", reason="memory use is read from /proc")
def test_code_is_unloaded_with_its_executable():
    cpu = device()
    code = add_number(1.0)
    code = code.with_binary(cpu.compile(code))

    def mappings() -> int:
        with open("/proc/self/maps", encoding="ascii") as file:
            return sum(1 for _ in file)

    kept = [cpu.load(code) for _ in range(20)]
    most = mappings()
    kept.clear()
    gc.collect()
    before = mappings()
    for _ in range(100):
        cpu.load(code)
    gc.collect()
    assert mappings() <= max(before + 10, most)
    x = get(at(argument(1), 0))
    assert cpu.load(program(put(at(argument(0), 0), x)))
