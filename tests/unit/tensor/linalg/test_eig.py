"""Eigenvalues of general matrices: residuals, hard shapes, gradients as PyTorch's."""

from typing import Any

import numpy as np
import pytest

from weft import Tensor, linalg


def matrices(n: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    q = rng.normal(size=(n, n))
    return {
        "random": q,
        "complex": q + 1j * rng.normal(size=(n, n)),
        "symmetric": q + q.T,
        "cyclic": np.roll(np.eye(n), 1, 0),
        "defective": np.eye(n) + np.eye(n, k=1),
        "defective, lower": np.eye(n) + np.eye(n, k=-1),
        "zero": np.zeros((n, n)),
        "ones": np.ones((n, n)),
        "of rank 2": q[:, :2] @ q[:2],
        "companion": np.vstack([rng.normal(size=(1, n)), np.eye(n)[:-1]]),
        "of two values": q @ np.diag([1.0] * (n // 2) + [2.0] * (n - n // 2)) @ np.linalg.inv(q),
        "huge": q * 1e150,
        "tiny": q * 1e-150,
    }


def found(a: Any) -> tuple[Any, Any]:
    values, vectors = linalg.eig(Tensor(a))
    return values.numpy(), vectors.numpy()


def test_hard_matrices():
    names = matrices(6)
    values, vectors = found(np.stack([np.asarray(each, complex) for each in names.values()]))
    for name, w, v in zip(names, values, vectors, strict=True):
        a = names[name]
        size = np.abs(a).max() + 1e-300
        assert np.abs(a / size @ v - v * (w / size)).max() < 1e-7, name
        np.testing.assert_allclose(np.linalg.norm(v, axis=0), 1)
        np.testing.assert_allclose(w.sum() / size, np.trace(a) / size, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("dtype", ["float32", "complex64", "float64"])
@pytest.mark.parametrize("shape", [(0, 0), (1, 1), (2, 3, 3)])
def test_values_are_numpys(dtype: str, shape: tuple[int, ...]):
    a = np.random.default_rng(1).normal(size=shape).astype(dtype)
    values, vectors = found(a)
    assert values.dtype == vectors.dtype == np.result_type(dtype, np.complex64)
    assert values.shape == shape[:-1] and vectors.shape == shape
    wanted = np.linalg.eigvals(a.astype(complex))
    gaps = np.abs(values[..., None] - wanted[..., None, :])
    assert a.size == 0 or gaps.min(-1).max() < 1e3 * np.finfo(dtype).eps
    assert a.size == 0 or gaps.min(-2).max() < 1e3 * np.finfo(dtype).eps


def test_what_is_real_is_real():
    values, vectors = found(np.array([[2.0, 1.0, 0.5], [1.0, -1.0, 3.0], [0.0, 2.0, 1.0]]))
    assert not values.imag.any() and not vectors.imag.any()
    values, _ = found(np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 2.0]]))
    assert sorted(values.round(6).tolist(), key=lambda z: (round(z.real), -z.imag)) == [1j, -1j, 2]
    assert values[0] == values[1].conj() or values[1] == values[2].conj()


def test_gradient_of_values():
    x = Tensor([[2.0, 1.0], [0.0, 3.0]], requires_grad=True)
    (linalg.eigvals(x).real ** 2).sum().backward()  # that is tr A²
    np.testing.assert_allclose(x.grad.numpy(), [[4.0, 0.0], [2.0, 6.0]], atol=1e-6)


@pytest.mark.peers("torch")
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_gradients_are_those_of_torch(dtype: str):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(2)
    a = rng.normal(size=(2, 4, 4)).astype(dtype)
    a = a + 1j * rng.normal(size=a.shape) if dtype == "complex128" else a
    x, theirs = Tensor(a, requires_grad=True), torch.tensor(a, requires_grad=True)
    for each, module in ((x, linalg), (theirs, torch.linalg)):
        values, vectors = module.eig(each)
        sizes = vectors.abs() ** 3
        total = (values.abs() ** 2).sum() + (values.real**3).sum() + sizes.sum()
        (total + (sizes.sum(-2) * values.real).sum()).backward()
    np.testing.assert_allclose(x.grad.numpy(), theirs.grad.numpy(), rtol=1e-9, atol=1e-9)
