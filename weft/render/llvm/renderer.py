"""LLVM IR for a program, for CPUs and, through LLVM's PTX back end, for NVIDIA GPUs.

The engine calls `render` with what codegen made; `runtime/llvm/compiler.py` turns the text into
machine code or PTX. The text depends on the program and the target alone. It is written so that
LLVM has little left to do: vectors are explicit, values stand at the depth codegen gave them,
loops count up in SSA form, and memory inside the kernel is on the stack, from where one pass
(sroa) moves it to registers.

Arithmetic is that of `weft.ir.ops`, bit for bit, with one exception that `contract=False`
iterations off: a sum with one product that nothing else uses may be rounded once, as a fused
multiply-add. Peers do the same in matrix products, and it doubles the speed of those. The sign of
a zero that MAX or MIN chooses between two zeros of unlike signs is not defined.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from weft.ir.bounds import bounds
from weft.ir.dtypes import BOOL, FLOAT, dtypes
from weft.ir.ops import ELEMENTWISE, Op, name
from weft.ir.program import Program
from weft.ir.uop import UOp
from weft.render.llvm.async_copies import ASYNC_FORMS
from weft.render.llvm.casts import write_rounded, write_rounded_pair
from weft.render.llvm.code import Code
from weft.render.llvm.entry import ENTRIES
from weft.render.llvm.facts import facts_of
from weft.render.llvm.float_facts import (
    ANY,
    clamped,
    is_rounded_bits,
    is_rounding,
    rounded_pair,
)
from weft.render.llvm.functions import FLOAT32_DIGITS, FUNCTIONS
from weft.render.llvm.memory import keeps_bytes, write_address, write_load, write_store
from weft.render.llvm.ops import LlvmOperation, write_difference, write_op, write_summed_bytes
from weft.render.llvm.types import value_type, with_lanes
from weft.render.llvm.vectors import (
    is_pair,
    join_scalars,
    write_bit,
    write_bytes,
    write_lanes,
    write_vector,
)
from weft.render.llvm.zero_lanes import write_quotient_by_lanes
from weft.support.errors import InternalError
from weft.target.target import Target


def render(program: Program, target: Target, contract: bool = True) -> str:
    """The program as the text of an LLVM module with one function of the program's name."""
    code = Code(program, target, contract)
    entry = ENTRIES[code.backend.entry]
    head = entry.open(code, _write_elementwise)
    for node in program.instructions.src:
        if node in code.written:
            continue
        if node.op in FUNCTIONS:
            _verify_function(node, target)
        if node.dtype.kind & FLOAT:
            _verify_float(node, target)
        form = _FORMS.get(node.op)
        if form is not None:
            form(code, node)
        elif node.op not in _UNWRITTEN:
            raise InternalError(f"render: expected an instruction, got {name(node.op)}")
    entry.close(code)
    return code.writer.module(head)


def _verify_float(node: UOp, target: Target) -> None:
    """Raise for floats that the target lacks, but for those on their way to and from a float32."""
    dtype = node.dtype.scalar
    if dtype in target.native_dtypes:
        return
    is_widened = node.op == Op.BITCAST and dtype in target.widened_dtypes
    is_rounded = node.op == Op.CAST and dtype in target.rounded_dtypes
    if not is_widened and not is_rounded:
        raise InternalError(f"{target.name} has no {dtype.name}; it is to be decomposed")


def _verify_function(node: UOp, target: Target) -> None:
    """Raise for a function that is written for float32 alone, and for some targets."""
    if node.op not in target.float32_ops or node.dtype is not dtypes.float32:
        raise InternalError(f"LLVM has no {name(node.op)} of {node.dtype.name}")


def _write_elementwise(code: Code, node: UOp) -> None:
    if node.dtype.lanes > 1 and not code.backend.has_vectors:
        # LLVM and NVIDIA's assembler make wrong code of some.
        raise InternalError(f"render: arithmetic on lanes for a GPU: {node!r}")
    is_64 = node in code.widths.as_64
    read = code.operand_64 if is_64 else code.operand
    if node.op == Op.WHERE:
        condition, x, y = node.src
        mask = with_lanes("i1", condition.dtype.lanes)
        type_name = "i64" if is_64 else value_type(node.dtype)
        text = code.writer.select((mask, code.operand(condition)), type_name, read(x), read(y))
    elif node.op == Op.CAST and is_64:
        text = read(node.src[0])
    elif code.backend.rounds_pairs and is_rounding(node):
        text = write_rounded(code.writer, node.dtype, read(node.src[0]))
    elif code.backend.rounds_pairs and (pair := rounded_pair(node)) is not None:
        low, high = (code.operand(each.src[0]) for each in pair)
        text = write_rounded_pair(code.writer, pair[0].dtype, low, high)
    elif node in code.by_zero:
        text = write_quotient_by_lanes(code.writer, node, (read(node.src[0]), read(node.src[1])))
    else:
        text = _write_step(code, node, is_64)
    (code.define_64 if is_64 else code.define)(node, text)


