"""`.grad` of whatever a program made and then read: a gradient, or an error with a fix."""

import copy
import pickle
from collections.abc import Callable

import numpy as np
import pytest

from weft.support.errors import ArgumentError
from weft.tensor import Tensor
from weft.tensor.autodiff.passes import KEPT
from weft.tensor.jit.jit import jit

PAIR = ("CPU", "CPU:1")


def _written() -> Tensor:
    made = Tensor([1.0, 2.0]).contiguous()
    made[0] = 5.0
    return made


# Ways to make a tensor; `realized` below has each of them in memory too.
MADE: dict[str, Callable[[], Tensor]] = {
    "data": lambda: Tensor([1.0, 2.0, 3.0]),
    "array": lambda: Tensor(np.ones(3, np.float32)),
    "shared array": lambda: Tensor.from_numpy(np.ones(3, np.float32)),
    "double": lambda: Tensor([1.0, 2.0], dtype="float64"),
    "empty": lambda: Tensor.empty(3).fill_(1.0),
    "rand": lambda: Tensor.rand(3),
    "rand contiguous": lambda: Tensor.rand(3).contiguous(),
    "scaled": lambda: Tensor.randn(3) * 0.1,
    "clone": lambda: Tensor([1.0, 2.0]).clone(),
    "expand": lambda: Tensor([1.0]).expand(3),
    "reshape": lambda: Tensor([1.0, 2.0]).reshape(1, 2),
    "transpose": lambda: Tensor([[1.0, 2.0]]).T,
    "slice": lambda: Tensor([1.0, 2.0, 3.0])[1:],
    "element": lambda: Tensor([1.0, 2.0])[0],
    "cast": lambda: Tensor([1, 2]).float(),
    "half": lambda: Tensor([1.0, 2.0]).half(),
    "computed": lambda: Tensor([1.0, 2.0]) * 2,
    "stack": lambda: Tensor.stack(Tensor([1.0]), Tensor([2.0])),
    "moved": lambda: Tensor([1.0, 2.0]).to("CPU:1"),
    "sharded": lambda: Tensor([1.0, 2.0, 3.0, 4.0]).shard(PAIR, axis=0),
    "replicated": lambda: Tensor([1.0, 2.0]).shard(PAIR),
    "assigned": lambda: Tensor.zeros(2).contiguous().assign(Tensor([1.0, 2.0])),
    "written": _written,
    "identity": lambda: Tensor.eye(7),
    "counted": lambda: Tensor.arange(11).float(),
    "copy": lambda: copy.copy(Tensor([1.0, 2.0])),
    "deep copy": lambda: copy.deepcopy(Tensor([1.0, 2.0])),
    "pickle": lambda: pickle.loads(pickle.dumps(Tensor([1.0, 2.0]))),
}
CONSTANTS: dict[str, Callable[[], Tensor]] = {
    "ones": lambda: Tensor.ones(3),
    "zeros": lambda: Tensor.zeros(3),
    "full": lambda: Tensor.full((3,), 2.0),
    "number": lambda: Tensor(2.0),
    "ones like": lambda: Tensor([1.0, 2.0]).ones_like(),
    "zeros like": lambda: Tensor([1.0, 2.0]).zeros_like(),
}


@pytest.mark.parametrize("is_realized", [False, True])
@pytest.mark.parametrize("name", [*MADE, *CONSTANTS])
def test_what_was_made_has_a_gradient(name: str, is_realized: bool):
    x = {**MADE, **CONSTANTS}[name]()
    if is_realized:
        x.realize()
    elif name in CONSTANTS:
        pytest.skip("has no memory of its own")
    (x * 2).sum().backward()
    assert x.grad is not None
    assert x.grad.shape == x.shape
    assert x.grad.dtype is x.dtype
    assert x.grad.numpy().ravel().tolist() == [2.0] * x.numel()
    (x * 3).sum().backward()
    assert x.grad.numpy().ravel().tolist() == [5.0] * x.numel()
    x.grad = None
    assert x.grad is None


