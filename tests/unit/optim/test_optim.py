"""`weft.optim` beside torch.optim: steps, groups, state dicts and schedules."""

import pickle
from typing import Any

import numpy as np
import pytest

from weft import Tensor, jit, optim
from weft.optim import lr_scheduler
from weft.support.errors import ArgumentError
from weft.tensor.storage import waiting_storages

SOURCE = np.random.default_rng(0)
WEIGHT = SOURCE.standard_normal((4, 3)).astype(np.float32)
INPUT = SOURCE.standard_normal((8, 4)).astype(np.float32)

METHODS: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.1, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    ("SGD", {"lr": 0.1, "maximize": True}),
    ("Adam", {"lr": 0.01, "amsgrad": True, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.01, "betas": (0.8, 0.9)}),
    ("AdamW", {"lr": 0.01}),
    ("Adadelta", {}),
    ("Adagrad", {"lr_decay": 0.1}),
    ("Adamax", {}),
    ("NAdam", {}),
    ("RAdam", {"lr": 0.1, "betas": (0.5, 0.9)}),
    ("RMSprop", {"momentum": 0.5, "centered": True}),
    ("Rprop", {}),
    ("ASGD", {}),
    ("LBFGS", {"max_iter": 5, "line_search_fn": "strong_wolfe"}),
]
SCHEDULES: list[tuple[str, dict[str, Any]]] = [
    ("StepLR", {"step_size": 2}),
    ("MultiStepLR", {"milestones": [2, 4]}),
    ("ConstantLR", {}),
    ("LinearLR", {}),
    ("ExponentialLR", {"gamma": 0.9}),
    ("PolynomialLR", {"power": 2.0}),
    ("CosineAnnealingLR", {"T_max": 4, "eta_min": 0.01}),
    ("CosineAnnealingWarmRestarts", {"T_0": 2, "T_mult": 2}),
    ("CyclicLR", {"base_lr": 0.1, "max_lr": 1.0, "step_size_up": 3, "mode": "triangular2",
                  "cycle_momentum": False}),
    ("OneCycleLR", {"max_lr": 1.0, "total_steps": 12}),
    ("OneCycleLR", {"max_lr": 1.0, "total_steps": 12, "three_phase": True,
                    "anneal_strategy": "linear"}),
    ("LambdaLR", {"lr_lambda": lambda step: 0.9**step}),
    ("MultiplicativeLR", {"lr_lambda": lambda step: 0.9}),
]  # fmt: skip


@pytest.mark.peers("torch")
@pytest.mark.parametrize(("name", "options"), METHODS)
def test_steps_are_those_of_torch(name: str, options: dict[str, Any]):
    import torch

    theirs, ours = torch.tensor(WEIGHT, requires_grad=True), Tensor(WEIGHT, requires_grad=True)
    their_method = getattr(torch.optim, name)([theirs], **options)
    our_method = getattr(optim, name)([ours], **options)

    def their_loss() -> Any:
        their_method.zero_grad()
        loss = ((torch.tensor(INPUT) @ theirs).tanh() ** 2).sum()
        loss.backward()
        return loss

    def our_loss() -> Any:
        our_method.zero_grad()
        loss = ((Tensor(INPUT) @ ours).tanh() ** 2).sum()
        loss.backward()
        return loss

    for _ in range(4):
        their_method.step(their_loss)
        our_method.step(our_loss)
    np.testing.assert_allclose(ours.numpy(), theirs.detach().numpy(), rtol=1e-4, atol=2e-6)


def _rates(module: Any, optimizer: Any, make: Any, count: int = 11) -> list[float]:
    schedule, found = make(module, optimizer), []
    for _ in range(count):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return found


@pytest.mark.peers("torch")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "options"), SCHEDULES)
def test_rates_are_those_of_torch(name: str, options: dict[str, Any]):
    import torch

    def make(module: Any, optimizer: Any) -> Any:
        return getattr(module, name)(optimizer, **options)

    theirs = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.5)
    ours = optim.SGD([Tensor([0.0], requires_grad=True)], lr=0.5)
    expected = _rates(torch.optim.lr_scheduler, theirs, make)
    np.testing.assert_allclose(_rates(lr_scheduler, ours, make), expected)


