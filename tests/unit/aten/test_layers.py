"""Layers, losses and recurrent functions at the top of the package, with torch's arguments."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
from weft import Tensor

RNG = np.random.default_rng(0)


def normal(*shape: int) -> Any:
    return RNG.normal(size=shape).astype(np.float32)


X, V = normal(4, 3, 6), normal(4, 5)
TABLE, BAGS = normal(7, 3), np.array([1, 2, 6, 2, 0])
ONES = np.ones(4, np.float32)


def weights(gates: int, layers: int = 1, ways: int = 1) -> list[Any]:
    """Of a layer with 3 inputs and 2 hidden values."""
    found = []
    for layer in range(layers):
        width = 3 if layer == 0 else 2 * ways
        for _ in range(ways):
            found += [normal(gates * 2, width), normal(gates * 2, 2)]
            found += [normal(gates * 2), normal(gates * 2)]
    return found


LSTM, GRU, RNN = weights(4, 2, 2), weights(3), weights(1)
H = normal(4, 4, 2)
# What torch is called with, and with Weft's tensors what Weft is called with.
CASES: dict[str, Callable[[Any, Any], Any]] = {
    "adaptive_avg_pool1d": lambda m, t: m.adaptive_avg_pool1d(t(X), 4),
    "adaptive_max_pool1d": lambda m, t: m.adaptive_max_pool1d(t(X), 4),
    "avg_pool1d": lambda m, t: m.avg_pool1d(t(X), 2),
    "max_pool1d": lambda m, t: m.max_pool1d(t(X), 2),
    "batch_norm": lambda m, t: m.batch_norm(
        t(X), t(ONES[:3]), None, None, None, True, 0.1, 1e-5, False
    ),
    "instance_norm": lambda m, t: m.instance_norm(
        t(X), t(ONES[:3]), t(X[0, :, 0]), None, None, True, 0.1, 1e-5, False
    ),
    "channel_shuffle": lambda m, t: m.channel_shuffle(t(normal_fixed(2, 4, 3, 3)), 2),
    "pixel_shuffle": lambda m, t: m.pixel_shuffle(t(normal_fixed(2, 4, 3, 3)), 2),
    "pixel_unshuffle": lambda m, t: m.pixel_unshuffle(t(normal_fixed(2, 1, 4, 4)), 2),
    "conv_transpose1d": lambda m, t: m.conv_transpose1d(t(X), t(normal_fixed(3, 2, 3)), None, 2),
    "convolution": lambda m, t: m.convolution(
        t(X), t(normal_fixed(2, 3, 3)), None, (1,), (1,), (1,), False, (0,), 1
    ),
    "convolution, transposed": lambda m, t: m.convolution(
        t(X), t(normal_fixed(3, 2, 3)), None, (2,), (1,), (1,), True, (0,), 1
    ),
    "embedding": lambda m, t: m.embedding(t(TABLE), t(BAGS), padding_idx=2),
    "embedding_bag": lambda m, t: m.embedding_bag(t(TABLE), t(BAGS), t(np.array([0, 3])))[0],
    "embedding_bag, mean": lambda m, t: m.embedding_bag(
        t(TABLE), t(BAGS), t(np.array([0, 3])), mode=1
    )[0],
    "grid_sampler": lambda m, t: m.grid_sampler(
        t(normal_fixed(1, 2, 4, 4)), t(np.tanh(normal_fixed(1, 3, 3, 2))), 0, 1, True
    ),
    "pairwise_distance": lambda m, t: m.pairwise_distance(t(V), t(V[::-1].copy())),
    "pdist": lambda m, t: m.pdist(t(V)),
    "cosine_embedding_loss": lambda m, t: m.cosine_embedding_loss(
        t(V), t(V[::-1].copy()), t(ONES), 0.1, 2
    ),
    "hinge_embedding_loss": lambda m, t: m.hinge_embedding_loss(t(V[:, 0]), t(-ONES), 1.0, 0),
    "margin_ranking_loss": lambda m, t: m.margin_ranking_loss(
        t(V[:, 0]), t(V[:, 1]), t(ONES), 0.5
    ),
    "poisson_nll_loss": lambda m, t: m.poisson_nll_loss(t(V), t(V * V), True, True, 1e-8, 1),
    "triplet_margin_loss": lambda m, t: m.triplet_margin_loss(t(V), t(V + 1), t(V[::-1].copy())),
    "ctc_loss": lambda m, t: m.ctc_loss(
        m.log_softmax(t(normal_fixed(6, 2, 4)), -1), t(np.array([[1, 2], [3, 3]])),
        t(np.array([6, 5])), t(np.array([2, 1])), 0, 1, False,
    ),
    "lstm_cell": lambda m, t: m.lstm_cell(
        t(X[0, :, :3]), (t(H[0, :3]), t(H[1, :3])), *map(t, LSTM[:4])
    ),
    "gru_cell": lambda m, t: m.gru_cell(t(X[0, :, :3]), t(H[0, :3]), *map(t, GRU)),
    "rnn_tanh_cell": lambda m, t: m.rnn_tanh_cell(t(X[0, :, :3]), t(H[0, :3]), *map(t, RNN)),
    "rnn_relu_cell": lambda m, t: m.rnn_relu_cell(t(X[0, :, :3]), t(H[0, :3]), *map(t, RNN[:2])),
    "lstm": lambda m, t: m.lstm(
        t(X[..., :3]), (t(H[:, :3]), t(H[:, :3])), list(map(t, LSTM)), True, 2, 0.0, True, True,
        False,
    ),
    "gru": lambda m, t: m.gru(
        t(X[..., :3]), t(H[:1]), list(map(t, GRU)), True, 1, 0.0, False, False, True
    ),
    "rnn_tanh": lambda m, t: m.rnn_tanh(
        t(X[..., :3]), t(H[:1, :3]), list(map(t, RNN)), True, 1, 0.0, False, False, False
    ),
    "hamming_window": lambda m, t: m.hamming_window(6, False, 0.5, 0.5),
    "kaiser_window": lambda m, t: m.kaiser_window(6, True, 4.0),
    "bartlett_window": lambda m, t: m.bartlett_window(5),
    "blackman_window": lambda m, t: m.blackman_window(5, dtype=m.float64),
    "norm_except_dim": lambda m, t: m.norm_except_dim(t(V), 2, 1),
    "can_cast": lambda m, t: [
        m.can_cast(getattr(m, a), getattr(m, b))
        for a in ("bool", "uint8", "int32", "float16", "complex64")
        for b in ("bool", "uint8", "int8", "float32", "complex64")
    ],
    "frombuffer": lambda m, t: m.frombuffer(
        bytearray(range(12)), dtype=m.int16, count=3, offset=2
    ),
    "segment_reduce": lambda m, t: [
        m.segment_reduce(t(V), name, lengths=t(np.array([1, 0, 3])), axis=0, initial=0.5)
        for name in ("sum", "mean", "max", "min", "prod")
    ],
    "segment_reduce, offsets": lambda m, t: m.segment_reduce(
        t(V), "max", offsets=t(np.array([[0, 2, 5]] * 4)), axis=1
    ),
}  # fmt: skip


def normal_fixed(*shape: int) -> Any:
    return np.random.default_rng(1).normal(size=shape).astype(np.float32)


def values(found: Any) -> list[Any]:
    listed = found if isinstance(found, (list, tuple)) else [found]
    return [each.detach().numpy() if hasattr(each, "detach") else each for each in listed]


@pytest.mark.peers("torch")
@pytest.mark.parametrize("name", CASES)
def test_as_in_torch(name: str):
    torch = pytest.importorskip("torch")
    wanted = values(CASES[name](torch, torch.tensor))
    for ours, theirs in zip(values(CASES[name](weft, Tensor)), wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-6)
        assert getattr(ours, "shape", ()) == getattr(theirs, "shape", ())


def test_weights_of_layers_have_gradients():
    given = [Tensor(each, requires_grad=True) for each in RNN]
    out, h = weft.rnn_tanh(
        Tensor(X[..., :3]), Tensor(H[:1, :3]), given, True, 1, 0.0, True, False, False
    )
    (out.sum() + h.sum()).backward()
    assert all(each.grad.abs().sum().item() > 0 for each in given)
    with pytest.raises(weft.ArgumentError, match="rnn: 3 weights"):
        weft.rnn_tanh(
            Tensor(X[..., :3]), Tensor(H[:1, :3]), given[:3], True, 1, 0.0, True, False, False
        )


def test_shuffles_and_windows():
    assert weft.pixel_shuffle(Tensor([[[1.0]], [[2.0]], [[3.0]], [[4.0]]]), 2).tolist() == [
        [[1.0, 2.0], [3.0, 4.0]]
    ]
    np.testing.assert_allclose(weft.hann_window(4).numpy(), [0, 0.5, 1, 0.5], atol=1e-7)
    np.testing.assert_allclose(weft.hann_window(3, False).numpy(), [0, 1, 0], atol=1e-7)
    found = weft.segment_reduce(Tensor([1.0, 5.0, 2.0]), "max", lengths=Tensor([2, 1]))
    assert found.tolist() == [5.0, 2.0]


def test_norms():
    x = Tensor([[3.0, 0.0], [4.0, 1.0]])
    np.testing.assert_allclose(weft.frobenius_norm(x, (0,), True).numpy(), [[5.0, 1.0]])
    wanted = np.linalg.norm(x.numpy(), "nuc")
    np.testing.assert_allclose(weft.nuclear_norm(x).item(), wanted, rtol=1e-6)


def test_unknown_reductions_are_refused():
    with pytest.raises(weft.ArgumentError, match="unknown reduction 3"):
        weft.margin_ranking_loss(Tensor(ONES), Tensor(ONES), Tensor(ONES), 0.0, 3)
    with pytest.raises(weft.ArgumentError, match="unknown reduce 'median'"):
        weft.segment_reduce(Tensor(ONES), "median", lengths=Tensor([4]))
