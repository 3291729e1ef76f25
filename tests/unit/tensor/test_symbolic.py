"""Symbolic sizes: one schedule and one set of kernels for all values, with the results of ints."""

from collections.abc import Callable

import numpy as np
import pytest

from tests.opencl import needs_opencl
from weft import GlobalCounters, Variable, function
from weft.engine import work
from weft.engine.compile import CompileStatistics
from weft.support.settings import Context
from weft.tensor import Tensor

DEVICES = (
    "CPU",
    "PYTHON",
    pytest.param("OPENCL", marks=needs_opencl),
)
# n, p and m; the greatest, the least and some between.
VALUES = ((5, 3, 7), (1, 0, 1), (16, 15, 16), (2, 14, 13))
N, P, M = Variable("n", 1, 16), Variable("p", 0, 15), Variable("m", 1, 16)

ROWS = np.random.default_rng(0).standard_normal((16, 6)).astype(np.float32)
CUBE = np.random.default_rng(1).standard_normal((4, 16, 8)).astype(np.float32)
PICKED = np.array([0, -1, 0], np.int32)


def rows() -> Tensor:
    return Tensor(ROWS)


def cube() -> Tensor:
    return Tensor(CUBE)


PROGRAMS: dict[str, Callable[..., Tensor]] = {
    "slice": lambda n, p, m: rows()[:n] * 2,
    "one row": lambda n, p, m: rows()[p : p + 1] + 1,
    "index": lambda n, p, m: rows()[p] + rows()[n - 1],
    "from the end": lambda n, p, m: rows()[-n:].sum(0),
    "backwards": lambda n, p, m: rows()[:n][::-1] + rows()[:n].flip(1),
    "view of a view": lambda n, p, m: rows()[:n][:, 1:3],
    "sum": lambda n, p, m: rows()[:n].sum(0) + rows()[:n].sum(),
    "empty sum": lambda n, p, m: rows()[:p].sum(0),
    "empty": lambda n, p, m: (rows()[:p] * 2).contiguous().softmax(-1),
    "max": lambda n, p, m: rows()[:n].max(0) - rows()[:n].min(),
    "argmax": lambda n, p, m: rows()[:n].argmax(0) + rows()[:n].argmax(),
    "statistics": lambda n, p, m: rows()[:n].mean() + rows()[: n + 0].var(0, correction=0),
    "matmul": lambda n, p, m: rows()[:n] @ rows()[:m].T,
    "matmul inside": lambda n, p, m: rows()[:n].T @ rows()[:n],
    "einsum": lambda n, p, m: Tensor.einsum("ij,kj->ik", rows()[:n], rows()[:m]),
    "softmax": lambda n, p, m: rows()[:n].softmax(0) + cube()[0, :n, :6].softmax(-1),
    "attention": lambda n, p, m: cube()[:, :1].scaled_dot_product_attention(
        cube()[:, : p + 1], cube()[:, : p + 1]
    ),
    "causal": lambda n, p, m: cube()[:, :n].scaled_dot_product_attention(
        cube()[:, :n], cube()[:, :n], is_causal=True
    ),
    "reshape": lambda n, p, m: (rows()[:n] + 1).reshape(n, 2, 3).sum(1),
    "reshape to one": lambda n, p, m: (rows()[:n] + 1).contiguous().reshape(-1) * 2,
    "reshape around": lambda n, p, m: (cube()[:, :n] + 1).reshape(2, 2, n, -1).sum(0),
    "merge": lambda n, p, m: (cube()[:, :n] + 1).contiguous().flatten(0, 1).softmax(-1),
    "permute": lambda n, p, m: cube()[:, :n].permute(1, 0, 2).reshape(n, 32) + 1,
    "expand": lambda n, p, m: rows()[:1].expand(n, 6) * rows()[:n],
    "pad": lambda n, p, m: rows()[:n].pad(((0, 16 - n), (p, 0))),
    "pad with a number": lambda n, p, m: rows().pad(((p, 1), (0, 0)), value=2.0),
    "arange": lambda n, p, m: Tensor.arange(n) * 3 + Tensor.arange(p, p + n),
    "arange by three": lambda n, p, m: Tensor.arange(0, n, 3),
    "zeros and eye": lambda n, p, m: Tensor.zeros(n, n) + Tensor.eye(n) + Tensor.full((n, n), 2),
    "cat": lambda n, p, m: rows()[:n].cat(rows()[:m], dim=0) * 2,
    "cat a row": lambda n, p, m: rows()[:p].cat(rows()[3:4], dim=0).sum(0),
    "split": lambda n, p, m: rows().split([p, 16 - p])[0].sum(0),
    "repeat": lambda n, p, m: rows()[:n].repeat(2, 1).sum(0),
    "number": lambda n, p, m: rows() * n + p - Tensor(n),
    "number on the left": lambda n, p, m: n - rows() * p + (m < rows()) + p // Tensor([2, 3])[:1],
    "number of elements": lambda n, p, m: rows()[:n].sum() / rows()[:n].numel(),
    "kept": lambda n, p, m: ((rows()[:n] @ cube()[0, :6]).softmax(-1) @ cube()[1, :8]).layernorm(),
    "gather": lambda n, p, m: (rows()[:n] * 1)[Tensor(PICKED)],
    "where": lambda n, p, m: (rows()[:n] > 0).where(rows()[:n], n),
    "product of sizes": lambda n, p, m: (
        (rows()[:n, None] * rows()[None, :m]).contiguous().reshape(n * m, 6).sum(0)
    ),
    "realized between": lambda n, p, m: (rows()[:n] * 2).realize().clone().realize() + 1,
    "triangle": lambda n, p, m: (rows()[:n] @ rows()[:n].T).tril().sum(0),
}


