"""What a user reads who gets a tensor program wrong, word for word."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from weft.support.errors import UsageError
from weft.support.settings import Context
from weft.tensor import Tensor


@pytest.fixture(autouse=True)
def interpreter() -> Iterator[None]:
    with Context(DEVICE="PYTHON"):
        yield


def message(function: Callable[[], object]) -> str:
    """Return the message without the location, which is this file."""
    with pytest.raises(UsageError) as failure:
        function()
    error = failure.value
    assert error.where.file.endswith("test_tensor_errors.py")
    blocks = f"{type(error).__name__}: {error}".split("\n\n")
    return "\n\n".join(block for block in blocks if not block.startswith("  at "))


def add_in_place() -> None:
    x = Tensor([1, 2])
    x += 0.5


def write_expanded() -> None:
    Tensor([1, 2]).expand(3, 2)[0] = 1


MESSAGES: dict[str, tuple[Callable[[], object], str]] = {
    "broadcast": (
        lambda: Tensor.zeros(2, 3) + Tensor.zeros(4, 3),
        """\
ShapeError: add: shapes do not broadcast at axis -2 (2 and 4)

  left   (2, 3)
  right  (4, 3)

  counted from the last axis, two sizes are equal or one of them is 1""",
    ),
    "matmul": (
        lambda: Tensor.zeros(3, 4) @ Tensor.zeros(3, 4),
        """\
ShapeError: matmul: inner sizes differ (4 and 3)

  left   (3, 4)   axis -1 is 4
  right  (3, 4)   axis -2 is 3

  left @ right needs left.shape[-1] == right.shape[-2]

  fix: the last axes agree, so transpose the right operand: left @ right.T""",
    ),
    "reshape": (
        lambda: Tensor.zeros(2, 3).reshape(4, 2),
        """\
ShapeError: reshape: 6 elements cannot become (4, 2)

  from  (2, 3)   6 elements
  to    (4, 2)   8

  reshape keeps the number of elements""",
    ),
    "axis": (
        lambda: Tensor.zeros(2, 3).sum(2),
        """\
AxisError: sum: axis 2 is out of range for 2 axes

  an axis is from -2 to 1 here""",
    ),
    "axis twice": (
        lambda: Tensor.zeros(2, 3).sum((0, -2)),
        """\
AxisError: sum: an axis is named twice

  axes            (0, -2)
  counted from 0  (0, 0)

  each axis is named once""",
    ),
    "index": (
        lambda: Tensor.zeros(2, 3)[0, 3],
        """\
IndexOutOfRange: index: 3 is out of range for axis 1 of size 3

  shape  (2, 3)

  an index of this axis is from -3 to 2""",
    ),
    "index list": (
        lambda: Tensor.zeros(2, 3)[[0, -3]],
        """\
IndexOutOfRange: index: -3 is out of range for axis 0 of size 2

  shape  (2, 3)

  an index of this axis is from -2 to 1""",
    ),
    "too many indices": (
        lambda: Tensor.zeros(2)[0, 0],
        """\
IndexOutOfRange: index: 2 indices for 1 axes

  shape  (2,)

  an index has at most one part for each axis and one ellipsis""",
    ),
    "float index": (
        lambda: Tensor.zeros(2)[1.5],
        """\
ArgumentTypeError: index: expected an index, got float

  an index is an int, a slice, None, ..., or integers in a list, array or tensor""",
    ),
    "mask": (
        lambda: Tensor.zeros(2)[Tensor([True, False, True])],
        """\
IndexOutOfRange: index: a mask of size 3 for axis 0 of size 2

  shape  (2,)

  a mask has the sizes of the axes it selects from""",
    ),
    "topk": (
        lambda: Tensor.zeros(2, 3).topk(4),
        """\
ArgumentError: topk: 4 of 3 elements

  shape  (2, 3)
  axis   -1

  k is from 0 to the size of the axis""",
    ),
    "median of nothing": (
        lambda: Tensor.zeros(2, 0).median(1),
        """\
ShapeError: median: an empty axis has no median

  shape  (2, 0)
  axis   1

  median needs at least one element along its axis""",
    ),
    "item": (
        lambda: Tensor.zeros(2, 3).item(),
        """\
ShapeError: item: the tensor has 6 elements

  shape  (2, 3)

  item() returns the one element of a tensor that has one

  fix: use tolist() for all of them, or index one: x[0].item()""",
    ),
    "truth": (
        lambda: bool(Tensor.zeros(2)),
        """\
ShapeError: bool: the truth of 2 elements is ambiguous

  shape  (2,)

  bool(t) needs exactly one element

  fix: use t.any() or t.all()""",
    ),
    "devices": (
        lambda: Tensor([1], device="PYTHON") + Tensor([1], device="PYTHON:1"),
        """\
