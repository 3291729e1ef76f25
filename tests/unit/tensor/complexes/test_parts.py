"""Complex tensors: creation, parts, arithmetic, writes, functions, gradients, errors."""

import math

import numpy as np
import pytest

import weft
from weft import DTypeError, NotSupported, Tensor, dtypes
from weft.support.settings import Context


def values(*shape, seed=0, dtype=np.complex64):
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)


def near(ours, theirs):
    found = ours.numpy()
    assert found.dtype == theirs.dtype and found.shape == theirs.shape
    np.testing.assert_allclose(found, theirs, rtol=2e-5, atol=2e-5)


A, B = values(3, 4), values(4, 5, seed=1)


def test_creation():
    assert Tensor([1j, 2]).dtype is dtypes.complex64
    assert Tensor([1j], dtype="complex128").dtype is dtypes.complex128
    assert Tensor(np.array([1j])).dtype is dtypes.complex128
    assert Tensor(2 + 1j).item() == 2 + 1j
    assert Tensor.full((2,), 1j).tolist() == [1j, 1j]
    assert Tensor.zeros(2, dtype="complex64").tolist() == [0j, 0j]
    assert Tensor.randn(3, dtype="complex64").dtype is dtypes.complex64
    assert Tensor.complex(Tensor([1.0]), Tensor([2.0])).tolist() == [1 + 2j]
    assert Tensor([1.5], dtype=complex).tolist() == [1.5 + 0j]


@pytest.mark.parametrize(
    ("left", "right", "want"),
    [
        ("float32", 1j, "complex64"),
        ("float64", 1j, "complex128"),
        ("float16", 1j, "complex64"),
        ("int64", 1j, "complex64"),
        ("bool", 1j, "complex64"),
        ("complex64", 2.5, "complex64"),
    ],
)
def test_scalars_are_weak(left, right, want):
    assert (Tensor([1], dtype=left) * right).dtype.name == want
    assert (right * Tensor([1], dtype=left)).dtype.name == want
    assert (Tensor([1], dtype=left) / right).dtype.name == want


@pytest.mark.parametrize("other", ["float16", "float32", "float64", "int64", "complex128"])
def test_promotion_is_numpys(other):
    result = Tensor([1j]) + Tensor([1], dtype=other)
    kind = "float32" if other in ("float16", "int64") else other
    assert result.dtype.name == np.promote_types("complex64", kind).name


def test_arithmetic_and_movement():
    near(Tensor(A) @ Tensor(B), A @ B)
    near(Tensor(A).T.flip(0) * 2j - 1, A.T[::-1] * np.complex64(2j) - np.complex64(1))
    near(Tensor(A) / (Tensor(A) + 3), A / (A + np.complex64(3)))
    near(Tensor(A).sum(1), A.sum(1))
    near(Tensor(A).prod(1), A.prod(1))
    near(Tensor(A).cumsum(1), A.cumsum(1))
    near(Tensor(A).cumprod(1), A.cumprod(1))
    near(Tensor(A).pad((1, 2)), np.pad(A, ((0, 0), (1, 2))))
    near(Tensor(A).cat(Tensor(A), dim=1), np.concatenate([A, A], 1))
    near(Tensor(A)[Tensor([2, 0])], A[[2, 0]])
    near(Tensor(A) ** 3, A**3)
    near(2.0 ** Tensor(A), np.complex64(2) ** A)
    near(Tensor(A).var(), np.asarray(A.var(ddof=1)))
    near(Tensor(A[0]).vdot(Tensor(A[1])), np.asarray(np.vdot(A[0], A[1])))
    assert (Tensor([1j, 2]) == Tensor([1j, 3])).tolist() == [True, False]


def test_division_neither_overflows_nor_vanishes():
    large = Tensor([3e30 + 4e30j])
    np.testing.assert_allclose((large / large).numpy(), [1 + 0j], atol=1e-6)
    small = Tensor([3e-30 + 4e-30j])
    np.testing.assert_allclose((small / small).numpy(), [1 + 0j], atol=1e-6)
    assert Tensor([3e30 + 4e30j]).abs().isfinite().item()


def test_writes_go_through_views():
    ours, theirs = Tensor(A), A.copy()
    ours[1] = 2j
    theirs[1] = 2j
    ours[:, 2] += 1
    theirs[:, 2] += 1
    row = ours[0]
    row *= 1j
    theirs[0] *= 1j
    ours[Tensor([0, 2])] = Tensor(A[:2])
    theirs[[0, 2]] = A[:2]
    near(ours, theirs)


def test_functions_and_jit_take_and_give_complex_numbers():
    @weft.function
    def inner(p, q):
        return p * q.conj(), (p + q).abs()

    @weft.jit
    def step(p, q):
        u, v = inner(p, p * 2)
        return (p @ q) * 1j + u.sum(), v

    for scale in (1, 2):
        first, second = step(Tensor(A * np.float32(scale)), Tensor(B))
        a = A * np.float32(scale)
        near(first, (a @ B) * np.complex64(1j) + (a * np.conj(a * 2)).sum())
        near(second, np.abs(a + a * 2))


def test_every_level_computes_the_same():
    with Context(CHECK="levels"):
        near((Tensor(A) @ Tensor(B)).conj() * 2j, np.conj(A @ B) * np.complex64(2j))
        near(Tensor(A).exp().sum(0), np.exp(A).sum(0))


