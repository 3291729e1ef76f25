"""How code is told where things are: the relocations of the processors that kernels run on.

A relocation is a function of the bytes that it changes, its own address `at`, and the address of
what it is about. Those that need an entry of the table of addresses, or a stub that jumps through
one, say so in `NEEDS`. The names and numbers are those of the ABI documents of x86-64 and AArch64.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

from weft.runtime.llvm.elf import AARCH64, X86_64

_PAGE: Final = 0xFFF
WORD: Final = 8

# bytes, offset in them, own address, address of the target with its addend
Apply = Callable[[bytearray, int, int, int], None]

DIRECT, ENTRY, STUB = range(3)  # what a relocation refers to: the target, its entry, a stub


def _signed(value: int, bits: int, what: str) -> int:
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise ValueError(f"{what} is too far away")
    return value


def _put_32(data: bytearray, offset: int, value: int) -> None:
    struct.pack_into("<I", data, offset, value & 0xFFFFFFFF)


def _absolute_64(data: bytearray, offset: int, at: int, target: int) -> None:
    struct.pack_into("<Q", data, offset, target & 0xFFFFFFFFFFFFFFFF)


def _relative_64(data: bytearray, offset: int, at: int, target: int) -> None:
    struct.pack_into("<Q", data, offset, target - at & 0xFFFFFFFFFFFFFFFF)


def _relative_32(data: bytearray, offset: int, at: int, target: int) -> None:
    _put_32(data, offset, _signed(target - at, 32, "a symbol"))


def _field(data: bytearray, offset: int, mask: int, value: int) -> None:
    """Put a value into the bits of an instruction."""
    (old,) = struct.unpack_from("<I", data, offset)
    _put_32(data, offset, old & ~mask | value & mask)


def _page_address(data: bytearray, offset: int, at: int, target: int) -> None:
    pages = _signed((target & ~_PAGE) - (at & ~_PAGE) >> 12, 21, "a page")
    _field(data, offset, 0x60FFFFE0, (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5)


def _near_address(data: bytearray, offset: int, at: int, target: int) -> None:
    way = _signed(target - at, 21, "a symbol")
    _field(data, offset, 0x60FFFFE0, (way & 3) << 29 | (way >> 2 & 0x7FFFF) << 5)


def _in_page(scale: int) -> Apply:
    """The offset of a target in its page, in units of what an instruction moves."""

    def apply(data: bytearray, offset: int, at: int, target: int) -> None:
        if target & (1 << scale) - 1:
            raise ValueError("a symbol is not aligned to what is read of it")
        _field(data, offset, 0x003FFC00, (target & _PAGE) >> scale << 10)

    return apply


def _branch(bits: int, shift: int) -> Apply:
    """A jump by a number of instructions."""

    def apply(data: bytearray, offset: int, at: int, target: int) -> None:
        steps = _signed(target - at, bits + 2, "a function") >> 2
        _field(data, offset, (1 << bits) - 1 << shift, (steps & (1 << bits) - 1) << shift)

    return apply


RELOCATIONS: Final[dict[int, dict[int, tuple[int, Apply]]]] = {
    X86_64: {
        1: (DIRECT, _absolute_64),  # R_X86_64_64
        2: (DIRECT, _relative_32),  # R_X86_64_PC32
        4: (STUB, _relative_32),  # R_X86_64_PLT32
        9: (ENTRY, _relative_32),  # R_X86_64_GOTPCREL
        24: (DIRECT, _relative_64),  # R_X86_64_PC64
        41: (ENTRY, _relative_32),  # R_X86_64_GOTPCRELX
        42: (ENTRY, _relative_32),  # R_X86_64_REX_GOTPCRELX
    },
    AARCH64: {
        257: (DIRECT, _absolute_64),  # R_AARCH64_ABS64
        260: (DIRECT, _relative_64),  # R_AARCH64_PREL64
        261: (DIRECT, _relative_32),  # R_AARCH64_PREL32
        274: (DIRECT, _near_address),  # R_AARCH64_ADR_PREL_LO21
        275: (DIRECT, _page_address),  # R_AARCH64_ADR_PREL_PG_HI21
        277: (DIRECT, _in_page(0)),  # R_AARCH64_ADD_ABS_LO12_NC
        278: (DIRECT, _in_page(0)),  # R_AARCH64_LDST8_ABS_LO12_NC
        279: (DIRECT, _branch(14, 5)),  # R_AARCH64_TSTBR14
        280: (DIRECT, _branch(19, 5)),  # R_AARCH64_CONDBR19
        282: (STUB, _branch(26, 0)),  # R_AARCH64_JUMP26
        283: (STUB, _branch(26, 0)),  # R_AARCH64_CALL26
        284: (DIRECT, _in_page(1)),  # R_AARCH64_LDST16_ABS_LO12_NC
        285: (DIRECT, _in_page(2)),  # R_AARCH64_LDST32_ABS_LO12_NC
        286: (DIRECT, _in_page(3)),  # R_AARCH64_LDST64_ABS_LO12_NC
        299: (DIRECT, _in_page(4)),  # R_AARCH64_LDST128_ABS_LO12_NC
        311: (ENTRY, _page_address),  # R_AARCH64_ADR_GOT_PAGE
        312: (ENTRY, _in_page(3)),  # R_AARCH64_LD64_GOT_LO12_NC
    },
}


def _x86_stub(at: int, entry: int) -> bytes:
    return b"\xff\x25" + struct.pack("<i", entry - at - 6) + b"\xcc\xcc"  # jmp [rip + way]


def _arm_stub(at: int, entry: int) -> bytes:
    code = bytearray(struct.pack("<3I", 0x90000010, 0xF9400210, 0xD61F0200))
    _page_address(code, 0, at, entry)  # adrp x16, entry
    _in_page(3)(code, 4, at + 4, entry)  # ldr x16, [x16, entry]
    return bytes(code)  # br x16


# How long a stub is, and its code.
STUBS: Final[dict[int, tuple[int, Callable[[int, int], bytes]]]] = {
    X86_64: (8, _x86_stub),
    AARCH64: (12, _arm_stub),
}
