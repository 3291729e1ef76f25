"""`stft` and `istft`: frames by hand, there and back, errors."""

import numpy as np
import pytest

from weft import ArgumentError, ShapeError, Tensor

SIGNAL = np.random.default_rng(0).standard_normal(64)
HANN = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(16) / 16)


def by_hand(x, n_fft, hop, window, center=True):
    x = np.pad(x, n_fft // 2, mode="reflect") if center else x
    starts = range(0, len(x) - n_fft + 1, hop)
    return np.stack([np.fft.fft(x[i : i + n_fft] * window) for i in starts], 1)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("hop", [4, 5, 16])
def test_frames_are_transformed(hop, center):
    found = Tensor(SIGNAL).stft(16, hop, window=Tensor(HANN), center=center).numpy()
    want = by_hand(SIGNAL, 16, hop, HANN, center)
    np.testing.assert_allclose(found, want[:9], atol=1e-10)
    whole = Tensor(SIGNAL).stft(16, hop, window=Tensor(HANN), center=center, onesided=False)
    np.testing.assert_allclose(whole.numpy(), want, atol=1e-10)


def test_a_short_window_is_in_the_middle():
    window = np.concatenate([np.zeros(4), np.ones(8), np.zeros(4)])
    found = Tensor(SIGNAL).stft(16, win_length=8)
    np.testing.assert_allclose(found.numpy(), by_hand(SIGNAL, 16, 4, window)[:9], atol=1e-10)


@pytest.mark.parametrize("normalized", [True, False])
def test_there_and_back(normalized):
    batch = Tensor(np.stack([SIGNAL, SIGNAL[::-1]]))
    options = {"window": Tensor(HANN), "normalized": normalized}
    back = batch.stft(16, **options).istft(16, length=64, **options)
    np.testing.assert_allclose(back.numpy(), batch.numpy(), atol=1e-10)


def test_gradients_go_there_and_back():
    x = Tensor(SIGNAL, requires_grad=True)
    x.stft(16, window=Tensor(HANN)).istft(16, window=Tensor(HANN), length=64).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.ones(64), atol=1e-9)


def test_errors():
    with pytest.raises(ShapeError, match="has no frame of 128"):
        Tensor(SIGNAL).stft(128, center=False)
    with pytest.raises(ArgumentError, match="win_length 20"):
        Tensor(SIGNAL).stft(16, win_length=20)
    with pytest.raises(ShapeError, match="window has shape"):
        Tensor(SIGNAL).stft(16, window=Tensor([1.0]))
