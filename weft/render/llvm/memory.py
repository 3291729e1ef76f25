"""Addresses in memory, loads and stores as LLVM instructions.

Memory is addressed by element. An access that is masked off touches nothing: a store is jumped
over; a load on a CPU reads a constant zero instead, chosen without a jump, and is jumped over on a
GPU or where the memory is inside the kernel, which LLVM can then keep in registers. A mask with
lanes becomes a masked access.

Nothing is said about the aliasing of arguments, because two may be one buffer. On a CPU their
alignment is that of an element, because views and foreign buffers have no more. A GPU moves a
vector at once where its address is a multiple of its size; that follows from the alignment of the
target's global memory and from what an index is a multiple of.
"""

from __future__ import annotations

import math
from typing import Final

from weft.ir.dtypes import BOOL, UINT, DType
from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.ir.views import behind
from weft.render.llvm.code import Code, MaskedPointer
from weft.render.llvm.facts import divisor_of, is_narrow
from weft.render.llvm.types import element_type, memory_type, suffix, value_type, with_lanes, zero
from weft.support.errors import InternalError
from weft.target.memory import GLOBAL

ALIGNMENT: Final = 64
# Every thread has that much stack and some to spare; a target allows less than this.
MOST_STACK_BYTES: Final = 3 << 19


def allocate(code: Code) -> None:
    """Write the memory inside the kernel: on the stack, or for a GPU group in shared memory."""
    total = 0
    for node in code.leaves:
        if node.op != Op.MEMORY or node.arg[1] == "dynamic":
            continue
        name, space, size = node.arg
        array = f"[{size} x {element_type(node.dtype)}]"
        shared = code.backend.local_space
        if shared and space == "local":
            label = code.writer.name(f"@{''.join(c for c in name if c.isalnum())}_")
            code.writer.globals.append(
                f"{label} = internal addrspace({shared}) global {array} undef, align {ALIGNMENT}"
            )
            code.pointers[node] = f"ptr addrspace({shared})", label
        else:
            total += size * node.dtype.itemsize
            stack = code.writer.value(f"alloca {array}, align {ALIGNMENT}")
            code.pointers[node] = "ptr", stack
    if total > MOST_STACK_BYTES:
        raise InternalError(
            f"render: the kernel keeps {total} bytes inside, and {MOST_STACK_BYTES} are the most"
        )


def write_address(code: Code, node: UOp) -> MaskedPointer | None:
    """Write the address of an INDEX; None if it is never touched."""
    memory, mask, index = node.src
    pointer_type, base = code.pointer(behind(memory))
    mask_text = "" if mask.op == Op.CONST and mask.arg else code.operand(mask)
    if mask.op == Op.CONST and not mask.arg:
        return None
    pointer = base
    if index.op != Op.CONST or index.arg != 0:
        offset = _offset(code, index)
        # The first lanes of a masked access may lie before the memory.
        instruction = "getelementptr" + (" inbounds" if mask.dtype.lanes == 1 else "")
        element = element_type(node.dtype)
        pointer = code.writer.value(f"{instruction} {element}, {pointer_type} {base}, {offset}")
    return MaskedPointer(
        *(pointer_type, pointer, mask_text, mask.dtype.lanes, memory.op == Op.PARAM),
        _alignment(code, node, memory, index),
        _known_lanes(mask),
        _shared_condition(code, mask),
    )


def _alignment(code: Code, node: UOp, memory: UOp, index: UOp) -> int:
    """What an address is a multiple of: on a GPU, where a vector is moved at once."""
    size = node.dtype.scalar.itemsize
    if code.backend.has_vectors or node.dtype.lanes == 1:
        return size
    is_argument = behind(memory).op == Op.PARAM
    base = code.target.memory(GLOBAL).alignment if is_argument else ALIGNMENT
    whole = math.gcd(divisor_of(index) * size, base)
    return max(size, math.gcd(whole, node.dtype.itemsize))


def _shared_condition(code: Code, mask: UOp) -> str:
    """What all lanes of a mask ask for together, as the number of a row; empty if nothing."""
    if mask.dtype.lanes == 1 or not code.backend.reads_zeros:
        return ""
    parts, waiting = dict[UOp, None](), [mask]
    while waiting:
        node = waiting.pop()
        if node.op == Op.AND:
            waiting += node.src
        elif node.op == Op.VECTOR and all(source is node.src[0] for source in node.src):
            parts[node.src[0]] = None
    texts = [code.operand(part) for part in parts if part.dtype.lanes == 1]
    whole = ""
    for text in texts:
        whole = code.writer.value(f"and i1 {whole}, {text}") if whole else text
    return whole


def _known_lanes(mask: UOp) -> tuple[bool, ...]:
    """Which lanes of a mask hold, if that is known; else none."""
    if mask.op == Op.VECTOR and all(lane.op == Op.CONST for lane in mask.src):
        return tuple([bool(lane.arg) for lane in mask.src])
    return ()


def _offset(code: Code, index: UOp) -> str:
    """The index with its type; LLVM reads a narrow one as signed."""
    if code.backend.has_wide_indices or not is_narrow(index):
        return f"i64 {code.operand_64(index)}"
    if index.dtype.kind != UINT:
        return f"{value_type(index.dtype)} {code.operand(index)}"
    wide = code.writer.value(f"zext {value_type(index.dtype)} {code.operand(index)} to i64")
    return f"i64 {wide}"