def bound(values: tuple[int, int, int]) -> list:
    return [each.bind(value) for each, value in zip((N, P, M), values, strict=True)]


@pytest.fixture(params=DEVICES, autouse=True)
def device(request):
    with Context(DEVICE=request.param):
        yield request.param


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_results_are_those_of_ints_and_nothing_is_made_twice(program):
    made = None
    for values in VALUES:
        with Context(DEVICE="PYTHON"):  # the oracle, with ints
            expected = program(*values).numpy()
        before = len(work._PREPARED), CompileStatistics.generated
        found = program(*bound(values)).numpy()
        after = len(work._PREPARED), CompileStatistics.generated
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
        assert made is None or after == before
        made = after


def test_a_cache_is_written_and_read_position_by_position():
    def steps(position_of):
        generator = np.random.default_rng(0)
        keys = Tensor.zeros(2, 16, 4).contiguous().realize()
        values = Tensor.zeros(2, 16, 4).contiguous().realize()
        for number in range(16):
            p = position_of(number)
            query, key, value = (
                Tensor(generator.standard_normal((2, 1, 4)).astype(np.float32)) for _ in range(3)
            )
            keys[:, p : p + 1] = key
            values[:, p : p + 1] = value
            yield query.scaled_dot_product_attention(keys[:, : p + 1], values[:, : p + 1]).numpy()
        yield keys.numpy()

    made = set()
    found = []
    for result in steps(P.bind):
        found.append(result)
        made.add((len(work._PREPARED), CompileStatistics.generated))
    assert len(made) == 1
    with Context(DEVICE="PYTHON"):
        expected = list(steps(int))
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n", [1, 3, 16])
def test_writes_through_symbolic_views(n):
    def program(n):
        lazy = Tensor.zeros(16, 6)
        lazy[:n] = rows()[:n] * 2
        lazy[n - 1] = 7
        memory = rows().realize()
        memory[:n] += 1
        memory[n - 1 : n, 1:2] = 9
        view = memory[:n]
        view[:, 0] = view[:, 1]
        return lazy.numpy(), memory.numpy(), view.numpy()

    found = program(N.bind(n))
    with Context(DEVICE="PYTHON"):
        expected = program(n)
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("n", [1, 3, 16])
def test_gradients_of_a_loss_over_a_part(n):
    def program(n):
        x, weights = rows(), Tensor(CUBE[0, :6])
        ((x[:n] @ weights).softmax(0) ** 2).mean().backward()
        return x.grad.numpy(), weights.grad.numpy()

    found = program(N.bind(n))
    with Context(DEVICE="PYTHON"):
        expected = program(n)
    for got, wanted in zip(found, expected, strict=True):
        assert got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-6)


