"""Eigenvalues of matrices that are not symmetric, and complex QR decompositions."""

import numpy as np
import pytest

import weft
from weft.tensor import Tensor

RANDOM = np.random.default_rng(3)
MATRICES = {
    "random": RANDOM.standard_normal((3, 3)),
    "permutation": np.roll(np.eye(3), 1, 0),
    "triangular": np.triu(RANDOM.standard_normal((3, 3))),
    "symmetric": (lambda a: a + a.T)(RANDOM.standard_normal((3, 3))),
    "identity": np.eye(3),
    "zero": np.zeros((3, 3)),
    "complex": RANDOM.standard_normal((3, 3)) + 1j * RANDOM.standard_normal((3, 3)),
}


@pytest.mark.parametrize("name", MATRICES)
def test_eigenvalues_and_vectors(name: str):
    matrix = MATRICES[name]
    values, vectors = (each.numpy() for each in weft.linalg.eig(Tensor(matrix)))
    np.testing.assert_allclose(matrix @ vectors, vectors * values, atol=1e-13)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=0), 1)
    expected = np.linalg.eigvals(matrix).astype(complex)
    left = list(expected)
    for value in values:
        nearest = min(left, key=lambda each: abs(each - value))
        assert abs(nearest - value) < 1e-12
        left.remove(nearest)


def test_batches_and_what_is_empty():
    matrices = RANDOM.standard_normal((2, 2, 3, 3)).astype(np.float32)
    values = weft.linalg.eigvals(Tensor(matrices)).numpy()
    assert values.shape == (2, 2, 3) and values.dtype == np.complex64
    np.testing.assert_allclose(values.sum(-1), np.trace(matrices, axis1=-2, axis2=-1), atol=1e-5)
    assert weft.linalg.eig(Tensor.zeros(2, 0, 0)).eigenvectors.shape == (2, 0, 0)


@pytest.mark.peers("torch")
def test_gradients_are_those_of_pytorch():
    import torch

    theirs = torch.tensor(MATRICES["random"], requires_grad=True)
    values, vectors = torch.linalg.eig(theirs)
    (values.abs().square().sum() + (vectors.abs() ** 3).sum()).backward()
    mine = Tensor(MATRICES["random"], requires_grad=True)
    values, vectors = weft.linalg.eig(mine)
    (values.abs().square().sum() + (vectors.abs() ** 3).sum()).backward()
    np.testing.assert_allclose(mine.grad.numpy(), theirs.grad.numpy(), 1e-9)


@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (2, 3, 3)])
def test_complex_qr_has_the_signs_of_lapack(shape: tuple[int, ...]):
    matrix = RANDOM.standard_normal(shape) + 1j * RANDOM.standard_normal(shape)
    q, r = (each.numpy() for each in Tensor(matrix).qr())
    expected = np.linalg.qr(matrix)
    np.testing.assert_allclose(q, expected[0], atol=1e-12)
    np.testing.assert_allclose(r, expected[1], atol=1e-12)


@pytest.mark.peers("torch")
def test_slopes_of_complex_qr():
    import torch

    matrix = MATRICES["complex"]
    theirs = torch.tensor(matrix, requires_grad=True)
    q, r = torch.linalg.qr(theirs)
    (q.real.sum() + (r.abs() ** 3).sum()).backward()
    mine = Tensor(matrix, requires_grad=True)
    q, r = mine.qr()
    (q.real.sum() + (r.abs() ** 3).sum()).backward()
    np.testing.assert_allclose(mine.grad.numpy(), theirs.grad.numpy(), 1e-9)
