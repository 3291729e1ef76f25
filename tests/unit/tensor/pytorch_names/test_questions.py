"""What PyTorch programs ask of a tensor, and what they get."""

import pytest

import weft
from weft import ArgumentError, NotSupported, Tensor, UnknownAttribute


def test_questions():
    x = Tensor([[1.0, 2.0]], device="CPU")
    assert x.is_cpu and x.get_device() == -1 and x.is_signed() and weft.is_signed(x)
    assert not Tensor([1], dtype="uint8").is_signed() and not Tensor([True]).is_signed()
    assert x.is_same_size(Tensor([[3, 4]])) and not x.is_same_size(Tensor([3]))
    assert not (x.is_conj() or x.is_neg() or x.is_quantized or x.is_nested or x.is_meta)
    assert x.dim_order() == (0, 1) and x.storage_offset() == 0 and x.layout == weft.strided
    assert x.ndimension() == 2 and x.pin_memory() is x and x.name is None
    assert Tensor([2.0]).is_nonzero() and not weft.is_nonzero(Tensor(0))
    with pytest.raises(ArgumentError, match="is_nonzero: 2 elements"):
        x.is_nonzero()


def test_gradients_of_what_was_computed():
    x = Tensor([3.0], requires_grad=True)
    y = x * 2
    assert x.grad_fn is None and y.grad_fn is not None and not y.retains_grad
    y.retain_grad()
    x.retain_grad()  # of a leaf: nothing to do
    assert y.retains_grad and not x.retains_grad and y.grad_fn is not None
    (y * y).sum().backward()
    assert (x.grad.tolist(), y.grad.tolist()) == ([24.0], [12.0])
    with pytest.raises(NotSupported, match="does not require a gradient"):
        Tensor([1]).retain_grad()


@pytest.mark.parametrize(
    ("name", "fix"),
    [("to_sparse", "nonzero"), ("q_scale", "int8"), ("data_ptr", "data"), ("coalesce", "zeros")],
)
def test_what_is_not_there_says_what_is(name: str, fix: str):
    if name == "coalesce":
        assert not Tensor([1.0]).is_coalesced()
    with pytest.raises(UnknownAttribute, match=fix):
        getattr(Tensor([1.0]), name)
    with pytest.raises(NotSupported, match="one process"):
        Tensor([1.0]).share_memory_()