def _write_step(code: Code, node: UOp, is_64: bool) -> str:
    read = code.operand_64 if is_64 else code.operand
    sources = node.src
    write = write_op
    if node.op == Op.ADD and node.dtype.kind == FLOAT:
        negated = next((part for part in sources[::-1] if part.op == Op.NEG), None)
        if negated is not None:
            other = sources[0] if negated is sources[1] else sources[1]
            sources, write = (other, negated.src[0]), write_difference
    elif node.op == Op.ADD and any(part.op == Op.DOT_BYTES for part in sources):
        dot = next(part for part in sources[::-1] if part.op == Op.DOT_BYTES)
        other = sources[0] if dot is sources[1] else sources[1]
        sources, write = (other, *dot.src), write_summed_bytes
    elif node.op in (Op.MAX, Op.MIN) and sources[0].op == Op.CONST:
        sources = sources[::-1]
    last = sources[-1]
    step = LlvmOperation(
        op=node.op,
        dtype=dtypes.int64 if is_64 else node.dtype,
        source=dtypes.int64 if is_64 else last.dtype,
        operands=tuple([read(source) for source in sources]),
        facts=facts_of(node, code.contracted),
        constant=last.arg if last.op == Op.CONST else None,
        has_maximum=code.backend.has_maximum,
        flips_extremes=code.backend.flips_extremes,
        saturates=code.backend.saturates,
        numerator=float(sources[0].arg) if sources[0].op == Op.CONST else None,
        digits=code.digits.get(node, FLOAT32_DIGITS),
        is_tame=node in code.tame,
        bounds=clamped(last) if node.op == Op.CAST and last.dtype.kind == FLOAT else ANY,
    )
    return write(code.writer, step)


def _write_vector(code: Code, node: UOp) -> None:
    if code.backend.rounds_pairs and all(map(is_rounded_bits, node.src)):
        _write_rounded_vector(code, node)
        return
    operands = [code.operand(x) for x in node.src]
    if keeps_bytes(code, node.dtype):
        code.define(node, write_bytes(code.writer, operands))
    else:
        code.define(node, write_vector(code.writer, node, operands))


def _write_rounded_vector(code: Code, node: UOp) -> None:
    """The bits of 16-bit floats that are rounded here, two at a time."""
    rounded = [part.src[0] for part in node.src]
    floats = [code.operand(part.src[0]) for part in rounded]
    words = [
        write_rounded_pair(code.writer, rounded[0].dtype, low, high)
        for low, high in zip(floats[::2], floats[1::2], strict=True)
    ]
    vector = words[0] if len(words) == 1 else join_scalars(code.writer, "i32", words)
    kind = with_lanes("i32", len(words))
    code.define(node, code.writer.value(f"bitcast {kind} {vector} to {value_type(node.dtype)}"))


def _write_lanes(code: Code, node: UOp) -> None:
    source = node.src[0]
    if keeps_bytes(code, source.dtype):
        count, (lane,) = source.dtype.lanes, node.arg
        code.define(node, write_bit(code.writer, count, code.operand(source), lane))
        return
    pair = source.src if is_pair(source) else (source,)
    code.define(node, write_lanes(code.writer, node, [code.operand(part) for part in pair]))


def _write_index(code: Code, node: UOp) -> None:
    code.addresses[node] = write_address(code, node)


def _write_load(code: Code, node: UOp) -> None:
    code.define(node, write_load(code, node.dtype, code.addresses[node.src[0]]))


def _write_store(code: Code, node: UOp) -> None:
    address, value = node.src[:2]
    write_store(code, value.dtype, code.addresses[address], code.operand(value))


