"""Chains of products without elements: nothing to compute, and nothing to divide by."""

import numpy as np
import pytest

from weft.tensor import Tensor


@pytest.mark.parametrize("shape", [(0, 2, 2), (2, 0, 0), (0, 0, 0)])
def test_powers_of_empty_matrices_and_their_slopes(shape: tuple[int, ...]):
    x = Tensor(np.zeros(shape, np.float32), requires_grad=True)
    assert x.matrix_power(5).numpy().shape == shape
    assert x.matrix_power(5).sum().gradient(x)[0].numpy().shape == shape
    assert ((x @ x).softmax(-1) @ x).numpy().shape == shape
