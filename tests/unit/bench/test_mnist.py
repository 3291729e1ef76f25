"""The parts of the race to 98.5 % of MNIST that both sides must agree on."""

import numpy as np
import pytest

from bench import mnist
from weft import Tensor, nn


def test_rates_are_those_of_the_schedule():
    schedule = nn.optim.one_cycle(mnist.LR, 40)
    steps = range(0, 45, 5)
    wanted = [schedule(Tensor(float(step))).item() for step in steps]
    np.testing.assert_allclose([mnist.rate(step, 40) for step in steps], wanted, rtol=1e-5)


def test_a_run_ends_at_the_goal():
    counts = iter([90, 99])
    data = np.zeros((800, 1)), np.zeros(800), np.zeros((100, 1)), np.zeros(100)
    seen = []
    result = mnist.run((lambda x, y: seen.append(len(x)), lambda x, y: next(counts)), data, 3)
    assert (result.accuracy, result.steps) == (0.99, 4)
    assert seen == [mnist.BATCH] * 4


@pytest.mark.peers("torch")
def test_both_sides_learn_the_same():
    numbers = np.random.default_rng(0)
    Tensor.manual_seed(0)
    model = mnist.ConvNet(28)
    weights = {name: t.numpy().copy() for name, t in nn.state.get_state_dict(model).items()}
    sides = mnist.weft_side(model, 20), mnist.torch_side(weights, 20)
    for _ in range(3):
        x = numbers.random((20, 1, 28, 28), np.float32)
        y = numbers.integers(0, 10, 20).astype(np.int32)
        first, second = (train(x, y) for train, _ in sides)
        assert first == pytest.approx(second, rel=1e-4)
