"""Kernels written by hand run beside generated ones."""

import numpy as np
import pytest

import weft
from weft import Tensor, custom_kernel
from weft.ir.build import index_of, load, range_, reduce_ranges, store
from weft.ir.ops import Op


def product(out, a, b):
    (m, n), k = out.shape, a.shape[1]
    i, j, r = range_(0, m), range_(1, n), range_(2, k)
    terms = load(index_of(a, [i, r])) * load(index_of(b, [r, j]))
    return store(index_of(out, [i, j]), reduce_ranges(terms, Op.ADD, [r]), [i, j])


def test_a_kernel_takes_expressions_and_feeds_others():
    random = np.random.default_rng(3)
    a = random.standard_normal((6, 7)).astype(np.float32)
    b = random.standard_normal((7, 5)).astype(np.float32)
    made = custom_kernel(product, Tensor(a) * 2, Tensor(b), shape=(6, 5))
    assert np.allclose((made + 1).relu().numpy(), np.maximum(2 * a @ b + 1, 0), atol=1e-5)


def test_what_is_no_store_is_refused():
    with pytest.raises(weft.ArgumentTypeError, match="no STORE"):
        custom_kernel(
            lambda out, x: load(index_of(x, [range_(0, 2)])), Tensor([1.0, 2.0]), shape=(2,)
        )


def test_illegal_kernels_are_marked():
    def wrong(out, x):
        return store(index_of(out, []), load(index_of(x, [range_(0, 2)])))

    with pytest.raises(weft.InternalError, match="one index per dimension"):
        custom_kernel(wrong, Tensor([1.0, 2.0]), shape=(2,))


def test_inputs_are_needed():
    with pytest.raises(weft.ArgumentTypeError, match="no input"):
        custom_kernel(product, shape=(2,))
