"""The linker: code that runs and finds what it needs, memory that goes with it, bad objects."""

import ctypes
import gc
import platform
import struct
import sys

import numpy as np
import pytest

import weft.engine.compile as compiler
import weft.engine.work as worker
from tests.unit.runtime.cpu_kernels import add_number, device
from weft import InternalError, Tensor, clear_caches
from weft.runtime.llvm import elf_link as link
from weft.runtime.llvm.compiler import compile_object
from weft.runtime.llvm.elf import AARCH64, X86_64, read_object
from weft.runtime.llvm.elf_link import LoadedObject, link_object
from weft.runtime.llvm.linker import load_object
from weft.runtime.llvm.relocations import RELOCATIONS
from weft.target.cpu import parse_cpu

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="objects are ELF there")

HERE = platform.machine()
MODULES = {
    "constants of a vector": """
define i64 @f(i64 %x) {
  %a = insertelement <8 x i64> zeroinitializer, i64 %x, i32 0
  %v = shufflevector <8 x i64> %a, <8 x i64> poison, <8 x i32> zeroinitializer
  %p = mul <8 x i64> %v, <i64 1, i64 20, i64 300, i64 4000, i64 5, i64 60, i64 7, i64 8>
  %s = call i64 @llvm.vector.reduce.add.v8i64(<8 x i64> %p)
  ret i64 %s
}
declare i64 @llvm.vector.reduce.add.v8i64(<8 x i64>)
""",
    "a function of the process": """
@text = private constant [6 x i8] c"12345\\00"
declare i64 @strtol(ptr, ptr, i32)
define i64 @f(i64 %x) {
  %n = call i64 @strtol(ptr @text, ptr null, i32 10)
  %s = add i64 %n, %x
  ret i64 %s
}
""",
    "the address of a function": """
declare i64 @labs(i64)
define i64 @f(i64 %x) {
  %p = load volatile ptr, ptr @table
  %s = call i64 %p(i64 %x)
  ret i64 %s
}
@table = internal global ptr @labs
""",
    "a variable of the process": """
@environ = external global ptr
define i64 @f(i64 %x) {
  %p = load ptr, ptr @environ
  %n = icmp ne ptr %p, null
  %w = zext i1 %n to i64
  %s = add i64 %w, %x
  ret i64 %s
}
""",
    "memory of its own": """
@count = internal global i64 5
@zeros = internal global [3000 x i64] zeroinitializer
define i64 @f(i64 %x) {
  %c = load i64, ptr @count
  %d = add i64 %c, 1
  store i64 %d, ptr @count
  %p = getelementptr i64, ptr @zeros, i64 2999
  %z = load i64, ptr %p
  %y = add i64 %z, %x
  store i64 %y, ptr %p
  %s = add i64 %d, %y
  ret i64 %s
}
""",
    "functions of its own": """
define internal i64 @g(i64 %x) noinline {
  %s = mul i64 %x, 3
  ret i64 %s
}
define i64 @f(i64 %x) {
  %a = call i64 @g(i64 %x)
  %s = add i64 %a, 1
  ret i64 %s
}
""",
    "a table of jumps": """
define i64 @f(i64 %x) {
  switch i64 %x, label %other [ i64 0, label %a i64 1, label %b i64 2, label %c
                                i64 3, label %d i64 4, label %e i64 5, label %g ]
a: ret i64 11
b: %p = call i64 @labs(i64 -22)
   ret i64 %p
c: ret i64 33
d: ret i64 -4
e: ret i64 55
g: ret i64 66
other: ret i64 -1
}
declare i64 @labs(i64)
""",
}
RESULTS = {
    "constants of a vector": (7, 7 * (1 + 20 + 300 + 4000 + 5 + 60 + 7 + 8)),
    "a function of the process": (7, 12352),
    "the address of a function": (-7, 7),
    "a variable of the process": (7, 8),
    "memory of its own": (7, 13),
    "functions of its own": (7, 22),
    "a table of jumps": (1, 22),
}


def loaded(source: str) -> tuple[LoadedObject, object]:
    target = parse_cpu(HERE)
    library = link_object(compile_object(source, target), ("f",), HERE)
    return library, ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(library["f"])


@pytest.mark.parametrize("name", MODULES)
def test_what_is_linked_runs(name: str):
    library, f = loaded(MODULES[name])
    given, expected = RESULTS[name]
    assert f(given) == expected
    assert library


def test_each_object_has_memory_of_its_own():
    first, f = loaded(MODULES["memory of its own"])
    second, g = loaded(MODULES["memory of its own"])
    assert [f(0), f(0), g(0), f(1)] == [6, 7, 6, 9]
    assert first and second


def mappings() -> list[str]:
    with open("/proc/self/maps", encoding="ascii") as file:
        return file.read().splitlines()


def test_no_memory_can_be_written_and_executed():
    library, f = loaded(MODULES["memory of its own"])
    assert f(0) == 6
    own = [line for line in mappings() if in_range(line, library["f"])]
    assert [line.split()[1] for line in own] == ["r-xp"]


def in_range(line: str, address: int) -> bool:
    first, last = (int(part, 16) for part in line.split()[0].split("-"))
    return first <= address < last


