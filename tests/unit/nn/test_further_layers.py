"""Layers that few models have: adaptive softmax, local responses, fractional pools."""

import numpy as np
import pytest

import weft
from weft import ArgumentError, ShapeError, Tensor, nn
from weft.nn import functional as F  # noqa: N812

X = np.random.default_rng(0).normal(size=(2, 7, 5, 6)).astype(np.float32)


def test_adaptive_softmax():
    layer = nn.AdaptiveLogSoftmaxWithLoss(8, 12, cutoffs=[4, 9], div_value=2.0)
    x, target = Tensor(X.reshape(-1)[:40].reshape(5, 8)), Tensor([0, 3, 4, 8, 11])
    every = layer.log_prob(x)
    np.testing.assert_allclose(every.exp().sum(1).numpy(), np.ones(5), rtol=1e-5)
    found = layer(x, target)
    chosen = every.gather(1, target.unsqueeze(1)).squeeze(1)
    np.testing.assert_allclose(found.output.numpy(), chosen.numpy(), rtol=1e-5)
    np.testing.assert_allclose(found.loss.item(), -chosen.mean().item(), rtol=1e-5)
    assert layer.predict(x).tolist() == every.argmax(1).tolist()
    assert layer(x[0], target[4]).output.shape == ()
    with pytest.raises(ArgumentError, match="cutoffs"):
        nn.AdaptiveLogSoftmaxWithLoss(8, 12, cutoffs=[9, 4])


def test_local_response():
    found = nn.LocalResponseNorm(3, alpha=3.0, beta=1.0, k=0.0)(Tensor(np.ones((1, 4, 2, 2))))
    np.testing.assert_allclose(found.numpy()[0, :, 0, 0], [0.5, 1 / 3, 1 / 3, 0.5], rtol=1e-6)


def test_fractional_pools():
    x = Tensor(np.arange(25.0).reshape(1, 1, 5, 5))
    half = Tensor([[[0.5, 0.5]]])
    values, indices = F.fractional_max_pool2d(x, 2, 2, return_indices=True, _random_samples=half)
    # Windows begin at 0 and at 5 - 2.
    assert values.tolist() == [[[[6.0, 9.0], [21.0, 24.0]]]] == indices.tolist()
    assert nn.FractionalMaxPool3d(2, output_size=3)(Tensor.rand(1, 2, 6, 6, 6)).shape == (
        1, 2, 3, 3, 3,
    )  # fmt: skip
    with pytest.raises(ShapeError, match="5 windows of 2 in 5 elements"):
        F.fractional_max_pool2d(x, 2, 5)
    with pytest.raises(ArgumentError, match="output_size or output_ratio"):
        F.fractional_max_pool2d(x, 2)


def test_names_of_other_layers():
    cell, layer = nn.GRUCell(2, 3), nn.LSTM(2, 3)
    assert isinstance(cell, nn.RNNCellBase) and isinstance(layer, nn.RNNBase)
    model = nn.Sequential(nn.BatchNorm2d(3))
    assert nn.SyncBatchNorm.convert_sync_batchnorm(model) is model
    with pytest.raises(weft.UnknownAttribute, match="DataParallel"):
        nn.DataParallel(model)


@pytest.mark.peers("torch")
@pytest.mark.parametrize("size", [1, 3, 4, 5])
def test_responses_as_in_torch(size: int):
    torch = pytest.importorskip("torch")
    for name in ("LocalResponseNorm", "CrossMapLRN2d"):
        ours = getattr(nn, name)(size, 0.5, 0.75, 2.0)(Tensor(X)).numpy()
        theirs = getattr(torch.nn, name)(size, 0.5, 0.75, 2.0)(torch.tensor(X)).numpy()
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, err_msg=name)


@pytest.mark.peers("torch")
def test_adaptive_softmax_as_in_torch():
    torch = pytest.importorskip("torch")
    theirs = torch.nn.AdaptiveLogSoftmaxWithLoss(8, 12, [4, 9], 2.0, True)
    ours = nn.AdaptiveLogSoftmaxWithLoss(8, 12, [4, 9], 2.0, True)
    ours.load_state_dict({key: value.numpy() for key, value in theirs.state_dict().items()})
    x, target = X.reshape(-1)[:40].reshape(5, 8), np.array([0, 3, 4, 8, 11])
    found, wanted = ours(Tensor(x), Tensor(target)), theirs(torch.tensor(x), torch.tensor(target))
    np.testing.assert_allclose(found.output.numpy(), wanted.output.detach().numpy(), rtol=1e-5)
    found.loss.backward()
    wanted.loss.backward()
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        np.testing.assert_allclose(mine.grad.numpy(), other.grad.numpy(), atol=1e-6)


@pytest.mark.peers("torch")
@pytest.mark.parametrize(("rank", "sizes"), [(2, (4, 5)), (3, (3, 4, 5))])
def test_fractional_pools_as_in_torch(rank: int, sizes: tuple[int, ...]):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    a = rng.normal(size=(2, 3, 7, 9, 10)[: rank + 2]).astype(np.float32)
    samples = rng.random(size=(2, 3, rank)).astype(np.float32)
    found = []
    for lib, make in ((F, Tensor), (torch.nn.functional, torch.tensor)):
        x = make(a, requires_grad=True)
        pool = getattr(lib, f"fractional_max_pool{rank}d")
        values, indices = pool(x, 2, sizes, None, True, make(samples))
        (values * values).sum().backward()
        found.append([values.detach().numpy(), indices.numpy(), x.grad.numpy()])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_array_equal(ours, theirs)
