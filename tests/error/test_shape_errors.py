"""What a user reads who gets a shape, an axis or an index wrong, word for word."""

from collections.abc import Iterator

import pytest

from tests.error.messages import Messages, message_of
from weft import Context, Tensor


@pytest.fixture(autouse=True)
def interpreter() -> Iterator[None]:
    with Context(DEVICE="PYTHON"):
        yield


MESSAGES: Messages = {
    "expand": (
        lambda: Tensor.zeros(2, 3).expand(2, 4),
        """\
ShapeError: expand: (2, 3) does not expand to (2, 4)

  from  (2, 3)
  to    (2, 4)

  counted from the last axis, a size stays the same or was 1""",
    ),
    "permute": (
        lambda: Tensor.zeros(2, 3).permute(0, 0),
        """\
ShapeError: permute: expected an order of 2 axes, got (0, 0)

  shape  (2, 3)
  order  (0, 0)

  permute names each axis once""",
    ),
    "permute count": (
        lambda: Tensor.zeros(2, 3).permute(0),
        """\
ShapeError: permute: expected an order of 2 axes, got (0,)

  shape  (2, 3)
  order  (0,)

  permute names each axis once""",
    ),
    "squeeze axis": (
        lambda: Tensor.zeros(2).squeeze(3),
        """\
AxisError: squeeze: axis 3 is out of range for 1 axes

  an axis is from -1 to 0 here""",
    ),
    "transpose axis": (
        lambda: Tensor.zeros(2).transpose(0, 1),
        """\
AxisError: transpose: axis 1 is out of range for 1 axes

  an axis is from -1 to 0 here""",
    ),
    "axis float": (
        lambda: Tensor.zeros(2).sum(1.5),
        """\
ArgumentTypeError: sum: an axis is an int, not float

  axes are ints; negative ones count from the end""",
    ),
    "size float": (
        lambda: Tensor.zeros(2.5),
        """\
ArgumentTypeError: zeros: a size is an int, not float

  got  2.5

  sizes are ints or Variables""",
    ),
    "negative size": (
        lambda: Tensor.zeros(-1),
        """\
ShapeError: zeros: the size -1 is negative

  shape  (-1,)

  a size is 0 or more""",
    ),
    "reshape two": (
        lambda: Tensor.zeros(6).reshape(-1, -1),
        """\
ShapeError: reshape: expected a shape, got (-1, -1)

  sizes are 0 or more, and at most one is -1, to be worked out""",
    ),
    "reshape float": (
        lambda: Tensor.zeros(6).reshape(2, 3.0),
        """\
ArgumentTypeError: reshape: a size is an int, not float

  got  3.0

  sizes are ints or Variables""",
    ),
    "unflatten": (
        lambda: Tensor.zeros(6).unflatten(0, (4, -1)),
        """\
ShapeError: unflatten: 6 elements cannot become (4, -1)

  from  (6,)      6 elements
  to    (4, -1)   4

  unflatten keeps the number of elements""",
    ),
    "split": (
        lambda: Tensor.zeros(6).split([2, 3]),
        """\
ShapeError: split: the sizes add up to 5, and axis 0 has 6

  sizes  (2, 3)
  shape  (6,)

  the sizes add up to that of the axis""",
    ),
    "chunk": (
        lambda: Tensor.zeros(6).chunk(0),
        """\
ArgumentError: chunk: 0 chunks

  chunk needs 1 or more chunks""",
    ),
    "stack": (
        lambda: Tensor.stack(Tensor.zeros(2), Tensor.zeros(3)),
        """\
ShapeError: stack: tensor 1 has shape (3,), the first (2,)

  stack joins tensors of one shape along a new axis

  fix: use cat to join along an axis they have""",
    ),
    "cat scalar": (
        lambda: Tensor.cat(Tensor(1.0), Tensor(2.0)),
        """\
ShapeError: cat: tensor 0 has shape (), the first ()

  tensor 0  ()
  tensor 1  ()

  all sizes but that of axis 0 are equal, and there is an axis

  fix: use stack to join along a new axis""",
    ),
    "cat list": (
        lambda: Tensor.cat([1, 2]),
        """\
ArgumentTypeError: cat: expected a tensor, got int

  only tensors can be joined""",
    ),
    "gather dtype": (
        lambda: Tensor.zeros(3).gather(0, Tensor([1.0])),
        """\
DTypeError: gather: the index is float32

  an index tensor holds integers

  fix: cast it: index.int()""",
    ),
    "gather shape": (
        lambda: Tensor.zeros(3).gather(0, Tensor([[1]])),
        """\
ShapeError: gather: an index of shape (1, 1) for a tensor of shape (3,)

  the index has as many axes, and no size is greater but that of axis 0""",
    ),
    "scatter reduce": (
        lambda: Tensor.zeros(3).scatter_reduce(0, Tensor([1]), Tensor([1.0]), "avg"),
        """\
ArgumentError: scatter_reduce: unknown reduce 'avg'

  reduce is sum, prod, mean, amax, amin""",
    ),
    "scatter src": (
        lambda: Tensor.zeros(3).scatter(0, Tensor([1, 2]), Tensor([1.0])),
        """\
ShapeError: scatter: values of shape (1,) for an index of shape (2,)

  tensor  (3,)
  index   (2,)
  values  (1,)

  there is a value for each element of the index""",
    ),
    "one hot": (
        lambda: Tensor([1.0]).one_hot(3),
        """\
DTypeError: one_hot: classes are float32

  one_hot takes integers""",
    ),
    "max empty": (
        lambda: Tensor.zeros(0).max(),
        """\
ShapeError: max: an empty axis has no max

  shape  (0,)
  axes   (0,)

  max needs at least one element along its axes""",
    ),
    "argmax empty": (
        lambda: Tensor.zeros(0, 3).argmax(0),
        """\
ShapeError: argmax: an empty axis has no argmax

  shape  (0, 3)
  axes   (0,)

  argmax needs at least one element along its axes""",
    ),
    "setitem shape": (
        lambda: Tensor.zeros(2, 3).__setitem__(0, Tensor.zeros(4)),
        """\
ShapeError: index: a value of shape (4,) does not fit shape (3,)

  value   (4,)
  target  (3,)

  counted from the last axis, a size of the value is 1 or equals the target's""",
    ),
    "assign shape": (
        lambda: Tensor.zeros(2).assign(Tensor.zeros(3)),
        """\
ShapeError: assign: a value of shape (3,) does not fit shape (2,)

  value   (3,)
  target  (2,)

  counted from the last axis, a size of the value is 1 or equals the target's""",
    ),
    "len scalar": (
        lambda: len(Tensor(1)),
        """\
ShapeError: len: the tensor has no axes

  shape  ()

  len(t) is the size of the first axis""",
    ),
    "iter scalar": (
        lambda: list(Tensor(1)),
        """\
ShapeError: len: the tensor has no axes

  shape  ()

  len(t) is the size of the first axis""",
    ),
    "rearrange name": (
        lambda: Tensor.zeros(2, 6).rearrange("a b -> b c"),
        """\
ArgumentError: rearrange: the axis 'a' is on one side only

  formula  a b -> b c

  a formula is "names -> names"; names in parentheses are one axis""",
    ),
    "rearrange size": (
        lambda: Tensor.zeros(2, 6).rearrange("a (b c) -> a b c"),
        """\
ArgumentError: rearrange: the sizes of b and c are not known

  formula  a (b c) -> a b c
  axis     6

  of the names in one parenthesis, all but one have a size

  fix: give them by keyword: rearrange(..., b=...)""",
    ),
    "rearrange axes": (
        lambda: Tensor.zeros(2, 6).rearrange("a b c -> c b a"),
        """\
ShapeError: rearrange: the formula has 3 axes and the tensor 2

  formula  a b c -> c b a
  shape    (2, 6)

  each group on the left is an axis of the tensor""",
    ),
    "narrow": (
        lambda: Tensor.zeros(3).narrow(0, 2, 2),
        """\
IndexOutOfRange: narrow: 2 elements from 2 on are not inside axis 0 of size 3

  shape  (3,)

  narrow needs 0 <= start and start + length <= size""",
    ),
    "index select": (
        lambda: Tensor.zeros(3).index_select(0, Tensor([[1]])),
        """\
ShapeError: index_select: the index has 2 axes

  index  (1, 1)

  the index is a vector""",
    ),
    "index add": (
        lambda: Tensor.zeros(3).index_add(0, Tensor([1, 2]), Tensor([1.0])),
        """\
ShapeError: index_add: values of shape (1,) do not fit

  tensor  (3,)
  index   (2,)
  values  (1,)

  the values have the shape of the tensor, with 2 on axis 0""",
    ),
    "index put": (
        lambda: Tensor.zeros(3).index_put(Tensor([1]), 1.0),
        """\
ArgumentTypeError: index_put: expected a tuple of index tensors

  there is an index tensor for each of the first axes

  fix: write x.index_put((index,), values)""",
    ),
    "glu": (
        lambda: Tensor.zeros(3).glu(),
        """\
ShapeError: glu: expected an axis of even size

  shape  (3,)
  axis   0

  glu splits the axis into two halves""",
    ),
    "rot90": (
        lambda: Tensor.zeros(3).rot90(),
        """\
ShapeError: rot90: 1 axes are too few

  shape  (3,)

  rot90 needs 2 or more axes""",
    ),
    "diag": (
        lambda: Tensor.zeros(1, 2, 3).diag(),
        """\
ShapeError: diag: there are 3 axes

  shape  (1, 2, 3)

  diag takes a vector or a matrix

  fix: use diagonal or diag_embed for more axes""",
    ),
    "repeat": (
        lambda: Tensor.zeros(2, 3).repeat(2),
        """\
ShapeError: repeat: 1 counts for 2 axes

  shape    (2, 3)
  repeats  (2,)

  repeat needs a count for each axis""",
    ),
    "unfold": (
        lambda: Tensor.zeros(2).unfold(0, 3, 1),
        """\
ShapeError: unfold: no windows of 3 with step 1 along axis 0

  shape  (2,)

  unfold needs 1 <= size <= shape[dim] and step >= 1""",
    ),
    "meshgrid": (
        lambda: Tensor.meshgrid(Tensor([1]), indexing="yx"),
        """\
ArgumentError: meshgrid: unknown indexing 'yx'

  it is "ij" or "xy\"""",
    ),
    "flatten": (
        lambda: Tensor.zeros(2, 3).flatten(1, 0),
        """\
ShapeError: flatten: start_dim 1 comes after end_dim 0

  shape  (2, 3)

  a run of axes begins before it ends""",
    ),
    "where shape": (
        lambda: Tensor([True, False]).where(Tensor.zeros(3), 0),
        """\
ShapeError: where: shapes do not broadcast at axis -1 (2 and 3)

  operand 0  (2,)
  operand 1  (3,)
  operand 2  ()

  counted from the last axis, two sizes are equal or one of them is 1""",
    ),
    "layernorm": (
        lambda: Tensor.zeros(3).layernorm(axis=2),
        """\
AxisError: layernorm: axis 2 is out of range for 1 axes

  an axis is from -1 to 0 here""",
    ),
    "softmax": (
        lambda: Tensor.zeros(3).softmax(1),
        """\
AxisError: softmax: axis 1 is out of range for 1 axes

  an axis is from -1 to 0 here""",
    ),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_message(name: str):
    function, expected = MESSAGES[name]
    assert message_of(function, __file__) == expected


def test_there_are_rules_or_fixes():
    """A message that only says no teaches nothing."""
    for name, (_, text) in MESSAGES.items():
        assert "\n" in text, name
