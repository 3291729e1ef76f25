"""Averages of weights, the statistics of norms, and the schedule, as in PyTorch."""

import numpy as np
import pytest

from weft import ArgumentError, Tensor, nn, optim
from weft.optim import swa_utils

VALUES = [1.0, 3.0, 8.0]


def averaged(**options):
    model = nn.Sequential(nn.Linear(2, 1, bias=False), nn.BatchNorm1d(1))
    copy = swa_utils.AveragedModel(model, **options)
    for value in VALUES:
        model[0].weight.assign(model[0].weight.full_like(value))
        model[1].running_mean.assign(model[1].running_mean.full_like(value))
        copy.update_parameters(model)
    assert copy.n_averaged.item() == 3
    return copy


def test_averages():
    assert averaged().module[0].weight.tolist() == [[4.0, 4.0]]
    assert averaged().module[1].running_mean.tolist() == [8.0]
    assert averaged(use_buffers=True).module[1].running_mean.tolist() == [4.0]
    for options in (
        {"avg_fn": swa_utils.get_ema_avg_fn(0.5)},
        {"multi_avg_fn": swa_utils.get_ema_multi_avg_fn(0.5)},
    ):
        assert averaged(**options).module[0].weight.tolist() == [[5.0, 5.0]]
    multi = averaged(multi_avg_fn=swa_utils.get_swa_multi_avg_fn())
    assert multi.module[0].weight.tolist() == [[4.0, 4.0]]
    with pytest.raises(ArgumentError, match="the decay is 2"):
        swa_utils.get_ema_avg_fn(2)
    names = list(averaged().state_dict())
    assert "n_averaged" in names and "module.0.weight" in names


def test_statistics_of_batches():
    model = nn.Sequential(nn.BatchNorm1d(2)).eval()
    data = np.random.default_rng(0).normal(size=(3, 4, 2)).astype(np.float32)
    swa_utils.update_bn([(Tensor(each), None) for each in data], model)
    norm = model[0]
    np.testing.assert_allclose(norm.running_mean.numpy(), data.mean((0, 1)), rtol=1e-5)
    np.testing.assert_allclose(norm.running_var.numpy(), data.var(1, ddof=1).mean(0), rtol=1e-5)
    assert norm.momentum == 0.1 and not model.training


def test_rates_go_to_the_last_one():
    optimizer = optim.SGD([Tensor([1.0], requires_grad=True)], lr=1.0)
    schedule = swa_utils.SWALR(optimizer, 0.2, anneal_epochs=4, anneal_strategy="linear")
    rates = []
    for _ in range(6):
        optimizer.step()
        schedule.step()
        rates.append(optimizer.param_groups[0]["lr"])
    np.testing.assert_allclose(rates, [0.8, 0.6, 0.4, 0.2, 0.2, 0.2])


@pytest.mark.peers("torch")
@pytest.mark.parametrize("epochs", [0, 1, 5])
def test_rates_as_in_torch(epochs: int):
    torch = pytest.importorskip("torch")
    found = []
    for lib, x in ((optim, Tensor([1.0], requires_grad=True)), (torch.optim, torch.ones(1))):
        optimizer = lib.SGD([x], lr=1.0)
        before = lib.lr_scheduler.ExponentialLR(optimizer, 0.5)
        schedule = lib.swa_utils.SWALR(optimizer, 0.05, anneal_epochs=epochs)
        rates = []
        for step in range(8):
            optimizer.step()
            (before if epochs and step < 2 else schedule).step()
            rates.append(optimizer.param_groups[0]["lr"])
        found.append(rates)
    np.testing.assert_allclose(*found)
