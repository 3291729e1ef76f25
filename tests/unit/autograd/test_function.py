"""Derivatives by hand, hooks on leaves, and derivatives of functions at a point."""

import pytest

import weft
from weft import ArgumentError, NotSupported, Tensor
from weft.autograd import Function, functional


class Scaled(Function):
    """x * y, whose gradients are scaled by numbers of their own."""

    @staticmethod
    def forward(x, y, factor):
        return x * y, x + y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs[:2])
        ctx.factor = inputs[2]

    @staticmethod
    def backward(ctx, first, second):
        _, y = ctx.saved_tensors
        return first * y * ctx.factor, second, None


def test_a_function_with_two_results():
    x, y = (Tensor([value], requires_grad=True) for value in (2.0, 3.0))
    product, total = Scaled.apply(x, y, 10)
    assert (product.item(), total.item()) == (6, 5)
    (product + 7 * total).sum().backward()
    assert (x.grad.item(), y.grad.item()) == (30, 7)


def test_a_gradient_is_missing():
    class Wrong(Function):
        forward = staticmethod(lambda ctx, x, y: x * y)
        backward = staticmethod(lambda ctx, g: g)

    with pytest.raises(ArgumentError, match="1 gradients for 2 arguments"):
        Wrong.apply(Tensor([1.0]), Tensor([2.0]))


def test_hooks_on_leaves():
    x, seen = Tensor([1.0, 2.0], requires_grad=True), []
    handle = x.register_hook(seen.append)
    doubled = x.register_hook(lambda grad: grad * 2)
    (x * 3).sum().backward()
    assert seen[0].tolist() == [3, 3]
    assert x.grad.tolist() == [6, 6]
    handle.remove()
    doubled.remove()
    (x * 3).sum().backward()
    assert len(seen) == 1 and x.grad.tolist() == [9, 9]
    with pytest.raises(NotSupported, match="does not require a gradient"):
        Tensor([1.0], requires_grad=False).register_hook(print)


def test_hooks_on_what_is_computed():
    x, seen = Tensor([1.0, 2.0], requires_grad=True), []

    def forward() -> Tensor:
        y = x * 3
        y.register_hook(seen.append)
        y.register_hook(lambda grad: grad.clamp(max_=5))
        return (y * y).sum()  # nobody holds y

    loss = forward()
    loss.item()
    loss.backward()
    assert seen[0].tolist() == [6, 12]
    assert x.grad.tolist() == [15, 15]


def test_retained_gradients_are_added_up():
    x = Tensor([3.0], requires_grad=True)
    y = x * 2
    y.retain_grad()
    for _ in range(2):
        (y * y).sum().backward()
    assert y.grad.tolist() == [24] and x.grad.tolist() == [48]


def test_backward_for_some_inputs_and_gradients_of_gradients():
    x, y = (Tensor([value], requires_grad=True) for value in (2.0, 3.0))
    (x * x * y).sum().backward(inputs=[x], retain_graph=True, create_graph=True)
    assert y.grad is None
    x.grad.sum().backward(inputs=y)
    assert y.grad.item() == 4


def test_functional_and_func():
    x = Tensor([1.0, 2.0])
    rows = functional.jacobian(lambda a, b: a * b, (x, x))
    assert [each.tolist() for each in rows] == [[[1, 0], [0, 2]], [[1, 0], [0, 2]]]
    assert functional.vjp(lambda a: a * a, x, Tensor([1.0, 10.0]))[1].tolist() == [2, 40]
    assert functional.jvp(lambda a: a * a, x, Tensor([1.0, 10.0]))[1].tolist() == [2, 40]
    layer = weft.nn.Linear(2, 1)
    before = layer.weight
    replaced = {"weight": Tensor([[1.0, 1.0]]), "bias": Tensor([0.5])}
    assert weft.func.functional_call(layer, replaced, x).tolist() == [3.5]
    assert layer.weight is before
