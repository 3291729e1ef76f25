"""Object files of LLVM as data: sections, symbols and relocations of 64-bit ELF.

`elf_link.py` puts them into memory. Only what LLVM emits for a kernel is read; all else is an
error, and so is an object that is cut short or points outside of itself.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from weft.support.errors import InternalError

X86_64: Final = 62
AARCH64: Final = 183

_MAGIC: Final = b"\x7fELF\x02\x01\x01"  # 64 bits, little endian, version 1
_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_RELOCATION: Final = struct.Struct("<QQq")
_RELOCATABLE: Final = 1

_SYMBOLS, _ADDENDS, _NO_BITS, _RELATIVE = 2, 4, 8, 9  # kinds of sections
_WRITE, _ALLOCATE = 1, 2  # flags of sections
_UNDEFINED, _RESERVED = 0, 0xFF00  # numbers of sections
_WEAK: Final = 2


class Section(NamedTuple):
    """Bytes that belong into memory; `data` is shorter than `size` where the rest is zeros."""

    size: int
    alignment: int
    is_writable: bool
    data: bytes


class Symbol(NamedTuple):
    """A name, and where it is: a section and an offset, or None for what is found elsewhere."""

    name: str
    section: int | None
    offset: int
    is_weak: bool


class Relocation(NamedTuple):
    """An address in a section that depends on where a symbol is."""

    section: int
    offset: int
    kind: int
    symbol: int
    addend: int


class ElfObject(NamedTuple):
    """The sections that belong into memory by number, all symbols, and the relocations."""

    machine: int
    sections: dict[int, Section]
    symbols: list[Symbol]
    relocations: list[Relocation]


def read_object(data: bytes) -> ElfObject:
    """Read an object file."""
    try:
        return _read(data)
    except (struct.error, IndexError, ValueError, UnicodeDecodeError) as error:
        raise InternalError(f"an object file cannot be read: {error}") from error


def _read(data: bytes) -> ElfObject:
    fields = _HEADER.unpack_from(data)
    magic, kind, machine, start, count = *fields[:3], fields[6], fields[12]
    if not magic.startswith(_MAGIC) or kind != _RELOCATABLE:
        raise ValueError("expected a relocatable ELF file of 64 bits")
    rows = [_SECTION.unpack_from(data, start + i * _SECTION.size) for i in range(count)]
    sections: dict[int, Section] = {}
    symbols: list[Symbol] = []
    relocations: list[Relocation] = []
    for number, row in enumerate(rows):
        _, what, flags, _, offset, size, link, into, alignment, _ = row
        if what == _SYMBOLS:
            symbols = _read_symbols(_slice(data, offset, size), _slice(data, *rows[link][4:6]))
        elif what == _ADDENDS and rows[into][2] & _ALLOCATE:
            relocations += _read_relocations(_slice(data, offset, size), into)
        elif what == _RELATIVE and rows[into][2] & _ALLOCATE:
            raise ValueError("it has relocations without addends")
        elif flags & _ALLOCATE:
            contents = b"" if what == _NO_BITS else _slice(data, offset, size)
            sections[number] = Section(size, max(alignment, 1), bool(flags & _WRITE), contents)
    return _verified(ElfObject(machine, sections, symbols, relocations))


def _slice(data: bytes, offset: int, size: int) -> bytes:
    if offset + size > len(data):
        raise ValueError("it is cut short")
    return data[offset : offset + size]


def _read_symbols(table: bytes, names: bytes) -> list[Symbol]:
    found = []
    for at, info, _, section, value, _ in _SYMBOL.iter_unpack(table):
        name = names[at : names.index(b"\0", at)].decode()
        is_elsewhere = section == _UNDEFINED or section >= _RESERVED
        where = None if is_elsewhere else section
        found.append(Symbol(name, where, value, info >> 4 == _WEAK))
    return found


def _read_relocations(table: bytes, section: int) -> list[Relocation]:
    return [
        Relocation(section, offset, info & 0xFFFFFFFF, info >> 32, addend)
        for offset, info, addend in _RELOCATION.iter_unpack(table)
    ]


def _verified(found: ElfObject) -> ElfObject:
    """The object, if all that it names is inside of it."""
    for section, offset, _, symbol, _ in found.relocations:
        if offset + 4 > found.sections[section].size or symbol >= len(found.symbols):
            raise ValueError("a relocation points outside")
    for each in found.symbols:
        home = None if each.section is None else found.sections.get(each.section)
        if home is not None and each.offset > home.size:
            raise ValueError(f"the symbol {each.name} is outside of its section")
    return found
