"""State dicts: names, loading, and what is said when names, shapes or dtypes differ."""

import copy
import pickle
import sys
from typing import NamedTuple

import numpy as np
import pytest

import weft
from weft import jit, nn
from weft.engine.counters import GlobalCounters
from weft.nn.state import get_parameters, get_state_dict, load_state_dict
from weft.support.errors import ArgumentError
from weft.tensor import Tensor


class Pair(NamedTuple):
    left: Tensor
    right: Tensor


class Model:
    def __init__(self) -> None:
        self.layers = [nn.Linear(2, 3), Tensor.relu, nn.Linear(3, 1)]
        self.parts = {"norm": nn.BatchNorm(3)}
        self.pair = Pair(Tensor([1.0]), Tensor([2.0]))
        self.name = "model"
        self.whole = self  # a cycle
        self.first = self.layers[0]  # shared


def test_names_are_paths():
    assert list(get_state_dict(Model())) == [
        *("layers.0.weight", "layers.0.bias", "layers.2.weight", "layers.2.bias"),
        *("parts.norm.weight", "parts.norm.bias"),
        *(f"parts.norm.{n}" for n in ("running_mean", "running_var", "num_batches_tracked")),
        *("pair.left", "pair.right", "first.weight", "first.bias"),
    ]
    assert list(get_state_dict(nn.Linear(1, 1), prefix="encoder.")) == [
        "encoder.weight",
        "encoder.bias",
    ]
    assert get_state_dict(Tensor([1.0]), "x").keys() == {"x"}


def test_a_shared_parameter_is_one_parameter():
    model = Model()
    assert len(get_parameters(model)) == 11
    assert len(get_state_dict(model)) == 13


def test_values_are_copied_not_shared():
    first, second = nn.Linear(2, 3), nn.Linear(2, 3)
    state = get_state_dict(first)
    loaded = load_state_dict(second, state)
    assert loaded == [second.weight, second.bias] or loaded[0] is second.weight
    before = first.weight.tolist()
    second.weight.assign(second.weight * 2)
    assert first.weight.tolist() == before
    assert second.weight.requires_grad is True


def test_first_values_are_not_drawn_for_loaded_parameters():
    values = Tensor.zeros(64, 64).realize()
    layer = nn.Linear(64, 64, bias=False)
    GlobalCounters.reset()
    load_state_dict(layer, {"weight": values})
    assert GlobalCounters.kernel_count <= 3  # the copy, and the counter of random numbers
    assert GlobalCounters.global_mem < 2.1 * 64 * 64 * 4


def test_consume_empties_the_dict():
    state = dict(get_state_dict(nn.Linear(2, 3)))
    load_state_dict(nn.Linear(2, 3), state, consume=True)
    assert state == {}


def test_lazy_loading():
    layer = nn.Linear(2, 1)
    load_state_dict(layer, {"weight": Tensor([[1.0, 2.0]]) + 0, "bias": Tensor([0.0]) + 1},
                    realize=False)  # fmt: skip
    assert not layer.weight._storage.is_realized
    assert layer(Tensor([1.0, 1.0])).tolist() == [4.0]


def test_mismatches_are_all_listed_with_the_nearest_names():
    state = {
        "weight": Tensor.zeros(3, 4),
        "bais": Tensor.zeros(3),
        "num_batches": Tensor([1]),
    }
    with pytest.raises(ArgumentError) as caught:
        load_state_dict(nn.Linear(2, 3), state)
    text = str(caught.value)
    assert "(1 missing, 2 unexpected, 1 of another shape or dtype)" in text
    rows = [" ".join(line.split()) for line in text.splitlines()]
    assert "shape weight (3, 2) in the model (3, 4) in the dict" in rows
    assert "missing bias the nearest is bais" in rows
    assert "unexpected bais the nearest is bias" in rows
    assert "unexpected num_batches" in rows


def test_long_lists_are_counted():
    state = {f"extra{number}": Tensor([1.0]) for number in range(20)}
    with pytest.raises(ArgumentError, match="and 12 more"):
        load_state_dict([], state)


