"""Optimizers against formulas in NumPy: methods, counts of kernels, state, errors.

PyTorch and tinygrad are in test_optim_peers.py.
"""

import math

import numpy as np
import pytest

from tests.unit.nn.compare import drawn
from weft import nn
from weft.engine.compile import CompileStatistics
from weft.engine.counters import GlobalCounters
from weft.io import load_training_state, save_training_state
from weft.nn import optim
from weft.nn.optim.method import Common, like_parameter, per_parameter
from weft.nn.state import get_parameters
from weft.support.errors import ArgumentError, ArgumentTypeError
from weft.tensor import Tensor


def run(optimizer_of, steps=5, shape=(3, 4)):
    """The parameter after some steps along given gradients."""
    p = Tensor(drawn(*shape))
    optimizer = optimizer_of([p])
    for step in range(steps):
        p.grad = Tensor(drawn(*shape, seed=step + 1))
        optimizer.step()
    return p.numpy()


def followed(rule, steps=5, shape=(3, 4)):
    """The same by a rule in NumPy: (parameter, gradient, memory, number of the step)."""
    p, memory = drawn(*shape).astype(np.float64), {}
    for step in range(steps):
        p = rule(p, drawn(*shape, seed=step + 1).astype(np.float64), memory, step + 1)
    return p


def momentum(p, g, memory, step):
    g = g + 0.1 * p
    b = memory["b"] = 0.9 * memory.get("b", 0) + g
    return p - 0.05 * (g + 0.9 * b)


def classic(p, g, memory, step):
    b = memory["b"] = 0.9 * memory.get("b", 0) + 0.05 * g
    return p - b


def adamw(p, g, memory, step):
    m = memory["m"] = 0.9 * memory.get("m", 0) + 0.1 * g
    v = memory["v"] = 0.999 * memory.get("v", 0) + 0.001 * g * g
    m, v = m / (1 - 0.9**step), v / (1 - 0.999**step)
    return p - 0.05 * (m / (np.sqrt(v) + 1e-8) + 0.1 * p)


def lamb(p, g, memory, step):
    m = memory["m"] = 0.9 * memory.get("m", 0) + 0.1 * g
    v = memory["v"] = 0.999 * memory.get("v", 0) + 0.001 * g * g
    up = m / (1 - 0.9**step) / (np.sqrt(v / (1 - 0.999**step)) + 1e-6) + 0.1 * p
    return p - 0.05 * np.linalg.norm(p) / np.linalg.norm(up) * up


def lars(p, g, memory, step):
    ratio = 0.001 * np.linalg.norm(p) / (np.linalg.norm(g) + 0.1 * np.linalg.norm(p))
    b = memory["b"] = 0.9 * memory.get("b", 0) + 0.05 * ratio * (g + 0.1 * p)
    return p - b


def muon(p, g, memory, step):
    b = memory["b"] = 0.95 * memory.get("b", 0) + g
    x = g + 0.95 * b
    x = x / (np.linalg.norm(x) + 1e-7)
    for _ in range(5):
        square = x @ x.T
        x = 3.4445 * x + (-4.775 * square + 2.0315 * square @ square) @ x
    return p - 0.05 * x - 0.1 * 0.05 * p


def adagrad(p, g, memory, step):
    total = memory["s"] = memory.get("s", 0.5) + g * g
    return p - 0.05 / (1 + (step - 1) * 0.1) * g / (np.sqrt(total) + 1e-10)


def rmsprop(p, g, memory, step):
    v = memory["v"] = 0.99 * memory.get("v", 0) + 0.01 * g * g
    mean = memory["a"] = 0.99 * memory.get("a", 0) + 0.01 * g
    b = memory["b"] = 0.9 * memory.get("b", 0) + g / (np.sqrt(v - mean * mean) + 1e-8)
    return p - 0.05 * b


def lion(p, g, memory, step):
    m = memory.get("m", 0)
    memory["m"] = 0.99 * m + 0.01 * g
    return p - 0.05 * (np.sign(0.9 * m + 0.1 * g) + 0.1 * p)


def adafactor(p, g, memory, step):
    by = step**-0.8
    row = memory["r"] = memory.get("r", 0) * (1 - by) + by * (g * g).mean(1, keepdims=True)
    column = memory["c"] = memory.get("c", 0) * (1 - by) + by * (g * g).mean(0, keepdims=True)
    up = g / np.sqrt(row * column / row.mean())
    rate = min(0.05, 1 / math.sqrt(step)) * max(1e-3, np.sqrt((p * p).mean()))
    return p - rate / max(1, np.sqrt((up * up).mean())) * up


