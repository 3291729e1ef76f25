"""Programs that are too long for one kernel compute what one kernel would."""

import numpy as np

from weft.engine.counters import GlobalCounters
from weft.tensor.tensor import Tensor

VALUES = np.random.default_rng(3).standard_normal((4, 8)).astype(np.float32)


def softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def test_softmaxes():
    x, expected = Tensor(VALUES), VALUES.astype(np.float64)
    for _ in range(40):
        x, expected = (x * 3).softmax(-1), softmax(expected * 3)
    np.testing.assert_allclose(x.numpy(), expected, atol=1e-5)


def test_sines_of_no_memory():
    x, expected = Tensor.arange(16).float(), np.arange(16.0)
    GlobalCounters.reset()
    for _ in range(40):
        x, expected = (x * 0.9).sin(), np.sin(expected * 0.9)
    np.testing.assert_allclose(x.numpy(), expected, atol=1e-5)
    assert GlobalCounters.kernel_count > 1


def test_parts_of_a_cat():
    parts = [np.full((2, 3), number, np.float32) for number in range(200)]
    first, *others = [Tensor(part).realize() for part in parts]
    GlobalCounters.reset()
    result = first.cat(*others).numpy()
    assert (result == np.concatenate(parts)).all()
    assert GlobalCounters.kernel_count > 1


def test_writes_among_a_long_chain():
    """A value of a full kernel that the program stores, over memory that the chain reads."""
    x = Tensor(VALUES.copy()).realize()
    y, expected = x, VALUES.astype(np.float64)
    for number in range(30):
        y, expected = (y + x * 0.5).sin(), np.sin(expected + VALUES * 0.5)
        if number == 14:
            middle, wanted = y, expected
    x.assign(middle + 1)
    Tensor.realize(x, y, middle)
    np.testing.assert_allclose(y.numpy(), expected, atol=1e-5)
    np.testing.assert_allclose(x.numpy(), wanted + 1, atol=1e-5)
