"""Quotients that are chosen in some lanes, where the others divide 0 by 0."""

import numpy as np
import pytest

from weft.tensor import Tensor

VALUES = np.array([5.0, 3.0, 2.0, 1.5, 0.5])
FORMS = {
    "t / b": lambda a, b, t: t / b,
    "t * (a / b)": lambda a, b, t: t * (a / b),
    "-t * (a / b / b)": lambda a, b, t: -t * (a / b / b),
    "a / (b * t)": lambda a, b, t: a / (b * t),
    "a / (b + b)": lambda a, b, t: a / (b + b),
    "(a + t) / b": lambda a, b, t: (a + t) / b,
    "a / b - t / a": lambda a, b, t: a / b - t / a,
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("before, after", [(0, 4), (4, 0), (1, 2), (3, 12), (0, 1)])
@pytest.mark.parametrize("form", FORMS)
def test_what_is_padded_is_zero(form: str, before: int, after: int, dtype: str):
    x, t = Tensor(VALUES.astype(dtype)), Tensor(np.array(2.5, dtype))
    found = FORMS[form](x[0], x[-1], t).reshape(1).pad((before, after))
    wanted = np.pad(FORMS[form](VALUES[:1], VALUES[-1:], 2.5), (before, after))
    np.testing.assert_allclose((found + x.sum() * 0).numpy(), wanted, 1e-6)


@pytest.mark.parametrize("low, high", [(0, -1), (1, 3), (-1, 0)])
def test_the_slope_of_a_quotient_of_two_elements(low: int, high: int):
    x = Tensor(VALUES.astype(np.float32), requires_grad=True)
    slope = (x[low] / x[high] * Tensor(np.array(2.0, np.float32))).gradient(x)[0]
    wanted = np.zeros(5)
    wanted[low] += 2 / VALUES[high]
    wanted[high] -= 2 * VALUES[low] / VALUES[high] ** 2
    np.testing.assert_allclose(slope.numpy(), wanted, 1e-6)


def test_real_quotients_by_zero_stay():
    x = Tensor([0.0, 1.0, -1.0, 0.0, float("inf")])
    np.testing.assert_array_equal((x / x).numpy(), [np.nan, 1, 1, np.nan, np.nan])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal((x / 0.0).numpy(), x.numpy() / np.float32(0))
