"""Names of tinygrad.helpers: what tinygrad's give, and the learning rate that its loops read."""

import io
import re
import sys

import numpy as np
import pytest

from weft import Context, Tensor, helpers, nn
from weft.support.errors import UnknownAttribute

CALLS = {
    "prod": [((2, 3, 4),), ([],)],
    "flatten": [([[1], [2, 3]],), ([],)],
    "fully_flatten": [([1, [2, (3,)]],)],
    "argfix": [(1, 2), ((1, 2),), ([3],)],
    "make_tuple": [(3, 2), ([1, 2], 2)],
    "dedup": [([3, 1, 3],)],
    "all_same": [([1, 1],), ([1, 2],), ([],)],
    "round_up": [(5, 4), (8, 4), (0, 4)],
    "ceildiv": [(5, 4), (-5, 4), (8, 4)],
    "partition": [([1, 2, 3], lambda x: x > 1)],
    "get_child": [({"a": [5, {"b": 6}]}, "a.1.b")],
    "colored": [("x", "red"), ("x", None), ("x", "GREEN"), ("x", "blue", True)],
}


@pytest.mark.peers
@pytest.mark.parametrize("name", CALLS)
def test_functions_give_what_tinygrads_give(name: str):
    theirs = pytest.importorskip("tinygrad.helpers")
    for args in CALLS[name]:
        assert getattr(helpers, name)(*args) == getattr(theirs, name)(*args)


def test_environment_and_settings(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("STEPS", "7")
    assert helpers.getenv("STEPS", 1) == 7 and helpers.getenv("NOT_SET", "a") == "a"
    with Context(DEBUG=2):
        assert helpers.DEBUG == 2
    with pytest.raises(UnknownAttribute, match="colored"):
        _ = helpers.colord
    with pytest.raises(ImportError):
        from weft.helpers import NO_SUCH_SETTING  # noqa: F401


@pytest.mark.parametrize("is_terminal", [False, True])
def test_bars(monkeypatch: pytest.MonkeyPatch, is_terminal: bool):
    stream = io.StringIO()
    stream.isatty = lambda: is_terminal  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stderr", stream)
    seen = []
    for i in (bar := helpers.trange(3, desc="steps: ")):
        bar.set_description(f"loss {i}")
        seen.append(i)
    assert seen == [0, 1, 2] and bar.n == 3
    by_hand = helpers.tqdm(total=5)
    by_hand.update(2)
    by_hand.update(3, close=True)
    by_hand.update(0, close=True)
    assert by_hand.n == 5
    assert list(helpers.tqdm(iter("ab"), disable=True)) == ["a", "b"]


def test_times_are_printed(capsys: pytest.CaptureFixture[str]):
    with helpers.Timing("step ", on_exit=lambda ns: f", {ns >= 0}"):
        pass
    with helpers.Timing("silent", enabled=False):
        pass
    assert re.fullmatch(r"step +[0-9.]+ ms, True\n", capsys.readouterr().out)


def test_the_learning_rate_is_a_vector_of_one():
    layer = nn.Linear(2, 1)
    optimizer = nn.optim.SGD(nn.state.get_parameters(layer), lr=0.5)
    assert optimizer.lr.shape == (1,)
    optimizer.lr.assign(optimizer.lr * 0.5).realize()
    assert optimizer.lr.item() == optimizer.lr[0].item() == 0.25
    optimizer.lr.assign(Tensor([2.0]))
    before = layer.weight.numpy().copy()
    layer(Tensor.ones(1, 2)).sum().backward()
    optimizer.step()
    assert np.allclose(before - layer.weight.numpy(), 2.0)
    assert layer.weight.shape == (1, 2) and layer.bias.shape == (1,)
