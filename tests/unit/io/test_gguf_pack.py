"""Packed weights: the bytes of the gguf package, and what unpacks to nearly the same numbers."""

import numpy as np
import pytest

from weft.io.gguf_blocks import QUANTIZED
from weft.io.gguf_pack import KIND_OF, PACKED, packed, packed_size
from weft.support.errors import ArgumentError
from weft.tensor.tensor import Tensor


def samples() -> np.ndarray:
    source = np.random.default_rng(0)
    rows = source.standard_normal((40, 512)).astype(np.float32)
    rows *= 10.0 ** source.integers(-6, 4, (40, 1)).astype(np.float32)
    rows[0] = 0
    rows[1] = 1
    rows[2, ::2] = -rows[2, 1::2]
    rows[3] = source.integers(-8, 9, 512) / 2  # halves, where rounding matters
    rows[4, :256] = -3
    return rows


@pytest.mark.parametrize("name", sorted(KIND_OF))
def test_bytes_are_those_of_the_gguf_package(name):
    gguf = pytest.importorskip("gguf", reason="needs the extra `files`")
    rows = samples()
    wanted = gguf.quants.quantize(rows, gguf.GGMLQuantizationType(KIND_OF[name]))
    found = packed(rows, name)
    np.testing.assert_array_equal(found, wanted.reshape(-1).view(np.uint8))
    assert len(found) == packed_size(rows.shape, name)


@pytest.mark.parametrize("name", sorted(PACKED))
def test_what_is_packed_is_unpacked(name):
    rows = np.random.default_rng(1).standard_normal((8, 512)).astype(np.float32)
    row = QUANTIZED[KIND_OF[name]]
    blocks = packed(rows, name).reshape(-1, row.bytes)
    found = row.unpack(Tensor(blocks)).numpy().reshape(rows.shape)
    levels = {"TQ1_0": 1, "TQ2_0": 1, "Q8_0": 127, "MXFP4": 4}.get(name, 7 if "4" in name else 15)
    assert np.abs(found - rows).max() <= np.abs(rows).max() / levels


def test_rows_are_whole_blocks():
    with pytest.raises(ArgumentError, match="whole number of 32"):
        packed(np.zeros((2, 40), np.float32), "Q8_0")
