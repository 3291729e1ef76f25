"""Random numbers: the published test vectors, the order of draws, distributions."""

import numpy as np
import pytest

from weft import jit
from weft.engine.compile import CompileStatistics
from weft.engine.counters import GlobalCounters
from weft.ir.dtypes import dtypes
from weft.ir.uop import const
from weft.reference.tensor import evaluate
from weft.support.errors import ArgumentError
from weft.tensor import Tensor
from weft.tensor.create.random_state import random_state, restore_random_state, threefry

# Key, counter and result for 20 rounds, from the known answers of the Random123 library.
KNOWN = (
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF,) * 2, (0xFFFFFFFF,) * 2, (0x1CB996FC, 0xBB002BE7)),
    ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
)


@pytest.mark.parametrize("key,counter,expected", KNOWN)
def test_known_answers(key: tuple[int, ...], counter: tuple[int, ...], expected: tuple[int, ...]):
    def words(values: tuple[int, ...]) -> tuple:
        return tuple(const(dtypes.uint32, value) for value in values)

    assert tuple(int(x) for x in evaluate(threefry(words(key), words(counter)))) == expected


def test_draws_depend_on_the_seed_and_the_order():
    Tensor.manual_seed(3)
    first, second = Tensor.rand(4), Tensor.rand(4)
    Tensor.manual_seed(3)
    again = Tensor.rand(4).realize(), Tensor.rand(4).realize()
    assert first.tolist() == again[0].tolist()
    assert second.tolist() == again[1].tolist()
    assert first.tolist() != second.tolist()
    Tensor.manual_seed(4)
    assert Tensor.rand(4).tolist() != first.tolist()


def test_a_draw_goes_on_where_the_last_one_ended():
    Tensor.manual_seed(5)
    whole = Tensor.rand(6).tolist()
    Tensor.manual_seed(5)
    assert Tensor.rand(2).tolist() + Tensor.rand(4).tolist() == whole


@pytest.mark.parametrize("dtype", ("float16", "bfloat16", "float32", "float64"))
def test_uniform(dtype: str):
    Tensor.manual_seed(1)
    x = Tensor.rand(2000, dtype=dtype).numpy().astype(np.float64)
    assert x.min() >= 0 and x.max() < 1
    assert abs(x.mean() - 0.5) < 0.03
    y = Tensor.uniform(1000, low=-3, high=5).numpy()
    assert y.min() >= -3 and y.max() < 5


def test_normal():
    Tensor.manual_seed(2)
    x = Tensor.randn(1500).numpy()
    assert abs(x.mean()) < 0.1
    assert abs(x.std() - 1) < 0.1
    y = Tensor.normal(500, mean=10.0, std=2.0).numpy()
    assert abs(y.mean() - 10) < 0.5
    assert Tensor.randn(3, dtype="float64").dtype is dtypes.float64


def test_integers():
    Tensor.manual_seed(3)
    x = Tensor.randint(500, low=-2, high=3)
    assert x.dtype is dtypes.int32
    assert sorted(set(x.tolist())) == [-2, -1, 0, 1, 2]


def test_weights():
    Tensor.manual_seed(4)
    for name in ("scaled_uniform", "glorot_uniform", "kaiming_uniform", "kaiming_normal"):
        assert getattr(Tensor, name)(4, 5).numpy().shape == (4, 5)
    assert np.abs(Tensor.scaled_uniform(4, 25).numpy()).max() <= 0.1
    assert Tensor.ones(2, 3).rand_like().shape == (2, 3)
    assert Tensor.ones(2, 3).half().randn_like().dtype is dtypes.float16


def test_dropout(monkeypatch: pytest.MonkeyPatch):
    x = Tensor.ones(1000)
    assert x.dropout(0.5) is x
    monkeypatch.setattr(Tensor, "training", True)
    Tensor.manual_seed(6)
    y = x.dropout(0.25).numpy()
    assert set(np.unique(y).tolist()) == {0.0, float(np.float32(1 / 0.75))}
    assert abs((y == 0).mean() - 0.25) < 0.05
    assert x.dropout(1.0).sum().item() == 0.0


