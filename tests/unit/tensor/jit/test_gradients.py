"""Gradients inside of jitted functions, and what happens to `.grad`."""

import numpy as np
import pytest

import weft
from weft import Tensor, jit


class Momentum:
    """An optimizer as users write them."""

    def __init__(self, parameters, rate=0.05):
        self.parameters, self.rate = parameters, rate
        for parameter in parameters:
            parameter.requires_grad = True
        self.moments = [Tensor.zeros(*parameter.shape) for parameter in parameters]

    def zero_grad(self):
        for parameter in self.parameters:
            parameter.grad = None

    def step(self):
        for parameter, moment in zip(self.parameters, self.moments, strict=True):
            moment.assign(moment * 0.9 + parameter.grad)
            parameter.assign(parameter.detach() - moment * self.rate)


def make(order):
    random = np.random.default_rng(0)
    first = Tensor(random.standard_normal((4, 8)).astype(np.float32))
    second = Tensor(random.standard_normal((8, 1)).astype(np.float32))
    optimizer = Momentum([first, second])

    def step(x, y):
        if order == "before":
            optimizer.zero_grad()
        loss = (((x @ first).relu() @ second - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        if order == "after":
            optimizer.zero_grad()
        return loss

    return step, [first, second]


@pytest.mark.parametrize("order", ["before", "after"])
def test_a_training_step(order):
    eager, wanted = make(order)
    step, found = make(order)
    jitted = jit(step)
    random = np.random.default_rng(1)
    for _ in range(5):
        x, y = (random.standard_normal(shape).astype(np.float32) for shape in ((16, 4), (16, 1)))
        assert jitted(Tensor(x), Tensor(y)).item() == pytest.approx(
            eager(Tensor(x), Tensor(y)).item(), rel=1e-5
        )
        for mine, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(mine.numpy(), other.numpy(), rtol=1e-4, atol=1e-6)
    assert jitted.traces == 1


def test_one_batch_again_and_again():
    step, _ = make("before")
    jitted = jit(step)
    x, y = Tensor(np.ones((16, 4), np.float32)), Tensor(np.ones((16, 1), np.float32))
    losses = [jitted(x, y).item() for _ in range(4)]
    assert jitted.traces == 1
    assert losses[-1] < losses[0]


def test_a_gradient_that_stays_in_grad_raises_when_it_is_used():
    step, (weight, _) = make("before")
    jit(step)(Tensor(np.ones((16, 4), np.float32)), Tensor(np.ones((16, 1), np.float32)))
    with pytest.raises(weft.NotSupported, match="was traced") as failure:
        weight.grad + 1
    assert "loss.backward()" in str(failure.value)
    weight.grad = None
    (weight * 2).sum().backward()
    assert weight.grad.tolist() == [[2.0] * 8] * 4


def test_gradients_made_outside_are_read_inside():
    weight = Tensor([1.0, 2.0], requires_grad=True)

    @jit
    def update():
        weight.assign(weight.detach() - weight.grad * 0.5)

    wanted = np.array([1.0, 2.0])
    for n in range(4):
        weight.grad = None
        (weight * weight * Tensor([1.0, float(n)])).sum().backward()
        update()
        wanted = wanted - wanted * np.array([1.0, n])
        np.testing.assert_allclose(weight.numpy(), wanted, rtol=1e-6)
    assert update.traces == 1


def test_backward_adds_to_a_gradient_from_outside():
    weight = Tensor([1.0, 2.0], requires_grad=True)

    @jit
    def sum_of_gradients(x):
        (weight * x).sum().backward()
        result = weight.grad
        weight.grad = None
        return result

    for start in (10.0, 20.0):
        weight.grad = Tensor([start, start])
        assert sum_of_gradients(Tensor([1.0, 2.0])).tolist() == [start + 1, start + 2]
    assert sum_of_gradients(Tensor([1.0, 2.0])).tolist() == [1.0, 2.0]
    assert sum_of_gradients.traces == 2


def test_the_gradient_of_an_argument():
    @jit
    def slope(x):
        (x * x).sum().backward()
        return x.grad

    x = Tensor([1.0, 2.0])
    assert slope(x).tolist() == [2.0, 4.0]
    assert slope(Tensor([3.0, 4.0])).tolist() == [6.0, 8.0]
    with pytest.raises(weft.NotSupported):  # would be added to what the first call left
        slope(x)
    x.grad = Tensor([100.0, 100.0])
    assert slope(x).tolist() == [102.0, 104.0]


def test_gradient_as_a_function():
    @jit
    def slopes(x, y):
        return (x * x * y).sum().gradient(x, y)

    for n in (1.0, 2.0):
        got = [part.tolist() for part in slopes(Tensor([n, 3.0]), Tensor([2.0, 5.0]))]
        assert got == [[4 * n, 30.0], [n * n, 9.0]]
    assert slopes.traces == 1


def test_a_gradient_through_a_result_raises():
    weight = Tensor([1.0, 2.0], requires_grad=True)

    @jit
    def loss(x):
        return (x * weight).sum()

    with pytest.raises(weft.NotSupported, match="computed by a jitted function"):
        loss(Tensor([1.0, 1.0])).backward()
    with pytest.raises(weft.NotSupported, match="gradient: the value was computed"):
        (loss(Tensor([1.0, 1.0])) * weight).sum().gradient(weight)
    found = loss(Tensor([1.0, 1.0])).detach()
    (found * weight).sum().backward()
    assert weight.grad.tolist() == [3.0, 3.0]


def test_jit_inside_a_gradient_is_the_same_graph():
    weight = Tensor([1.0, 2.0], requires_grad=True)

    @jit
    def inner(x):
        return (x * weight).sum()

    @jit
    def outer(x):
        return inner(x).gradient(weight)[0]

    assert outer(Tensor([3.0, 4.0])).tolist() == [3.0, 4.0]
    assert inner.traces == 0


def test_leaves_without_a_value_are_no_leaves():
    @jit
    def failing(x):
        return x * x.sum().item()

    @jit(donate=(0,))
    def spent(x):
        return x * 2

    given, other = Tensor([1.0], requires_grad=True), Tensor([1.0], requires_grad=True).realize()
    with pytest.raises(weft.NotSupported) as kept:  # and with it all names of the trace
        failing(given)
    spent(other)
    weight = Tensor([3.0], requires_grad=True)
    (weight * weight).sum().backward()
    assert weight.grad.tolist() == [6.0]
    assert "failing is being traced" in str(kept.value)


def test_a_gradient_with_respect_to_a_result():
    weight = Tensor([1.0, 2.0], requires_grad=True)
    features = jit(lambda x: x * weight)(Tensor([3.0, 4.0]))
    (found,) = (features * features).sum().gradient(features)
    assert found.tolist() == [6.0, 16.0]
    later = features + 1
    assert (later * later).sum().gradient(later)[0].tolist() == [8.0, 18.0]
    with pytest.raises(weft.NotSupported, match="computed by a jitted function"):
        (features * weight).sum().gradient(weight)
