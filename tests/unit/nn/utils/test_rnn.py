"""Sequences of several lengths: padded, packed, and run by recurrent layers."""

import numpy as np
import pytest

from weft import ArgumentError, ShapeError, Tensor, nn
from weft.nn.utils import rnn

ROWS = [Tensor([1.0, 2.0, 3.0]), Tensor([4.0]), Tensor([5.0, 6.0])]


def test_padding_and_packing_go_both_ways():
    padded = rnn.pad_sequence(ROWS, batch_first=True, padding_value=-1.0)
    assert padded.tolist() == [[1, 2, 3], [4, -1, -1], [5, 6, -1]]
    packed = rnn.pack_padded_sequence(padded, [3, 1, 2], True, enforce_sorted=False)
    assert packed.data.tolist() == [1, 5, 4, 2, 6, 3]
    assert packed.batch_sizes.tolist() == [3, 2, 1]
    back, lengths = rnn.pad_packed_sequence(packed, True, -1.0, total_length=4)
    assert back.tolist() == [[1, 2, 3, -1], [4, -1, -1, -1], [5, 6, -1, -1]]
    assert lengths.tolist() == [3, 1, 2]
    assert [row.tolist() for row in rnn.unpack_sequence(packed)] == [r.tolist() for r in ROWS]


def test_a_packed_row_ends_where_it_ends():
    """Each row of a batch is what it is alone, in both directions."""
    Tensor.manual_seed(0)
    layer = nn.GRU(2, 3, bidirectional=True, batch_first=True)
    x = Tensor(np.random.default_rng(0).standard_normal((2, 4, 2), np.float32))
    packed = rnn.pack_padded_sequence(x, [2, 4], batch_first=True, enforce_sorted=False)
    outputs, last = layer(packed)
    padded, _ = rnn.pad_packed_sequence(outputs, batch_first=True)
    for row, length in enumerate((2, 4)):
        alone, h = layer(x[row : row + 1, :length])
        np.testing.assert_allclose(padded[row, :length].numpy(), alone[0].numpy(), 1e-5, 1e-6)
        np.testing.assert_allclose(last[:, row].numpy(), h[:, 0].numpy(), 1e-5, 1e-6)
    assert (padded[0, 2:] == 0).all().item()


def test_refusals():
    with pytest.raises(ShapeError, match="differ in more than their length"):
        rnn.pad_sequence([Tensor.ones(2, 3), Tensor.ones(2, 4)])
    with pytest.raises(ArgumentError, match="not sorted"):
        rnn.pack_padded_sequence(Tensor.ones(2, 2), [1, 2], batch_first=True)
    with pytest.raises(ArgumentError, match="a length of 3"):
        rnn.pack_padded_sequence(Tensor.ones(2, 2), [3, 2], batch_first=True)
