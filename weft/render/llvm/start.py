"""The first instructions of a kernel that starts while those before it run.

It lets the next one start, reads or asks for what it knows the address of, and waits. What is read
early nobody writes meanwhile, or whoever starts the program tells it to wait first. What is only
asked for comes to the second cache, where it is right whoever writes it later. So the memory of
weights is busy while short kernels wait for each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Final

from weft.ir.early import loads_at_start
from weft.ir.ops import ELEMENTWISE
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.render.llvm.code import Code
from weft.render.llvm.memory import write_address, write_load
from weft.target.compute import Simt

WriteNode = Callable[[Code, UOp], None]
_AXES: Final = "xyz"
# The last argument of a program that reads early: whether it has to wait before that.
WAIT_FIRST: Final = "i32 %wait_first"


def write_start(code: Code, write_node: WriteNode) -> None:
    """Write what stands before all instructions; what is read here is read nowhere else."""
    program, backend = code.program, code.backend
    if not program.waits:
        return
    _do(code, backend.let_start)
    found = loads_at_start(
        program.instructions, program.parameters, program.groups, program.threads
    )
    early = [load for memory, each in found.items() if _is_early(code, memory) for load in each]
    others = [
        load for memory, each in found.items() if not _is_early(code, memory) for load in each
    ]
    if early:
        _wait_if_told(code)
        _write_indices(code, early, write_node)
    for load in early:
        code.addresses[load.src[0]] = address = write_address(code, load.src[0])
        code.define(load, write_load(code, load.dtype, address))
        code.written.add(load)
    if others:
        _fetch_ahead(code, others, write_node)
    _do(code, backend.wait_for_others)


def _wait_if_told(code: Code) -> None:
    writer = code.writer
    wait, go_on = writer.name("wait"), writer.name("go_on")
    is_told = writer.value(f"icmp ne {WAIT_FIRST}, 0")
    writer.do(f"br i1 {is_told}, label %{wait}, label %{go_on}")
    writer.block(wait)
    _do(code, code.backend.wait_for_others)
    writer.enter(go_on)


def _is_early(code: Code, memory: UOp) -> bool:
    return memory.arg[0] in code.program.early


def _do(code: Code, text: str) -> None:
    code.writer.do(f'call void asm sideeffect "{text}", "~{{memory}}"() nounwind')


def _write_indices(code: Code, loads: Iterable[UOp], write_node: WriteNode) -> None:
    for node in topological(*(x for load in loads for x in load.src[0].src[1:])):
        if node.op in ELEMENTWISE:
            write_node(code, node)


def _fetch_ahead(code: Code, loads: list[UOp], write_node: WriteNode) -> None:
    """Ask for what will be loaded, in the groups that run first: later ones do not wait."""
    writer, compute = code.writer, code.target.compute
    assert isinstance(compute, Simt)
    threads = math.prod(code.program.threads)
    at_once = compute.units * max(compute.threads_per_unit // threads, 1)
    is_first = _is_before(code, at_once)
    label = writer.name("fetched")
    if is_first:
        fetch = writer.name("fetch")
        writer.do(f"br i1 {is_first}, label %{fetch}, label %{label}")
        writer.block(fetch)
    _write_indices(code, loads, write_node)
    for load in loads:
        _fetch(code, load.src[0])
    if is_first:
        writer.enter(label)


def _fetch(code: Code, address: UOp) -> None:
    found = write_address(code, address)
    if found is None or found.mask_lanes > 1:
        return
    pointer = found.pointer
    if found.mask:  # the beginning is there in any case
        base = code.pointer(address.src[0])[1]
        pointer = code.writer.select(("i1", found.mask), found.pointer_type, pointer, base)
    text = f'asm sideeffect "{code.backend.fetch}", "l"({found.pointer_type} {pointer})'
    code.writer.do(f"call void {text} nounwind")


def _is_before(code: Code, count: int) -> str:
    """Whether a group is one of the first `count`; empty if all are."""
    writer, groups = code.writer, [int(str(size)) for size in code.program.groups]
    if math.prod(groups) <= count:
        return ""
    number = ""
    for axis in reversed(range(len(groups))):
        own = writer.call(f"{code.backend.counters['group']}.{_AXES[axis]}", "i32")
        if number:
            number = writer.value(f"mul i32 {number}, {groups[axis]}")
            own = writer.value(f"add i32 {number}, {own}")
        number = own
    return writer.value(f"icmp ult i32 {number}, {count}")
