"""Several threads at once: each computes with tensors of its own, and all read what they share."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from weft import Context, Tensor, jit, nn
from weft.support.settings import settings

THREADS = 4
ROUNDS = 12


@pytest.fixture(autouse=True)
def switching() -> Iterator[None]:
    """Threads that take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def in_threads(work: Callable[[int], None]) -> None:
    """Run the work in several threads, and raise what the first that fails has raised."""
    failures: list[BaseException] = []
    device = settings.DEVICE

    def run(number: int) -> None:
        try:
            with Context(DEVICE=device):
                work(number)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def test_lazy_values_and_writes():
    def work(number: int) -> None:
        numbers = np.random.default_rng(number)
        total, expected = Tensor(np.zeros(4, np.float32)), np.zeros(4)
        for iteration in range(ROUNDS):
            values = numbers.standard_normal((4, 4)).astype(np.float32)
            x = Tensor(values)
            rows = (x @ x.T).relu().sum(0)
            total.assign(total + rows)
            expected += np.maximum(values @ values.T, 0).sum(0)
            if iteration % 3 == 0:
                np.testing.assert_allclose(total.numpy(), expected, rtol=1e-4)

    in_threads(work)


def test_gradients():
    def work(number: int) -> None:
        numbers = np.random.default_rng(number)
        w = Tensor(numbers.standard_normal((3, 3)).astype(np.float32), requires_grad=True)
        for _ in range(ROUNDS):
            values = numbers.standard_normal((3, 3)).astype(np.float32)
            w.grad = None
            loss = ((Tensor(values) @ w) ** 2).sum()
            loss.item()
            loss.backward()
            expected = 2 * values.T @ (values @ w.numpy())
            np.testing.assert_allclose(w.grad.numpy(), expected, rtol=1e-3, atol=1e-3)

    in_threads(work)


def test_functions_are_traced_while_others_compute():
    def work(number: int) -> None:
        for iteration in range(ROUNDS):
            values = np.full(5, number + iteration, np.float32)
            seen = Tensor(values) * 2  # lazy, and captured
            function = jit(lambda x, by, seen=seen: x * by + seen)
            for by in (1, 2, 1):
                assert function(Tensor(values), by).tolist() == (values * (by + 2)).tolist()
            assert (seen + 1).tolist() == (values * 2 + 1).tolist()

    in_threads(work)


def test_one_model_serves_all():
    Tensor.manual_seed(1)
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2))  # lazy weights
    inputs = np.random.default_rng(0).standard_normal((THREADS, 3, 6)).astype(np.float32)
    serve = jit(model)
    found: dict[int, list[object]] = {}

    def work(number: int) -> None:
        x = Tensor(inputs[number])
        found[number] = [f(x).tolist() for f in (serve, model, serve, serve)]

    in_threads(work)
    for number, results in found.items():
        expected = model(Tensor(inputs[number])).numpy()
        for result in results:
            np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)


def test_each_thread_draws_from_a_stream_of_its_own():
    Tensor.manual_seed(3)
    own = Tensor.rand(4).tolist()
    drawn: dict[int, list[float]] = {}

    def work(number: int) -> None:
        parts = [(Tensor.rand(4) + 0).tolist() for _ in range(3)]
        drawn[number] = [value for part in parts for value in part]

    in_threads(work)
    values = [value for part in drawn.values() for value in part] + own
    assert len(set(values)) == len(values)
    again = Tensor.rand(4).tolist()
    Tensor.manual_seed(3)
    assert (Tensor.rand(4).tolist(), Tensor.rand(4).tolist()) == (own, again)
    before, drawn = sorted(map(tuple, drawn.values())), {}
    in_threads(work)
    assert sorted(map(tuple, drawn.values())) == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_child_computes_while_its_parent_does():
    if settings.DEVICE not in ("", "CPU"):
        pytest.skip("a driver of a device need not survive a fork")
    end = threading.Event()
    device = settings.DEVICE
    (Tensor.arange(5) + 1).tolist()  # now, because Python itself forks badly while it imports

    def work() -> None:
        with Context(DEVICE=device):
            while not end.is_set():
                (Tensor.arange(5) + 1).tolist()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(5):
            child = os.fork()
            if not child:
                signal.alarm(20)  # a child that waits for ever dies of it
                os._exit((Tensor.arange(3) * 2).tolist() != [0, 2, 4])
            assert os.waitpid(child, 0)[1] == 0
    finally:
        end.set()
        thread.join()
