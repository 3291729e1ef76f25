"""Optimizers and schedules against PyTorch and tinygrad, over 20 steps of a small model."""

import shutil

import numpy as np
import pytest

from tests.unit.nn.compare import drawn
from weft.nn import optim
from weft.tensor import Tensor

SHAPES = [(4, 6), (6,), (3, 2, 2)]

TORCH = {
    "SGD": [{}, {"momentum": 0.9}, {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}],
    "Adam": [{}, {"betas": (0.8, 0.9), "weight_decay": 0.1}],
    "AdamW": [{"weight_decay": 0.1}, {"betas": (0.0, 0.99), "eps": 1e-3}],
    "Adagrad": [{}, {"lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5}],
    "RMSprop": [{}, {"momentum": 0.9, "centered": True, "weight_decay": 0.1}],
    "Adafactor": [{}, {"weight_decay": 0.1, "d": 1.5}],
}
CASES = [(name, options) for name, rows in TORCH.items() for options in rows]


def steps_of_both(make_ours, make_theirs, after=lambda mine, other: None):
    """Parameters of Weft and of torch after 20 steps by the gradients of one loss, in float64."""
    import torch

    starts = [drawn(*shape).astype(np.float64) for shape in SHAPES]
    ours = [Tensor(each) for each in starts]
    theirs = [torch.tensor(each, requires_grad=True) for each in starts]
    mine, other = make_ours(ours), make_theirs(theirs)
    for step in range(20):
        for optimizer, params, make in ((mine, ours, Tensor), (other, theirs, torch.tensor)):
            optimizer.zero_grad()
            pulls = [make(drawn(*s, seed=step + 1).astype(np.float64)) for s in SHAPES]
            sum((p * p * q).sum() for p, q in zip(params, pulls, strict=True)).backward()
            optimizer.step()
        after(mine, other)
    return [p.numpy() for p in ours], [q.detach().numpy() for q in theirs]


def require_close(ours, theirs):
    for p, q in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(p, q, rtol=1e-6, atol=1e-6)


@pytest.mark.peers("torch")
@pytest.mark.parametrize(("name", "options"), CASES)
def test_like_torch(name, options):
    import torch

    require_close(
        *steps_of_both(
            lambda params: getattr(optim, name)(params, lr=0.02, **options),
            lambda params: getattr(torch.optim, name)(params, lr=0.02, **options),
        )
    )


@pytest.mark.peers("torch")
def test_masks_and_schedules_like_torch():
    """A mask is what PyTorch's groups of parameters are mostly for."""
    import torch

    schedulers = {}

    def ours(params):
        made = optim.AdamW(params, 0.02, weight_decay=0.1, weight_decay_mask=[True, False, True])
        schedulers["mine"] = optim.CosineAnnealingLR(made, T_max=15)
        return made

    def theirs(params):
        groups = [{"params": params[::2]}, {"params": params[1:2], "weight_decay": 0.0}]
        made = torch.optim.AdamW(groups, 0.02, weight_decay=0.1)
        schedulers["other"] = torch.optim.lr_scheduler.CosineAnnealingLR(made, T_max=15)
        return made

    def after(mine, other):
        for each in schedulers.values():
            each.step()

    require_close(*steps_of_both(ours, theirs, after))


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

    if shutil.which("clang") is None:
        pytest.skip("tinygrad computes on the CPU with clang, which is not here")
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
        assert mine.lr.item() == pytest.approx(other.param_groups[0]["lr"], rel=3e-6, abs=1e-8)
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
