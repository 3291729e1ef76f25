"""Objects that raise whatever they like when they are asked for an attribute get a message."""

import pytest

import weft
from weft import Tensor, UsageError, nn


def raising(error: type[Exception]) -> object:
    class Raising:
        def __getattr__(self, name: str) -> object:
            raise error(name)

    return Raising()


ERRORS = [KeyError, IndexError, RuntimeError, ValueError, OSError, ZeroDivisionError]

USES = {
    "data": lambda o: Tensor(o),
    "data in a list": lambda o: Tensor([o]),
    "data in lists": lambda o: Tensor([[1, 2], [3, o]]),
    "index": lambda o: Tensor([1, 2])[o],
    "index of a write": lambda o: Tensor([1, 2]).__setitem__(o, 1),
    "value of a write": lambda o: Tensor([1, 2]).__setitem__(0, o),
    "assign": lambda o: Tensor([1, 2]).assign(o),
    "shape": lambda o: Tensor.zeros(o),
    "reshape": lambda o: Tensor([1]).reshape(o),
    "axis": lambda o: Tensor([1]).sum(o),
    "dtype": lambda o: Tensor([1]).cast(o),
    "device": lambda o: Tensor([1]).to(o),
    "number": lambda o: Tensor.full((2,), o),
    "stack": lambda o: Tensor.stack(o),
    "cat": lambda o: Tensor.cat(Tensor([1]), o),
    "matmul": lambda o: Tensor([1.0]).matmul(o),
    "where": lambda o: Tensor([1]).where(o, 1),
    "grad": lambda o: weft.grad(lambda x: x)(o),
}

# What takes any object takes these, too.
ACCEPTS = {
    "state_dict": lambda o: nn.state.get_state_dict(o),
    "parameters": lambda o: nn.state.get_parameters(o),
    "an argument of a jitted function": lambda o: weft.jit(lambda x, y: x + 1)(Tensor([1]), o),
}


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("name", USES)
def test_an_object_that_raises_is_answered_with_a_message(name: str, error: type[Exception]):
    with pytest.raises(UsageError):
        USES[name](raising(error))


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("name", ACCEPTS)
def test_an_object_that_raises_is_taken_where_any_is(name: str, error: type[Exception]):
    ACCEPTS[name](raising(error))


@pytest.mark.parametrize("error", ERRORS)
def test_operators_leave_it_to_python(error: type[Exception]):
    with pytest.raises(TypeError, match="unsupported operand"):
        Tensor([1]) + raising(error)
    assert (Tensor([1]) == raising(error)) is False
