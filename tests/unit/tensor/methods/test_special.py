"""Special functions against Python's math: accuracy in the tails, slopes, values at the edges."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from weft.tensor import Tensor

# Python's own lgamma is wrong by tens of ulp near 1 and 2; these values are correctly rounded.
LGAMMA = {
    7.888609052210118e-31: 69.31471805599453,
    0.125: 2.0194183575537963,
    0.875: 0.08585870722533433,
    1.0009765625: -0.0005629031799912047,
    1.25: -0.09827183642181316,
    1.4375: -0.12120242719902266,
    1.75: -0.08440112102048555,
    1.9990234375: -0.0004125677359714894,
    2.25: 0.1248717148923966,
    7.875: 8.274252119110479,
    8.125: 8.77815096449171,
    1048576.0: 13487767.94752331,
}

# (function, peer, arguments that are hard: tails, zeros, poles, tiny numbers)
CASES: dict[str, tuple[Callable[[float], float], list[float]]] = {
    "erfc": (math.erfc, [-6.0, -1e-9, 0.49, 0.51, 1.0, 3.7, 6.001, 9.1, 26.0, 1e-30]),
    "lgamma": (lambda x: LGAMMA[x], list(LGAMMA)),
    "expm1": (math.expm1, [-40.0, -1.0, -1e-9, 1e-30, 1e-4, 0.99, 1.01, 30.0]),
    "log1p": (math.log1p, [-0.999, -0.5, -1e-9, 1e-30, 1e-4, 0.3, 1e9]),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_few_ulp(name: str, dtype: str):
    peer, arguments = CASES[name]
    x = np.array(arguments, dtype)
    got = getattr(Tensor(x), name)().numpy().astype(np.float64)
    wanted = np.array([peer(float(each)) for each in x])
    limits = np.finfo(dtype)
    error = np.abs(got - wanted) / np.maximum(np.abs(wanted), limits.tiny) / limits.eps
    assert error.max() <= 4, dict(zip(arguments, error.round(2), strict=True))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_erfinv_undoes_erf(dtype: str):
    y = np.array([-1.5, -0.3, 1e-6, 0.0, 0.5, 1.0, 2.2], dtype)
    x = np.array([math.erf(float(each)) for each in y]).astype(dtype)
    back = Tensor(x).erfinv().numpy()
    # erf is flat there, so that rounding its value moves the argument.
    slope = 2 / math.sqrt(math.pi) * np.exp(-(y.astype(np.float64) ** 2))
    allowed = np.finfo(dtype).eps * (4 * np.abs(y) + np.abs(x) / slope)
    assert (np.abs(back - y) <= allowed + 1e-12 * np.abs(y)).all()


def test_digamma_is_the_slope_of_lgamma():
    x = np.array([0.05, 0.4, 1.2, 2.6, 7.5, 9.0, 300.0, -0.5, -3.7])
    t = Tensor(x)
    slope = t.lgamma().sum().gradient(t)[0].numpy()
    np.testing.assert_allclose(slope, t.digamma().numpy(), rtol=1e-11)
    h = 1e-6
    quotient = [(math.lgamma(each + h) - math.lgamma(each - h)) / (2 * h) for each in x]
    np.testing.assert_allclose(slope, quotient, rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("erfc", [math.inf, -math.inf, math.nan], [0.0, 2.0, math.nan]),
        ("erfinv", [1.0, -1.0, 1.5], [math.inf, -math.inf, math.nan]),
        ("lgamma", [0.0, -1.0, math.inf, -math.inf], [math.inf] * 4),
        ("digamma", [0.0, -0.0, -2.0, math.inf], [-math.inf, math.inf, math.nan, math.inf]),
        ("log1p", [-1.0, math.inf, -2.0], [-math.inf, math.inf, math.nan]),
        ("sinc", [0.0, 2.0, math.inf], [1.0, 0.0, math.nan]),
        ("sign", [math.nan, -3.0, 0.0], [0.0, -1.0, 0.0]),
    ],
)
def test_edges(name: str, arguments: list[float], expected: list[float]):
    np.testing.assert_array_equal(getattr(Tensor(arguments), name)().numpy(), expected)


@pytest.mark.parametrize("name", ["erfc", "erfinv", "lgamma", "digamma", "log1p", "expm1", "sinc"])
def test_second_derivatives(name: str):
    x = Tensor(np.array([0.1, 0.45, 0.8]))
    slope = getattr(x, name)().sum().gradient(x)[0]
    second = slope.sum().gradient(x)[0].numpy()
    h = 1e-5
    sides = []
    for step in (h, -h):
        y = Tensor(np.array([0.1, 0.45, 0.8]) + step)
        sides.append(getattr(y, name)().sum().gradient(y)[0].numpy())
    np.testing.assert_allclose(second, (sides[0] - sides[1]) / (2 * h), rtol=1e-5)


def test_the_slope_of_log1p_near_zero():
    x = Tensor([1e-6, -3e-7, 0.0])
    np.testing.assert_allclose(x.log1p().sum().gradient(x)[0].numpy(), [1, 1, 1], rtol=2e-6)


def test_nan_to_num_takes_the_limits_of_the_dtype():
    x = Tensor([math.nan, math.inf, -math.inf], dtype="float16")
    assert x.nan_to_num().tolist() == [0.0, 65504.0, -65504.0]