def test_only_what_matches_is_loaded_where_not_strict(capsys):
    layer = nn.Linear(2, 1)
    load_state_dict(layer, {"weight": Tensor([[1.0, 2.0]]), "other": Tensor([1.0])}, strict=False)
    assert layer.weight.tolist() == [[1.0, 2.0]]
    assert capsys.readouterr().err == (
        "load_state_dict: missing: bias\nload_state_dict: unexpected: other\n"
    )
    load_state_dict(layer, {}, strict=False, verbose=False)
    assert capsys.readouterr().err == ""
    with pytest.raises(ArgumentError, match="1 of another shape or dtype"):
        load_state_dict(layer, {"weight": Tensor([1.0])}, strict=False)


@pytest.mark.parametrize(
    ("dtype", "fits"), [("float16", True), ("float64", False), ("int32", False)]
)
def test_a_cast_may_lose_nothing_where_strict(dtype, fits):
    state = {"weight": Tensor([[1, 2]]).cast(dtype), "bias": Tensor([0.5])}
    layer = nn.Linear(2, 1)
    if fits:
        load_state_dict(layer, state)
    else:
        with pytest.raises(ArgumentError, match="of another shape or dtype"):
            load_state_dict(layer, state)
        load_state_dict(layer, state, strict=False)
    assert layer.weight.dtype.name == "float32"
    assert layer.weight.tolist() == [[1.0, 2.0]]


def test_an_optimizer_has_a_state_dict():
    weight = Tensor([1.0, 2.0])
    optimizer = nn.optim.Adam([weight])
    (weight * weight).sum().backward()
    optimizer.step()
    saved = {name: each.clone().realize() for name, each in get_state_dict(optimizer).items()}
    assert set(saved) == {"params.0", "state.lr", "state.step", "state.m.0", "state.v.0"}
    other = nn.optim.Adam([Tensor([0.0, 0.0])])
    load_state_dict(other, saved)
    for each in (optimizer, other):
        each.zero_grad()
        (each.params[0] ** 3).sum().backward()
        each.step()
    assert optimizer.params[0].tolist() == other.params[0].tolist()


class Jitted:
    """A model that holds a jitted method, and is traced."""

    def __init__(self):
        self.linear = nn.Linear(2, 2)
        self.call = jit(self.forward)

    def forward(self, x):
        return self.linear(x)


def test_a_jitted_function_is_no_part_of_a_model():
    model = Jitted()
    model.call(Tensor.ones(1, 2))
    assert list(get_state_dict(model)) == ["linear.weight", "linear.bias"]
    whole = jit(nn.Linear(2, 2))
    whole(Tensor.ones(1, 2))
    assert list(get_state_dict(whole)) == ["weight", "bias"]
    assert len(get_parameters([model, jit(len), sys])) == 2


def test_a_model_with_a_jitted_method_is_pickled_and_copied():
    model, x = Jitted(), Tensor.ones(1, 2).realize()
    wanted = model.call(x).numpy()
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert other.call.traces == 0 and other.call.function.__self__ is other
        np.testing.assert_array_equal(other.call(x).numpy(), wanted)
        other.linear.weight = other.linear.weight * 2
        assert not np.array_equal(other.call(x).numpy(), model.call(x).numpy())


@jit
def doubled(x):
    return x * 2


def test_jitted_functions_are_pickled_by_name():
    assert pickle.loads(pickle.dumps(doubled)) is doubled
    made = pickle.loads(pickle.dumps(jit(len, strict=True)))
    assert made.function is len
    with pytest.raises(weft.NotSupported, match="local to a function"):
        pickle.dumps(jit(lambda x: x))


@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW", "LAMB", "Muon", "RMSprop", "Lion"])
def test_optimizers_are_pickled_with_their_state(kind):
    weight = Tensor([[1.0, 2.0], [3.0, 4.0]])
    optimizer = getattr(nn.optim, kind)([weight], lr=0.1)
    for _ in range(2):
        other, copied = pickle.loads(pickle.dumps((weight, optimizer)))
        assert copied.params[0] is other
        for w, each in ((weight, optimizer), (other, copied)):
            each.zero_grad()
            (w * w).sum().backward()
            each.step()
        np.testing.assert_array_equal(weight.numpy(), other.numpy())
