"""Gradients of values that were read before `backward`, and training steps that copy nothing."""

import gc

import numpy as np
import pytest

from weft.engine.counters import GlobalCounters
from weft.ir.uop import live_nodes
from weft.support.errors import ArgumentError, NotSupported
from weft.tensor import Tensor
from weft.tensor.autodiff import history
from weft.tensor.autodiff.history import from_floats

A = np.random.default_rng(0).standard_normal((6, 5)).astype(np.float32)
X = np.random.default_rng(1).standard_normal((4, 6)).astype(np.float32)


def weights(*shapes):
    made = [
        Tensor(np.random.default_rng(n).standard_normal(s).astype(np.float32), requires_grad=True)
        for n, s in enumerate(shapes)
    ]
    return [each.realize() for each in made]


@pytest.mark.parametrize("name", ["CPU", "PYTHON"])
def test_reading_a_loss_does_not_stop_its_gradient(name):
    w = Tensor(A, requires_grad=True, device=name)
    loss = ((Tensor(X, device=name) @ w).relu() ** 2).mean()
    expected = (lambda h: 2 * X.T @ h / h.size)(np.maximum(X @ A, 0))
    loss.item()
    loss.backward()
    np.testing.assert_allclose(w.grad.numpy(), expected, rtol=1e-4, atol=1e-5)


def test_reading_what_is_in_between():
    w = Tensor([2.0, 3.0], requires_grad=True)
    square = w * w
    assert square.tolist() == [4.0, 9.0]
    cube = square * w
    assert cube.tolist() == [8.0, 27.0]
    (cube.sum() * 2).backward()
    assert w.grad.tolist() == [24.0, 54.0]
    (middle,) = cube.sum().gradient(square)
    assert middle.tolist() == [2.0, 3.0]


def test_realized_values_are_read_and_not_computed_again():
    (w,) = weights((64, 64))
    hidden = (w @ w).realize()
    out = (hidden * hidden).sum()
    GlobalCounters.reset()
    (found,) = out.gradient(hidden)
    found.realize()
    assert GlobalCounters.kernel_count == 1
    assert GlobalCounters.global_ops < 64 * 64 * 8


def test_gradients_of_gradients_that_were_read():
    w = Tensor([3.0], requires_grad=True)
    (first,) = (w * w * w).sum().gradient(w)
    assert first.tolist() == [27.0]
    assert first.sum().gradient(w)[0].tolist() == [18.0]


def test_random_numbers_are_the_same_in_both_directions():
    Tensor.manual_seed(3)
    w = Tensor.ones(1000, requires_grad=True)
    state_moves = Tensor.rand(3)
    mask = (Tensor.rand(1000) < 0.5).where(w, 0.0)
    state_moves.realize()
    dropped = mask * 1.0
    kept = dropped.numpy() > 0
    assert 400 < kept.sum() < 600
    dropped.sum().backward()
    assert (w.grad.numpy() > 0).tolist() == kept.tolist()


def test_detached_values_keep_no_graph():
    w = Tensor([2.0], requires_grad=True)
    constant = (w * w).detach()
    assert constant.tolist() == [4.0]
    (constant * w).sum().backward()
    assert w.grad.tolist() == [4.0]


def test_what_was_overwritten_cannot_be_differentiated():
    w = Tensor(np.ones(1000, np.float32), requires_grad=True).realize()
    loss = (w * w).sum()
    loss.item()
    w.assign(w * 2).realize()
    with pytest.raises(NotSupported, match="inputs have been overwritten"):
        loss.backward()
    with pytest.raises(NotSupported, match="inputs have been overwritten"):
        (loss * w.sum()).backward()
    (loss.detach() * w.sum()).backward()
    assert w.grad.tolist() == [1000.0] * 1000


def test_values_of_leaves_that_want_no_gradient_are_plain():
    x = Tensor([2.0])
    loss = (x * x).sum()
    loss.item()
    with pytest.raises(ArgumentError, match="is not known"):
        loss.backward()


def test_leaves_that_ask_come_first():
    x, w = Tensor([2.0]), Tensor([3.0], requires_grad=True)
    (x * w).sum().backward()
    assert w.grad.tolist() == [2.0]
    assert x.grad is None


@pytest.mark.parametrize("reads_first", [False, True])
def test_a_step_of_training_copies_nothing(reads_first):
    """Forward 2, loss 1, gradient of the hidden layer 1, and one for each weight with its update.

    A loss that is read first has the forward kernels run twice.
    """
    parameters = weights((64, 32), (32, 8))
    x, y = Tensor.rand(16, 64).realize(), Tensor.rand(16, 8).realize()

    def step():
        loss = (((x @ parameters[0]).relu() @ parameters[1] - y) ** 2).mean()
        if reads_first:
            loss.item()
        for w in parameters:
            w.grad = None
        loss.backward()
        for w in parameters:
            w.assign(w - 0.01 * w.grad)
        parameters[0].realize(*parameters[1:])
        return loss

    before = [w.numpy() for w in parameters]
    GlobalCounters.reset()
    loss = step()
    assert GlobalCounters.kernel_count == (7 if reads_first else 6)
    GlobalCounters.reset()
    moved = [(old - w.numpy()) / 0.01 for old, w in zip(before, parameters, strict=True)]
    for gradient, w in zip(moved, parameters, strict=True):
        np.testing.assert_allclose(w.grad.numpy(), gradient, rtol=1e-2, atol=1e-2)
    assert loss.item() > 0
    assert GlobalCounters.kernel_count == 0


