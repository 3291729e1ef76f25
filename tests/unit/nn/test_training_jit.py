"""A jitted training step does what the step itself does, to the bit."""

import numpy as np
import pytest

from weft import Context, Tensor, jit, nn
from weft.nn import optim

STEPS = 4


class Net:
    """What a step can meet: matrices, running statistics, random numbers."""

    def __init__(self) -> None:
        self.first, self.norm, self.last = nn.Linear(6, 8), nn.BatchNorm(8), nn.Linear(8, 3)

    def __call__(self, x):
        return self.last(self.norm(self.first(x)).relu().dropout(0.25))


def batches(count=STEPS):
    random = np.random.default_rng(5)
    for _ in range(count):
        x = random.standard_normal((4, 6)).astype(np.float32)
        yield Tensor(x), Tensor(random.integers(0, 3, 4).astype(np.int32))


def run(wrap, make_optimizer, make_scheduler=None):
    """Losses, and all that training leaves behind."""
    Tensor.manual_seed(11)
    model = Net()
    optimizer = make_optimizer(nn.state.get_parameters(model))
    scheduler = make_scheduler(optimizer) if make_scheduler else None

    @wrap
    @Tensor.train()
    def step(x, y):
        optimizer.zero_grad()
        loss = model(x).cross_entropy(y)
        loss.backward()
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        return loss

    found = [step(x, y).numpy() for x, y in batches()]
    state = nn.state.get_state_dict(model)
    found += [each.numpy() for each in (*state.values(), optimizer.lr, Tensor.rand(3))]
    return found, step


def require_same(*setup):
    (eager, _), (jitted, step) = run(lambda f: f, *setup), run(jit, *setup)
    assert step.traces == 1
    for got, wanted in zip(jitted, eager, strict=True):
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("name", ["SGD", "Adam", "LAMB"])
def test_optimizers(name):
    require_same(lambda params: getattr(optim, name)(params, lr=0.05))


def test_a_schedule_is_part_of_the_step():
    require_same(
        lambda params: optim.AdamW(params, lr=0.05, weight_decay=0.1),
        lambda optimizer: optim.Scheduler(optimizer, optim.one_cycle(0.1, STEPS)),
    )


def test_running_statistics_are_written():
    Tensor.manual_seed(0)
    norm = nn.BatchNorm(3)

    @jit
    @Tensor.train()
    def step(x):
        return norm(x)

    for n in range(3):
        step(Tensor(np.full((2, 3), float(n), np.float32)))
    assert int(norm.num_batches_tracked.item()) == 3
    wanted = 0.0
    for n in range(3):
        wanted = 0.9 * wanted + 0.1 * n
    np.testing.assert_allclose(norm.running_mean.numpy(), [wanted] * 3, rtol=1e-6)


def test_training_and_evaluation_are_two_traces():
    Tensor.manual_seed(0)

    @jit
    def dropped(x):
        return x.dropout(0.5)

    x = Tensor.ones(64).realize()
    assert (dropped(x).numpy() == 1).all()
    with Tensor.train():
        first, second = dropped(x).numpy(), dropped(x).numpy()
    assert dropped.traces == 2
    assert (first == 0).any()
    assert (first != second).any()


def test_the_rate_changes_between_calls():
    weight = Tensor([1.0])
    optimizer = optim.SGD([weight], lr=0.5)

    @jit
    def step():
        optimizer.zero_grad()
        weight.sum().backward()
        optimizer.step()

    step()
    optimizer.lr = 0.25
    step()
    assert weight.tolist() == [0.25]
    assert step.traces == 1


def test_a_step_is_checked():
    with Context(CHECK="jit"):
        run(jit, lambda params: optim.Adam(params, lr=0.05))


def test_accumulated_gradients():
    def train(wrap):
        weight = Tensor([1.0, -2.0], requires_grad=True)
        optimizer = optim.SGD([weight], lr=0.1, momentum=0.9)

        @wrap
        def step(whole):
            optimizer.zero_grad()
            for piece in whole.chunk(2):
                (weight * piece).square().sum().backward()
            optimizer.step()

        for n in range(3):
            step(Tensor(np.arange(4, dtype=np.float32).reshape(2, 2) + n))
        return weight.tolist()

    assert train(jit) == train(lambda f: f)
