"""Optimizers and schedules against PyTorch and tinygrad, over 20 steps of a small model."""

import numpy as np
import pytest

from tests.unit.nn.compare import drawn
from weft.nn import optim
from weft.tensor import Tensor

SHAPES = [(4, 6), (6,), (3, 2, 2)]

TORCH = {
    "SGD": [{}, {"momentum": 0.9}, {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}],
    "Adam": [{}],
    "AdamW": [{"weight_decay": 0.1}],
    "Adagrad": [{}, {"lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5}],
    "RMSprop": [{}, {"momentum": 0.9, "centered": True, "weight_decay": 0.1}],
    "Adafactor": [{}, {"weight_decay": 0.1, "d": 1.5}],
}
CASES = [(name, options) for name, rows in TORCH.items() for options in rows]


@pytest.mark.peers("torch")
@pytest.mark.parametrize(("name", "options"), CASES)
def test_like_torch(name, options):
    import torch

    ours = [Tensor(drawn(*shape)) for shape in SHAPES]
    theirs = [torch.tensor(drawn(*shape), requires_grad=True) for shape in SHAPES]
    mine = getattr(optim, name)(ours, lr=0.02, **options)
    other = getattr(torch.optim, name)(theirs, lr=0.02, **options)
    for step in range(20):
        for optimizer, params, make in ((mine, ours, Tensor), (other, theirs, torch.tensor)):
            optimizer.zero_grad()
            pulls = [make(drawn(*shape, seed=step + 1)) for shape in SHAPES]
            sum((p * p * q).sum() for p, q in zip(params, pulls, strict=True)).backward()
            optimizer.step()
    for p, q in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(p.numpy(), q.detach().numpy(), rtol=2e-4, atol=2e-5)


TINYGRAD = [
    ("LARS", {"weight_decay": 0.1}),
    ("LARS", {"classic": False, "nesterov": True}),
    ("SGD", {"momentum": 0.9, "classic": True}),
    ("LAMB", {"weight_decay": 0.1}),
    ("Muon", {}),
]


@pytest.mark.peers("tinygrad")
@pytest.mark.parametrize(("name", "options"), TINYGRAD)
def test_like_tinygrad(name, options):
    import tinygrad

    shapes = SHAPES[::2]  # Muon takes no vectors
    ours = [Tensor(drawn(*shape)) for shape in shapes]
    theirs = [tinygrad.Tensor(drawn(*shape)) for shape in shapes]
    mine = getattr(optim, name)(ours, lr=0.02, **options)
    other = getattr(tinygrad.nn.optim, name)(theirs, lr=0.02, **options)
    with tinygrad.Context(TRAINING=1):
        for step in range(5):
            for optimizer, params, make in (
                (mine, ours, Tensor),
                (other, theirs, tinygrad.Tensor),
            ):
                for p, shape in zip(params, shapes, strict=True):
                    p.grad = make(drawn(*shape, seed=step + 1))
                optimizer.step()
    for p, q in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(p.numpy(), q.numpy(), rtol=1e-3, atol=1e-4)


SCHEDULES = [
    ("StepLR", {"step_size": 3, "gamma": 0.5}),
    ("MultiStepLR", {"milestones": [2, 5], "gamma": 0.5}),
    ("ExponentialLR", {"gamma": 0.9}),
    ("LinearLR", {}),
    ("ConstantLR", {}),
    ("CosineAnnealingLR", {"T_max": 12, "eta_min": 0.01}),
    ("OneCycleLR", {"max_lr": 0.5, "total_steps": 13}),
]


@pytest.mark.peers("torch")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "options"), SCHEDULES)
def test_schedule_like_torch(name, options):
    import torch

    mine = optim.SGD([Tensor([1.0])], lr=0.1)
    other = torch.optim.SGD([torch.tensor([1.0], requires_grad=True)], lr=0.1)
    ours = getattr(optim, name)(mine, **options)
    theirs = getattr(torch.optim.lr_scheduler, name)(other, **options)
    for _ in range(12):
        assert mine.lr.item() == pytest.approx(other.param_groups[0]["lr"], rel=1e-4, abs=1e-7)
        ours.step(), theirs.step()


@pytest.mark.peers("torch")
def test_plateau_like_torch():
    import torch

    mine = optim.SGD([Tensor([1.0])], lr=0.1)
    other = torch.optim.SGD([torch.tensor([1.0], requires_grad=True)], lr=0.1)
    options = {"patience": 2, "factor": 0.5, "cooldown": 1, "min_lr": 0.01}
    ours = optim.ReduceLROnPlateau(mine, **options)
    theirs = torch.optim.lr_scheduler.ReduceLROnPlateau(other, **options)
    losses = [5, 4, 4, 4, 4, 4, 4, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3]
    for loss in losses:
        ours.step(float(loss)), theirs.step(float(loss))
        assert mine.lr.item() == pytest.approx(other.param_groups[0]["lr"])


@pytest.mark.peers("torch")
@pytest.mark.parametrize("norm_type", [2.0, 1.0, 3.0, float("inf")])
def test_clipping_like_torch(norm_type):
    import torch

    ours, theirs = [], []
    for shape in SHAPES:
        p, q = Tensor(drawn(*shape)), torch.tensor(drawn(*shape), requires_grad=True)
        p.grad, q.grad = Tensor(drawn(*shape, seed=1)), torch.tensor(drawn(*shape, seed=1))
        ours.append(p), theirs.append(q)
    norm = optim.clip_grad_norm_(ours, 1.5, norm_type)
    expected = torch.nn.utils.clip_grad_norm_(theirs, 1.5, norm_type)
    assert norm.item() == pytest.approx(expected.item(), rel=1e-4)
    for p, q in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=1e-4, atol=1e-6)
