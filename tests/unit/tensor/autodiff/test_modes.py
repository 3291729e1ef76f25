"""`no_grad`, leaves that were realized, and `autograd.grad`."""

import pytest

import weft
from weft import Tensor
from weft.support.errors import NotSupported


def test_no_grad_makes_constants():
    x = Tensor([2.0], requires_grad=True)
    with weft.no_grad():
        y = x * x
    assert (x * y).sum().gradient(x)[0].tolist() == [4.0]
    assert weft.is_grad_enabled()

    @weft.no_grad()
    def squared(value: Tensor) -> Tensor:
        return value * value

    assert (x * squared(x)).sum().gradient(x)[0].tolist() == [4.0]


def test_no_grad_allows_writes_to_parameters():
    w = Tensor([1.0], requires_grad=True)
    with pytest.raises(NotSupported, match="in place"):
        w -= 0.5
    with weft.no_grad():
        w -= 0.5
    assert w.tolist() == [0.5] and w.requires_grad


def test_enable_grad_inside():
    x = Tensor([3.0], requires_grad=True)
    with weft.no_grad(), weft.enable_grad():
        y = (x * x).sum()
    assert y.gradient(x)[0].tolist() == [6.0]


@pytest.mark.parametrize("make", [lambda: Tensor.rand(3).contiguous(), lambda: Tensor.ones(3) * 2])
def test_a_realized_value_is_a_leaf(make):
    x = make().realize()
    (x * 2).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [2.0] * 3


def test_a_realized_value_with_a_graph_passes_its_gradient_on():
    x = Tensor([1.0, 2.0], requires_grad=True)
    y = (x * 3).realize()
    (y * y).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [18.0, 36.0]


def test_autograd_grad():
    x, unused = Tensor([3.0], requires_grad=True), Tensor([1.0], requires_grad=True)
    (first,) = weft.autograd.grad((x * x * x).sum(), x, create_graph=True)
    assert weft.autograd.grad(first.sum(), x)[0].tolist() == [18.0]
    found = weft.autograd.grad(x.sum(), (x, unused), allow_unused=True)
    assert found[0].tolist() == [1.0] and found[1] is None


def test_max_unpacks_as_pytorch_does():
    x = Tensor([[1.0, 5.0], [7.0, 2.0]])
    values, indices = x.max(1)
    assert values.tolist() == [5.0, 7.0] and indices.tolist() == [1, 0]
    assert x.max(1)[1].tolist() == [1, 0] and x.min(dim=0).indices.tolist() == [0, 1]
    assert x.max(axis=1)[0].item() == 5.0 and len(x.max(axis=1)) == 2
    assert (x.max(1) + 1).tolist() == [6.0, 8.0]
    assert x.max(Tensor([[3.0, 3.0]])).tolist() == [[3.0, 5.0], [7.0, 3.0]]


def test_values_put_by_index_keep_their_graph_when_read():
    x, s = Tensor([[1.0], [2.0]], requires_grad=True), Tensor([[5.0]], requires_grad=True)
    y = x.index_copy(0, Tensor([1]), s)
    assert y.tolist() == [[1.0], [5.0]]
    of_x, of_s = (y * y).sum().gradient(x, s)
    assert of_x.tolist() == [[2.0], [0.0]] and of_s.tolist() == [[10.0]]


def test_computed_values_say_whether_a_gradient_goes_through_them():
    x, plain = Tensor([1.0, 2.0], requires_grad=True), Tensor([1.0, 2.0])
    y = x * 2
    with weft.no_grad():
        unrecorded = x * 3
    assert y.requires_grad and x[0].requires_grad and (y + plain).sum().requires_grad
    others = [unrecorded, plain, plain * 2, y.detach(), x > 1, x.argmax()]
    assert not any(each.requires_grad for each in others)
    assert plain.requires_grad is None and y.detach().requires_grad is False
    y.realize()
    assert y.requires_grad and (y * 2).requires_grad and not y.is_leaf