@pytest.mark.parametrize("name", [*MADE, *CONSTANTS])
def test_passes_add_up_before_anybody_reads(name: str):
    x = {**MADE, **CONSTANTS}[name]()
    x.requires_grad_(True)
    y = {**MADE, **CONSTANTS}[name]().realize()
    for value in (x, y):
        (value * 2).sum().backward()
        (value * value).sum().backward()
        np.testing.assert_array_equal(value.grad.numpy(), 2 + 2 * value.detach().numpy())


@pytest.mark.parametrize("name", CONSTANTS)
def test_a_constant_says_what_to_write(name: str):
    x = CONSTANTS[name]()
    (x * 3 + 1).sum().backward()
    with pytest.raises(ArgumentError, match="it is a constant") as caught:
        _ = x.grad
    assert "requires_grad=True" in str(caught.value)


def test_equal_constants_that_count_are_not_confused():
    x = Tensor.eye(13)
    (x + Tensor.eye(13) * 2).sum().backward()
    with pytest.raises(ArgumentError, match="equal constants are one value"):
        _ = x.grad


def test_what_requires_no_gradient_has_none():
    x, y = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
    y.requires_grad = False
    fixed = (x * 2).detach()
    (x * y * fixed).sum().backward()
    assert y.grad is None
    assert fixed.grad is None
    unused = Tensor([1.0])
    assert unused.grad is None


def test_a_pass_whose_memory_was_overwritten():
    x = Tensor([1.0, 2.0]).realize()
    square = x * x
    (square * square).sum().backward()
    x.assign(x + 1).realize()
    with pytest.raises(ArgumentError, match="overwritten since backward"):
        _ = square.grad


def test_more_passes_than_are_kept():
    x = Tensor([1.0, 2.0]).clone()
    for _ in range(KEPT + 2):
        (x * 2).sum().backward()
    with pytest.raises(ArgumentError, match="more calls of backward"):
        _ = x.grad
    y = Tensor([1.0, 2.0]).clone().requires_grad_()
    for _ in range(KEPT + 2):
        (y * 2).sum().backward()
    assert y.grad.tolist() == [2.0 * (KEPT + 2)] * 2


def test_a_value_between_inside_of_a_jitted_function():
    @jit
    def slope(x: Tensor) -> Tensor:
        middle = x * 2
        (middle * middle).sum().backward()
        return middle.grad

    for start in (1.0, 2.0, 3.0):
        assert slope(Tensor([start])).tolist() == [4 * start]


def test_gradients_of_targets_that_are_not_used():
    x, y = Tensor([1.0, 2.0]), Tensor([3.0])
    assert [each.tolist() for each in (x * 2).sum().gradient(y, x)] == [[0.0], [2.0, 2.0]]
    with pytest.raises(ArgumentError, match="does not depend on target 0"):
        x.sum().gradient(y, materialize_grads=False)
    assert (x > 1).float().sum().gradient(x)[0].tolist() == [0.0, 0.0]
    assert Tensor([1.0]).copysign(x).sum().gradient(x)[0].tolist() == [0.0, 0.0]
    nothing = Tensor(np.zeros((0,), np.float32))
    assert Tensor.cat(x, nothing).sum().gradient(nothing)[0].shape == (0,)


def test_zeros_never_stand_for_a_graph_that_is_gone():
    x = Tensor([1.0, 2.0])
    middle = (x * 2).realize()
    with pytest.raises(ArgumentError, match="does not depend on target 0"):
        (middle * 3).sum().gradient(x)
    assert (middle * 3).sum().gradient(x, materialize_grads=True)[0].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("name", ["copysign", "nextafter"])
def test_an_operand_without_a_slope_gets_zeros(name: str):
    x, y = (Tensor([value], requires_grad=True) for value in (3.0, -2.0))
    getattr(x, name)(y).sum().backward()
    assert x.grad is not None and x.grad.item() != 0 and y.grad.tolist() == [0.0]