DeviceError: add: operands are on different devices (PYTHON and PYTHON:1)

  left   (1,)   on PYTHON
  right  (1,)   on PYTHON:1

  one operation runs on one device

  fix: move one of them: .to('PYTHON')""",
    ),
    "dtype": (
        lambda: Tensor([1.0]) & Tensor([2.0]),
        """\
DTypeError: bitwise_and: not defined for float32

  bitwise_and takes bool, signed integers, unsigned integers, index

  fix: cast the operands first""",
    ),
    "in place": (
        add_in_place,
        """\
DTypeError: add: the result is float32 and cannot be written to int32

  an in-place operation keeps the dtype of the tensor

  fix: write x = x.cast(dtypes.float32) first, or cast the operand""",
    ),
    "expanded": (
        write_expanded,
        """\
ShapeError: index: a write through an expanded view

  view     (2,)
  storage  (2,)

  several elements of an expanded view share one address in memory

  fix: copy it first: x = x.clone()""",
    ),
    "condition": (
        lambda: Tensor([1, 0]).where(1, 2),
        """\
DTypeError: where: the condition is int32

  a condition is bool

  fix: compare it: (condition != 0).where(x, y)""",
    ),
    "keyword": (
        lambda: Tensor.zeros(2, dtpye="int32"),
        """\
ArgumentError: zeros: unknown argument 'dtpye'

  the keyword arguments are dtype, device, requires_grad

  fix: write dtype=""",
    ),
    "dtype name": (
        lambda: Tensor([1], dtype="flaot32"),
        """\
DTypeError: unknown dtype 'flaot32'

  the dtypes are void, index, bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, \
fp8e4m3, fp8e5m2, fp8e4m3fnuz, fp8e5m2fnuz, float16, bfloat16, float32, float64, complex64, \
complex128

  fix: write 'float32'""",
    ),
    "ragged": (
        lambda: Tensor([[1, 2], [3]]),
        "ShapeError: Tensor: a nested list is not rectangular",
    ),
    "list of tensors": (
        lambda: Tensor([Tensor([1]), Tensor([2])]),
        """\
ArgumentTypeError: Tensor: expected numbers, got a list of tensors

  a list holds numbers; tensors are joined with stack or cat

  fix: use Tensor.stack(*tensors) or Tensor.cat(*tensors)""",
    ),
    "no data": (
        lambda: Tensor("text"),
        """\
ArgumentTypeError: Tensor: cannot be made of str

  data is a number, a nested list, bytes, a NumPy array, a buffer, a path, a Tensor or a \
UOp; elements are bools, integers, floats or complex numbers""",
    ),
    "cat": (
        lambda: Tensor.zeros(2, 3).cat(Tensor.zeros(3, 2)),
        """\
ShapeError: cat: tensor 1 has shape (3, 2), the first (2, 3)

  tensor 0  (2, 3)
  tensor 1  (3, 2)

  all sizes but that of axis 0 are equal, and there is an axis""",
    ),
    "convolution": (
        lambda: Tensor.zeros(1, 3, 4, 4).conv2d(Tensor.zeros(8, 4, 3, 3)),
        """\
ShapeError: conv2d: input and weight do not fit

  input   (1, 3, 4, 4)   (batch, in, …)
  weight  (8, 4, 3, 3)   (out, in / groups, …)
  groups  1

  input channels = groups * weight.shape[1], and groups divides the outputs""",
    ),
    "bitcast": (
        lambda: Tensor([1.0]).bitcast("bool"),
        """\
DTypeError: bitcast: float32 and bool differ in width

  float32  32 bits
  bool     1 bits

  a bitcast keeps every bit of every element, and bool has no bits to keep""",
    ),
    "operand": (
        lambda: Tensor([1]).add("text"),
        """\
ArgumentTypeError: add: expected an operand, got str

  an operand is a Tensor, a Python or NumPy number, or a NumPy array""",
    ),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_message(name: str):
    function, expected = MESSAGES[name]
    shown = message(function)
    if name == "ragged":  # the rest is NumPy's
        shown = shown.split("\n")[0]
    assert shown == expected


def test_python_errors_stay_what_they_are():
    with pytest.raises(TypeError):
        Tensor([1]) + "text"  # type: ignore[operator]
    with pytest.raises(IndexError):
        Tensor([1])[1]
    with pytest.raises(ValueError):
        Tensor(np.zeros(2)).reshape(3)


def test_the_location_is_the_users_line():
    with pytest.raises(UsageError) as failure:
        Tensor([1, 2]).softmax().layernorm().reshape(3)
    assert failure.value.where.text == "Tensor([1, 2]).softmax().layernorm().reshape(3)"
