"""Shape methods with an underscore change the tensor, and leave other views alone."""

import math

import pytest

from weft import Tensor

CASES = [
    ("squeeze_", (), (1, 2, 1), (2,)),
    ("squeeze_", (0,), (1, 2, 1), (2, 1)),
    ("unsqueeze_", (-1,), (2, 3), (2, 3, 1)),
    ("t_", (), (2, 3), (3, 2)),
    ("transpose_", (0, 2), (2, 3, 4), (4, 3, 2)),
    ("swapaxes_", (0, 1), (2, 3), (3, 2)),
    ("swapdims_", (0, 1), (2, 3), (3, 2)),
]


@pytest.mark.parametrize(("name", "args", "before", "after"), CASES)
def test_shape_in_place(name, args, before, after):
    x = Tensor.arange(math.prod(before)).reshape(before).contiguous()
    wanted = getattr(x, name.removesuffix("_"))(*args).tolist()
    other = x.flatten()
    assert getattr(x, name)(*args) is x
    assert x.shape == after and x.tolist() == wanted
    x.zero_()  # both still see one memory
    assert other.sum().item() == 0


def test_set_and_detach():
    x, y = Tensor([1.0]), Tensor([2.0, 3.0]).contiguous().realize()
    assert not x.is_set_to(y)
    assert x.set_(y) is x and x.is_set_to(y)
    x += 1
    assert y.tolist() == [3.0, 4.0]
    assert x.set_().shape == (0,)
    w = Tensor([3.0], requires_grad=True)
    cut = (w * 2).detach_()
    (cut * w).sum().backward()
    assert w.grad.tolist() == [6.0]
