"""What a user reads who writes what PyTorch or tinygrad would understand, word for word."""

import pytest

from tests.error.messages import Messages, message_of
from weft import Tensor, nn

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
    "where memory is": (
        lambda: Tensor([[1]]).data_ptr(),
        """\
UnknownAttribute: a Tensor has no attribute 'data_ptr'

  memory moves when a value is computed anew

  fix: write x.data() for the bytes""",
    ),
    "misspelt layer": (
        lambda: nn.Linaer(2, 3),
        """\
UnknownAttribute: module 'weft.nn' has no attribute 'Linaer'

  fix: write weft.nn.Linear""",
    ),
    "strides": (
        lambda: Tensor([1]).strides,
        """\
UnknownAttribute: a Tensor has no attribute 'strides'

  memory has no layout that shows

  fix: write x.stride()""",
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