RULES = {
    "plain": (lambda p: optim.SGD(p, 0.05), lambda p, g, memory, step: p - 0.05 * g),
    "momentum": (lambda p: optim.SGD(p, 0.05, 0.9, 0.1, nesterov=True), momentum),
    "classic": (lambda p: optim.SGD(p, 0.05, 0.9, classic=True), classic),
    "adamw": (lambda p: optim.AdamW(p, 0.05, weight_decay=0.1), adamw),
    "lamb": (lambda p: optim.LAMB(p, 0.05, weight_decay=0.1), lamb),
    "lars": (lambda p: optim.LARS(p, 0.05, weight_decay=0.1), lars),
    "muon": (lambda p: optim.Muon(p, 0.05), muon),
    "adagrad": (
        lambda p: optim.Adagrad(p, 0.05, lr_decay=0.1, initial_accumulator_value=0.5),
        adagrad,
    ),
    "rmsprop": (lambda p: optim.RMSprop(p, 0.05, momentum=0.9, centered=True), rmsprop),
    "lion": (lambda p: optim.Lion(p, 0.05, weight_decay=0.1), lion),
    "adafactor": (lambda p: optim.Adafactor(p, 0.05), adafactor),
}


@pytest.mark.parametrize("name", RULES)
def test_rule(name):
    ours, theirs = RULES[name]
    np.testing.assert_allclose(run(ours), followed(theirs), rtol=2e-4, atol=2e-5)


def test_muon_makes_matrices_nearly_orthogonal():
    from weft.nn.optim.descent import orthogonal

    made = orthogonal(Tensor(drawn(12, 5)), 8, (2.0, -1.5, 0.5)).numpy()
    np.testing.assert_allclose(made.T @ made, np.eye(5), atol=0.02)


@pytest.mark.parametrize(
    "name", [n for n in RULES if n not in ("lamb", "lars", "muon", "adafactor")]
)
def test_a_step_over_one_parameter_is_one_kernel(name):
    p = Tensor(drawn(40, 50))
    optimizer = RULES[name][0]([p])
    for _ in range(2):
        p.grad = Tensor(drawn(40, 50, seed=1)).realize()
        GlobalCounters.reset()
        optimizer.step()
        counter = name == "adagrad"  # it divides by the number of the step
        assert GlobalCounters.kernel_count <= 1 + counter


class Perceptron:
    def __init__(self) -> None:
        self.first, self.second = nn.Linear(20, 30), nn.Linear(30, 5)

    def __call__(self, x: Tensor) -> Tensor:
        return self.second(self.first(x).relu())


def test_the_ordinary_loop_copies_nothing_and_is_one_program():
    """Each step runs the same kernels, moves the same bytes and reads its loss for nothing."""
    model = Perceptron()
    optimizer = optim.Adam(get_parameters(model))
    x, wanted = Tensor(drawn(16, 20)).realize(), Tensor(np.arange(16) % 5).realize()
    counts, losses = [], []
    for _ in range(4):
        GlobalCounters.reset()
        optimizer.zero_grad()
        loss = model(x).cross_entropy(wanted)
        loss.backward()
        optimizer.step()
        ran = GlobalCounters.kernel_count, GlobalCounters.global_mem
        losses.append(loss.item())
        assert (GlobalCounters.kernel_count, GlobalCounters.global_mem) == ran
        assert all(p.grad._storage.is_realized for p in optimizer.params)
        counts.append(ran)
    assert len(set(counts)) == 1
    assert losses == sorted(losses, reverse=True)
    assert counts[0] == _least(Perceptron(), x, wanted)


def _least(model, x, wanted):
    """Kernels and bytes of a step whose gradients nobody can read, and those of writing them."""
    optimizer = optim.Adam(get_parameters(model))
    params, state = optimizer.params, optimizer.state
    GlobalCounters.reset()
    loss = model(x).cross_entropy(wanted)
    new, after = optimizer.method.update(loss.gradient(*params), state, params)
    for p in params:
        p.assign(new.pop(0))
    for name in ("m", "v"):
        for slot in state[name]:
            slot.assign(after[name].pop(0))
    state["step"].assign(after.pop("step"))
    loss.realize(*params, state["step"], *state["m"], *state["v"])
    return GlobalCounters.kernel_count, GlobalCounters.global_mem + sum(p.nbytes() for p in params)


def test_gradients_stay_readable_after_the_step():
    weight = Tensor([1.0, 2.0])
    optimizer = optim.SGD([weight], lr=0.1)
    (weight**2).sum().backward()
    optimizer.step()
    assert weight.grad.tolist() == [2.0, 4.0]
    optimizer.zero_grad()
    assert weight.grad is None


