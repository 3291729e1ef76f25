"""VECTOR and LANES as LLVM instructions: lanes put together and picked apart."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.render.llvm.types import scalar_type, value_type
from weft.render.llvm.writer import LlvmWriter


def write_vector(writer: LlvmWriter, node: UOp, operands: Sequence[str]) -> str:
    """Join the lanes of all sources, in order."""
    scalar = scalar_type(node.dtype)
    if all(source.op == Op.CONST and source.dtype.lanes == 1 for source in node.src):
        # A literal is one in every block: LLVM folds what is computed with it.
        return f"<{', '.join(f'{scalar} {operand}' for operand in operands)}>"
    if all(source.dtype.lanes == 1 for source in node.src):
        return join_scalars(writer, scalar, operands)
    lanes, joined = 0, ""
    for source, operand in zip(node.src, operands, strict=True):
        count = source.dtype.lanes
        if count == 1:
            operand = join_scalars(writer, scalar, [operand])
        if lanes:
            operand = _concatenate(writer, scalar, (lanes, joined), (count, operand))
        lanes, joined = lanes + count, operand
    return joined


def write_bytes(writer: LlvmWriter, operands: Sequence[str]) -> str:
    """Bools as the bytes of memory, side by side."""
    lanes = [
        str(int(operand == "true"))
        if operand in ("true", "false")
        else writer.value(f"zext i1 {operand} to i8")
        for operand in operands
    ]
    return join_scalars(writer, "i8", lanes)


def write_bit(writer: LlvmWriter, count: int, operand: str, lane: int) -> str:
    """A bool of bytes that lie side by side."""
    byte = writer.value(f"extractelement <{count} x i8> {operand}, i64 {lane}")
    return writer.value(f"icmp ne i8 {byte}, 0")


def join_scalars(writer: LlvmWriter, scalar: str, operands: Sequence[str]) -> str:
    """A vector of scalars of one type."""
    type_name = f"<{len(operands)} x {scalar}>"
    vector = writer.value(f"insertelement {type_name} poison, {scalar} {operands[0]}, i64 0")
    if len(operands) > 1 and all(operand == operands[0] for operand in operands):
        return _splat(writer, type_name, vector, len(operands))
    for lane, operand in enumerate(operands[1:], 1):
        vector = writer.value(
            f"insertelement {type_name} {vector}, {scalar} {operand}, i64 {lane}"
        )
    return vector


def _splat(writer: LlvmWriter, type_name: str, vector: str, lanes: int) -> str:
    """The first lane of a vector in every lane."""
    order = f"<{lanes} x i32> zeroinitializer"
    return writer.value(f"shufflevector {type_name} {vector}, {type_name} poison, {order}")


def _concatenate(
    writer: LlvmWriter, scalar: str, left: tuple[int, str], right: tuple[int, str]
) -> str:
    """Two vectors one behind the other; LLVM shuffles equal lengths, so pad the shorter."""
    longer = max(left[0], right[0])
    padded = [
        operand
        if lanes == longer
        else _shuffle(writer, scalar, lanes, (operand, "poison"), range(longer))
        for lanes, operand in (left, right)
    ]
    order = [*range(left[0]), *range(longer, longer + right[0])]
    return _shuffle(writer, scalar, longer, (padded[0], padded[1]), order)


def _shuffle(
    writer: LlvmWriter, scalar: str, lanes: int, pair: tuple[str, str], order: Sequence[int]
) -> str:
    """Lanes of a pair of vectors, counted through both; of poison any lane will do."""
    if scalar == "i1":
        return _shuffle_bits(writer, lanes, pair, order)
    type_name = f"<{lanes} x {scalar}>"
    last = 2 * lanes - 1
    picks = ", ".join(f"i32 {min(lane, last)}" for lane in order)
    x, y = pair
    return writer.value(
        f"shufflevector {type_name} {x}, {type_name} {y}, <{len(order)} x i32> <{picks}>"
    )


def _shuffle_bits(
    writer: LlvmWriter, lanes: int, pair: tuple[str, str], order: Sequence[int]
) -> str:
    """Lanes of bools, moved as bytes: masks have no shuffle, and LLVM moves them bit by bit."""
    wide = [
        each if each == "poison" else writer.value(f"zext <{lanes} x i1> {each} to <{lanes} x i8>")
        for each in pair
    ]
    moved = _shuffle(writer, "i8", lanes, (wide[0], wide[1]), order)
    return writer.value(f"icmp ne <{len(order)} x i8> {moved}, zeroinitializer")


def is_pair(node: UOp) -> bool:
    """Whether a vector is two of equal length behind each other, which LLVM shuffles at once."""
    if node.op != Op.VECTOR or len(node.src) != 2:
        return False
    return node.src[0].dtype is node.src[1].dtype and node.src[0].dtype.lanes > 1


def write_lanes(writer: LlvmWriter, node: UOp, operands: Sequence[str]) -> str:
    """Some lanes of a vector, or of two behind each other."""
    source, lanes = node.src[0].dtype, node.dtype.lanes
    scalar = scalar_type(source)
    if len(operands) == 2:
        half = source.lanes // 2
        if lanes > 1:
            return _shuffle(writer, scalar, half, (operands[0], operands[1]), node.arg)
        type_name, which = f"<{half} x {scalar}>", node.arg[0] // half
        return writer.value(
            f"extractelement {type_name} {operands[which]}, i64 {node.arg[0] % half}"
        )
    operand = operands[0]
    if source.lanes == 1:
        return operand if lanes == 1 else join_scalars(writer, scalar, [operand] * lanes)
    if lanes == 1:
        return writer.value(f"extractelement {value_type(source)} {operand}, i64 {node.arg[0]}")
    return _shuffle(writer, scalar, source.lanes, (operand, "poison"), node.arg)
