"""The first instructions of a kernel that starts while those before it run.

It lets the next one start, asks for what it will read, and waits. What it asks for comes to the
second cache, where it is right whoever writes it later: so this needs no knowledge of what earlier
kernels do, and the memory of weights is busy while short kernels wait for each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from weft.ir.ops import ELEMENTWISE, Op
from weft.ir.shapes import largest_size, shape_of
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.render.llvm.code import Code
from weft.render.llvm.memory import write_address
from weft.target.compute import Simt

# Arguments of so many bytes are asked for, if each element is read so often at most.
LEAST_BYTES: Final = 1 << 16
MOST_TIMES: Final = 4
WriteNode = Callable[[Code, UOp], None]
_KNOWN: Final = frozenset((Op.CONST, Op.SPECIAL, Op.VARIABLE))
_AXES: Final = "xyz"


def write_start(code: Code, write_node: WriteNode) -> None:
    """Write what stands before all instructions."""
    backend = code.backend
    if not code.program.waits:
        return
    _do(code, backend.let_start)
    addresses = _read_once(code)
    if addresses:
        _fetch_ahead(code, addresses, write_node)
    _do(code, backend.wait_for_others)


def _do(code: Code, text: str) -> None:
    code.writer.do(f'call void asm sideeffect "{text}", "~{{memory}}"() nounwind')


def _read_once(code: Code) -> list[UOp]:
    """The addresses that are known at the start, of large arguments that are read about once.

    What many groups read is near after the first of them. What is small was computed just before.
    """
    groups = [size for size in code.program.groups if isinstance(size, int)]
    if len(groups) < len(code.program.groups):
        return []
    threads = math.prod((*groups, *code.program.threads))
    written = {each.slot for each in code.program.parameters if each.is_written}
    known: set[UOp] = set()
    found: dict[UOp, list[UOp]] = {}
    for node in code.program.instructions.src:
        if node.op in ELEMENTWISE and all(x.op in _KNOWN or x in known for x in node.src):
            known.add(node)
        if node.op != Op.LOAD or node.src[0].op != Op.INDEX:
            continue
        memory, *where = node.src[0].src
        is_known = all(x.op in _KNOWN or x in known for x in where)
        if memory.op == Op.PARAM and memory.arg[0] not in written and is_known:
            found.setdefault(memory, []).append(node.src[0])
    asked: list[UOp] = []
    for memory, addresses in found.items():
        # What is read under a condition is often what another group reads without one.
        addresses = [each for each in addresses if each.src[1].op == Op.CONST] or addresses
        times = threads * _lanes(addresses) / max(largest_size(shape_of(memory)), 1)
        asked += addresses if _is_large(memory) and times <= MOST_TIMES else []
    return asked


def _is_large(memory: UOp) -> bool:
    return largest_size(shape_of(memory)) * memory.dtype.itemsize >= LEAST_BYTES


def _lanes(addresses: list[UOp]) -> int:
    """The elements that a thread reads."""
    return sum(each.dtype.lanes for each in addresses)


def _fetch_ahead(code: Code, addresses: list[UOp], write_node: WriteNode) -> None:
    """Ask for what is at some addresses, in the groups that run first: later ones do not wait."""
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
    for node in topological(*(x for address in addresses for x in address.src[1:])):
        if node.op in ELEMENTWISE:
            write_node(code, node)
    for address in addresses:
        _fetch(code, address)
    if is_first:
        writer.enter(label)


def _fetch(code: Code, address: UOp) -> None:
    found = write_address(code, address)
    if found is None or found.mask_lanes > 1:
        return
    pointer = found.pointer
    if found.mask:  # the beginning is there in any case
        base = code.pointer(address.src[0])[1]
        choice = ("i1", found.mask), found.pointer_type, pointer, base
        pointer = code.writer.select(*choice)
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
