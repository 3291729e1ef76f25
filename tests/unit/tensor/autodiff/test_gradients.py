"""Gradients of tensors: which leaves get one, and that they are PyTorch's."""

from typing import Any

import numpy as np
import pytest

from tests.unit.tensor.compare import numbers, torch_of
from weft.support.errors import ArgumentError, DTypeError, NotSupported, ShapeError
from weft.tensor import Tensor
from weft.tensor.jit.jit import jit

FUNCTIONS: dict[str, Any] = {
    "polynomial": lambda x: x * x * 3 - x / 2,
    "relu": lambda x: x.relu(),
    "sigmoid": lambda x: x.sigmoid(),
    "softmax": lambda x: x.softmax(-1) * x,
    "log_softmax": lambda x: x.log_softmax(-1)[:, 0],
    "logsumexp": lambda x: x.logsumexp(1),
    "matmul": lambda x: x @ x.T,
    "slice": lambda x: x[::2, 1:] * 2,
    "flip": lambda x: x[:, ::-1] * x if isinstance(x, Tensor) else x.flip(1) * x,
    "cat": lambda x: x.T.reshape(-1)[2:7],
    "var": lambda x: x.var(1),
    "max": lambda x: x.max(),
    "clamp": lambda x: x.clamp(-1, 1),
    "index": lambda x: x[[0, 2, 0]],
    "tanh": lambda x: x.tanh().exp(),
    "pow": lambda x: (x * x + 1) ** 0.5,
    "expm1": lambda x: x.expm1(),
    "atan": lambda x: x.atan(),
}


@pytest.mark.peers("torch")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_like_torch(name: str):
    array = np.random.default_rng(0).normal(size=(4, 5)).astype(np.float64)
    array[0, 0] = 0
    theirs = torch_of(array).requires_grad_(True)
    FUNCTIONS[name](theirs).sum().backward()
    ours = Tensor(array, requires_grad=True)
    FUNCTIONS[name](ours).sum().backward()
    np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), rtol=1e-7, atol=1e-9)


def test_leaves_get_gradients():
    x, y = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
    y.requires_grad = False
    middle = x * y
    middle.sum().backward()
    assert x.grad.tolist() == [3.0, 4.0]
    assert y.grad is None
    assert middle.grad.tolist() == [1.0, 1.0]
    (x * x).sum().backward()
    assert x.grad.tolist() == [5.0, 8.0]


def test_equal_constants_have_gradients_of_their_own():
    a, b = Tensor.ones(2, requires_grad=True), Tensor.ones(2, requires_grad=True)
    (a * 2 + b * 3).sum().backward()
    assert a.grad.tolist() == [2.0, 2.0]
    assert b.grad.tolist() == [3.0, 3.0]


def test_a_seed():
    x = Tensor([1.0, 2.0], requires_grad=True)
    (x * x).backward(gradient=Tensor([10.0, 1.0]))
    assert x.grad.tolist() == [20.0, 4.0]


def test_detach_stops_gradients():
    x = Tensor([2.0], requires_grad=True)
    (x * x.detach()).sum().backward()
    assert x.grad.tolist() == [2.0]


def test_gradients_of_gradients():
    x = Tensor([3.0])
    (first,) = (x * x * x).sum().gradient(x)
    (second,) = first.sum().gradient(x)
    assert first.tolist() == [27.0]
    assert second.tolist() == [18.0]


def test_writes_carry_the_graph():
    x = Tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 2
    y[1:] = y[:-1] * 5
    y.sum().backward()
    assert x.grad.tolist() == [12.0, 10.0, 0.0]


def test_a_step_of_training():
    weight = Tensor([2.0], requires_grad=True)
    for _ in range(2):
        weight.grad = None
        (weight * weight).sum().backward()
        weight.assign(weight - 0.25 * weight.grad)
    assert weight.tolist() == [0.5]


def test_mistakes():
    x = Tensor([1.0, 2.0])
    with pytest.raises(ShapeError, match="the output has 2 elements"):
        (x * 2).backward()
    with pytest.raises(DTypeError, match="has no gradient"):
        Tensor([1]).sum().backward()
    with pytest.raises(DTypeError, match="requires_grad: a tensor of int32"):
        Tensor([1], requires_grad=True)
    with pytest.raises(ArgumentError, match="does not depend on target 0"):
        x.sum().gradient(Tensor(numbers("float32", (2,))), materialize_grads=False)


def test_leaves_that_require_a_gradient_get_one_alone():
    data, weight = Tensor([1.0, 2.0]), Tensor([3.0, 4.0], requires_grad=True)
    (data * weight).sum().backward()
    assert weight.grad.tolist() == [1.0, 2.0]
    assert data.grad is None
    (data * data).sum().backward()
    assert data.grad.tolist() == [2.0, 4.0]


def test_backward_of_a_value_without_a_past_is_refused():
    x = Tensor([1.0, 2.0])
    loss = (x * x).sum()
    loss.item()
    with pytest.raises(ArgumentError, match="what it was computed from is not known"):
        loss.backward()


def test_what_a_failed_trace_leaves_behind_is_no_leaf():
    failed = jit(lambda x: x * x.sum().item())
    with pytest.raises(NotSupported) as caught:  # its frames hold the argument of the trace
        failed(Tensor([1.0], requires_grad=True))
    w = Tensor([2.0], requires_grad=True)
    (w * w).sum().backward()
    assert w.grad.tolist() == [4.0], caught


def test_equal_constants_are_told_apart_or_refused():
    a, b = Tensor.ones(3, requires_grad=True), Tensor.ones(3, requires_grad=True)
    assert [each.tolist() for each in (a * b * 2).sum().gradient(a, b)] == [[2.0] * 3] * 2
    w = Tensor(2.0).realize()
    assert (w**2).gradient(w)[0].item() == 4.0
    plain = Tensor.ones(3)
    with pytest.raises(ArgumentError, match="target 0 is a constant"):
        (plain * Tensor.ones(3)).sum().gradient(plain)
    x = Tensor([1.0, 2.0])
    (slope,) = (x.sum() * 2).gradient(x)  # computed, and constant
    assert (slope * x).sum().gradient(slope)[0].tolist() == [1.0, 2.0]
