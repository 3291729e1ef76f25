"""The IQ1, IQ2 and IQ3 blocks of GGUF, unpacked by tensor ops: codes name groups of a grid.

As in `gguf_blocks`, each function takes blocks as (count, bytes) of uint8 and gives (count, 256)
of float32. The grid is a small table beside the packed bytes, which the kernels read.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from weft.io.gguf_grids import grid
from weft.ir.dtypes import DType, dtypes
from weft.tensor.tensor import Tensor
from weft.tensor.trace.state import tracing

_SIGN_PLACES = (0, 7, 14, 21)


@lru_cache(64)
def _kept(name: str, device: str) -> Tensor:
    return Tensor(grid(name), device=device).realize()


def _table(name: str, device: str) -> Tensor:
    """A grid in memory, shared by all weights of its type; a trace has its own."""
    return Tensor(grid(name), device=device) if tracing.trace else _kept(name, device)


def _half(blocks: Tensor) -> Tensor:
    return blocks[:, :2].bitcast(dtypes.float16).cast(dtypes.float32)


def _shifted(part: Tensor, amounts: Sequence[int], mask: int) -> Tensor:
    """Each number shifted by amounts, along a new last axis, flattened into the one before."""
    shifts = Tensor(list(amounts), dtype=part.dtype, device=part.device)
    return ((part.unsqueeze(-1) >> shifts) & mask).flatten(1)


def _nibbles(part: Tensor) -> Tensor:
    """The low half of each byte and then its high half."""
    return _shifted(part, (0, 4), 15)


def _bits(part: Tensor) -> Tensor:
    return _shifted(part, range(8), 1)


def _words(part: Tensor, dtype: DType) -> Tensor:
    return part.unflatten(1, (-1, dtype.itemsize)).bitcast(dtype).flatten(1)


def _groups(name: str, codes: Tensor) -> Tensor:
    """The elements of codes (count, groups), as (count, 256)."""
    table = _table(name, codes.device)
    return table[codes.cast(dtypes.int32)].flatten(1).cast(dtypes.float32)


def _parity(signs: Tensor) -> Tensor:
    """Seven signs with the eighth, which makes their number even."""
    folded = signs ^ (signs >> 4)
    folded = folded ^ (folded >> 2)
    return signs | (((folded ^ (folded >> 1)) & 1) << 7)


def _signed(values: Tensor, signs: Tensor) -> Tensor:
    """Values with a minus where a bit of the bytes of signs (count, 32) is set."""
    return (_bits(signs) != 0).where(-values, values)


def _scaled(scales: Tensor, values: Tensor) -> Tensor:
    """Values times a scale for each run of them."""
    runs = values.unflatten(1, (int(scales.shape[1]), -1))
    return (scales.unsqueeze(-1) * runs).flatten(1)


def _number(part: Tensor) -> Tensor:
    return part.cast(dtypes.float32)


def iq2_xxs(blocks: Tensor) -> Tensor:
    groups = blocks[:, 2:].unflatten(1, (8, 8))
    words = _words(groups[:, :, 4:].flatten(1), dtypes.uint32)
    scales = _half(blocks) * (_number(words >> 28) + 0.5) * 0.25
    values = _scaled(scales, _groups("IQ2_XXS", groups[:, :, :4].flatten(1)))
    return _signed(values, _parity(_shifted(words, _SIGN_PLACES, 127)))


def iq2_xs(blocks: Tensor) -> Tensor:
    words = _words(blocks[:, 2:66], dtypes.uint16)
    scales = _half(blocks) * (_number(_nibbles(blocks[:, 66:])) + 0.5) * 0.25
    return _signed(_scaled(scales, _groups("IQ2_XS", words & 511)), _parity(words >> 9))


def iq2_s(blocks: Tensor) -> Tensor:
    high = _shifted(blocks[:, 66:74], (0, 2, 4, 6), 3).cast(dtypes.uint16)
    codes = blocks[:, 2:34].cast(dtypes.uint16) | high << 8
    scales = _half(blocks) * (_number(_nibbles(blocks[:, 74:])) + 0.5) * 0.25
    return _signed(_scaled(scales, _groups("IQ2_S", codes)), blocks[:, 34:66])


def iq3_xxs(blocks: Tensor) -> Tensor:
    words = _words(blocks[:, 66:], dtypes.uint32)
    scales = _half(blocks) * (_number(words >> 28) + 0.5) * 0.5
    values = _scaled(scales, _groups("IQ3_XXS", blocks[:, 2:66]))
    return _signed(values, _parity(_shifted(words, _SIGN_PLACES, 127)))


def iq3_s(blocks: Tensor) -> Tensor:
    codes = blocks[:, 2:66].cast(dtypes.uint16) | _bits(blocks[:, 66:74]).cast(dtypes.uint16) << 8
    scales = _half(blocks) * (_number(_nibbles(blocks[:, 106:])) * 2 + 1)
    return _signed(_scaled(scales, _groups("IQ3_S", codes)), blocks[:, 74:106])


def iq1_s(blocks: Tensor) -> Tensor:
    words = _words(blocks[:, 34:], dtypes.uint16)
    codes = blocks[:, 2:34].cast(dtypes.uint16) | _shifted(words, (0, 3, 6, 9), 7) << 8
    scales = _half(blocks) * (_number((words >> 12) & 7) * 2 + 1)
    return _scaled(scales, _moved(_groups("IQ1_S", codes), words >> 15))


def iq1_m(blocks: Tensor) -> Tensor:
    """The scale of a block has its bits in the upper quarters of four numbers."""
    words = _words(blocks[:, 48:], dtypes.uint16)
    quarters = [(words[:, n : n + 1] >> 12) << 4 * n for n in range(4)]
    bits = quarters[0] | quarters[1] | quarters[2] | quarters[3]
    half = bits.bitcast(dtypes.float16).cast(dtypes.float32)
    scales = half * (_number(_shifted(words, (0, 3, 6, 9), 7)) * 2 + 1)
    high = _nibbles(blocks[:, 32:48]).cast(dtypes.uint16)
    codes = blocks[:, :32].cast(dtypes.uint16) | (high & 7) << 8
    return _scaled(scales, _moved(_groups("IQ1_S", codes), high >> 3))


def _moved(values: Tensor, signs: Tensor) -> Tensor:
    """Values plus an eighth, or minus one where a sign is set; one for each run of them."""
    runs = values.unflatten(1, (int(signs.shape[1]), -1))
    return (runs + (signs != 0).where(-0.125, 0.125).unsqueeze(-1)).flatten(1)