def test_the_learning_rate_is_a_tensor_that_can_be_set():
    weight = Tensor([1.0])
    optimizer = optim.SGD([weight], lr=0.5)
    GlobalCounters.reset()
    for lr in (0.5, 0.25):
        optimizer.lr = lr
        weight.grad = Tensor([1.0])
        optimizer.step()
    assert weight.tolist() == [0.25]
    assert isinstance(optimizer.lr, Tensor)


def test_a_parameter_without_gradient_stays_with_its_state():
    a, b = Tensor([1.0]), Tensor([1.0])
    both = optim.Adam([a, b], lr=0.1)
    for step in range(3):
        a.grad = Tensor([1.0])
        b.grad = Tensor([1.0]) if step == 2 else None
        both.step()
    assert both.state["step"].tolist() == [3.0, 1.0]
    alone = Tensor([1.0])
    optimizer = optim.Adam([alone], lr=0.1)
    alone.grad = Tensor([1.0])
    optimizer.step()
    assert b.tolist() == alone.tolist()


def test_masks_say_which_parameters_decay():
    for mask in ([True, False], lambda p: p.ndim > 1):
        matrix, bias = Tensor([[1.0]]), Tensor([1.0])
        optimizer = optim.SGD([matrix, bias], 1.0, weight_decay=0.5, weight_decay_mask=mask)
        matrix.grad, bias.grad = Tensor([[0.0]]), Tensor([0.0])
        optimizer.step()
        assert (matrix.item(), bias.item()) == (0.5, 1.0)


def test_state_of_halves_is_float32():
    weight = Tensor([1.0, 2.0], dtype="float16")
    optimizer = optim.Adam([weight])
    assert {each.dtype.name for each in optimizer.state["m"]} == {"float32"}
    (weight * weight).sum().backward()
    optimizer.step()
    assert weight.dtype.name == "float16"


def test_running_statistics_are_no_parameters():
    layer = nn.BatchNorm(3)
    optimizer = optim.SGD(get_parameters(layer), lr=0.1)
    assert len(optimizer.params) == 2
    assert len(optimizer.buffers) == 3


def test_methods_are_pure():
    method, p = optim.adam(lr=0.1), Tensor([1.0])
    state = method.init([p])
    (new,), after = method.update([Tensor([1.0])], state, [p])
    assert p.tolist() == [1.0]
    assert state["m"][0].tolist() == [0.0]
    assert new.item() == pytest.approx(0.9)
    assert after["m"][0].item() == pytest.approx(0.1)


