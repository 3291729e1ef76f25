"""Leaves that are written between the use and the gradient, and losses that reach no leaf."""

from collections.abc import Callable

import numpy as np
import pytest

import weft
from weft.support.errors import ArgumentError, NotSupported
from weft.tensor import Tensor


def leaf(is_realized: bool = False) -> Tensor:
    x = Tensor([1.0, 2.0, 3.0], requires_grad=True)
    return x.realize() if is_realized else x


def scale(x: Tensor) -> None:
    with weft.no_grad():
        x.mul_(10)


def set_part(x: Tensor) -> None:
    with weft.no_grad():
        x[1:] = 7


WRITES: dict[str, Callable[[Tensor], object]] = {
    "in no_grad": scale,
    "a part": set_part,
    "of the data": lambda x: x.data.mul_(2),
    "of the detached": lambda x: x.detach().zero_(),
    "assign": lambda x: x.assign(Tensor([4.0, 5.0, 6.0])),
    "twice": lambda x: (scale(x), set_part(x)),
    "data is set": lambda x: setattr(x, "data", Tensor([4.0, 5.0, 6.0])),
}


@pytest.mark.parametrize("is_realized", [False, True])
@pytest.mark.parametrize("write", WRITES)
def test_the_gradient_is_that_of_the_value_that_was_used(write: str, is_realized: bool):
    x = leaf(is_realized)
    loss = (x * x).sum()
    WRITES[write](x)
    (slope,) = loss.gradient(x)
    loss.backward()
    assert slope.tolist() == x.grad.tolist() == [2.0, 4.0, 6.0]


def test_what_is_computed_with_the_write_says_so():
    x = leaf()
    values = [(x * k).sin() for k in range(1, 4)]
    scale(x)
    x.realize()
    with pytest.raises(NotSupported, match="inputs have been overwritten"):
        sum(values[1:], values[0]).sum().backward()


def test_gradients_of_all_versions_are_added():
    x = leaf()
    loss = (x * x).sum()
    scale(x)
    loss = loss + (x * x * x).sum()
    set_part(x)
    loss = loss + (x * x).sum()
    wanted = np.array([2, 4, 6]) + 3 * np.array([10, 20, 30]) ** 2 + 2 * np.array([10, 7, 7])
    (slope,) = loss.gradient(x)
    loss.backward()
    np.testing.assert_allclose(x.grad.numpy(), wanted)
    np.testing.assert_allclose(slope.numpy(), wanted)


def test_weights_that_open_it():
    x = Tensor([1.0, 2.0]).realize()
    loss = (x * x).sum()
    x.assign(x + 1)
    loss.backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_versions_are_not_kept():
    x = leaf()
    for _ in range(20):
        (x * x).sum().backward()
        with weft.no_grad():
            x -= 0.1 * x.grad
        x.grad = None
        x.realize()
    assert len(x._storage.earlier) <= 2


VIEWS: dict[str, Callable[[Tensor], object]] = {
    "fill_": lambda x: x[0].fill_(9),
    "mul_": lambda x: x[1:].mul_(2),
    "item": lambda x: x[1:].__setitem__(0, 5),
    "diagonal": lambda x: x.reshape(3, 1)[:1].zero_(),
}


@pytest.mark.parametrize("write", VIEWS)
def test_a_view_of_a_leaf_is_not_written(write: str):
    x = leaf()
    with pytest.raises(NotSupported, match="a view of a tensor that requires a gradient cannot"):
        VIEWS[write](x)
    with weft.no_grad():
        VIEWS[write](x)
    assert x.tolist() != [1, 2, 3]


def in_no_grad(x: Tensor) -> Tensor:
    with weft.no_grad():
        return (x * 2).sum()


NOWHERE: dict[str, Callable[[Tensor], Tensor]] = {
    "no_grad": in_no_grad,
    "detach": lambda x: (x.detach() * 2).sum(),
    "integers": lambda x: x.argmax().float(),
    "comparisons": lambda x: (x > 1).float().sum(),
    "constants": lambda x: Tensor.ones(3).sum(),
}


@pytest.mark.parametrize("loss", NOWHERE)
def test_a_loss_that_reaches_nothing_says_so(loss: str):
    x = leaf()
    with pytest.raises(ArgumentError, match="does not depend on any tensor that could have"):
        NOWHERE[loss](x).backward()
    assert x.grad is None