def _open_range(code: Code, node: UOp) -> None:
    """A loop that tests at its end, and before it too unless it is known to run.

    One that runs once or not at all is a branch.
    """
    least, most = bounds(node.src[0])
    is_64 = node in code.widths.as_64
    define = code.define_64 if is_64 else code.define
    if least == most == 1:
        define(node, "0")
        return
    writer, label = code.writer, code.writer.name("loop")
    code.labels[node] = label
    type_name = "i64" if is_64 else value_type(node.dtype)
    before = writer.block_name
    if least >= 1:
        writer.do(f"br label %{label}")
    else:
        extent = _extent(code, node)
        runs = writer.value(f"icmp sgt {type_name} {extent}, 0")
        writer.do(f"br i1 {runs}, label %{label}, label %{label}_end")
    writer.block(label)
    if most == 1:
        define(node, "0")
        return
    counter = f"%{label}_counter"
    back = f"[ %{label}_next, %{label}_back ]"
    writer.do(f"{counter} = phi {type_name} [ 0, %{before} ], {back}")
    define(node, counter)


def _extent(code: Code, node: UOp) -> str:
    read = code.operand_64 if node in code.widths.as_64 else code.operand
    return read(node.src[0])


def _close(code: Code, node: UOp) -> None:
    opened, writer = node.src[0], code.writer
    label = code.labels.get(opened)
    if label is None:  # a loop of one iteration
        return
    if bounds(opened.src[0])[1] == 1:
        writer.enter(f"{label}_end")
        return
    type_name = "i64" if opened in code.widths.as_64 else value_type(opened.dtype)
    writer.enter(f"{label}_back")
    writer.do(f"%{label}_next = add nuw nsw {type_name} %{label}_counter, 1")
    goes_on = writer.value(f"icmp slt {type_name} %{label}_next, {_extent(code, opened)}")
    writer.do(f"br i1 {goes_on}, label %{label}, label %{label}_end")
    writer.block(f"{label}_end")


def _write_barrier(code: Code, node: UOp) -> None:
    if code.backend.barrier:  # a group on a CPU has one thread
        code.writer.call(code.backend.barrier, "void", ("i32", "0"))


def _write_shuffle(code: Code, node: UOp) -> None:
    """Exchange a value in words of 32 bits: narrower ones are widened, wider ones are several."""
    writer, dtype = code.writer, node.dtype
    if not code.backend.shuffle or dtype.lanes > 1:
        raise InternalError(f"render: a shuffle that {code.backend.name} has not: {node!r}")
    kind, operand = value_type(dtype), code.operand(node.src[0])
    axis = node.src[1].arg[1]
    lanes = node.arg[0] * math.prod(code.program.threads[:axis])
    bits = 1 if dtype.kind == BOOL else dtype.bits
    whole = operand
    if dtype.kind == FLOAT:
        whole = writer.value(f"bitcast {kind} {operand} to i{bits}")
    if bits < _WORD:
        whole = writer.value(f"zext i{bits} {whole} to i{_WORD}")
    width = max(bits, _WORD)
    result = ""
    for shift in range(0, width, _WORD):
        part = whole
        if width > _WORD:
            moved = writer.value(f"lshr i{width} {whole}, {shift}") if shift else whole
            part = writer.value(f"trunc i{width} {moved} to i{_WORD}")
        arguments = (("i32", "-1"), ("i32", part), ("i32", str(lanes)), ("i32", "31"))
        part = writer.call(code.backend.shuffle, "i32", *arguments)
        if width > _WORD:
            part = writer.value(f"zext i{_WORD} {part} to i{width}")
            part = writer.value(f"shl i{width} {part}, {shift}") if shift else part
        result = writer.value(f"or i{width} {result}, {part}") if result else part
    if bits < _WORD:
        result = writer.value(f"trunc i{_WORD} {result} to i{bits}")
    if dtype.kind == FLOAT:
        result = writer.value(f"bitcast i{bits} {result} to {kind}")
    code.define(node, result)


_WORD: Final = 32
_Form = Callable[[Code, UOp], None]
_FORMS: Final[dict[int, _Form]] = {
    **dict.fromkeys(ELEMENTWISE, _write_elementwise),
    Op.VECTOR: _write_vector,
    Op.LANES: _write_lanes,
    Op.INDEX: _write_index,
    Op.LOAD: _write_load,
    Op.STORE: _write_store,
    Op.RANGE: _open_range,
    Op.END: _close,
    Op.BARRIER: _write_barrier,
    Op.SHUFFLE: _write_shuffle,
    **ASYNC_FORMS,
}
# Named by instructions that use them; the entry of the function has written what they need.
_UNWRITTEN: Final = frozenset((Op.CONST, Op.VARIABLE, Op.PARAM, Op.MEMORY, Op.SPECIAL, Op.AFTER))
