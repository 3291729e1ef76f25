"""Places in memory, loads and stores as LLVM instructions.

Memory is addressed by element. An access that is gated off touches nothing: a store is jumped
over; a load on a CPU reads a constant zero instead, chosen without a jump, and is jumped over on a
GPU or where the memory is inside the kernel, which LLVM can then keep in registers. A gate with
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
from weft.render.llvm.code import Code, Place
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
        if node.op != Op.MEMORY:
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


def write_place(code: Code, node: UOp) -> Place | None:
    """Write the address of an INDEX; None if it is never touched."""
    memory, gate, index = node.src
    pointer_type, base = code.pointer(behind(memory))
    gate_text = "" if gate.op == Op.CONST and gate.arg else code.operand(gate)
    if gate.op == Op.CONST and not gate.arg:
        return None
    pointer = base
    if index.op != Op.CONST or index.arg != 0:
        offset = _offset(code, index)
        # The first lanes of a masked access may lie before the memory.
        instruction = "getelementptr" + (" inbounds" if gate.dtype.lanes == 1 else "")
        element = element_type(node.dtype)
        pointer = code.writer.value(f"{instruction} {element}, {pointer_type} {base}, {offset}")
    return Place(
        *(pointer_type, pointer, gate_text, gate.dtype.lanes, memory.op == Op.PARAM),
        _alignment(code, node, memory, index),
        _known_lanes(gate),
    )


def _alignment(code: Code, node: UOp, memory: UOp, index: UOp) -> int:
    """What the address of a place is a multiple of: on a GPU, where a vector is moved at once."""
    size = node.dtype.scalar.itemsize
    if code.backend.has_vectors or node.dtype.lanes == 1:
        return size
    is_argument = behind(memory).op == Op.PARAM
    base = code.target.memory(GLOBAL).alignment if is_argument else ALIGNMENT
    whole = math.gcd(divisor_of(index) * size, base)
    return max(size, math.gcd(whole, node.dtype.itemsize))


def _known_lanes(gate: UOp) -> tuple[bool, ...]:
    """Which lanes of a gate are open, if that is known; else none."""
    if gate.op == Op.VECTOR and all(lane.op == Op.CONST for lane in gate.src):
        return tuple([bool(lane.arg) for lane in gate.src])
    return ()


def _offset(code: Code, index: UOp) -> str:
    """The index with its type; LLVM reads a narrow one as signed."""
    if code.backend.has_wide_indices or not is_narrow(index):
        return f"i64 {code.operand_64(index)}"
    if index.dtype.kind != UINT:
        return f"{value_type(index.dtype)} {code.operand(index)}"
    wide = code.writer.value(f"zext {value_type(index.dtype)} {code.operand(index)} to i64")
    return f"i64 {wide}"


def write_load(code: Code, dtype: DType, place: Place | None) -> str:
    """The value at a place; 0, or 0 in a lane, where it is gated off."""
    if place is None:
        return zero(value_type(dtype))
    stored = memory_type(dtype)
    if not place.gate:
        loaded = _load(code, dtype, place.pointer_type, place.pointer, place.alignment)
    elif place.gate_lanes > 1:
        loaded = _masked_load(code, dtype, place)
    elif place.is_argument and code.backend.reads_zeros:
        zeros = code.writer.zeros(dtype.itemsize)
        pointer = code.writer.select(("i1", place.gate), "ptr", place.pointer, zeros)
        loaded = _load(code, dtype, "ptr", pointer, place.alignment)
    else:
        loaded = _guarded_load(code, dtype, place)
    if dtype.kind != BOOL or keeps_bytes(code, dtype):
        return loaded
    return code.writer.value(f"icmp ne {stored} {loaded}, {zero(stored)}")


def keeps_bytes(code: Code, dtype: DType) -> bool:
    """Whether bools are the bytes of memory: as lanes on a GPU, which computes with none."""
    return not code.backend.has_vectors and dtype.lanes > 1 and dtype.kind == BOOL


def _load(code: Code, dtype: DType, pointer_type: str, pointer: str, alignment: int) -> str:
    stored = memory_type(dtype)
    return code.writer.value(f"load {stored}, {pointer_type} {pointer}, align {alignment}")


def _masked_load(code: Code, dtype: DType, place: Place) -> str:
    stored = memory_type(dtype)
    return code.writer.call(
        f"llvm.masked.load.{suffix(stored)}.{_pointer_suffix(place)}",
        stored,
        (place.pointer_type, place.pointer),
        ("i32", str(dtype.scalar.itemsize)),
        (with_lanes("i1", dtype.lanes), place.gate),
        (stored, zero(stored)),
    )


def _pointer_suffix(place: Place) -> str:
    return "p" + (place.pointer_type.partition("(")[2].rstrip(")") or "0")


def _guarded_load(code: Code, dtype: DType, place: Place) -> str:
    writer, stored = code.writer, memory_type(dtype)
    read, join = writer.name("read"), writer.name("join")
    before = writer.block_name
    writer.do(f"br i1 {place.gate}, label %{read}, label %{join}")
    writer.block(read)
    loaded = _load(code, dtype, place.pointer_type, place.pointer, place.alignment)
    writer.enter(join)
    return writer.value(f"phi {stored} [ {zero(stored)}, %{before} ], [ {loaded}, %{read} ]")


def write_store(code: Code, dtype: DType, place: Place | None, value: str) -> None:
    """Write a value at a place where it is not gated off."""
    if place is None:
        return
    writer, stored = code.writer, memory_type(dtype)
    if dtype.kind == BOOL and not keeps_bytes(code, dtype):
        value = writer.value(f"zext {value_type(dtype)} {value} to {stored}")
    if place.known:
        _store_known_lanes(code, dtype, place, value)
        return
    if place.gate and place.gate_lanes > 1:
        writer.call(
            f"llvm.masked.store.{suffix(stored)}.{_pointer_suffix(place)}",
            "void",
            (stored, value),
            (place.pointer_type, place.pointer),
            ("i32", str(dtype.scalar.itemsize)),
            (with_lanes("i1", dtype.lanes), place.gate),
        )
        return
    done = ""
    if place.gate:
        write, done = writer.name("write"), writer.name("done")
        writer.do(f"br i1 {place.gate}, label %{write}, label %{done}")
        writer.block(write)
    target = f"{place.pointer_type} {place.pointer}"
    writer.do(f"store {stored} {value}, {target}, align {place.alignment}")
    if done:
        writer.enter(done)


def _store_known_lanes(code: Code, dtype: DType, place: Place, value: str) -> None:
    """Write the lanes that are open, those side by side at once.

    LLVM makes a store of all 64 bits of a masked store of one known lane that was cut to 32.
    """
    writer, stored, element = code.writer, memory_type(dtype), memory_type(dtype.scalar)
    lanes = [number for number, is_open in enumerate(place.known) if is_open]
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
        pointer = place.pointer
        if first:
            pointer = writer.value(
                f"getelementptr {element}, {place.pointer_type} {pointer}, i64 {first}"
            )
        writer.do(
            f"store {kind} {part}, {place.pointer_type} {pointer}, align {dtype.scalar.itemsize}"
        )
