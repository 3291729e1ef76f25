"""Functions whose graph is built once: the nodes are those of the function itself."""

import numpy as np
import pytest

from tests.unit.tensor.compare import numbers
from weft import Tensor, Variable, dtypes
from weft.ir.uop import UOp
from weft.tensor.autodiff.modes import no_grad
from weft.tensor.trace.built_once import built_once

FUNCTIONS = {
    "softmax": lambda x: x.softmax(0),
    "log_softmax": lambda x: x.log_softmax(),
    "layernorm": lambda x: x.layernorm(eps=1e-3),
    "gelu": lambda x: x.gelu("none"),
    "silu": lambda x: x.silu(),
    "softplus": lambda x: x.softplus(2.0, threshold=1.0),
    "elu": lambda x: x.elu(0.5),
    "expm1": lambda x: x.expm1(),
}


def plain(monkeypatch: pytest.MonkeyPatch, function, x: Tensor) -> UOp:
    """The node where each call runs the function."""
    with monkeypatch.context() as patched:
        patched.setattr("weft.tensor.trace.built_once._PLAIN", frozenset())
        patched.setattr("weft.tensor.trace.built_once._RECORDED", Forgetful())
        return function(x).uop


class Forgetful(dict):
    """Finds for every key that nothing was recorded."""

    def __missing__(self, key):
        return None


@pytest.mark.parametrize("name", FUNCTIONS)
def test_replayed_nodes_are_those_of_the_function(monkeypatch, name):
    function = FUNCTIONS[name]
    for shape in ((3, 4), (5,), (2, 3, 4)):
        x, y = (Tensor(numbers("float32", shape, seed)).realize() for seed in (1, 2))
        function(y)  # recorded, if it was not before
        assert function(x).uop is plain(monkeypatch, function, x)
        with no_grad():
            assert function(x).uop is plain(monkeypatch, function, x)


def test_the_lines_and_shapes_are_those_of_the_caller():
    Tensor(numbers("float32", (3, 4))).softmax()
    x = Tensor(numbers("float32", (3, 4))).realize()
    y = x.softmax()
    assert y.uop.line.text == "y = x.softmax()"
    assert y.shape == (3, 4)


def test_arguments_tell_recordings_apart():
    x = Tensor([-2.0, 2.0]).realize()
    for slope in (0.5, 0.25, 1, True):
        np.testing.assert_allclose(x.leaky_relu(slope).numpy(), [-2.0 * slope, 2.0])


def test_a_tensor_as_argument_is_not_recorded():
    x = Tensor([-1.0, 1.0]).realize()
    for value in (0.5, 2.0):
        alpha = Tensor(value).realize()
        np.testing.assert_allclose(x.elu(alpha).numpy(), [value * np.expm1(-1.0), 1.0], rtol=1e-6)


def test_gradients_of_what_was_recorded():
    x = Tensor([0.5, -1.0, 2.0], requires_grad=True)
    for _ in range(2):
        x.grad = None
        (x.softmax() * Tensor([1.0, 2.0, 3.0])).sum().backward()
        e = np.exp(x.numpy()) / np.exp(x.numpy()).sum()
        wanted = e * (np.array([1.0, 2.0, 3.0]) - (e * [1.0, 2.0, 3.0]).sum())
        np.testing.assert_allclose(x.grad.numpy(), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", (dtypes.float16, dtypes.int32, dtypes.float64))
def test_other_dtypes_are_as_before(dtype):
    x = Tensor([1, 2, 3], dtype=dtype)
    np.testing.assert_allclose(x.softmax().numpy(), [0.09, 0.2447, 0.6652], atol=1e-3)


def test_symbolic_sizes_are_not_recorded():
    n = Variable("n", 1, 8)
    x = Tensor(np.arange(8, dtype=np.float32)).realize()
    for size in (3, 5):
        found = x[: n.bind(size)].softmax().numpy()
        e = np.exp(np.arange(size) - size + 1.0)
        np.testing.assert_allclose(found[:size], e / e.sum(), rtol=1e-5)


def test_what_reads_memory_runs_each_time():
    """A function that brings memory in is not one of its operand alone."""
    state = [1.0]

    @built_once
    def scaled(x: Tensor) -> Tensor:
        return x * Tensor([state[0], state[0]]).realize()

    x = Tensor([1.0, 2.0]).realize()
    assert scaled(x).tolist() == [1.0, 2.0]
    state[0] = 3.0
    assert scaled(x).tolist() == [3.0, 6.0]
