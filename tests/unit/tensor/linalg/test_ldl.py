"""LDL decompositions: what they multiply to, systems, and LAPACK's pivots."""

from typing import Any

import numpy as np
import pytest

from weft import Tensor, linalg
from weft.support.errors import LinAlgError


def symmetric(n: int, dtype: str, hermitian: bool) -> Any:
    rng = np.random.default_rng(n)
    a = rng.normal(size=(3, n, n)).astype(dtype)
    a = a + 1j * rng.normal(size=a.shape) if dtype == "complex128" else a
    a = a + (a.swapaxes(1, 2).conj() if hermitian else a.swapaxes(1, 2))
    a[0] *= 1 - np.eye(n)  # its pivots are blocks of two
    return a if n > 1 else a + 1


CASES = [
    (n, dtype, hermitian)
    for n in (1, 2, 5, 8)
    for dtype, hermitian in (("float64", False), ("complex128", True), ("complex128", False))
]


@pytest.mark.parametrize(("n", "dtype", "hermitian"), CASES)
def test_solves(n: int, dtype: str, hermitian: bool):
    a = symmetric(n, dtype, hermitian)
    b = np.random.default_rng(0).normal(size=(3, n, 2)).astype(dtype)
    packed = linalg.ldl_factor(Tensor(a), hermitian=hermitian)
    x = linalg.ldl_solve(*packed, Tensor(b), hermitian=hermitian).numpy()
    np.testing.assert_allclose(a @ x, b, atol=1e-11)


def test_info():
    found = linalg.ldl_factor_ex(Tensor([[[1.0, 0.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 2.0]]]))
    assert found.info.tolist() == [2, 0]
    with pytest.raises(LinAlgError, match="ldl_factor_ex: a matrix is singular"):
        linalg.ldl_factor_ex(Tensor([[0.0]]), check_errors=True)
    assert issubclass(linalg.LinAlgError, RuntimeError)


@pytest.mark.parametrize("name", ["cholesky_ex", "inv_ex", "lu_factor_ex"])
def test_errors_are_looked_for_where_asked(name: str):
    function = getattr(linalg, name)
    assert function(Tensor([[0.0]])).info.item() == 1
    with pytest.raises(LinAlgError, match=name):
        function(Tensor([[0.0]]), check_errors=True)
    assert function(Tensor([[4.0]]), check_errors=True).info.item() == 0


@pytest.mark.peers("torch")
@pytest.mark.parametrize(("n", "dtype", "hermitian"), CASES)
def test_factors_are_those_of_lapack(n: int, dtype: str, hermitian: bool):
    torch = pytest.importorskip("torch")
    a = symmetric(n, dtype, hermitian)
    theirs = torch.linalg.ldl_factor_ex(torch.tensor(a), hermitian=hermitian)
    ours = linalg.ldl_factor_ex(Tensor(a), hermitian=hermitian)
    assert ours.pivots.tolist() == theirs.pivots.tolist()
    assert ours.info.tolist() == theirs.info.tolist()
    np.testing.assert_allclose(ours.LD.numpy(), theirs.LD.numpy(), atol=1e-11)
