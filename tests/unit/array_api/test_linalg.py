"""The linear algebra extension of the array API standard, with NumPy as the oracle."""

import numpy as np
import pytest

from weft import array_api as xp

RANDOM = np.random.default_rng(1)
DTYPES = ("float32", "float64")
pytestmark = pytest.mark.parametrize("dtype", DTYPES)


def matrices(dtype, *shape):
    return RANDOM.normal(size=shape).astype(dtype)


def positive(dtype, *shape):
    x = matrices(dtype, *shape)
    return x @ x.mT + np.eye(shape[-1], dtype=dtype)


def close(found, wanted, factor=1):
    wanted = np.asarray(wanted)
    assert found.shape == wanted.shape and found.dtype.name == wanted.dtype.name
    tolerance = factor * {"float32": 2e-4, "float64": 1e-9}.get(wanted.dtype.name, 0)
    np.testing.assert_allclose(found.numpy(), wanted, rtol=tolerance, atol=tolerance)


def test_functions(dtype):
    x, y = matrices(dtype, 2, 3, 3), matrices(dtype, 2, 3, 3)
    own, other = xp.linalg, np.linalg
    a, b = xp.asarray(x), xp.asarray(y)
    for name in ("det", "inv", "svdvals", "matrix_norm", "pinv", "diagonal", "trace"):
        close(getattr(own, name)(a), getattr(other, name)(x))
    close(own.trace(a, offset=1), other.trace(x, offset=1))
    close(own.diagonal(a, offset=-1), other.diagonal(x, offset=-1))
    for name in ("cross", "matmul", "vecdot"):
        close(getattr(own, name)(a, b), getattr(other, name)(x, y))
    close(own.cross(a, b, axis=-2), other.cross(x, y, axis=-2))
    close(own.tensordot(a[0], b[0]), np.tensordot(x[0], y[0]))
    close(own.outer(a[0, 0], b[0, 1]), other.outer(x[0, 0], y[0, 1]))
    close(own.matrix_transpose(a), x.mT)
    for n in (0, 1, 3, -2):
        close(own.matrix_power(a, n), other.matrix_power(x, n), factor=10)
    for order in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
        close(own.matrix_norm(a, ord=order), other.matrix_norm(x, ord=order))
    close(own.matrix_norm(a, keepdims=True), other.matrix_norm(x, keepdims=True))


def test_vector_norms(dtype):
    x = matrices(dtype, 2, 3, 4)
    a = xp.asarray(x)
    for order in (0, 1, 2, 3, np.inf, -np.inf):
        for axis in (None, 1, (0, 2)):
            for keepdims in (False, True):
                found = xp.linalg.vector_norm(a, ord=order, axis=axis, keepdims=keepdims)
                wanted = np.linalg.vector_norm(x, ord=order, axis=axis, keepdims=keepdims)
                close(found, np.asarray(wanted, dtype))


def test_solve(dtype):
    x = positive(dtype, 2, 3, 3)
    for right in (matrices(dtype, 3), matrices(dtype, 3, 2), matrices(dtype, 2, 3, 4)):
        close(xp.linalg.solve(xp.asarray(x), xp.asarray(right)), np.linalg.solve(x, right))
    # A stack of rows is matrices, whatever the batch.
    square = matrices(dtype, 3, 3)
    stacked = positive(dtype, 3, 3, 3)
    close(
        xp.linalg.solve(xp.asarray(stacked), xp.asarray(square)), np.linalg.solve(stacked, square)
    )


def test_decompositions(dtype):
    x = matrices(dtype, 2, 4, 3)
    a = xp.asarray(x)
    q, r = xp.linalg.qr(a)
    close(q @ r, x)
    assert q.shape == (2, 4, 3) and xp.linalg.qr(a, mode="complete").Q.shape == (2, 4, 4)
    u, s, vh = xp.linalg.svd(a, full_matrices=False)
    close((u * s[:, None, :]) @ vh, x)
    assert xp.linalg.svd(a).U.shape == (2, 4, 4)
    symmetric = positive(dtype, 2, 3, 3)
    mine = xp.asarray(symmetric)
    values, vectors = xp.linalg.eigh(mine)
    close(vectors @ (values[:, :, None] * vectors.mT), symmetric, factor=10)
    close(xp.linalg.eigvalsh(mine), np.linalg.eigvalsh(symmetric), factor=10)
    for upper in (False, True):
        close(xp.linalg.cholesky(mine, upper=upper), np.linalg.cholesky(symmetric, upper=upper))
    sign, logs = xp.linalg.slogdet(mine)
    wanted = np.linalg.slogdet(symmetric)
    close(sign, wanted.sign)
    close(logs, wanted.logabsdet)


def test_rank(dtype):
    x = matrices(dtype, 4, 2) @ matrices(dtype, 2, 5)
    assert int(xp.linalg.matrix_rank(xp.asarray(x))) == 2
    assert int(xp.linalg.matrix_rank(xp.asarray(x), rtol=10.0)) == 0
    close(xp.linalg.pinv(xp.asarray(x), rtol=1e-3), np.linalg.pinv(x, rtol=1e-3), factor=10)
