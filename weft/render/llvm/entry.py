"""The function around a program: its arguments, variables and counters.

A back end has one of two. A *slice* (CPU) is `void name(ptr args, ptr vars, i64 begin, i64 end)`:
`args` points to the addresses of the memory arguments and `vars` to the int64 values of the
variables; it runs the groups from `begin` to `end - 1` of the grid, numbered with the last axis
fastest. A group has one thread.

A *kernel* (GPU) has the memory arguments and then the variables as its parameters, and the
hardware counts: axis 0 is x, 1 is y and 2 is z.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, NamedTuple

from weft.ir.build import Size
from weft.ir.ops import Op
from weft.ir.program import AHEAD
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.render.llvm.async_copies import allocate_dynamic, map_arguments
from weft.render.llvm.code import Code
from weft.render.llvm.facts import is_narrow
from weft.render.llvm.memory import allocate
from weft.render.llvm.start import WAIT_FIRST, write_start
from weft.support.errors import InternalError
from weft.target.compute import Simt
from weft.target.llvm import KERNEL, SLICE
from weft.target.memory import REGISTER

_AXES = "xyz"
# What a thread needs beside what it keeps: a step of the factors, and addresses.
OTHER_REGISTERS: Final = 48
# What a thread needs that reads early.
EARLY_REGISTERS: Final = 64
WriteNode = Callable[[Code, UOp], None]


def symbol(name: str) -> str:
    """The name of a program as LLVM writes that of a function."""
    if name.isascii() and name.replace(".", "_").isidentifier() and name[0] != ".":
        return f"@{name}"
    raise InternalError(f"render: expected a name of a function, got {name!r}")


def _open_slice(code: Code, write_node: WriteNode) -> str:
    """Write what stands before the first instruction; return the head of the function."""
    writer = code.writer
    writer.lines.append("entry:")
    for node in code.leaves:
        if node.op == Op.PARAM:
            slot = node.arg[0]
            address = writer.value(f"getelementptr inbounds ptr, ptr %args, i64 {slot}")
            code.pointers[node] = "ptr", writer.value(f"load ptr, ptr {address}, align 8")
        elif node.op == Op.VARIABLE:
            position = _variable_position(code, node)
            address = writer.value(f"getelementptr inbounds i64, ptr %vars, i64 {position}")
            code.define_64(node, writer.value(f"load i64, ptr {address}, align 8"))
    allocate(code)
    group = _open_group_loop(code, write_node)
    _write_group_counters(code, group)
    name = symbol(code.program.name)
    return f"define void {name}(ptr %args, ptr %vars, i64 %begin, i64 %end) nounwind {{"


def _variable_position(code: Code, node: UOp) -> int:
    if node not in code.program.variables:
        raise InternalError(f"render: the program does not list its variable {node!r}")
    return code.program.variables.index(node)


def _sizes(code: Code, write_node: WriteNode) -> list[str]:
    """The sizes of the grid as int64 operands; a symbolic one is computed here."""
    sizes: list[str] = []
    for size in code.program.groups:
        if isinstance(size, UOp):
            for node in topological(size):
                if node.op not in (Op.CONST, Op.VARIABLE):
                    write_node(code, node)
            sizes.append(code.operand_64(size))
        else:
            sizes.append(str(size))
    return sizes


def _is_one_group(groups: tuple[Size, ...]) -> bool:
    return all(size == 1 for size in groups if isinstance(size, int)) and not any(
        isinstance(size, UOp) for size in groups
    )


def _open_group_loop(code: Code, write_node: WriteNode) -> list[str]:
    """Write the loop over groups; return the counter of each axis as an int64 operand."""
    writer, groups = code.writer, code.program.groups
    sizes = _sizes(code, write_node)
    if _is_one_group(groups):
        return ["0"] * len(groups)
    before = writer.block_name
    is_empty = writer.value("icmp sge i64 %begin, %end")
    writer.do(f"br i1 {is_empty}, label %leave, label %group")
    writer.block("group")
    writer.do(f"%group_number = phi i64 [ %begin, %{before} ], [ %group_next, %group_end ]")
    rest, counters = "%group_number", [""] * len(sizes)
    for axis in reversed(range(len(sizes))):
        if sizes[axis] == "1":
            counters[axis] = "0"
        elif all(size == "1" for size in sizes[:axis]):
            counters[axis], rest = rest, "0"
        else:
            counters[axis] = writer.value(f"urem i64 {rest}, {sizes[axis]}")
            rest = writer.value(f"udiv i64 {rest}, {sizes[axis]}")
    return counters


def _write_group_counters(code: Code, group: list[str]) -> None:
    for node in code.leaves:
        if node.op == Op.SPECIAL:
            kind, axis = node.arg
            if kind == "thread" and math.prod(code.program.threads) == 1:
                code.define_64(node, "0")
            elif kind == "group" and axis < len(group):
                code.define_64(node, group[axis])
            else:
                raise InternalError(f"render: a program for a CPU has no {kind} axis {axis}")


def _close_slice(code: Code) -> None:
    """Write what stands behind the last instruction."""
    writer = code.writer
    if not _is_one_group(code.program.groups):
        writer.enter("group_end")
        writer.do("%group_next = add nsw i64 %group_number, 1")
        is_over = writer.value("icmp sge i64 %group_next, %end")
        writer.do(f"br i1 {is_over}, label %leave, label %group")
        writer.block("leave")
    writer.do("ret void")


def _open_kernel(code: Code, write_node: WriteNode) -> str:
    """Write what stands before the first instruction; return the head of the kernel."""
    writer = code.writer
    writer.lines.append("entry:")
    backend = code.backend
    pointer_type = f"ptr addrspace({backend.global_space})"
    for node in code.leaves:
        if node.op == Op.PARAM:
            code.pointers[node] = pointer_type, f"%p{node.arg[0]}"
        elif node.op == Op.VARIABLE:
            code.define_64(node, f"%n{_variable_position(code, node)}")
        elif node.op == Op.SPECIAL:
            _write_special(code, node)
    allocate(code)
    allocate_dynamic(code)
    write_start(code, write_node)
    slots = [f"{pointer_type} %p{parameter.slot}" for parameter in code.program.parameters]
    variables = [f"i64 %n{i}" for i in range(len(code.program.variables))]
    name = symbol(code.program.name)
    threads = ",".join(str(size) for size in (*code.program.threads, 1, 1, 1)[:3])
    attributes = f'nounwind "{backend.group_attribute}"="{threads}"'
    resident = _resident_groups(code)
    if backend.resident_attribute and resident > 1:
        attributes += f' "{backend.resident_attribute}"="{resident}"'
    flags = [WAIT_FIRST] if code.program.early else []
    arguments = ", ".join(slots + variables + map_arguments(code) + flags)
    return f"define {backend.convention} void {name}({arguments}) {attributes} {{"


def _resident_groups(code: Code) -> int:
    """How many groups of a kernel should run on a multiprocessor; 0: any number.

    Of those that fill tiles some compute while others wait: as many as make two groups of the
    usual size, if that leaves each thread the registers that it keeps, and some. Those that read
    early should all be there at once, but for matrix units, whose tiles fill the registers.
    """
    compute = code.target.compute
    has_tiles = code.program.instructions.ops >> Op.MMA & 1
    if isinstance(compute, Simt) and code.program.early and not has_tiles:
        groups = math.prod(int(str(size)) for size in code.program.groups)
        count, threads = -(-groups // compute.units), math.prod(code.program.threads)
        return count if count * threads * EARLY_REGISTERS <= compute.registers_per_unit else 0
    memories = [node for node in code.leaves if node.op == Op.MEMORY]
    if not isinstance(compute, Simt) or not any(n.arg[0].startswith(AHEAD) for n in memories):
        return 0
    threads = 2 * compute.group_threads
    kept = sum(node.arg[2] * node.dtype.itemsize for node in memories if node.arg[1] == REGISTER)
    fits = kept // 4 + OTHER_REGISTERS <= compute.registers_per_unit // threads
    return threads // math.prod(code.program.threads) if fits else 0


def _write_special(code: Code, node: UOp) -> None:
    kind, axis = node.arg
    counter = code.backend.counters.get(kind)
    if counter is None or axis >= len(_AXES):
        raise InternalError(f"render: a GPU has no {kind} axis {axis}")
    number = code.writer.call(f"{counter}.{_AXES[axis]}", "i32")
    if is_narrow(node) and node.dtype.bits == 32:
        code.define(node, number)
    else:
        code.define_64(node, code.writer.value(f"zext i32 {number} to i64"))


def _close_kernel(code: Code) -> None:
    code.writer.do("ret void")


class EntryPoint(NamedTuple):
    """What stands around the instructions of a program."""

    open: Callable[[Code, WriteNode], str]
    close: Callable[[Code], None]


ENTRIES: Final = {
    SLICE: EntryPoint(_open_slice, _close_slice),
    KERNEL: EntryPoint(_open_kernel, _close_kernel),
}
