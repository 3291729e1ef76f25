"""Floats to integers in vectors: limits, infinities and NaN, beside the interpreter."""

import numpy as np
import pytest

from weft import Tensor

EDGES = (0.0, -0.0, 1.5, -1.5, 127.9, 255.5, 256.7, 65536.0, 3e9, 1e30, np.inf)
LIMITS = (2147483520.0, 2147483648.0, 2147483904.0, 9.2e18, 9.3e18, 1.8e19)


@pytest.mark.parametrize("source", ("float32", "float64"))
@pytest.mark.parametrize(
    "target", ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
)
def test_vectors_saturate_as_the_table_says(source: str, target: str):
    ends = np.array([*EDGES, *LIMITS], source)
    values = np.concatenate([ends, -ends, [np.nan]] * 2)  # vectors, and a rest
    wanted = Tensor(values, device="PYTHON").cast(target).numpy()
    np.testing.assert_array_equal(Tensor(values).cast(target).numpy(), wanted)
