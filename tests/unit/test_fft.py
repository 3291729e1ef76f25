"""`weft.fft` beside numpy.fft: complex numbers in and out."""

import numpy as np
import pytest

import weft
from weft import ArgumentError, Tensor

rng = np.random.default_rng(0)
REAL = rng.standard_normal((4, 6))
COMPLEX = rng.standard_normal((4, 6)) + 1j * rng.standard_normal((4, 6))


def near(ours, theirs):
    found = ours.numpy()
    assert found.dtype == theirs.dtype and found.shape == theirs.shape
    np.testing.assert_allclose(found, theirs, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("norm", [None, "ortho", "forward", "backward"])
@pytest.mark.parametrize("name", ["fft", "ifft", "irfft", "hfft"])
def test_one_axis(name, norm):
    for n in (None, 5, 9):
        ours = getattr(weft.fft, name)(Tensor(COMPLEX), n=n, dim=1, norm=norm)
        near(ours, getattr(np.fft, name)(COMPLEX, n=n, axis=1, norm=norm))


@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize("name", ["fft", "rfft", "ihfft", "fft2", "rfft2", "fftn", "rfftn"])
def test_real_numbers(name, norm):
    ours = getattr(weft.fft, name)(Tensor(REAL), norm=norm)
    near(ours, getattr(np.fft, name)(REAL, norm=norm))


@pytest.mark.parametrize("name", ["fftn", "ifftn", "irfftn"])
def test_several_axes(name):
    for s, axes in ((None, None), ((3, 8), (0, 1)), (None, (0,))):
        ours = getattr(weft.fft, name)(Tensor(COMPLEX), s=s, dim=axes)
        near(ours, getattr(np.fft, name)(COMPLEX, s=s, axes=axes))


def test_there_and_back():
    near(weft.fft.ifft2(weft.fft.fft2(Tensor(COMPLEX))), COMPLEX)
    near(weft.fft.irfftn(weft.fft.rfftn(Tensor(REAL)), s=REAL.shape), REAL)
    near(weft.fft.hfft(weft.fft.ihfft(Tensor(REAL)), n=6), REAL)


@pytest.mark.parametrize("n", [4, 5])
def test_frequencies(n):
    near(weft.fft.fftfreq(n, 0.5, dtype="float64"), np.fft.fftfreq(n, 0.5))
    near(weft.fft.rfftfreq(n, 0.5, dtype="float64"), np.fft.rfftfreq(n, 0.5))
    x = np.arange(n * 3).reshape(n, 3)
    assert (weft.fft.fftshift(Tensor(x)).numpy() == np.fft.fftshift(x)).all()
    assert (weft.fft.ifftshift(Tensor(x), dim=0).numpy() == np.fft.ifftshift(x, 0)).all()


def test_gradients_are_the_transform_turned_around():
    x = Tensor(REAL, requires_grad=True)
    (weft.fft.rfft(x).abs() ** 2).sum().backward()
    whole = np.fft.fft(REAL)
    weights = np.where(np.arange(6) < 4, 1.0, 0.0)  # the half that rfft gives
    want = 2 * np.real(np.fft.ifft(whole * weights) * 6)
    np.testing.assert_allclose(x.grad.numpy(), want, rtol=1e-9, atol=1e-9)


def test_what_takes_real_numbers_says_so():
    with pytest.raises(ArgumentError, match="rfft: expected real numbers"):
        weft.fft.rfft(Tensor(COMPLEX))
    with pytest.raises(ArgumentError, match="3 lengths for 2 axes"):
        weft.fft.fftn(Tensor(COMPLEX), s=(1, 2, 3), dim=(0, 1))
