"""What goes with optimizers: schedules, clipping, averages, accumulation, half precision."""

import math

import numpy as np
import pytest

from tests.unit.nn.compare import drawn
from weft import nn
from weft.engine.work import _PREPARED
from weft.nn import optim
from weft.nn.state import get_state_dict
from weft.support.errors import ArgumentError
from weft.tensor import Tensor


def rates(schedule, steps):
    return [schedule(Tensor(float(step))).item() for step in range(steps)]


def test_schedules():
    close = pytest.approx
    assert rates(optim.constant(0.5), 2) == [0.5, 0.5]
    assert rates(optim.step_decay(1.0, 2, 0.5), 5) == close([1, 1, 0.5, 0.5, 0.25])
    assert rates(optim.multi_step(1.0, [1, 3], 0.5), 5) == close([1, 0.5, 0.5, 0.25, 0.25])
    assert rates(optim.multi_step(1.0, []), 2) == [1, 1]
    assert rates(optim.exponential(1.0, 0.5), 4) == close([1, 0.5, 0.25, 0.125])
    assert rates(optim.linear(1.0, 0.0, 4), 6) == close([1, 0.75, 0.5, 0.25, 0, 0])
    assert rates(optim.cosine(1.0, 4, 0.2), 6) == close(
        [0.2 + 0.4 * (1 + math.cos(math.pi * min(t, 4) / 4)) for t in range(6)], abs=1e-6
    )
    assert rates(optim.warmup_cosine(1.0, 2, 4, 0.1), 6) == close(
        [0, 0.5, 1, 0.55, 0.1, 0.1], abs=1e-6
    )
    cycle = rates(optim.one_cycle(1.0, 10, pct_start=0.5), 12)
    assert cycle.index(max(cycle)) == 4
    assert cycle[0] == close(1 / 25)
    assert cycle[9:] == close([1 / 25e4] * 3, rel=1e-3, abs=1e-6)


def test_a_scheduler_changes_the_rate_of_the_next_step():
    weight = Tensor([0.0])
    optimizer = optim.SGD([weight], lr=9.0)
    scheduler = optim.Scheduler(optimizer, optim.linear(1.0, 0.0, 4))
    for _ in range(3):
        weight.grad = Tensor([-1.0])
        optimizer.step()
        scheduler.step()
    assert weight.tolist() == [1 + 0.75 + 0.5]
    assert scheduler.get_lr().item() == optimizer.lr.item() == 0.25
    scaled = optim.LambdaLR(optimizer, lambda step: 1 / (1 + step))
    scaled.step()
    assert optimizer.lr.item() == 0.125


def test_clipping():
    a, b, without = Tensor([1.0]), Tensor([1.0, 1.0]), Tensor([1.0])
    a.grad, b.grad = Tensor([3.0]), Tensor([0.0, 4.0])
    assert optim.global_norm([a.grad, b.grad], math.inf).item() == 4.0
    assert optim.clip_grad_norm_([a, b, without], 10.0).item() == 5.0
    assert b.grad.tolist() == [0.0, 4.0]
    optim.clip_grad_norm_([a, b], 1.0)
    np.testing.assert_allclose([*a.grad.tolist(), *b.grad.tolist()], [0.6, 0, 0.8], rtol=1e-5)
    optim.clip_grad_value_([a, b, without], 0.7)
    np.testing.assert_allclose([*a.grad.tolist(), *b.grad.tolist()], [0.6, 0, 0.7], rtol=1e-5)


def test_an_average_of_parameters():
    weight, expected = Tensor(drawn(4)), drawn(4).astype(np.float64)
    average = optim.EMA([weight], decay=0.8)
    for step in range(5):
        weight.assign(drawn(4, seed=step))
        average.update()
        expected = 0.8 * expected + 0.2 * drawn(4, seed=step)
    last = weight.tolist()
    with average.applied():
        np.testing.assert_allclose(weight.numpy(), expected, rtol=1e-5, atol=1e-6)
    assert weight.tolist() == last


