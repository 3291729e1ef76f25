"""Products of bytes, summed in 32 bits: four of them are one word, and multiplied at once.

The left factor is of unsigned bytes and the right one of signed bytes, as the instructions of
machines have them. `packed` makes words of an axis; both factors are packed along the axis that is
summed over. ONNX's quantized operators are made of these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weft.ir.dtypes import INT, dtypes
from weft.ir.ops import Op
from weft.ir.uop import make
from weft.support.errors import DTypeError
from weft.tensor.checks import known
from weft.tensor.methods.elementwise import Operation, binary
from weft.tensor.methods.reduce import reduction

if TYPE_CHECKING:
    from weft.tensor.tensor import Tensor

# Bytes in a word.
BYTES: Final = 4
_DOT: Final = Operation(
    "product of bytes", INT, lambda a, b: make(Op.DOT_BYTES, dtypes.int32, (a, b))
)


def packed(x: Tensor, axis: int) -> Tensor:
    """Four bytes along an axis as a word of int32, the first one lowest; the last word has zeros.

    >>> from weft.tensor import Tensor
    >>> packed(Tensor([1, 2, 0, 0, 5], dtype="uint8"), 0).tolist()
    [513, 5]
    """
    if x.dtype not in (dtypes.uint8, dtypes.int8):
        raise DTypeError(f"packed: expected bytes, got {x.dtype.name}")
    axis = axis % x.ndim
    size = known(x.shape[axis])
    room = [(0, 0)] * x.ndim
    room[axis] = (0, -size % BYTES)
    wide = x.bitcast(dtypes.uint8).pad(room) if size % BYTES else x.bitcast(dtypes.uint8)
    groups = -(-size // BYTES)
    split = wide.reshape((*x.shape[:axis], groups, BYTES, *x.shape[axis + 1 :]))
    cut: list[slice | int] = [slice(None)] * split.ndim
    word: Tensor | None = None
    for byte in range(BYTES):
        cut[axis + 1] = byte
        part = split[tuple(cut)].cast(dtypes.int32)
        shifted = part << 8 * byte if byte else part
        word = shifted if word is None else word | shifted
    assert word is not None
    return word


def contract_bytes(left: Tensor, right: Tensor, axes: tuple[int, ...]) -> Tensor:
    """The sum over axes of the products of the bytes of words that broadcast; the axes go."""
    return reduction(binary(left, right, _DOT), Op.ADD, axes, False, "product of bytes")


def multiply_bytes(left: Tensor, right: Tensor) -> Tensor:
    """The product of matrices of words (…, n, k) and (…, k, m), of unsigned and signed bytes."""
    return contract_bytes(left.unsqueeze(-2), right.transpose(-1, -2).unsqueeze(-3), (-1,))