def test_functions_are_scheduled_once_for_all_values():
    @function
    def part(x, n):
        return x[:n].sum(0) * 2

    @function
    def whole(x):
        return x.softmax(0)

    made = set()
    for n in (1, 3, 16):
        found = part(rows(), N.bind(n)).numpy()
        np.testing.assert_allclose(found, ROWS[:n].sum(0) * 2, rtol=1e-4, atol=1e-6)
        found = whole(rows()[: N.bind(n)]).numpy()
        weights = np.exp(ROWS[:n])
        np.testing.assert_allclose(found, weights / weights.sum(0), rtol=1e-5)
        made.add((len(work._PREPARED), CompileStatistics.generated))
    assert len(made) == 1


def test_shapes_have_values_where_they_are_asked_for():
    x = rows()[: N.bind(5)]
    assert int(x.shape[0]) == len(x) == 5
    assert int(x.numel()) == 30
    assert int(x.nbytes()) == 120
    assert x.numpy().shape == (5, 6)
    assert rows()[: N.bind(1), 0].item() == ROWS[0, 0]
    assert x.shape == (rows() * 2)[: N.bind(5)].shape
    assert x.shape != rows()[: N.bind(6)].shape
    assert (x[:, :3] + 1).realize().shape == (N.bind(5), 3)


def test_sizes_that_are_equal_for_all_values_are_equal():
    n = N.bind(5)
    x = rows()
    assert x[n - 1 : n].shape == (1, 6)
    assert x[: n - 1].pad(((1, 0), (0, 0))).shape == (n, 6)
    assert x[:n].cat(x[:n], dim=0).shape == Tensor.zeros(2 * n, 6).shape
    assert x[:n].reshape(-1).shape == Tensor.zeros(n * 6).shape


def test_values_that_differ_run_one_after_the_other():
    x = rows().realize()
    first, second = x[: N.bind(3)] * 2, x[: N.bind(5)] * 3
    first.realize(second)
    np.testing.assert_array_equal(first.numpy(), ROWS[:3] * 2)
    np.testing.assert_array_equal(second.numpy(), ROWS[:5] * 3)


def test_a_waiting_write_does_not_stand_in_the_way_of_another_value():
    state, x = Tensor.zeros(16).contiguous().realize(), rows().realize()
    state[: N.bind(2)] = 5
    np.testing.assert_array_equal((x[: N.bind(6)] + 1).numpy(), ROWS[:6] + 1)
    assert state.sum().item() == 10


def test_memory_of_results_has_room_for_sizes_near_by(device):
    x = rows().realize()
    taken, kept = [], []
    for size in (3, 4, 13):
        before = GlobalCounters.mem_used
        kept.append((x[: N.bind(size)] + 1).realize())
        taken.append(GlobalCounters.mem_used - before)
    row = ROWS.nbytes // len(ROWS)
    assert taken[0] == taken[1] == 4 * row  # one size of memory, which another call takes over
    assert 13 * row <= taken[2] <= ROWS.nbytes
    assert [y.numpy().shape for y in kept] == [(3, 6), (4, 6), (13, 6)]


def test_copies_between_devices(device):
    moved = (rows()[: N.bind(3)] * 2).to("PYTHON" if device != "PYTHON" else "CPU")
    np.testing.assert_array_equal(moved.numpy(), ROWS[:3] * 2)
    back = (moved + 1).to(device)
    np.testing.assert_array_equal(back.numpy(), ROWS[:3] * 2 + 1)


@pytest.mark.parametrize("only", [1, 3])
def test_a_size_that_has_one_value(only):
    n = Variable("n", only, only).bind(only)
    x = Tensor.arange(8).float().realize()
    rows = x[:n].reshape(n, 1).expand(n, 3)
    wanted = np.arange(only, dtype=np.float32)
    assert (x[:n] * 2).sum().item() == 2 * wanted.sum()
    assert rows.sum().item() == 3 * wanted.sum()
    assert x[:n].cat(x).max().item() == 7