def test_large_pending_values_are_not_computed_for_a_write():
    w = Tensor(np.ones(8, np.float32)).realize()
    large = w.reshape(8, 1).expand(8, 100_000) * 3
    GlobalCounters.reset()
    w.assign(w + 1).realize()
    assert GlobalCounters.global_mem < 1000
    assert large[3, 7].item() == 3.0


def test_steps_leave_nothing_behind():
    (w,) = weights((32, 32))
    x = Tensor.rand(4, 32).realize()
    losses = []

    def steps(count):
        for _ in range(count):
            loss = ((x @ w) ** 2).mean()
            loss.item()
            w.grad = None
            loss.backward()
            w.assign(w - 0.01 * w.grad).realize()
        losses.append(loss)
        gc.collect()
        return GlobalCounters.mem_used, live_nodes()

    memory, nodes = steps(20)
    again, more = steps(100)
    assert again - memory <= 8  # one loss
    assert more - nodes < 20


def test_losses_that_are_kept_hold_no_batches():
    (w,) = weights((32, 32))
    losses = []
    for number in range(6):
        x = Tensor(np.full((64, 32), number, np.float32))
        loss = ((x @ w) ** 2).mean()
        loss.item()
        w.grad = None
        loss.backward()
        w.assign(w - 0.01 * w.grad).realize()
        losses.append(loss)
        if number == 1:
            memory = GlobalCounters.mem_used
    assert GlobalCounters.mem_used - memory <= 64


WRITES = {
    "item": lambda y, x: y.__setitem__(0, 5.0),
    "slice": lambda y, x: y.__setitem__(slice(1, None), y[1:] * x[1:]),
    "tensor index": lambda y, x: y.__setitem__(Tensor([1]), 5.0),
    "list": lambda y, x: y.__setitem__([0, 2], x[:2] * 2),
    "index_copy_": lambda y, x: y.index_copy_(0, Tensor([1]), x[:1]),
    "scatter_": lambda y, x: y.scatter_(0, Tensor([1]), x[:1]),
    "view": lambda y, x: y.reshape(-1, 1)[2].mul_(3),
    "add_": lambda y, x: y.add_(x),
    "mul_": lambda y, x: y.mul_(y),
    "copy_": lambda y, x: y.copy_(x * 2),
    "zero_, add_": lambda y, x: y.zero_().add_(x),
    "masked_fill_": lambda y, x: y.masked_fill_(x > 0, 0.5),
}


@pytest.mark.parametrize("size", [3, 400])  # small versions are copied, large ones are not
@pytest.mark.parametrize("name", WRITES)
def test_values_that_were_written_and_read_keep_their_gradient(name: str, size: int):
    values = np.linspace(-0.9, 0.8, size, dtype=np.float32)

    def slope(reads: bool) -> list[float]:
        x = Tensor(values, requires_grad=True)
        y = x * 1.5
        older = y * y
        for _ in range(3):
            if reads:
                y.tolist()
            WRITES[name](y, x)
        if reads:
            y.tolist()
        loss = (y * y).sum() + older.sum()
        if reads:
            loss.item()
        loss.backward()
        return x.grad.tolist()

    np.testing.assert_allclose(slope(True), slope(False), 1e-5, 1e-6)


def test_memory_that_was_read_may_be_written_from_leaves():
    (w,) = weights((3,))
    rows = Tensor.zeros(4, 3).realize()
    for row in range(4):
        rows[row] = w * row
        rows.tolist()
    rows.sum().backward()
    assert w.grad.tolist() == [6.0] * 3


def test_what_was_assigned_to_memory_is_a_constant_once_it_is_read():
    (w,) = weights((400,))
    average = Tensor.zeros(400).realize()
    for _ in range(3):
        average.assign(average * 0.9 + w * 0.1).realize()
        w.assign(w * 2).realize()
    (w * average).sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), average.numpy())


def test_old_values_that_nobody_has_are_an_error():
    (w,) = weights((400,))
    state = Tensor.ones(400).realize()
    state.mul_(w).realize()
    with pytest.raises(NotSupported, match="overwritten"):
        state.sum().backward()


@pytest.mark.parametrize("number", [2.0, [2.0]])
def test_leaves_that_become_memory_with_what_is_read(number):
    w = Tensor(number, requires_grad=True)
    found = w.reshape(1) * 3
    found.tolist()
    found.sum().backward()
    assert w.grad.flatten().tolist() == [3.0]


def test_what_a_gradient_could_lead_from_is_found_in_any_order():
    x = Tensor(A, requires_grad=False).realize()
    count = Tensor([1, 2, 3]).realize()
    chain = [x * 2]
    for _ in range(3):
        chain.append(chain[-1].sin())
    inexact = [*(each.uop for each in chain), (x + 1).detach().uop, (x.detach() + 1).uop]
    plain = [(count + 1).uop, (count + 1).float().uop, Tensor.ones(3).sin().uop]
    values = [*inexact, *plain]
    wanted = set(inexact[:4])
    assert from_floats(values) == wanted
    assert from_floats(values[::-1]) == wanted


def test_asking_for_all_values_of_a_chain_visits_each_once(monkeypatch):
    """A value that is known to lead to memory ends the way of those behind it."""
    x = Tensor(A).realize()
    chain = [x * 2]
    for _ in range(200):
        chain.append((chain[-1] * 1.01).sin())
    visits = []
    monkeypatch.setattr(
        "weft.tensor.autodiff.history._FOLLOWED", Counting(history._FOLLOWED, visits)
    )
    from_floats([each.uop for each in chain])
    assert len(visits) < 8 * len(chain)


class Counting(frozenset):
    """Notes how often it is asked."""

    def __new__(cls, values, visits):
        made = super().__new__(cls, values)
        made.visits = visits
        return made

    def __contains__(self, value):
        self.visits.append(value)
        return super().__contains__(value)
