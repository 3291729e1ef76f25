"""The device C: memory, compiler and errors."""

import pytest

from tests.unit.render.c_family_cases import (
    argument,
    at,
    device,
    end,
    i32,
    loop,
    needs_compiler,
    program,
    special,
)
from weft.ir.build import store
from weft.ir.program import Program
from weft.runtime.c.compiler import best_level, compile_c, find_compiler, host_arch
from weft.runtime.c.device import CDevice
from weft.support.errors import ArgumentError, DeviceError, InternalError, OutOfMemory
from weft.target.target import Target


def never(program: Program, target: Target) -> str:
    raise InternalError("nothing is rendered here")


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(DeviceError, match="no C compiler is on PATH") as error:
        CDevice(never)
    assert "install gcc or clang" in str(error.value)
    with pytest.raises(DeviceError, match="looked for tcc-of-my-own"):
        find_compiler("tcc-of-my-own")


def test_levels_of_x86():
    v2 = "cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3"
    v3 = f"{v2} avx avx2 bmi1 bmi2 f16c fma abm movbe"
    assert best_level("") == "x86-64"
    assert best_level(v3) == "x86-64-v3"
    assert best_level(f"{v3} avx512f avx512bw avx512cd avx512dq avx512vl") == "x86-64-v4"
    assert best_level("avx512f avx512bw avx512cd avx512dq avx512vl") == "x86-64"
    assert host_arch("/no/such/file")


@needs_compiler
def test_memory_and_views():
    machine = device("C")
    handle = machine.allocate(16)
    assert handle.address % 64 == 0
    machine.copy_in(handle, memoryview(bytes(range(16))))
    part = machine.view(machine.view(handle, 4, 8), 2, 3)
    data = bytearray(3)
    machine.copy_out(memoryview(data), part)
    assert list(data) == [6, 7, 8]
    with pytest.raises(ArgumentError, match="4 bytes are more than the 3"):
        machine.copy_in(part, memoryview(b"1234"))
    machine.copy_in(machine.allocate(0), memoryview(b""))
    machine.free(handle)


@needs_compiler
def test_out_of_memory():
    with pytest.raises(OutOfMemory, match="cannot be allocated"):
        device("C").allocate(1 << 62)


@needs_compiler
def test_what_the_compiler_rejects_is_shown():
    with pytest.raises(InternalError, match="rejects a rendered program") as error:
        compile_c("int main( {", "", find_compiler())
    assert "expected" in str(error.value)


@needs_compiler
def test_a_slice_of_the_grid_and_a_second_run():
    machine = device("C")
    g, i, out = special("group", 6), loop(0, 2), argument(0, 12, i32)
    code = program(g, g * 2, i, store(at(out, g * 2 + i), g * 10 + i), end(i), groups=(6,))
    code = code.with_source(machine.render(code))
    run = machine.load(code.with_binary(machine.compile(code)))
    handle, data = machine.allocate(48), bytearray(48)
    run([handle], [], (3,))
    machine.copy_out(memoryview(data), handle)
    assert list(memoryview(data).cast("i")) == [0, 1, 10, 11, 20, 21, 0, 0, 0, 0, 0, 0]
    run([handle], [], (6,))
    run([handle], [], (0,))
    machine.copy_out(memoryview(data), handle)
    assert list(memoryview(data).cast("i"))[-2:] == [50, 51]
