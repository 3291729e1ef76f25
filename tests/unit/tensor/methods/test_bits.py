"""Bitcasts to another width scale the last axis, and fuse."""

import numpy as np
import pytest

from weft import DTypeError, GlobalCounters, ShapeError
from weft.tensor import Tensor

WORDS = ["uint8", "int16", "float16", "uint32", "float32", "int64", "float64"]


@pytest.mark.parametrize("source", WORDS)
@pytest.mark.parametrize("target", WORDS)
def test_like_numpy(source: str, target: str):
    data = np.random.default_rng(0).integers(0, 256, (3, 16), np.uint8)
    values = data.view(source)
    result = Tensor(values).bitcast(target)
    assert result.shape == values.view(target).shape
    np.testing.assert_array_equal(
        result.numpy().view(np.uint8), values.view(target).view(np.uint8)
    )


def test_joined_bytes_are_one_kernel_with_their_user():
    data = Tensor(np.arange(64, dtype=np.uint8)).realize()
    GlobalCounters.reset()
    (data.reshape(8, 8)[:, 2:6].bitcast("float32") * 2).realize()
    assert GlobalCounters.kernel_count == 1


def test_errors():
    with pytest.raises(ShapeError, match="not a whole number of int32"):
        Tensor([1, 2, 3], dtype="uint8").bitcast("int32")
    with pytest.raises(ShapeError, match="not a whole number"):
        Tensor(1.0).bitcast("int64")
    with pytest.raises(DTypeError, match="bool"):
        Tensor([True]).bitcast("uint8")