def test_code_goes_with_its_executable():
    cpu = device()
    gc.collect()
    before, size = LoadedObject.count, LoadedObject.size
    code = add_number(1.0)
    code = code.with_binary(cpu.compile(code))
    kept = [cpu.load(code) for _ in range(50)]
    address = kept[0]._function
    assert LoadedObject.count == before + 50
    assert LoadedObject.size == size + 50 * link._PAGE
    assert any(in_range(line, address) for line in mappings())
    kept.clear()
    assert (LoadedObject.count, LoadedObject.size) == (before, size)
    assert not any(in_range(line, address) for line in mappings())


def test_many_shapes_leave_no_code_behind(monkeypatch):
    """What is loaded is bounded by the caches, and what they drop is unloaded."""
    for cache in (compiler._LOADED, worker._PREPARED, worker._WORK):
        monkeypatch.setattr(cache, "most", 8)
    clear_caches()
    before = LoadedObject.count
    for number in range(60):
        x = np.arange(number + 1000, dtype=np.float32)
        assert (Tensor(x) * 2 + 1).numpy()[-1] == 2 * (number + 999) + 1
        assert LoadedObject.count <= before + 18
    clear_caches()
    assert LoadedObject.count <= before


@pytest.mark.parametrize("arch", ["x86_64", "aarch64"])
@pytest.mark.parametrize("name", MODULES)
def test_what_is_cut_short_or_changed_is_an_error(name: str, arch: str):
    binary = compile_object(MODULES[name], parse_cpu(arch))
    read_object(binary)
    for length in range(0, len(binary), 7):
        with pytest.raises(InternalError):
            read_object(binary[:length])


def test_what_cannot_be_linked_is_an_error():
    target = parse_cpu(HERE)
    missing = "declare i64 @there_is_no_such(i64)\n" + MODULES["functions of its own"].replace(
        "@g(i64 %x)\n  %s = add", "@there_is_no_such(i64 %x)\n  %s = add"
    )
    binary = compile_object(missing, target)
    with pytest.raises(InternalError, match="this process has no there_is_no_such"):
        load_object(binary, ("f",), target)
    with pytest.raises(InternalError, match="has no function h"):
        load_object(compile_object(MODULES["functions of its own"], target), ("h",), target)
    other = "aarch64" if HERE == "x86_64" else "x86_64"
    with pytest.raises(InternalError, match="is not one of"):
        link_object(compile_object(MODULES["functions of its own"], parse_cpu(other)), (), HERE)
    found = read_object(binary)
    strange = found._replace(relocations=[found.relocations[0]._replace(kind=9999)])
    with pytest.raises(InternalError, match="kind 9999"):
        link._Layout(strange)


@pytest.mark.parametrize("arch", ["x86_64", "aarch64"])
@pytest.mark.parametrize("name", MODULES)
def test_relocations_of_every_processor_are_known(name: str, arch: str):
    found = read_object(compile_object(MODULES[name], parse_cpu(arch)))
    assert found.machine == {"x86_64": X86_64, "aarch64": AARCH64}[arch]
    kinds = {relocation.kind for relocation in found.relocations}
    assert kinds <= set(RELOCATIONS[found.machine])
    link._Layout(found).image(0x7F1234567000)


def page_target(word: int, at: int) -> int:
    """Where an ADRP instruction points."""
    pages = (word >> 29 & 3) | (word >> 5 & 0x7FFFF) << 2
    return (at & ~0xFFF) + (pages - (pages >> 20 << 21) << 12)


@pytest.mark.parametrize("distance", [0, 8, 4096, 0x12345678 & ~7, -8, -0x7654321000])
def test_addresses_of_aarch64_come_in_two_parts(distance: int):
    at = 0x7F1234567040
    target = at + distance & ~7
    for kind, scale in ((277, 0), (285, 2), (286, 3)):
        code = bytearray(struct.pack("<2I", 0x90000000, 0xF9400000))
        pages, in_page = RELOCATIONS[AARCH64][275][1], RELOCATIONS[AARCH64][kind][1]
        if abs(distance) >> 32:
            with pytest.raises(ValueError, match="too far"):
                pages(code, 0, at, target)
            continue
        pages(code, 0, at, target)
        in_page(code, 4, at + 4, target)
        first, second = struct.unpack("<2I", code)
        assert first & 0x9F00001F == 0x90000000 and second & ~0x003FFC00 == 0xF9400000
        assert page_target(first, at) + ((second >> 10 & 0xFFF) << scale) == target


@pytest.mark.parametrize("steps", [0, 1, -1, (1 << 25) - 1, -(1 << 25)])
def test_calls_of_aarch64(steps: int):
    code = bytearray(struct.pack("<I", 0x94000000))
    call = RELOCATIONS[AARCH64][283][1]
    call(code, 0, 0x40000000, 0x40000000 + 4 * steps)
    (word,) = struct.unpack("<I", code)
    assert word >> 26 == 0x25 and word & 0x3FFFFFF == steps & 0x3FFFFFF
    with pytest.raises(ValueError, match="too far"):
        call(code, 0, 0x40000000, 0x40000000 + (4 << 26))
