"""Linear algebra against NumPy: residuals and forward errors within their bounds, and edges."""

import math
from typing import Any

import numpy as np
import pytest

from weft.engine.counters import GlobalCounters
from weft.ir.walk import bodies, topological
from weft.support.errors import ArgumentError, ShapeError
from weft.tensor import Tensor

DTYPES = ("float32", "float64")
SHAPES = ((1, 1), (12, 12), (2, 1, 3, 3))
RECTANGLES = ((1, 4), (2, 4, 3), (3, 7))
# Every shape in one dtype, and one shape in the other.
SQUARE_CASES = [*((shape, "float64") for shape in SHAPES), ((12, 12), "float32")]
RECTANGLE_CASES = [*((shape, "float64") for shape in RECTANGLES), ((3, 7), "float32")]
# Errors of n steps add up to a small multiple of n roundings.
FACTOR = 20.0


def random(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def wide(array: Any) -> Any:
    return np.asarray(array).astype(np.float64)


def transposed(array: Any) -> Any:
    return np.swapaxes(array, -1, -2)


def norms(array: Any) -> Any:
    return np.linalg.norm(wide(array), axis=(-2, -1))


def limit(array: Any) -> float:
    """Roundings of the longest loop, relative to the norm of what is computed."""
    return FACTOR * max(array.shape[-2:]) * float(np.finfo(array.dtype).eps)


def assert_small(error: Any, bound: Any) -> None:
    assert np.all(np.asarray(error) <= np.asarray(bound)), f"{np.max(error / bound)} bounds"


def assert_orthonormal(columns: Any, array: Any) -> None:
    inner = transposed(columns) @ columns
    assert_small(norms(inner - np.eye(inner.shape[-1])), limit(array))


def symmetric(shape: tuple[int, ...], dtype: str) -> Any:
    array = random(shape, dtype)
    return (array + transposed(array)) / np.asarray(2, dtype)


def definite(shape: tuple[int, ...], dtype: str) -> Any:
    array = random(shape, dtype)
    return array @ transposed(array) + np.eye(shape[-1], dtype=dtype)


@pytest.mark.parametrize(("shape", "dtype"), SQUARE_CASES)
def test_inverse(shape: tuple[int, ...], dtype: str):
    array = random(shape, dtype)
    ours = Tensor(array).inv()
    exact = np.linalg.inv(wide(array))
    condition = norms(array) * norms(exact)
    assert ours.dtype.name == dtype
    assert_small(norms(wide(ours.numpy()) - exact), limit(array) * condition * norms(exact))


@pytest.mark.parametrize(("shape", "dtype"), SQUARE_CASES)
def test_solve_is_backward_stable(shape: tuple[int, ...], dtype: str):
    array, right = random(shape, dtype), random((*shape[:-1], 2), dtype, 1)
    found = wide(Tensor(array).solve(Tensor(right)).numpy())
    residual = norms(wide(array) @ found - right)
    assert_small(residual, limit(array) * (norms(array) * norms(found) + norms(right)))


def test_solve_broadcasts_and_takes_vectors():
    array, right = random((4, 4), "float64"), random((3, 4, 2), "float64", 1)
    np.testing.assert_allclose(
        Tensor(array).solve(Tensor(right)).numpy(), np.linalg.solve(array, right), rtol=1e-10
    )
    vector = right[0, :, 0]
    np.testing.assert_allclose(
        Tensor(array).solve(Tensor(vector)).numpy(), np.linalg.solve(array, vector), rtol=1e-10
    )
    many = random((3, 4, 4), "float64", 2)
    vectors = random((3, 4), "float64", 3)
    expected = np.linalg.solve(many, vectors[..., None])[..., 0]
    np.testing.assert_allclose(Tensor(many).solve(Tensor(vectors)).numpy(), expected, rtol=1e-9)


def hard_matrix() -> Any:
    """Growth without pivoting, tiny pivots on the diagonal, and rows of unlike sizes."""
    array = random((6, 6), "float64")
    array[0, 0] = 1e-18
    array[1] *= 1e6
    array[:, 2] *= 1e-5
    return array


def test_pivots_keep_elimination_stable():
    array = hard_matrix()
    right = array @ np.arange(1.0, 7)
    found = Tensor(array).solve(Tensor(right)).numpy()
    np.testing.assert_allclose(found, np.arange(1.0, 7), rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_sizes_far_from_one(scale: float):
    array = random((5, 5), "float32") * np.float32(scale)
    inverse = wide(Tensor(array).inv().numpy())
    np.testing.assert_allclose(inverse @ wide(array), np.eye(5), atol=1e-3)
    values, vectors = Tensor((array + array.T) / np.float32(2)).eigh()
    exact = np.linalg.eigvalsh(wide((array + array.T) / np.float32(2)))
    np.testing.assert_allclose(values.numpy() / scale, exact / scale, atol=1e-4)
    assert_orthonormal(vectors.numpy(), array)
    np.testing.assert_allclose(
        Tensor(array).svd()[1].numpy() / scale,
        np.linalg.svd(wide(array))[1] / scale,
        atol=1e-4,
    )


@pytest.mark.parametrize(("shape", "dtype"), SQUARE_CASES)
def test_determinants(shape: tuple[int, ...], dtype: str):
    array = random(shape, dtype)
    condition = np.max(norms(array) * norms(np.linalg.inv(wide(array))))
    sign, size = Tensor(array).slogdet()
    exact_sign, exact_size = np.linalg.slogdet(wide(array))
    np.testing.assert_array_equal(sign.numpy(), exact_sign)
    np.testing.assert_allclose(size.numpy(), exact_size, atol=limit(array) * condition)
    np.testing.assert_allclose(
        Tensor(array).det().numpy(), np.linalg.det(wide(array)), rtol=limit(array) * condition
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_singular_matrices(dtype: str):
    """No value is read, so nothing raises: the inverse is infinite, the determinant 0."""
    array = np.array([[[1, 2], [2, 4]], [[0, 0], [0, 0]], [[1, 2], [3, 4]]], dtype)
    tensor = Tensor(array)
    assert np.all(np.isposinf(tensor.inv().numpy()[:2]))
    np.testing.assert_allclose(tensor.inv().numpy()[2], np.linalg.inv(array[2]), rtol=1e-5)
    assert np.all(np.isposinf(tensor.solve(Tensor.ones(2, 1, dtype=dtype)).numpy()[:2]))
    np.testing.assert_allclose(tensor.det().numpy(), [0, 0, -2], rtol=1e-5, atol=0)
    sign, size = tensor.slogdet()
    np.testing.assert_array_equal(sign.numpy(), [0, 0, -1])
    np.testing.assert_array_equal(size.numpy()[:2], [-math.inf, -math.inf])


@pytest.mark.parametrize(("shape", "dtype"), SQUARE_CASES)
def test_cholesky(shape: tuple[int, ...], dtype: str):
    array = definite(shape, dtype)
    factor = wide(Tensor(array).cholesky().numpy())
    np.testing.assert_array_equal(factor, np.tril(factor))
    assert_small(norms(factor @ transposed(factor) - array), limit(array) * norms(array))
    upper = Tensor(array).cholesky(upper=True).numpy()
    np.testing.assert_array_equal(upper, transposed(Tensor(array).cholesky().numpy()))


def test_cholesky_reads_the_lower_triangle_and_shows_what_is_not_positive():
    array = definite((4, 4), "float64")
    expected = np.linalg.cholesky(array)
    junk = np.tril(array) + np.triu(np.full((4, 4), 99.0), 1)
    np.testing.assert_allclose(Tensor(junk).cholesky().numpy(), expected, rtol=1e-12)
    assert np.isnan(Tensor(-np.eye(2)).cholesky().numpy()[0, 0])


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("size", [1, 5])
def test_triangular_systems(size: int, left: bool, upper: bool):
    array = random((size, size), "float64") + np.eye(size) * 3
    right = random((size, 2) if left else (2, size), "float64", 1)
    for is_unit in (False, True):
        found = Tensor(array).solve_triangular(Tensor(right), upper, left, is_unit).numpy()
        matrix = np.triu(array) if upper else np.tril(array)
        if is_unit:
            np.fill_diagonal(matrix, 1.0)
        residual = (matrix @ found if left else found @ matrix) - right
        assert_small(norms(residual), limit(array) * norms(matrix) * max(norms(found), 1))


@pytest.mark.parametrize(("shape", "dtype"), RECTANGLE_CASES)
def test_qr(shape: tuple[int, ...], dtype: str):
    array = random(shape, dtype)
    for mode in ("reduced", "complete"):
        q, r = (wide(each.numpy()) for each in Tensor(array).qr(mode))
        exact_q, exact_r = np.linalg.qr(array, mode)
        assert q.shape == exact_q.shape and r.shape == exact_r.shape
        assert_orthonormal(q, array)
        assert_small(norms(q @ r - array), limit(array) * norms(array))
        np.testing.assert_array_equal(r, np.triu(r))
        # Signs are those of LAPACK. Rows below the first min(m, n) are zeros.
        assert np.all(
            np.sign(np.diagonal(r, 0, -2, -1)) == np.sign(np.diagonal(exact_r, 0, -2, -1))
        )


def test_qr_of_dependent_columns():
    array = np.array([[1.0, 2, 0], [2, 4, 0], [3, 6, 0], [0, 0, 0]])
    q, r = (each.numpy() for each in Tensor(array).qr())
    assert_orthonormal(q, array)
    np.testing.assert_allclose(q @ r, array, atol=1e-14)
    assert Tensor(array).qr("r").Q.shape == (0,)


@pytest.mark.parametrize(("shape", "dtype"), SQUARE_CASES)
def test_eigenvalues(shape: tuple[int, ...], dtype: str):
    array = symmetric(shape, dtype)
    values, vectors = (wide(each.numpy()) for each in Tensor(array).eigh())
    assert_orthonormal(vectors, array)
    rebuilt = (vectors * values[..., None, :]) @ transposed(vectors)
    assert_small(norms(rebuilt - array), limit(array) * norms(array))
    error = np.abs(values - np.linalg.eigvalsh(wide(array))).max(-1)
    assert_small(error, limit(array) * norms(array))
    np.testing.assert_array_equal(values, np.sort(values, -1))


def wilkinson(size: int) -> Any:
    """Pairs of eigenvalues that agree in all digits."""
    ends = np.abs(np.arange(size) - (size - 1) / 2)
    return np.diag(ends) + np.diag(np.ones(size - 1), 1) + np.diag(np.ones(size - 1), -1)


def reflection(size: int) -> Any:
    """Half of the eigenvalues are 1, and half -1."""
    q = np.linalg.qr(random((size, size), "float64"))[0]
    return q * np.where(np.arange(size) % 2, 1.0, -1.0) @ q.T


HARD_SYMMETRIC: dict[str, Any] = {
    "identity": np.eye(12),
    "zero": np.zeros((12, 12)),
    "diagonal": np.diag(np.arange(12.0) - 5),
    "rank one": np.ones((12, 12)),
    "pairs": wilkinson(12),
    "signs": reflection(12),
    "graded": np.outer(10.0 ** -np.arange(12), 10.0 ** -np.arange(12)) + 1e-9 * np.eye(12),
    "hilbert": 1.0 / (np.arange(12)[:, None] + np.arange(12) + 1),
    "clusters": np.kron(np.eye(3), np.full((4, 4), 1.0)) + 1e-13 * np.ones((12, 12)),
}


@pytest.mark.parametrize("name", HARD_SYMMETRIC)
def test_rotations_converge(name: str):
    array = HARD_SYMMETRIC[name]
    values, vectors = (each.numpy() for each in Tensor(array).eigh())
    assert_orthonormal(vectors, array)
    bound = limit(array) * max(norms(array), 1e-300)
    assert_small(norms((vectors * values) @ vectors.T - array), bound)
    u, s, vh = (each.numpy() for each in Tensor(array).svd())
    assert_orthonormal(u, array)
    assert_orthonormal(vh.T, array)
    assert_small(norms((u * s) @ vh - array), bound)
    np.testing.assert_allclose(s, np.linalg.svd(array)[1], atol=bound)


def test_eigh_reads_the_triangle_it_is_told():
    lower = np.tril(random((4, 4), "float64"))
    exact = np.linalg.eigvalsh(lower)
    np.testing.assert_allclose(Tensor(lower).eigh()[0].numpy(), exact, atol=1e-13)
    np.testing.assert_allclose(Tensor(lower.T).eigh("U")[0].numpy(), exact, atol=1e-13)


@pytest.mark.parametrize(("shape", "dtype"), RECTANGLE_CASES)
def test_singular_values(shape: tuple[int, ...], dtype: str):
    array = random(shape, dtype)
    for is_full in (True, False):
        u, s, vh = (wide(each.numpy()) for each in Tensor(array).svd(is_full))
        expected = np.linalg.svd(wide(array), is_full)
        assert [each.shape for each in (u, s, vh)] == [each.shape for each in expected]
        assert_orthonormal(u, array)
        assert_orthonormal(transposed(vh), array)
        least = s.shape[-1]
        rebuilt = (u[..., :least] * s[..., None, :]) @ vh[..., :least, :]
        assert_small(norms(rebuilt - array), limit(array) * norms(array))
        assert_small(np.abs(s - expected[1]).max(-1), limit(array) * norms(array))


@pytest.mark.parametrize("shape", RECTANGLES)
def test_pseudo_inverse_and_least_squares(shape: tuple[int, ...]):
    array = random(shape, "float64")
    found = Tensor(array).pinv().numpy()
    np.testing.assert_allclose(found, np.linalg.pinv(array), atol=1e-11)
    right = random((*shape[:-1], 2), "float64", 1)
    found = Tensor(array).lstsq(Tensor(right))
    np.testing.assert_allclose(found.solution.numpy(), np.linalg.pinv(array) @ right, atol=1e-11)
    assert np.all(found.rank.numpy() == np.linalg.matrix_rank(array))
    rest = right - array @ found.solution.numpy()
    np.testing.assert_allclose(found.residuals.numpy(), (rest**2).sum(-2), atol=1e-20)


def test_pseudo_inverse_of_low_rank():
    array = np.outer([1.0, 2, 3], [1.0, -1])
    np.testing.assert_allclose(Tensor(array).pinv().numpy(), np.linalg.pinv(array), atol=1e-14)
    found = Tensor(array).lstsq(Tensor([1.0, 2, 4], dtype="float64"))
    assert found.rank.item() == 1
    expected = np.linalg.lstsq(array, np.array([1.0, 2, 4]), rcond=None)
    np.testing.assert_allclose(found.solution.numpy(), expected[0], atol=1e-14)
    # A singular value that is small but not tiny counts, unless rtol says otherwise.
    small = np.diag([1.0, 1e-3])
    assert Tensor(small).pinv(rtol=1e-2).numpy()[1, 1] == 0
    assert Tensor(small).pinv().numpy()[1, 1] == pytest.approx(1000)


def test_matrices_without_elements():
    empty = Tensor.zeros(0, 0)
    assert empty.inv().shape == (0, 0) and empty.cholesky().shape == (0, 0)
    assert empty.det().item() == 1.0
    assert [each.item() for each in empty.slogdet()] == [1.0, 0.0]
    assert [each.shape for each in empty.eigh()] == [(0,), (0, 0)]
    batch = Tensor.zeros(0, 3, 3)
    assert batch.inv().shape == (0, 3, 3) and batch.det().shape == (0,)
    assert batch.solve(Tensor.zeros(3, 2)).shape == (0, 3, 2)
    for rows, columns in ((0, 3), (3, 0)):
        matrix = Tensor.zeros(rows, columns)
        assert [each.shape for each in matrix.qr()] == [(rows, 0), (0, columns)]
        u, s, vh = matrix.svd()
        assert (u.shape, s.shape, vh.shape) == ((rows, rows), (0,), (columns, columns))
        np.testing.assert_array_equal(u.numpy(), np.eye(rows))
        np.testing.assert_array_equal(vh.numpy(), np.eye(columns))
        assert matrix.pinv().shape == (columns, rows)


def test_small_floats_and_integers_are_computed_in_wider_ones():
    array = np.array([[2, 1], [1, 3]])
    assert Tensor(array.astype("float16")).inv().dtype.name == "float16"
    np.testing.assert_allclose(Tensor(array).inv().numpy(), np.linalg.inv(array), rtol=1e-6)
    assert Tensor(array).det().dtype.name == "float32"


def test_nothing_runs_before_it_is_read():
    array = Tensor(random((4, 4), "float64")).realize()
    GlobalCounters.reset()
    for each in (array.inv(), array.det(), *array.qr(), *array.svd(), *array.lstsq(array)):
        assert not each._storage.is_realized
    assert GlobalCounters.kernel_count == 0


def nodes_of(tensor: Tensor) -> int:
    """The nodes of a graph, and of the bodies it calls, each once."""
    called = bodies(tensor.uop)
    return len(set(topological(tensor.uop, *called)))


def test_graphs_grow_with_the_logarithm_of_the_steps():
    """A body of twice the iterations is two calls, so that twice the size is a few nodes more."""
    small, large = (nodes_of(Tensor.eye(size).eigh()[1]) for size in (16, 128))
    assert large <= small + 64  # the steps are 15 times as many


def test_kernels_grow_with_the_steps():
    GlobalCounters.reset()
    Tensor(random((24, 24), "float64")).inv().realize()
    assert GlobalCounters.kernel_count <= 24 * 3 + 16


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: Tensor.ones(2, 3).inv(), "not square"),
        (lambda: Tensor.ones(3).qr(), "expected a matrix"),
        (lambda: Tensor.eye(3).solve(Tensor.ones(2)), "3 rows and the right side 2"),
        (lambda: Tensor.eye(3).qr("full"), "unknown mode"),
        (lambda: Tensor.ones(2, 3, 4).bmm(Tensor.ones(3, 4, 5)), "2 and 3 matrices"),
        (lambda: Tensor.ones(2, 3).mv(Tensor.ones(3, 1)), "axes, not 1"),
        (lambda: Tensor.ones(2, 3).tensordot(Tensor.ones(2, 3), 3), "dims is 3"),
        (lambda: Tensor.ones(2, 3).tensordot(Tensor.ones(2, 3), ([0], [1])), "sizes"),
        (lambda: Tensor.ones(4).cross(Tensor.ones(4)), "size 4"),
        (lambda: Tensor.ones(4).norm("spectral"), "unknown p"),
        (lambda: Tensor.eye(4).matrix_norm(3), "unknown ord"),
        (lambda: Tensor.ones(2, 3).cdist(Tensor.ones(2, 4)), "3 and 4 elements"),
    ],
)
def test_mistakes_are_named(call: Any, text: str):
    with pytest.raises((ShapeError, ArgumentError), match=text):
        call()


def test_norms_of_edges():
    assert Tensor.zeros(0).norm().item() == 0.0
    assert Tensor.zeros(0).norm(math.inf).item() == 0.0
    assert Tensor([0.0, 3.0, 0.0]).norm(0).item() == 1.0
    assert Tensor([-2.0, 3.0]).norm(-math.inf).item() == 2.0
    zero = Tensor([0.0, 0.0])
    assert zero.norm().gradient(zero)[0].tolist() == [0.0, 0.0]
    assert zero.norm(3).gradient(zero)[0].tolist() == [0.0, 0.0]
    points = Tensor([[1.0, 2.0], [1.0, 2.0]])
    assert points.cdist(points).sum().gradient(points)[0].tolist() == [[0.0, 0.0]] * 2
    near = Tensor([[1e4, 1.0]]).cdist(Tensor([[1e4, 1.0 + 2**-10]]))
    assert near.item() == 2**-10


def test_addmm_with_beta_zero_ignores_what_it_adds_to():
    ours = Tensor([[math.nan]]).addmm(Tensor([[2.0]]), Tensor([[3.0]]), beta=0)
    assert ours.tolist() == [[6.0]]
