"""What a user reads who writes what PyTorch or tinygrad would understand, word for word."""

import pytest

from tests.error.messages import Messages, message_of
from weft import Tensor, nn


def set_data() -> None:
    Tensor([1.0]).data = Tensor([2.0])  # type: ignore[assignment]


MESSAGES: Messages = {
    "no_grad": (
        lambda: Tensor.no_grad(),
        """\
UnknownAttribute: Tensor has no attribute 'no_grad'

  nothing is recorded: gradients are found when backward() or gradient() asks

  fix: write weft.no_grad(), or x.detach() where a gradient must not flow""",
    ),
    "values of max": (
        lambda: Tensor([[1, 2]]).max(axis=1).values,
        """\
UnknownAttribute: a Tensor has no attribute 'values'

  max(dim) and min(dim) have values and indices, and no other tensor has

  fix: write x.max(dim).values""",
    ),
    "shape in place": (
        lambda: Tensor([[1]]).unsqueeze_(0),
        """\
UnknownAttribute: a Tensor has no attribute 'unsqueeze_'

  a shape belongs to the name, not to the memory

  fix: write x = x.unsqueeze(...)""",
    ),
    "data attribute": (
        lambda: Tensor([1.0]).data.fill_(2),
        """\
UnknownAttribute: x.data is a method, so it has no attribute 'fill_'

  x.data() is a memoryview of the elements; a tensor itself is read and written

  fix: write x.detach().fill_, or x.fill_ where no gradient flows""",
    ),
    "data operator": (
        lambda: Tensor([1.0]).data - 1.0,
        """\
UnknownAttribute: x.data is a method, so it has no -

  x.data() is a memoryview of the elements; a tensor itself is read and written

  fix: write x.assign(x - ...), or x.detach() - ... for the value""",
    ),
    "data set": (
        set_data,
        """\
UnknownAttribute: x.data cannot be set

  x.data() is a memoryview of the elements; a tensor itself is read and written

  fix: write x.assign(value)""",
    ),
    "misspelt layer": (
        lambda: nn.Linaer(2, 3),
        """\
UnknownAttribute: module 'weft.nn' has no attribute 'Linaer'

  fix: write weft.nn.Linear""",
    ),
    "strides": (
        lambda: Tensor([1]).stride(),
        """\
UnknownAttribute: a Tensor has no attribute 'stride'

  a tensor has no strides that a program could see

  fix: write x.contiguous()""",
    ),
    "name of tinygrad": (
        lambda: Tensor([1]).lazydata,
        """\
UnknownAttribute: a Tensor has no attribute 'lazydata'

  the graph of a tensor is a node

  fix: write x.uop""",
    ),
    "mask of integers": (
        lambda: Tensor([1]).masked_scatter(Tensor([1]), Tensor([2])),
        """\
DTypeError: masked_scatter: the mask is int32

  a mask is bool

  fix: compare it: x.masked_scatter(mask != 0, source)""",
    ),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_message(name: str):
    function, expected = MESSAGES[name]
    assert message_of(function, __file__) == expected