@pytest.mark.peers("torch")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["SequentialLR", "ChainedScheduler"])
def test_schedules_of_schedules(kind: str):
    import torch

    def make(module: Any, optimizer: Any) -> Any:
        parts = [
            module.ConstantLR(optimizer, 0.1, total_iters=2),
            module.ExponentialLR(optimizer, 0.9),
        ]
        if kind == "ChainedScheduler":
            return module.ChainedScheduler(parts)
        return module.SequentialLR(optimizer, parts, [3])

    theirs = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.5)
    ours = optim.SGD([Tensor([0.0], requires_grad=True)], lr=0.5)
    expected = _rates(torch.optim.lr_scheduler, theirs, make, 8)
    np.testing.assert_allclose(_rates(lr_scheduler, ours, make, 8), expected)


def _two_groups(a: Tensor, b: Tensor) -> optim.Adam:
    return optim.Adam([{"params": [a]}, {"params": [b], "lr": 1.0}], lr=0.1)


def test_groups_have_rates_of_their_own():
    a, b = Tensor([1.0], requires_grad=True), Tensor([1.0], requires_grad=True)
    method = _two_groups(a, b)
    (a + b).sum().backward()
    method.step()
    assert a.item() == pytest.approx(0.9) and b.item() == pytest.approx(0.0, abs=1e-6)
    method.param_groups[0]["lr"] = 0.0
    before = a.item()
    method.step()
    assert a.item() == before
    with pytest.raises(ArgumentError, match="in two groups"):
        method.add_param_group({"params": [a]})


def test_a_step_without_gradients_changes_nothing():
    a = Tensor([1.0], requires_grad=True)
    optim.SGD([a], lr=0.1).step()
    assert a.tolist() == [1.0]


@pytest.mark.parametrize("kind", ["state dict", "pickle"])
def test_state_goes_on(kind: str):
    a, b = Tensor([1.0], requires_grad=True), Tensor([1.0], requires_grad=True)
    method = _two_groups(a, b)
    (a * 2 + b).sum().backward()
    method.step()
    if kind == "pickle":
        method = pickle.loads(pickle.dumps(method))
        first = method.param_groups[0]["params"][0]
        first.grad = Tensor([1.0])
        method.step()
        assert first.item() < 0.9
        return
    other = _two_groups(a, b)
    other.load_state_dict(method.state_dict())
    assert other.state[a]["step"].item() == 1.0
    assert other.state[a]["exp_avg"].item() == pytest.approx(0.2)


def test_plateau():
    method = optim.SGD([Tensor([0.0], requires_grad=True)], lr=1.0)
    schedule = lr_scheduler.ReduceLROnPlateau(method, patience=1, factor=0.5)
    for value in (1.0, 1.0, 1.0, 1.0):
        schedule.step(value)
    assert method.param_groups[0]["lr"] == 0.5


@pytest.mark.parametrize("kind", [optim.Adam, optim.SGD])
def test_a_step_that_is_jitted_from_the_first_call_keeps_its_state(kind):
    """The state is there before the trace, so that a call goes on where the last one ended."""
    options = {"momentum": 0.9} if kind is optim.SGD else {}

    def trained(wrap):
        x = Tensor([3.0, -2.0], requires_grad=True)
        optimizer = kind([x], lr=0.1, **options)

        def step():
            optimizer.zero_grad()
            (x * x).sum().backward()
            optimizer.step()

        run = wrap(step)
        for _ in range(4):
            run()
        return x.tolist()

    assert trained(jit) == pytest.approx(trained(lambda step: step), rel=1e-6)
    assert kind([Tensor([1.0])], lr=0.1, **options).state == {}
    assert not waiting_storages()  # an optimizer that is made leaves no write behind


def test_a_rate_that_changes_with_another_option_is_taken():
    x = Tensor([1.0], requires_grad=True)
    optimizer = optim.SGD([x], lr=0.1, momentum=0.5)
    for rate, momentum in ((0.1, 0.5), (0.2, 0.0)):
        optimizer.param_groups[0].update(lr=rate, momentum=momentum)
        optimizer.zero_grad()
        x.sum().backward()
        optimizer.step()
    assert x.item() == pytest.approx(1.0 - 0.1 - 0.2)