def test_accumulated_gradients_are_those_of_the_whole_batch():
    x, wanted = drawn(8, 3), drawn(8, 1, seed=4)
    whole, parts = nn.Linear(3, 1), nn.Linear(3, 1)
    nn.state.load_state_dict(parts, get_state_dict(whole))
    one = optim.SGD([whole.weight, whole.bias], lr=0.1)
    ((whole(Tensor(x)) - Tensor(wanted)) ** 2).mean().backward()
    one.step()
    several = optim.Accumulation(optim.SGD([parts.weight, parts.bias], lr=0.1), every=4)
    done = []
    for start in range(0, 8, 2):
        rows = slice(start, start + 2)
        ((parts(Tensor(x[rows])) - Tensor(wanted[rows])) ** 2).mean().backward()
        done.append(several.step())
    assert done == [False, False, False, True]
    np.testing.assert_allclose(parts.weight.numpy(), whole.weight.numpy(), rtol=1e-5)
    assert parts.weight.grad is None


def test_masters_keep_what_halves_lose():
    weight = Tensor([1.0], dtype="bfloat16")
    optimizer = optim.Optimizer([weight], method=optim.master_weights(optim.sgd(lr=1.0)))
    for _ in range(8):
        weight.grad = Tensor([2.0**-10], dtype="bfloat16")
        optimizer.step()
    assert optimizer.state["master"][0].item() == 1 - 8 * 2.0**-10
    assert weight.item() == 1 - 8 * 2.0**-10
    assert weight.dtype.name == "bfloat16"


def test_a_loss_scale_adapts_and_bad_steps_change_nothing():
    weight = Tensor([1.0], dtype="float16")
    method = optim.loss_scaling(optim.adam(lr=0.25), initial_scale=4.0, growth_interval=2)
    optimizer = optim.Optimizer([weight], method=method)
    scales, values = [], []
    for gradient in (4.0, 4.0, math.inf, math.nan, 8.0):
        weight.grad = Tensor([gradient], dtype="float16")
        optimizer.step()
        scales.append(optimizer.state["scale"].item())
        values.append(weight.item())
    assert scales == [4.0, 8.0, 4.0, 2.0, 2.0]
    assert values[1] == values[2] == values[3] != values[4]
    assert optimizer.state["step"].tolist() == [3.0]
    assert math.isfinite(optimizer.state["m"][0].item())


def test_a_model_trains_in_half_precision():
    Tensor.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.LayerNorm(16), nn.Linear(16, 1))
    optim.cast_parameters(model, "float16", skip=lambda name: name.startswith("2."))
    names = {name: each.dtype.name for name, each in get_state_dict(model).items()}
    assert names["0.weight"] == "float16"
    assert names["2.weight"] == "float32"
    optimizer = optim.MixedPrecision(nn.state.get_parameters(model), optim.adam(lr=0.01))
    x = Tensor(drawn(32, 4), dtype="float16")
    wanted = Tensor(drawn(32, 4).sum(1, keepdims=True))
    losses = []
    for _ in range(15):
        optimizer.zero_grad()
        loss = ((model(x).float() - wanted) ** 2).mean()
        optimizer.scaled(loss).backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: optim.warmup_cosine(1.0, 5, 5), "5 of 5 steps are warmup"),
        (lambda: optim.one_cycle(1.0, 3), "too few for both phases"),
        (lambda: optim.EMA([], decay=1.0), "decay is 1.0"),
        (lambda: optim.Accumulation(optim.SGD([Tensor([1.0])]), 0), "every is 0"),
        (lambda: optim.clip_by_norm([], 1.0), "no gradients"),
        (lambda: optim.cast_parameters([], "int32"), "to int32"),
        (lambda: optim.ReduceLROnPlateau(optim.SGD([Tensor([1.0])]), "best"), "mode is 'best'"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()


def test_eager_steps_after_the_first_compile_nothing():
    layers = [nn.Conv2d(1, 4, 3, padding=1), nn.GroupNorm(2, 4), nn.Conv2d(8, 1, 1)]
    optimizer = optim.AdamW([each for layer in layers for each in layer.parameters()])
    x = Tensor(drawn(2, 1, 6, 6)).realize()

    def step() -> float:
        optimizer.zero_grad()
        skip = layers[1](layers[0](x)).silu()
        small = skip.max_pool2d(2).interpolate((6, 6))
        loss = (layers[2](small.cat(skip, dim=1)) - x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    first = step()
    prepared = len(_PREPARED)
    assert step() < first
    assert len(_PREPARED) == prepared