def test_groups_step_together():
    a, b = Tensor([[1.0, 2.0], [3.0, 4.0]]), Tensor([1.0])
    group = optim.OptimizerGroup(optim.Muon([a], lr=0.1), optim.SGD([b], lr=0.1))
    (a.sum() * b).sum().backward()
    group.step()
    assert b.item() == pytest.approx(0, abs=1e-6)
    assert group[0].params == [a] or group[0].params[0] is a
    group.zero_grad()
    assert a.grad is None
    assert b.grad is None


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: optim.SGD([], 0.1), ArgumentError, "no parameter requires a gradient"),
        (lambda: optim.SGD([Tensor([1])]), ArgumentError, "no parameter requires a gradient"),
        (lambda: optim.SGD([nn.Linear(1, 1)]), ArgumentTypeError, "parameter 0 is a Linear"),
        (lambda: optim.SGD([Tensor([1.0])], -1), ArgumentError, "lr is -1"),
        (lambda: optim.SGD([Tensor([1.0])], float("nan")), ArgumentError, "lr is nan"),
        (lambda: optim.Adam([Tensor([1.0])], b1=1.0), ArgumentError, "b1 is 1.0"),
        (lambda: optim.SGD([Tensor([1.0])]).step(), ArgumentError, "no parameter has a gradient"),
        (lambda: optim.OptimizerGroup(), ArgumentError, "no optimizers"),
        (lambda: optim.SGD([{"params": []}]), ArgumentTypeError, "join them by OptimizerGroup"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_more_errors():
    p = Tensor([1.0])
    with pytest.raises(ArgumentError, match="belongs to two optimizers"):
        optim.OptimizerGroup(optim.SGD([p]), optim.SGD([p]))
    p.grad = Tensor([1.0])
    with pytest.raises(ArgumentError, match="parameters have two axes or more"):
        optim.Muon([p]).step()
    with pytest.raises(ArgumentError, match="a weight decay mask of 2 for 1 parameters"):
        optim.SGD([p], weight_decay_mask=[True, False]).step()


def test_a_closure_is_called_and_its_loss_returned():
    p = Tensor([3.0])
    optimizer = optim.SGD([p], lr=0.5)

    def closure():
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    assert [optimizer.step(closure).item() for _ in range(2)] == [9.0, 0.0]
    p.grad = Tensor([2.0])
    assert optimizer.step() is None
    assert p.tolist() == [-1.0]


def test_gradients_can_become_zeros():
    p, q = Tensor([3.0]), Tensor([1.0])
    optimizer = optim.SGD([p, q], lr=0.5)
    (p * p).sum().backward()
    optimizer.zero_grad(set_to_none=False)
    assert p.grad.tolist() == [0.0]
    assert q.grad is None
    optimizer.zero_grad()
    assert p.grad is None


@pytest.mark.parametrize("name", sorted(RULES))
def test_a_run_resumes_to_the_bit(name, tmp_path):
    """Six steps are three steps, a file, and three more steps of other objects."""

    def made():
        p = Tensor(drawn(3, 4))
        optimizer = RULES[name][0]([p])
        return p, optimizer, optim.Scheduler(optimizer, optim.cosine(0.05, 10))

    def run_steps(parts, numbers):
        p, optimizer, scheduler = parts
        for number in numbers:
            p.grad = Tensor(drawn(3, 4, seed=number))
            optimizer.step()
            scheduler.step()

    def nest(parts):
        p, optimizer, scheduler = parts
        return {"p": p, "optimizer": optimizer.state, "scheduler": scheduler.count}

    whole, first, second = made(), made(), made()
    run_steps(whole, range(6))
    run_steps(first, range(3))
    save_training_state(tmp_path / "state", nest(first))
    load_training_state(tmp_path / "state", into=nest(second))
    run_steps(second, range(3, 6))
    assert whole[0].numpy().tobytes() == second[0].numpy().tobytes()


def test_equal_parameters_share_their_kernels():
    """The kernels of a step do not know which parameter they update."""
    weights = [Tensor.ones(6, 5).realize() for _ in range(8)]
    optimizer = optim.AdamW(weights, lr=0.1)
    for weight in weights:
        weight.grad = Tensor.full((6, 5), 0.5).realize()
    before = CompileStatistics.generated + CompileStatistics.from_disk
    optimizer.step()
    made = CompileStatistics.generated + CompileStatistics.from_disk - before
    assert made < 4  # of the counts, and of any parameter; not one for each of the eight
    assert {float(x) for weight in weights for x in weight.numpy().flat} == {
        float(weights[0].numpy()[0, 0])
    }


def _counting(rule):
    """A method by a rule, and a list with the shape of each parameter that the rule ran for."""
    seen = []

    def noted(p, g, slots, now):
        seen.append(p.shape)
        return rule(p, g, slots, now)

    return per_parameter(noted, like_parameter("m"), Common(0.5, 0.0, None, None)), seen


def _stepped(method, params):
    grads = [Tensor.full(p.shape, float(n + 1)) for n, p in enumerate(params)]
    new, state = method.update(grads, method.init(params), params)
    return [p.tolist() for p in new], [m.tolist() for m in state["m"]]


def test_a_rule_runs_once_for_parameters_of_one_kind():
    method, seen = _counting(lambda p, g, s, now: (p - now.lr * g, {"m": s["m"] + 2 * g}))
    params = [Tensor.ones(*shape).contiguous() for shape in ((2,), (3,), (2,), (2,))]
    new, kept = _stepped(method, params)
    assert seen == [(2,), (3,)]
    assert new == [[0.5, 0.5], [0.0, 0.0, 0.0], [-0.5, -0.5], [-1.0, -1.0]]
    assert kept == [[2.0, 2.0], [4.0, 4.0, 4.0], [6.0, 6.0], [8.0, 8.0]]
    assert _stepped(method, params) == (new, kept) and len(seen) == 2


def test_a_rule_that_reads_other_memory_runs_each_time():
    factor = Tensor([2.0]).realize()
    method, seen = _counting(lambda p, g, s, now: (p - factor * g, {"m": s["m"]}))
    params = [Tensor.ones(2).contiguous() for _ in range(2)]
    assert _stepped(method, params)[0] == [[-1.0, -1.0], [-3.0, -3.0]]
    factor.assign([3.0])
    assert _stepped(method, params)[0] == [[-2.0, -2.0], [-5.0, -5.0]]
    assert len(seen) >= 4
