"""The device OPENCL: memory, views, binaries and errors."""

import importlib
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tests.opencl import needs_opencl
from tests.unit.render.c_family_cases import (
    argument,
    at,
    device,
    end,
    i32,
    loop,
    program,
    special,
)
from weft.ir.build import store
from weft.ir.dtypes import dtypes
from weft.ir.program import Program
from weft.render.c_family import opencl
from weft.runtime.opencl import platform
from weft.runtime.opencl.device import OpenclDevice
from weft.support.errors import DeviceError, InternalError, NotSupported, OutOfMemory
from weft.target.opencl import rounds_float32


def test_without_pyopencl(monkeypatch: pytest.MonkeyPatch):
    def refuse(name: str) -> Any:
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(importlib, "import_module", refuse)
    with pytest.raises(DeviceError, match="pyopencl cannot be imported") as error:
        OpenclDevice(opencl.render)
    assert 'pip install "weft[opencl]"' in str(error.value)


def test_without_a_platform(monkeypatch: pytest.MonkeyPatch):
    class ClError(Exception):
        pass

    def no_platform() -> list[Any]:
        raise ClError("PLATFORM_NOT_FOUND_KHR")

    found = SimpleNamespace(Error=ClError, get_platforms=no_platform)
    monkeypatch.setattr(importlib, "import_module", lambda name: found)
    assert platform.opencl_devices() == []
    with pytest.raises(DeviceError, match="there is no OpenCL device") as error:
        platform.require_device(0)
    assert 'pip install "weft[opencl]"' in str(error.value)


def test_a_platform_that_compiles_nothing(monkeypatch: pytest.MonkeyPatch):
    class ClError(Exception):
        pass

    class ClProgram:
        def __init__(self, context: Any, source: str) -> None:
            assert "__kernel" in source

        def build(self, cache_dir: bool) -> None:
            raise ClError("error: unknown target CPU 'generic'")

    found = SimpleNamespace(Error=ClError, Program=ClProgram)
    machine = SimpleNamespace(name="a new CPU", platform=SimpleNamespace(name="Old", version="1"))
    monkeypatch.setattr(importlib, "import_module", lambda name: found)
    with pytest.raises(DeviceError, match="OPENCL: Old compiles nothing for a new CPU") as error:
        platform.require_compiler(None, machine)
    assert "unknown target CPU" in str(error.value)


@needs_opencl
def test_a_device_that_is_not_there():
    device("OPENCL")
    with pytest.raises(DeviceError, match="OPENCL:99 does not exist") as error:
        OpenclDevice(opencl.render, "OPENCL:99")
    assert "OPENCL:0" in str(error.value)


@needs_opencl
def test_the_target_is_that_of_the_device():
    target = device("OPENCL").target
    assert target.device == "OPENCL"
    assert target.has_groups
    assert target.grid.group_threads >= 1
    assert dtypes.float16 not in target.native_dtypes
    assert rounds_float32(target) == ("exact32" in target.name)


@needs_opencl
def test_views_begin_at_an_alignment():
    machine = device("OPENCL")
    step = machine.alignment
    handle = machine.allocate(step * 3)
    machine.copy_in(handle, memoryview(bytes(i // step for i in range(step * 3))))
    part = machine.view(machine.view(handle, step, step * 2), step, step)
    data = bytearray(step)
    machine.copy_out(memoryview(data), part)
    assert set(data) == {2}
    machine.copy_in(part, memoryview(b"\x07"))
    machine.copy_out(memoryview(data), part)
    assert data[0] == 7
    with pytest.raises(NotSupported, match="a view cannot begin at byte 4"):
        machine.view(handle, 4, 8)
    machine.copy_in(machine.allocate(0), memoryview(b""))
    machine.free(part)
    machine.free(handle)


@needs_opencl
def test_out_of_memory():
    with pytest.raises(OutOfMemory, match="cannot be allocated"):
        device("OPENCL").allocate(1 << 60)


def counting_program() -> Program:
    g, i, out = special("group", 6), loop(0, 2), argument(0, 12, i32)
    return program(g, g * 2, i, store(at(out, g * 2 + i), g * 10 + i), end(i), groups=(6,))


def run(machine: OpenclDevice, code: Program, groups: int) -> list[int]:
    handle, data = machine.allocate(48), bytearray(48)
    machine.copy_in(handle, memoryview(bytes(48)))
    machine.load(code)([handle], [], (groups,))
    machine.copy_out(memoryview(data), handle)
    machine.free(handle)
    return list(memoryview(data).cast("i"))


COUNTED = [0, 1, 10, 11, 20, 21, 30, 31, 40, 41, 50, 51]


@needs_opencl
def test_binaries_run_without_the_source():
    machine = device("OPENCL")
    code = counting_program()
    code = code.with_source(machine.render(code))
    compiled = code.with_binary(machine.compile(code))
    assert run(machine, replace(compiled, source="no program"), 6) == COUNTED
    assert run(machine, compiled, 0) == [0] * 12


@needs_opencl
@pytest.mark.parametrize("binary", [b"", b"another driver\0binary"])
def test_the_source_is_built_where_the_binary_is_for_another_driver(binary: bytes):
    machine = device("OPENCL")
    code = counting_program()
    assert run(machine, code.with_source(machine.render(code)).with_binary(binary), 6) == COUNTED


@needs_opencl
def test_what_the_driver_rejects_is_shown():
    code = counting_program().with_source("__kernel void broken( {")
    with pytest.raises(InternalError, match="rejects the rendered program"):
        device("OPENCL").compile(code)


@needs_opencl
def test_times_are_taken_when_asked_for():
    device("OPENCL")  # sets where PoCL keeps its files
    machine = OpenclDevice(opencl.render, profiling=True)
    code = counting_program()
    executable = machine.load(code.with_source(machine.render(code)))
    with pytest.raises(NotSupported, match="no time was taken"):
        _ = executable.seconds
    executable([machine.allocate(48)], [], (6,))
    assert executable.seconds >= 0


@needs_opencl
def test_what_was_compiled_is_built_once(monkeypatch: pytest.MonkeyPatch):
    opened = OpenclDevice(opencl.render)
    builds: list[str] = []
    build = opened._build_source

    def counted(code: Program) -> Any:
        builds.append(code.name)
        return build(code)

    def refused(code: Program) -> Any:
        raise AssertionError("built from its binary")

    monkeypatch.setattr(opened, "_build_source", counted)
    monkeypatch.setattr(opened, "_try_build_binary", refused)
    made = counting_program()
    made = made.with_source(opened.render(made))
    assert run(opened, made.with_binary(opened.compile(made)), 6) == COUNTED
    assert len(builds) == 1