POINTS = np.array(
    [x + 1j * y for x in (0.3, -0.3, 1.1, -2.5, 9.0) for y in (0.4, -0.4, 1.0, -3.0)],
    np.complex64,
)
NUMPY = {
    **{name: getattr(np, name) for name in ("exp", "log", "sqrt", "sin", "cos", "tan")},
    **{name: getattr(np, name) for name in ("sinh", "cosh", "tanh", "log1p", "expm1", "log2")},
    **{f"a{name}": getattr(np, f"arc{name}") for name in ("sin", "cos", "tan")},
    **{f"a{name}": getattr(np, f"arc{name}") for name in ("sinh", "cosh", "tanh")},
    "log10": np.log10,
    "reciprocal": np.reciprocal,
    "square": np.square,
    "abs": np.abs,
    "angle": np.angle,
    "conj": np.conj,
}


@pytest.mark.parametrize("name", NUMPY)
def test_functions_of_complex_numbers(name):
    near(getattr(Tensor(POINTS), name)(), NUMPY[name](POINTS))


@pytest.mark.parametrize("name", [*NUMPY, "sigmoid", "sgn", "rsqrt"])
def test_gradients_follow_differences(name):
    """dL/dx + i dL/dy of a real L, by central differences in double precision."""
    on_axes = [1.7 if name == "acosh" else 0.7, 0.7j]
    at = np.array([*POINTS, *on_axes], np.complex128)

    def plain(z):
        found = getattr(Tensor(z), name)()
        result = found.real * 1.5 + ((found * 0.7j).imag if found.is_complex() else 0)
        return result.numpy()

    def total(z):
        found = getattr(z, name)()
        return (found.real * 1.5 + ((found * 0.7j).imag if found.is_complex() else 0)).sum()

    z = Tensor(at, requires_grad=True)
    total(z).backward()
    step = 1e-6
    along_x = (plain(at + step) - plain(at - step)) / (2 * step)
    along_y = (plain(at + 1j * step) - plain(at - 1j * step)) / (2 * step)
    np.testing.assert_allclose(z.grad.numpy(), along_x + 1j * along_y, rtol=1e-5, atol=1e-6)


def test_gradients_of_products_and_of_the_magnitude_at_zero():
    z = Tensor(np.array([0j, 3 + 4j]), requires_grad=True)
    z.abs().sum().backward()
    np.testing.assert_allclose(z.grad.numpy(), [0, 0.6 + 0.8j])
    a, b = Tensor(A, requires_grad=True), Tensor(B, requires_grad=True)
    ((a @ b).abs() ** 2).sum().backward()
    near(a.grad, (2 * (A @ B) @ B.conj().T).astype(np.complex64))
    near(b.grad, (2 * A.conj().T @ (A @ B)).astype(np.complex64))


def test_linear_algebra():
    m = values(4, 4, seed=3)
    near(Tensor(m).inv(), np.linalg.inv(m))
    near(Tensor(m).solve(Tensor(B)), np.linalg.solve(m, B))
    near(Tensor(m).det(), np.asarray(np.linalg.det(m)))
    sign, size = Tensor(m).slogdet()
    near(sign, np.asarray(np.linalg.slogdet(m)[0]))
    near(size, np.asarray(np.linalg.slogdet(m)[1]))
    near(Tensor(m).norm(), np.asarray(np.linalg.norm(m)))
    with pytest.raises(NotSupported, match="complex64"):
        Tensor(m).svd()


@pytest.mark.parametrize(
    "name", ["floor", "ceil", "round", "relu", "max", "sort", "argmax", "erf", "sign", "cummax"]
)
def test_what_needs_an_order_is_refused(name):
    with pytest.raises(DTypeError, match="complex64"):
        getattr(Tensor([1j, 2.0]), name)()


@pytest.mark.parametrize("other", [2.0, 1j])
def test_comparisons_are_refused(other):
    with pytest.raises(DTypeError, match="less"):
        _ = Tensor([1j]) < other


def test_a_cast_to_real_numbers_warns():
    with pytest.warns(UserWarning, match="imaginary"):
        assert Tensor([1 + 2j]).float().tolist() == [1.0]
    assert Tensor([0j, 1j]).bool().tolist() == [False, True]


def test_memory_is_shared_and_read_as_pairs():
    assert Tensor([1 + 2j]).view_as_real().tolist() == [[1.0, 2.0]]
    assert Tensor([[1.0, 2.0]]).view_as_complex().tolist() == [1 + 2j]
    assert Tensor([1 + 2j, 3j]).bitcast("float32").tolist() == [1.0, 2.0, 0.0, 3.0]
    assert Tensor([1.0, 2.0]).bitcast("complex64").tolist() == [1 + 2j]
    array = np.from_dlpack(Tensor(A))
    assert array.dtype == np.complex64 and (array == A).all()
    assert (Tensor.from_dlpack(A).numpy() == A).all()


def test_angles_and_signs_of_zero():
    z = Tensor(np.array([complex(-1.0, 0.0), complex(-1.0, -0.0)], np.complex64))
    assert z.angle().tolist() == pytest.approx([math.pi, -math.pi], rel=1e-6)
    assert z.sqrt().imag.tolist() == [1.0, -1.0]
