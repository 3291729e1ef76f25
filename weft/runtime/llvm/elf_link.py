"""Object files become machine code of this process, in memory that goes with the code.

`linker.py` calls it where objects are ELF. An object lies in one piece of memory: what is
executed or only read, then a table of addresses with stubs for functions of the process, then what
is written. No page is ever writable and executable at once. LLVM's own linker keeps some nine
kilobytes of each object for ever, and takes ten times as long.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
from typing import Any, Final

from weft.runtime.llvm.elf import AARCH64, X86_64, ElfObject, Symbol, read_object
from weft.runtime.llvm.relocations import ENTRY, RELOCATIONS, STUB, STUBS, WORD
from weft.support.errors import InternalError

MACHINES: Final = {"x86_64": X86_64, "aarch64": AARCH64}
_PAGE: Final = mmap.PAGESIZE
_READ_EXECUTE: Final = 1 | 4


class LoadedObject:
    """Code in memory; it goes with this object."""

    count = 0  # of those that there are
    size = 0  # bytes of all of them

    def __init__(self, memory: mmap.mmap, addresses: dict[str, int]) -> None:
        self._memory = memory
        self._addresses = addresses
        self._size = len(memory)
        LoadedObject.count += 1
        LoadedObject.size += self._size

    def __getitem__(self, name: str) -> int:
        return self._addresses[name]

    def __del__(self) -> None:
        if LoadedObject is not None:  # names may be gone when the interpreter ends
            LoadedObject.count -= 1
            LoadedObject.size -= self._size


def link_object(binary: bytes, names: tuple[str, ...], arch: str) -> LoadedObject:
    """Put an object file into memory, with the functions of these names to be found."""
    found = read_object(binary)
    if found.machine != MACHINES[arch]:
        raise InternalError(f"an object file is not one of {arch}")
    layout = _Layout(found)
    memory = mmap.mmap(-1, layout.size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    base = _address(memory)
    try:
        memory[:] = bytes(layout.image(base))
    except (KeyError, ValueError) as error:
        raise InternalError(f"{', '.join(names)} cannot be linked: {error}") from error
    _make_executable(base, layout.code_size)
    return LoadedObject(memory, {name: base + layout.start_of(name) for name in names})


class _Layout:
    """Where each part of an object lies, counted from its beginning."""

    def __init__(self, found: ElfObject) -> None:
        self._found = found
        self._kinds = RELOCATIONS[found.machine]
        self._stub_size, self._stub_code = STUBS[found.machine]
        self._starts: dict[int, int] = {}
        end = self._lay_out(0, is_writable=False)
        outside = [self._needs(relocation.kind) for relocation in found.relocations]
        needed = {
            relocation.symbol
            for relocation, need in zip(found.relocations, outside, strict=True)
            if need == ENTRY or (need == STUB and found.symbols[relocation.symbol].section is None)
        }
        self._entries = {}
        self._stubs = {}
        end = _aligned(end, WORD)
        for symbol in sorted(needed):
            self._entries[symbol] = end
            end += WORD
        for symbol in sorted(needed):
            self._stubs[symbol] = end
            end += self._stub_size
        self.code_size = _aligned(end, _PAGE)
        self.size = max(_aligned(self._lay_out(self.code_size, is_writable=True), _PAGE), _PAGE)

    def _lay_out(self, end: int, is_writable: bool) -> int:
        for number, section in self._found.sections.items():
            if section.is_writable == is_writable:
                if section.alignment > _PAGE:
                    raise InternalError("a section is aligned to more than a page")
                self._starts[number] = end = _aligned(end, section.alignment)
                end += section.size
        return end

    def _needs(self, kind: int) -> int:
        if kind not in self._kinds:
            raise InternalError(f"a relocation of kind {kind} cannot be carried out")
        return self._kinds[kind][0]

    def start_of(self, name: str) -> int:
        """Where the function of a name begins."""
        for symbol in self._found.symbols:
            if symbol.name == name and symbol.section in self._starts:
                return self._starts[symbol.section] + symbol.offset
        raise InternalError(f"an object file has no function {name}")

    def image(self, base: int) -> bytearray:
        """The bytes of the object for an address in memory."""
        found = self._found
        image = bytearray(self.size)
        for number, start in self._starts.items():
            data = found.sections[number].data
            image[start : start + len(data)] = data
        for symbol, entry in self._entries.items():
            target = self._target(found.symbols[symbol], base)
            image[entry : entry + WORD] = target.to_bytes(WORD, "little")
            stub = self._stubs[symbol]
            code = self._stub_code(base + stub, base + entry)
            image[stub : stub + len(code)] = code
        for section, offset, kind, symbol, addend in found.relocations:
            need, apply = self._kinds[kind]
            if need == ENTRY:
                target = base + self._entries[symbol]
            elif need == STUB and symbol in self._stubs:
                target = base + self._stubs[symbol]
            else:
                target = self._target(found.symbols[symbol], base)
            start = self._starts[section] + offset
            apply(image, start, base + start, target + addend)
        return image

    def _target(self, symbol: Symbol, base: int) -> int:
        """The address of a symbol, in the object or in the process."""
        if symbol.section is not None:
            return base + self._starts[symbol.section] + symbol.offset
        address = _address_in_process(symbol.name)
        if not address and not symbol.is_weak:
            raise ValueError(f"this process has no {symbol.name}")
        return address


def _aligned(end: int, alignment: int) -> int:
    return -(-end // alignment) * alignment


@functools.cache
def _process() -> Any:
    return ctypes.CDLL(None)


@functools.cache
def _address_in_process(name: str) -> int:
    try:
        function = getattr(_process(), name)
    except AttributeError:
        return 0
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _address(memory: mmap.mmap) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


def _make_executable(base: int, size: int) -> None:
    process = _process()
    process.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    if size and process.mprotect(base, size, _READ_EXECUTE):
        raise InternalError("memory cannot be made executable")
    # Linux itself lets a processor with a cache of instructions forget what fresh pages held.
