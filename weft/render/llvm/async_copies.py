"""Copies of boxes, barriers that count bytes, and matrix instructions, as PTX in LLVM IR.

LLVM has no intrinsic for `wgmma.mma_async`, and those of the others differ between its versions,
so all are written as assembly. A matrix instruction reads and writes all registers of a tile: they
are loaded from memory inside the kernel and stored back, which `sroa` makes registers of. What
waits for them takes them as well, so that no use of a sum moves before the wait.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from weft.ir.dtypes import FLOAT, by_name, dtypes
from weft.ir.ops import Op
from weft.ir.program import DYNAMIC_ALIGNMENT, dynamic_offsets
from weft.ir.reduction.contract import ROW_BYTES
from weft.ir.uop import UOp
from weft.ir.views import behind
from weft.render.llvm.code import Code
from weft.render.llvm.types import element_type
from weft.support.errors import InternalError

_DTYPES: Final = {
    "bfloat16": "bf16",
    "float16": "f16",
    "fp8e4m3": "e4m3",
    "fp8e5m2": "e5m2",
    "int8": "s8",
    "uint8": "u8",
}
# Of a descriptor: rows of 128 bytes are swizzled, and eight of them follow each other.
_SWIZZLED: Final = 1 << 62
_EIGHT_ROWS: Final = 8 * ROW_BYTES >> 4 << 32
_MEMORY: Final = "~{memory}"


def tensor_maps(code: Code) -> list[UOp]:
    """The tensor maps of a program, in the order in which they are passed."""
    return [node for node in code.program.instructions.src if node.op == Op.TENSOR_MAP]


def map_arguments(code: Code) -> list[str]:
    """The parameters of the kernel that are tensor maps: 128 bytes each, never copied."""
    maps = tensor_maps(code)
    if maps:
        code.writer.globals.append("%tensor_map = type { [128 x i8] }")
    kind = 'ptr byval(%tensor_map) align 64 "nvvm.grid_constant"'
    return [f"{kind} %m{number}" for number in range(len(maps))]


def write_map(code: Code, node: UOp) -> None:
    """Name a map, and fetch it before the first copy asks for it."""
    code.define(node, f"%m{tensor_maps(code).index(node)}")
    _do(code, "prefetch.tensormap [$0];", f"l,{_MEMORY}", f"ptr {code.operand(node)}")


def _assembly(code: Code, text: str, constraints: str, operands: str, result: str = "void") -> str:
    call = (
        f'call {result} asm sideeffect "{text}", "{constraints}"({operands}) convergent nounwind'
    )
    if result == "void":
        code.writer.do(call)
        return ""
    return code.writer.value(call)


def _address(code: Code, address: UOp) -> str:
    """The address of local memory as a number of 32 bits."""
    found = code.addresses[address]
    assert found is not None
    return code.writer.value(f"ptrtoint {found.pointer_type} {found.pointer} to i32")


def _where(code: Code, mask: UOp, write: Callable[[], None]) -> None:
    """Write something that happens where a mask holds."""
    if mask.op == Op.CONST:
        if mask.arg:
            write()
        return
    writer = code.writer
    then, done = writer.name("then"), writer.name("done")
    writer.do(f"br i1 {code.operand(mask)}, label %{then}, label %{done}")
    writer.block(then)
    write()
    writer.enter(done)


def write_copy_box(code: Code, node: UOp) -> None:
    address, tensor, barrier, mask, *coordinates = node.src[:-1]
    target, count = _address(code, address), _address(code, barrier)
    rank = len(coordinates)
    numbers = ", ".join(f"${3 + axis}" for axis in range(rank))
    text = (
        f"cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
        f" [$0], [$1, {{{numbers}}}], [$2];"
    )
    operands = [f"i32 {target}", f"ptr {code.operand(tensor)}", f"i32 {count}"]
    operands += [f"i32 {_number(code, each)}" for each in coordinates]
    constraints = ",".join(["r", "l", "r", *("r" for _ in range(rank)), _MEMORY])
    _where(code, mask, lambda: _do(code, text, constraints, ", ".join(operands)))


def _number(code: Code, node: UOp) -> str:
    """A coordinate, which has 32 bits."""
    if node.op == Op.CONST or node.dtype.bits == 32:
        return code.operand(node)
    return code.writer.value(f"trunc i64 {code.operand(node)} to i32")


def _do(code: Code, text: str, constraints: str, operands: str) -> None:
    _assembly(code, text, constraints, operands)


def write_mbarrier(code: Code, node: UOp) -> None:
    kind = node.arg[0]
    address = _address(code, node.src[0])
    parity = code.operand(node.src[2]) if kind == "wait" else ""

    def write() -> None:
        if kind == "wait":
            _write_wait(code, address, parity)
            return
        if kind == "arrive":
            text = "mbarrier.arrive.shared::cta.b64 _, [$0];"
            _do(code, text, f"r,{_MEMORY}", f"i32 {address}")
            return
        if kind == "expect":
            text = f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], {node.arg[1]};"
            _do(code, text, f"r,{_MEMORY}", f"i32 {address}")
            return
        for number in range(node.arg[1]):
            text = f"mbarrier.init.shared::cta.b64 [$0 + {8 * number}], {node.arg[2]};"
            _do(code, text, f"r,{_MEMORY}", f"i32 {address}")
        _do(code, "fence.mbarrier_init.release.cluster;", _MEMORY, "")

    _where(code, node.src[1], write)


def _write_wait(code: Code, address: str, parity: str) -> None:
    """Ask until the phase is complete; the machine sleeps a while in each question."""
    writer = code.writer
    ask, done = writer.name("ask"), writer.name("complete")
    writer.enter(ask)
    text = (
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [$1], $2;"
        " selp.b32 $0, 1, 0, p; }"
    )
    said = _assembly(code, text, f"=r,r,r,{_MEMORY}", f"i32 {address}, i32 {parity}", "i32")
    is_done = writer.value(f"icmp ne i32 {said}, 0")
    writer.do(f"br i1 {is_done}, label %{done}, label %{ask}")
    writer.block(done)


def _descriptor(code: Code, address: UOp, panel: int) -> str:
    """Where a tile is and how it lies, as matrix instructions take it.

    Those of a product differ by constants, which are added last: all addresses fit, so that a sum
    of descriptors is the descriptor of a sum, and what is in front of it is computed once.
    """
    writer = code.writer
    memory, size = behind(address.src[0]), address.dtype.itemsize
    terms, constant = _apart(address.src[2])
    kind, pointer = code.pointers[memory]
    start = writer.value(f"ptrtoint {kind} {pointer} to i32")
    for term in terms:
        scaled = writer.value(f"mul i32 {code.operand(term)}, {size}")
        start = writer.value(f"add i32 {start}, {scaled}")
    units = writer.value(f"lshr i32 {start}, 4")
    low = writer.value(f"and i32 {units}, {0x3FFF}")
    first = writer.value(f"or i32 {low}, {(panel >> 4 or 1) << 16}")
    moved = writer.value(f"add i32 {first}, {constant * size >> 4}")
    wide = writer.value(f"zext i32 {moved} to i64")
    return writer.value(f"or i64 {wide}, {_SWIZZLED | _EIGHT_ROWS}")


def _apart(position: UOp) -> tuple[list[UOp], int]:
    """A position as what is computed, and a constant."""
    if position.op == Op.CONST:
        return [], int(position.arg)
    if position.op != Op.ADD:
        return [position], 0
    parts = [_apart(source) for source in position.src]
    return [term for terms, _ in parts for term in terms], sum(constant for _, constant in parts)


def write_mma(code: Code, node: UOp) -> None:
    (left, right), (rows, columns, depth), panels, *begins = node.arg
    sums, *tiles, _ = node.src
    count = sums.dtype.lanes
    is_own = _is_in_registers(tiles[0])
    if is_own:
        more = [f"i32 {each}" for each in _own_words(code, tiles[0])]
        first = "{" + ", ".join(f"${count + number}" for number in range(len(more))) + "}"
    else:
        more = [f"i64 {_descriptor(code, tiles[0], panels[0])}"]
        first = f"${count}"
    second = f"${count + len(more)}"
    more.append(f"i64 {_descriptor(code, tiles[1], panels[1])}")
    is_float = by_name(left).kind == FLOAT
    registers = ", ".join(f"${number}" for number in range(count))
    signs = ", 1, 1" if is_float else ""
    if by_name(left).itemsize == 2:
        signs += "".join(f", {int(panel > 0)}" for panel in panels[is_own:])
    kind = "f32" if is_float else "s32"
    text = (
        f"wgmma.mma_async.sync.aligned.m{rows}n{columns}k{depth}.{kind}"
        f".{_DTYPES[left]}.{_DTYPES[right]}"
        f" {{{registers}}}, {first}, {second}, {int(not begins)}{signs};"
    )
    _with_sums(code, sums, text, more, is_read=not begins)


def _is_in_registers(address: UOp) -> bool:
    return bool(behind(address.src[0]).arg[1] == "register")


def _own_words(code: Code, address: UOp) -> list[str]:
    """What a thread has of a left factor: two elements of 16 bits in each of four registers."""
    writer = code.writer
    first = code.addresses[address]
    assert first is not None
    of, start = first.pointer_type, first.pointer
    found: list[str] = []
    for word in range(4):
        pointer = writer.value(f"getelementptr inbounds i32, {of} {start}, i64 {word}")
        found.append(writer.value(f"load i32, {of} {pointer}, align 4"))
    return found


def _with_sums(
    code: Code, sums: UOp, text: str, more: Sequence[str], is_read: bool = True
) -> None:
    """Write assembly that writes all registers of a tile, and reads them unless it begins."""
    writer, count = code.writer, sums.dtype.lanes
    first = code.addresses[sums]
    assert first is not None
    of, start = first.pointer_type, first.pointer
    kind = element_type(sums.dtype.scalar)
    letter = "f" if sums.dtype.kind == FLOAT else "r"
    struct = "{" + ", ".join([kind] * count) + "}"
    pointers, values = [], []
    for number in range(count):
        pointer = writer.value(f"getelementptr inbounds {kind}, {of} {start}, i64 {number}")
        pointers.append(pointer)
        if is_read:
            values.append(writer.value(f"load {kind}, {of} {pointer}, align 4"))
    # Of a sum that begins, registers are written while factors are read still.
    output = f"={letter}" if is_read else f"=&{letter}"
    given = ["r" if each.startswith("i32") else "l" for each in more]
    tied = [str(n) for n in range(len(values))]
    constraints = ",".join([output] * count + given + tied + [_MEMORY])
    operands = ", ".join([*more, *(f"{kind} {value}" for value in values)])
    result = _assembly(code, text, constraints, operands, struct)
    for number, pointer in enumerate(pointers):
        part = writer.value(f"extractvalue {struct} {result}, {number}")
        writer.do(f"store {kind} {part}, {of} {pointer}, align 4")


def write_mma_group(code: Code, node: UOp) -> None:
    kind, *count = node.arg
    if kind == "fence" and node.src[0].dtype.scalar is dtypes.uint32:
        # Factors in registers take part, so that none is written behind the fence.
        _with_sums(code, node.src[0], "wgmma.fence.sync.aligned;", [])
    elif kind == "fence":
        _do(code, "wgmma.fence.sync.aligned;", _MEMORY, "")
    elif kind == "computed":
        _with_sums(code, node.src[0], "", [])
    elif kind == "commit":
        _do(code, "wgmma.commit_group.sync.aligned;", _MEMORY, "")
    elif kind == "wait" and count[0]:
        _do(code, f"wgmma.wait_group.sync.aligned {count[0]};", _MEMORY, "")
    else:
        _with_sums(code, node.src[0], f"wgmma.wait_group.sync.aligned {count[0]};", [])


def allocate_dynamic(code: Code) -> None:
    """Give memory that the launch asks for its addresses: from a multiple of 1024 bytes on."""
    memories = [node for node in code.leaves if node.op == Op.MEMORY and node.arg[1] == "dynamic"]
    if not memories:
        return
    writer, space = code.writer, code.backend.local_space
    if not space:
        raise InternalError(f"render: {code.backend.name} has no memory that a launch asks for")
    kind = f"ptr addrspace({space})"
    writer.globals.append(
        f"@dynamic = external addrspace({space}) global [0 x i8], align {DYNAMIC_ALIGNMENT}"
    )
    start = writer.value(f"ptrtoint {kind} @dynamic to i32")
    above = writer.value(f"add i32 {start}, {DYNAMIC_ALIGNMENT - 1}")
    base = writer.value(f"and i32 {above}, {-DYNAMIC_ALIGNMENT}")
    for node, offset in dynamic_offsets(memories).items():
        at = writer.value(f"add i32 {base}, {offset}")
        code.pointers[node] = kind, writer.value(f"inttoptr i32 {at} to {kind}")


_Form = Callable[[Code, UOp], None]
ASYNC_FORMS: Final[dict[int, _Form]] = {
    Op.TENSOR_MAP: write_map,
    Op.COPY_BOX: write_copy_box,
    Op.MBARRIER: write_mbarrier,
    Op.MMA: write_mma,
    Op.MMA_GROUP: write_mma_group,
}