def write_load(code: Code, dtype: DType, address: MaskedPointer | None) -> str:
    """The value at an address; 0, or 0 in a lane, where it is masked off."""
    if address is None:
        return zero(value_type(dtype))
    stored = memory_type(dtype)
    if not address.mask:
        loaded = _load(code, dtype, address.pointer_type, address.pointer, address.alignment)
    elif address.mask_lanes > 1:
        loaded = _masked_load(code, dtype, address)
    elif address.is_argument and code.backend.reads_zeros:
        zeros = code.writer.zeros(dtype.itemsize)
        pointer = code.writer.select(("i1", address.mask), "ptr", address.pointer, zeros)
        loaded = _load(code, dtype, "ptr", pointer, address.alignment)
    else:
        loaded = _guarded_load(code, dtype, address)
    if dtype.kind != BOOL or keeps_bytes(code, dtype):
        return loaded
    return code.writer.value(f"icmp ne {stored} {loaded}, {zero(stored)}")


def keeps_bytes(code: Code, dtype: DType) -> bool:
    """Whether bools are the bytes of memory: as lanes on a GPU, which computes with none."""
    return not code.backend.has_vectors and dtype.lanes > 1 and dtype.kind == BOOL


def _load(code: Code, dtype: DType, pointer_type: str, pointer: str, alignment: int) -> str:
    stored = memory_type(dtype)
    return code.writer.value(f"load {stored}, {pointer_type} {pointer}, align {alignment}")


def _masked_load(code: Code, dtype: DType, address: MaskedPointer) -> str:
    stored, pointer = memory_type(dtype), address.pointer
    if address.shared and address.is_argument:
        # Without a lane the address may be anywhere, and a core takes long to find out that memory
        # which is not there is not wanted either.
        zeros = code.writer.zeros(dtype.itemsize)
        pointer = code.writer.select(("i1", address.shared), "ptr", pointer, zeros)
    return code.writer.call(
        f"llvm.masked.load.{suffix(stored)}.{_pointer_suffix(address)}",
        stored,
        (address.pointer_type, pointer),
        ("i32", str(dtype.scalar.itemsize)),
        (with_lanes("i1", dtype.lanes), address.mask),
        (stored, zero(stored)),
    )


def _pointer_suffix(address: MaskedPointer) -> str:
    return "p" + (address.pointer_type.partition("(")[2].rstrip(")") or "0")


def _guarded_load(code: Code, dtype: DType, address: MaskedPointer) -> str:
    writer, stored = code.writer, memory_type(dtype)
    read, join = writer.name("read"), writer.name("join")
    before = writer.block_name
    writer.do(f"br i1 {address.mask}, label %{read}, label %{join}")
    writer.block(read)
    loaded = _load(code, dtype, address.pointer_type, address.pointer, address.alignment)
    writer.enter(join)
    return writer.value(f"phi {stored} [ {zero(stored)}, %{before} ], [ {loaded}, %{read} ]")


def write_store(code: Code, dtype: DType, address: MaskedPointer | None, value: str) -> None:
    """Write a value at an address where it is not masked off."""
    if address is None:
        return
    writer, stored = code.writer, memory_type(dtype)
    if dtype.kind == BOOL and not keeps_bytes(code, dtype):
        value = writer.value(f"zext {value_type(dtype)} {value} to {stored}")
    if address.known and (address.known.count(True) == 1 or not code.backend.has_vectors):
        _store_known_lanes(code, dtype, address, value)
        return
    if address.mask and address.mask_lanes > 1:
        writer.call(
            f"llvm.masked.store.{suffix(stored)}.{_pointer_suffix(address)}",
            "void",
            (stored, value),
            (address.pointer_type, address.pointer),
            ("i32", str(dtype.scalar.itemsize)),
            (with_lanes("i1", dtype.lanes), address.mask),
        )
        return
    done = ""
    if address.mask:
        write, done = writer.name("write"), writer.name("done")
        writer.do(f"br i1 {address.mask}, label %{write}, label %{done}")
        writer.block(write)
    target = f"{address.pointer_type} {address.pointer}"
    writer.do(f"store {stored} {value}, {target}, align {address.alignment}")
    if done:
        writer.enter(done)


def _store_known_lanes(code: Code, dtype: DType, address: MaskedPointer, value: str) -> None:
    """Write the lanes that are open, those side by side at once.

    LLVM makes a store of all 64 bits of a masked store of one known lane that was cut to 32. Of
    several lanes it takes wrong ones where they are cut out of a `select` (22.1, x86), so cores
    with vectors store those with a mask.
    """
    writer, stored, element = code.writer, memory_type(dtype), memory_type(dtype.scalar)
    lanes = [number for number, is_open in enumerate(address.known) if is_open]
    firsts = [lane for lane in lanes if lane - 1 not in lanes]
    for first in firsts:
        count = next(n for n in range(1, dtype.lanes + 1) if first + n not in lanes)
        if count == 1:
            kind, part = element, writer.value(f"extractelement {stored} {value}, i32 {first}")
        else:
            kind = with_lanes(element, count)
            picked = ", ".join(f"i32 {first + n}" for n in range(count))
            part = writer.value(
                f"shufflevector {stored} {value}, {stored} poison, <{count} x i32> <{picked}>"
            )
        pointer = address.pointer
        if first:
            pointer = writer.value(
                f"getelementptr {element}, {address.pointer_type} {pointer}, i64 {first}"
            )
        writer.do(
            f"store {kind} {part}, {address.pointer_type} {pointer}, align {dtype.scalar.itemsize}"
        )