def test_zero_elements():
    assert Tensor.rand(0, 3).tolist() == []
    assert isinstance(Tensor.rand().item(), float)


def test_a_permutation_has_every_number_once():
    Tensor.manual_seed(3)
    drawn = Tensor.randperm(500)
    assert drawn.dtype is dtypes.int32
    assert sorted(drawn.tolist()) == list(range(500))
    assert drawn.tolist() != Tensor.randperm(500).tolist()
    assert Tensor.randperm(0).shape == (0,)


def test_permutations_are_equally_likely():
    Tensor.manual_seed(4)
    drawn = [tuple(Tensor.randperm(3).tolist()) for _ in range(60)]
    assert len(set(drawn)) == 6


def test_multinomial_draws_by_weights():
    Tensor.manual_seed(5)
    weights = Tensor([0.1, 0.0, 0.3, 0.6])
    drawn = weights.multinomial(4000, replacement=True)
    assert drawn.dtype is dtypes.int64
    shares = np.bincount(drawn.numpy(), minlength=4) / 4000
    np.testing.assert_allclose(shares, [0.1, 0.0, 0.3, 0.6], atol=0.03)


def test_multinomial_without_replacement_draws_each_position_once():
    Tensor.manual_seed(6)
    weights = Tensor([[0.1, 0.0, 0.3, 0.6]]).expand(2000, 4)
    drawn = weights.multinomial(3).numpy()
    assert not (drawn == 1).any()
    assert all(sorted(row) == [0, 2, 3] for row in drawn.tolist())
    shares = np.bincount(drawn[:, 0], minlength=4) / 2000
    np.testing.assert_allclose(shares, [0.1, 0.0, 0.3, 0.6], atol=0.04)


def test_multinomial_refuses_more_than_there_is():
    with pytest.raises(ArgumentError, match="multinomial: 3 of 2 positions"):
        Tensor([0.5, 0.5]).multinomial(3)


def test_draws_do_not_wait_for_each_other():
    """Each of several draws is one kernel, and those of one shape are the same one."""
    Tensor.manual_seed(5)
    GlobalCounters.reset()
    before = CompileStatistics.generated + CompileStatistics.from_disk
    drawn = [Tensor.rand(7, 3) for _ in range(5)]
    drawn[0].realize(*drawn[1:])
    assert GlobalCounters.kernel_count <= 6  # with what the seed wrote
    assert CompileStatistics.generated + CompileStatistics.from_disk - before <= 2
    Tensor.manual_seed(5)
    again = [Tensor.rand(7, 3).tolist() for _ in range(5)]
    assert [each.tolist() for each in drawn] == again


def test_a_traced_function_goes_on_where_draws_ended():
    draw = jit(lambda x: x * 0 + Tensor.rand(3))
    zeros = Tensor.zeros(3).realize()
    for has_trace in (False, True):
        Tensor.manual_seed(6)
        mixed = [Tensor.rand(3).tolist(), draw(zeros).tolist(), Tensor.rand(3).tolist()]
        mixed += [draw(zeros).tolist(), Tensor.rand(3).tolist()]
        Tensor.manual_seed(6)
        assert mixed == [Tensor.rand(3).tolist() for _ in range(5)], has_trace


def test_the_counter_has_two_words():
    """Draws go on past 2**32 numbers, counted by Python or written."""
    Tensor.manual_seed(8)
    state = random_state()
    state["devices"] = {
        name: [*words[:2], 0xFFFFFFFE, 3]
        for name, words in (state["devices"] or {"CPU": [8, 0, 0, 0]}).items()
    }
    restore_random_state(state)
    first = [Tensor.rand(4).tolist(), Tensor.rand(4).tolist()]
    assert next(iter(random_state()["devices"].values()))[2:] == [6, 4]
    restore_random_state(state)
    assert Tensor.rand(8).tolist() == first[0] + first[1]
