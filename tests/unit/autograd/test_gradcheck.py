"""gradcheck finds gradients that are wrong, and those alone."""

import pytest

from weft import ArgumentError, GradcheckError, NotSupported, Tensor, autograd


def leaf(*values: float) -> Tensor:
    return Tensor(list(values), dtype="float64", requires_grad=True)


class Wrong(autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 3 * x


def several(x: Tensor, y: Tensor, n: int) -> tuple[Tensor, Tensor]:
    return (x * y) ** n, x.exp().sum()


def test_what_is_right_passes():
    x, y = leaf(0.5, 1.5), leaf(2.0, -1.0)
    assert autograd.gradcheck(several, (x, y, 2), check_forward_ad=True)
    assert autograd.gradgradcheck(several, (x, y, 2))
    assert autograd.gradcheck(lambda x: x.logsumexp(0), x, fast_mode=True)


def test_what_is_wrong_is_found():
    x = leaf(0.5, 1.5)
    with pytest.raises(GradcheckError, match="the gradient of result 0 by input 0"):
        autograd.gradcheck(Wrong.apply, (x,))
    assert not autograd.gradcheck(Wrong.apply, (x,), raise_exception=False)
    # Its slope is 3 x, of which the gradient of the gradient is right.
    assert autograd.gradgradcheck(Wrong.apply, (x,))


def test_what_cannot_be_checked():
    with pytest.raises(ArgumentError, match="no input requires a gradient"):
        autograd.gradcheck(lambda x: x, Tensor([1.0]))
    with pytest.raises(NotSupported, match="a complex input"):
        autograd.gradcheck(lambda x: x, Tensor([1j], requires_grad=True))
    x = Tensor([0.5], requires_grad=True)
    with pytest.warns(UserWarning, match="differences need float64"):
        assert autograd.gradcheck(lambda x: x * 2, x, eps=1e-2, atol=1e-2)


def test_variables_are_tensors():
    assert autograd.Variable(Tensor([1.0]), requires_grad=True).requires_grad
    with autograd.set_multithreading_enabled(False):
        pass
