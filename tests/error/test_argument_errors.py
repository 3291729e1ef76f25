"""What a user reads who gets a name, a dtype or an argument wrong, word for word."""

from collections.abc import Iterator

import numpy as np
import pytest

from tests.error.messages import Messages, message_of
from weft import Context, Tensor, dtypes


@pytest.fixture(autouse=True)
def interpreter() -> Iterator[None]:
    with Context(DEVICE="PYTHON"):
        yield


MESSAGES: Messages = {
    "misspelt": (
        lambda: Tensor([1.0]).rleu(),
        """\
UnknownAttribute: a Tensor has no attribute 'rleu'

  fix: write relu""",
    ),
    "misspelt class": (
        lambda: Tensor.zeors(2),
        """\
UnknownAttribute: Tensor has no attribute 'zeors'

  fix: write zeros""",
    ),
    "misspelt prop": (
        lambda: Tensor([1.0]).shpae,
        """\
UnknownAttribute: a Tensor has no attribute 'shpae'

  fix: write shape""",
    ),
    "dtypes misspelt": (
        lambda: dtypes.flaot32,
        """\
UnknownAttribute: dtypes has no attribute 'flaot32'

  fix: write dtypes.float32""",
    ),
    "device name": (
        lambda: Tensor([1], device="GPU"),
        """\
DeviceError: unknown device 'GPU'

  the devices are CPU, CUDA, OPENCL, C, PYTHON, NULL, DISK

  fix: write 'CPU'""",
    ),
    "to device": (
        lambda: Tensor([1]).to("CUDAA"),
        """\
DeviceError: unknown device 'CUDAA'

  the devices are CPU, CUDA, OPENCL, C, PYTHON, NULL, DISK

  fix: write 'CUDA'""",
    ),
    "matmul scalar": (
        lambda: Tensor(1.0) @ Tensor(2.0),
        """\
ShapeError: matmul: expected at least one axis, got a scalar operand

  left   ()
  right  ()

  matmul multiplies vectors and matrices

  fix: use * to scale""",
    ),
    "matmul dtype": (
        lambda: Tensor.zeros(2, 2) @ 3,
        """\
ShapeError: matmul: expected at least one axis, got a scalar operand

  left   (2, 2)
  right  ()

  matmul multiplies vectors and matrices

  fix: use * to scale""",
    ),
    "linear": (
        lambda: Tensor.zeros(2, 3).linear(Tensor.zeros(4, 5)),
        """\
ShapeError: matmul: inner sizes differ (3 and 4)

  left   (2, 3)   axis -1 is 3
  right  (4, 5)   axis -2 is 4

  left @ right needs left.shape[-1] == right.shape[-2]""",
    ),
    "einsum": (
        lambda: Tensor.einsum("ij,jk->ik", Tensor.zeros(2, 3), Tensor.zeros(4, 5)),
        """\
ShapeError: einsum: axis 'j' has size 3 and size 4

  formula    ij,jk->ik
  operand 1  (4, 5)

  one letter has one size""",
    ),
    "einsum count": (
        lambda: Tensor.einsum("ij,jk->ik", Tensor.zeros(2, 3)),
        """\
ArgumentError: einsum: 2 terms for 1 operands

  formula  ij,jk->ik

  the formula has a term for each operand""",
    ),
    "conv small": (
        lambda: Tensor.zeros(1, 1, 2, 2).conv2d(Tensor.zeros(1, 1, 3, 3)),
        """\
ShapeError: conv2d: no window of 3 taps fits in 2 elements

  padded input  (1, 1, 2, 2)
  kernel        (3, 3)
  stride        (1, 1)
  dilation      (1, 1)

  size >= dilation * (kernel - 1) + 1 on every spatial axis, all from 1 on""",
    ),
    "pool small": (
        lambda: Tensor.zeros(1, 1, 2, 2).max_pool2d(3),
        """\
ShapeError: max_pool2d: no window of 3 taps fits in 2 elements

  padded input  (1, 1, 2, 2)
  kernel        (3, 3)
  stride        (3, 3)
  dilation      (1, 1)

  size >= dilation * (kernel - 1) + 1 on every spatial axis, all from 1 on""",
    ),
    "conv padding": (
        lambda: Tensor.zeros(1, 1, 4, 4).conv2d(Tensor.zeros(1, 1, 3, 3), padding=(1, 1, 1)),
        """\
ArgumentError: conv2d: 3 numbers for 2 spatial axes

  give one number, or one for each spatial axis""",
    ),
    "pad mode": (
        lambda: Tensor.zeros(3).pad((1, 1), mode="mirror"),
        """\
ArgumentError: pad: unknown mode 'mirror'

  the modes are constant, reflect, replicate, circular""",
    ),
    "pad reflect": (
        lambda: Tensor.zeros(1, 1, 3).pad((5, 5), mode="reflect"),
        """\
ShapeError: pad: mode 'reflect' cannot add 5 to axis 2 of size 3

  reflect adds at most 2 on each side here""",
    ),
    "pad odd": (
        lambda: Tensor.zeros(3).pad((1,)),
        """\
ShapeError: pad: 1 amounts for 1 axes

  shape    (3,)
  padding  (1,)

  padding has two amounts for each of the last axes""",
    ),
    "backward vector": (
        lambda: (Tensor([1.0, 2.0]) * 2).backward(),
        """\
ShapeError: backward: the output has 2 elements

  shape  (2,)

  without a gradient to start from, the output is one number

  fix: reduce it, for example with sum() or mean(), or pass gradient=""",
    ),
    "backward int": (
        lambda: Tensor([1]).sum().backward(),
        """\
DTypeError: backward: a tensor of int64 has no gradient

  only floats and complex numbers have gradients""",
    ),
    "gradient unused": (
        lambda: Tensor([1.0]).sum().gradient(Tensor([2.0]), materialize_grads=False),
        """\
ArgumentError: gradient: the output does not depend on target 0

  target  (1,)   float32

  a target is a value that the output was computed from; a value that was
  read forgets this, unless a leaf below it has requires_grad=True

  fix: call gradient() before the output is read, or pass
       materialize_grads=True for zeros""",
    ),
    "gradient constant": (
        lambda: (lambda x: (x**2).gradient(x))(Tensor(2.0)),
        """\
ArgumentError: gradient: target 0 is a constant, which has no memory of its own

  target  ()   float32

  equal constants are one value wherever they stand, so a slope of one of them
  could not be told from those of the others

  fix: make it with requires_grad=True, or realize() it before it is used""",
    ),
    "requires int": (
        lambda: Tensor([1], requires_grad=True),
        """\
DTypeError: requires_grad: a tensor of int32 has no gradient

  only floats and complex numbers have gradients

  fix: make it a float: dtype=dtypes.float32""",
    ),
    "inplace leaf": (
        lambda: Tensor([1.0], requires_grad=True).add_(1),
        """\
NotSupported: a tensor that requires a gradient cannot be changed in place

  its gradient is that of the value it had when it was used

  fix: use x.assign(...) between steps, or write it in `with weft.no_grad():`""",
    ),
    "neg bool": (
        lambda: -Tensor([True]),
        """\
DTypeError: neg: not defined for bool

  a bool has no sign

  fix: use logical_not or ~""",
    ),
    "sub bool": (
        lambda: Tensor([True]) - Tensor([True]),
        """\
DTypeError: sub: not defined for bool

  sub takes signed integers, unsigned integers, index, floats, complex numbers

  fix: use ^ or logical_not on bools""",
    ),
    "invert float": (
        lambda: ~Tensor([1.0]),
        """\
DTypeError: bitwise_not: not defined for float32

  bitwise_not takes bools and integers

  fix: use logical_not, or bitcast to an integer dtype""",
    ),
    "shift float": (
        lambda: Tensor([1.0]) << 1,
        """\
DTypeError: lshift: not defined for float32

  lshift takes signed integers, unsigned integers, index

  fix: cast the operands first""",
    ),
    "pow negative": (
        lambda: Tensor([2]) ** -1,
        """\
ArgumentError: pow: an integer to a negative power is not an integer

  base      int32
  exponent  -1

  an integer to the power of an int needs an exponent from 0 on

  fix: use floats: x.float() ** -1""",
    ),
    "rounding": (
        lambda: Tensor([2]).div(2, rounding_mode="up"),
        """\
ArgumentError: div: unknown rounding_mode 'up'

  rounding_mode is None, "floor" or "trunc\"""",
    ),
    "clamp none": (
        lambda: Tensor([2]).clamp(),
        """\
ArgumentError: clamp: neither limit is given

  clamp needs min_, max_ or both""",
    ),
    "item index": (
        lambda: list(range(3))[Tensor([1.0])],
        """\
DTypeError: an index cannot be float32

  only a tensor of one integer can be a Python index""",
    ),
    "dropout": (
        lambda: Tensor([1.0]).dropout(2.0),
        """\
ArgumentError: dropout: p is 2.0

  a probability is from 0 to 1""",
    ),
    "arange step": (
        lambda: Tensor.arange(0, 5, 0),
        """\
ArgumentError: arange: the step is 0

  arange needs a step above or below 0""",
    ),
    "linspace": (
        lambda: Tensor.linspace(0, 1, -1),
        """\
ArgumentError: linspace: steps is -1

  linspace needs steps >= 0""",
    ),
    "cross entropy": (
        lambda: Tensor.zeros(3, 4).cross_entropy(Tensor([0, 1])),
        """\
ShapeError: cross_entropy: classes of shape (2,) for scores of shape (3, 4)

  scores   (3, 4)   classes on axis 1
  classes  (2,)

  the classes have the shape (3,) here, or are probabilities of the scores' shape""",
    ),
    "reduction": (
        lambda: Tensor.zeros(3, 4).cross_entropy(Tensor([0, 1, 2]), reduction="avg"),
        """\
ArgumentError: unknown reduction 'avg'

  reduction is "mean", "sum" or "none\"""",
    ),
    "attention": (
        lambda: Tensor.zeros(1, 2, 4, 8).scaled_dot_product_attention(
            Tensor.zeros(1, 2, 4, 7), Tensor.zeros(1, 2, 4, 8)
        ),
        """\
ShapeError: matmul: inner sizes differ (8 and 7)

  left   (1, 2, 4, 8)   axis -1 is 8
  right  (1, 2, 7, 4)   axis -2 is 7

  left @ right needs left.shape[-1] == right.shape[-2]""",
    ),
    "interpolate mode": (
        lambda: Tensor.zeros(1, 1, 4).interpolate((2,), mode="lanczos"),
        """\
ArgumentError: interpolate: unknown mode 'lanczos'

  the modes are nearest, nearest-exact, linear, bilinear, trilinear, bicubic, area""",
    ),
    "from numpy": (
        lambda: Tensor.from_numpy([1]),
        """\
ArgumentTypeError: from_numpy: expected a NumPy array, got list

  from_numpy shares the memory of an array

  fix: use Tensor(data), which copies""",
    ),
    "cast bad": (
        lambda: Tensor([1]).cast("int33"),
        """\
DTypeError: unknown dtype 'int33'

  the dtypes are void, index, bool, int8, int16, int32, int64, uint8, uint16, uint32, \
uint64, fp8e4m3, fp8e5m2, fp8e4m3fnuz, fp8e5m2fnuz, float16, bfloat16, float32, \
float64, complex64, complex128

  fix: write 'int32'""",
    ),
    "masked fill": (
        lambda: Tensor.zeros(3).masked_fill(Tensor([1, 0, 1]), 0),
        """\
DTypeError: masked_fill: the mask is int32

  a mask is bool

  fix: compare it: x.masked_fill(mask != 0, value)""",
    ),
    "sum kw": (
        lambda: Tensor.zeros(3).sum(axs=0),
        """\
ArgumentError: sum: unknown argument 'axs'

  the arguments are axis, keepdim, dtype

  fix: write axis=""",
    ),
    "numpy op": (
        lambda: np.zeros(3) @ Tensor.zeros(2),
        """\
ShapeError: matmul: inner sizes differ (3 and 2)

  left   (3,)   axis -1 is 3
  right  (2,)   axis -1 is 2

  left @ right needs left.shape[-1] == right.shape[-1]""",
    ),
    "kaiming": (
        lambda: Tensor.kaiming_uniform(),
        """\
ArgumentError: kaiming_uniform: expected a shape, got none

  kaiming_uniform needs at least one axis""",
    ),
    "randint": (
        lambda: Tensor.randint(2, low=5, high=5),
        """\
ArgumentError: randint: expected low < high, got 5 and 5

  randint draws from low to below high""",
    ),
    "setting": (
        lambda: Context(DEBGU=1),
        """\
UnknownName: Context: no setting is called DEBGU

  fix: the nearest one is DEBUG: Context(DEBUG=1)""",
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


def test_names_of_others_are_accepted():
    x = Tensor([[1.0, -2.0]])
    assert x.sum(dim=1, keepdims=True).tolist() == [[-1.0]]
    assert x.clamp(min=0).tolist() == [[1.0, 0.0]]
    assert x.unbind(axis=1)[1].tolist() == [-2.0]
    assert x.add(other=1).tolist() == [[2.0, -1.0]]
    assert x.cast(np.float64).dtype is dtypes.float64
    assert Tensor([1], dtype=float).dtype is dtypes.float32


def test_python_asks_whether_a_name_exists():
    assert not hasattr(Tensor([1]), "no_such_name")
    assert not hasattr(Tensor, "no_such_name")
    assert getattr(Tensor([1]), "no_such_name", 3) == 3
