"""What a user reads who gets symbolic sizes wrong, word for word."""

from collections.abc import Callable, Iterator

import pytest

from weft import Variable
from weft.support.errors import UsageError
from weft.support.settings import Context
from weft.tensor import Tensor

N = Variable("n", 1, 8)
K = Variable("k", 0, 8)


@pytest.fixture(autouse=True)
def interpreter() -> Iterator[None]:
    with Context(DEVICE="PYTHON"):
        yield


def message(function: Callable[[], object]) -> str:
    """Return the message without the location, which is this file."""
    with pytest.raises(UsageError) as failure:
        function()
    error = failure.value
    assert error.where.file.endswith("test_symbolic_errors.py")
    blocks = f"{type(error).__name__}: {error}".split("\n\n")
    return "\n\n".join(block for block in blocks if not block.startswith("  at "))


def x() -> Tensor:
    return Tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])


MESSAGES: dict[str, tuple[Callable[[], object], str]] = {
    "out of range": (
        lambda: N.bind(9),
        """\
ArgumentError: Variable 'n': 9 is out of its range

  least     1
  greatest  8
  value     9

  a bound value is between the variable's min and max""",
    ),
    "two values": (
        lambda: (x()[: N.bind(3)].sum() + x()[: N.bind(4)].sum()).numpy(),
        """\
ArgumentError: Variable 'n' is bound to 3 and to 4 in one program

  a variable has one value while a program runs, and what was written since the last realize() is\
 one program

  fix: realize() what uses one value before the other is used, or give the variables different\
 names""",
    ),
    "no value": (
        lambda: (x()[:N] + 1).numpy(),
        """\
ArgumentError: Variable 'n' has no value

  every variable of a program is bound when it runs

  fix: bind it: n.bind(1)""",
    ),
    "sizes differ": (
        lambda: x()[: N.bind(3)] + x()[:3],
        """\
ShapeError: add: shapes do not broadcast at axis -1 (bind(n, 3) and 3)

  left   (bind(n, 3),)
  right  (3,)

  counted from the last axis, two sizes are equal or one of them is 1

  fix: make both sizes of the same bound Variable: symbolic sizes are equal if they are equal for\
 every value it can have""",
    ),
    "inner sizes differ": (
        lambda: x()[: N.bind(3)] @ x()[: K.bind(3)],
        """\
ShapeError: matmul: inner sizes differ (bind(n, 3) and bind(k, 3))

  left   (bind(n, 3),)   axis -1 is bind(n, 3)
  right  (bind(k, 3),)   axis -1 is bind(k, 3)

  left @ right needs left.shape[-1] == right.shape[-1]

  fix: make both sizes of the same bound Variable: symbolic sizes are equal if they are equal for\
 every value it can have""",
    ),
    "index from two ends": (
        lambda: x()[K.bind(3) - 4],
        """\
IndexOutOfRange: index: (bind(k, 3) + -4) can be below 0 and above

  least     -4
  greatest  4

  a symbolic index counts from one end for every value of its variables

  fix: give the Variable a min of 0 or more""",
    ),
    "empty axis": (
        lambda: x()[: K.bind(3)].max(),
        """\
ShapeError: max: an axis can be empty, and has no max then

  shape  (bind(k, 3),)
  axes   (0,)

  max needs at least one element along its axes

  fix: give the Variable a min of 1""",
    ),
    "reshape": (
        lambda: x()[: N.bind(3)].reshape(2, -1),
        """\
ShapeError: reshape: bind(n, 3) elements cannot become (2, -1)

  from  (bind(n, 3),)   bind(n, 3) elements
  to    (2, -1)         2

  reshape keeps the number of elements

  fix: make both sizes of the same bound Variable: symbolic sizes are equal if they are equal for\
 every value it can have""",
    ),
    "step": (
        lambda: x()[: N.bind(3)][2::-1],
        """\
NotSupported: index: the step -1 along a symbolic size

  shape  (bind(n, 3),)

  a step is an int above 0, or below 0 where the slice is the whole axis: [::-1] reads it\
 backwards""",
    ),
    "padding": (
        lambda: x().pad((K.bind(3) - 1, 0)),
        """\
ShapeError: pad: (bind(k, 3) + -1) can be below 0

  least     -1
  greatest  7

  a symbolic amount of padding is 0 or more for every value of its variables""",
    ),
    "arange": (
        lambda: Tensor.arange(K.bind(3), 4),
        """\
ArgumentError: arange: bind(k, 3) to 4 can be less than nothing

  a symbolic arange has start <= stop for every value of its variables""",
    ),
    "fraction": (
        lambda: N.bind(3) * 2.5,
        """\
DTypeError: expected a whole number as a size, got 2.5

  sizes and indices are whole numbers

  fix: divide with //, or compute with a tensor: Tensor(size) * 2.5""",
    ),
    "size of what": (
        lambda: x().expand(N.bind(3) < 4, 8),
        """\
ArgumentTypeError: expand: a size is an int or made of Variables

  got  (bind(n, 3) < 4)

  sizes are sums, products and quotients of ints and bound Variables""",
    ),
}


@pytest.mark.parametrize(("function", "expected"), MESSAGES.values(), ids=MESSAGES.keys())
def test_message(function: Callable[[], object], expected: str):
    assert message(function) == expected
