"""A training run that is saved, loaded and resumed goes on to the bit."""

import json
from pathlib import Path

import numpy as np
import pytest

from weft import ArgumentError, ArgumentTypeError, FileFormatError, ShapeError
from weft.io import load_training_state, safe_load, safe_save, save_training_state
from weft.tensor import Tensor
from weft.tensor.create.random_state import restore_random_state


class Run:
    """A perceptron with dropout and momentum, and a loader that shuffles."""

    def __init__(self) -> None:
        Tensor.manual_seed(3)
        self.weights = [Tensor.randn(8, 16) * 0.1, Tensor.randn(16, 4) * 0.1]
        self.moments = [Tensor.zeros(8, 16), Tensor.zeros(16, 4)]
        self.position, self.order = 0, np.random.default_rng(0).permutation(32).tolist()
        data = np.random.default_rng(1)
        self.inputs = data.standard_normal((32, 8)).astype(np.float32)
        self.labels = data.integers(0, 4, 32).astype(np.int32)

    def state(self) -> dict:
        return {
            "model": self.weights,
            "optimizer": {"moments": tuple(self.moments), "rate": 0.1},
            "loader": {"position": self.position, "order": self.order},
        }

    def step(self) -> float:
        rows = [self.order[(self.position + i) % 32] for i in range(4)]
        self.position += 4
        for weight in self.weights:
            weight.requires_grad_()
        hidden = (Tensor(self.inputs[rows]) @ self.weights[0]).relu()
        mask = Tensor.rand(*hidden.shape) < 0.5  # dropout, by hand
        logits = (hidden * mask) @ self.weights[1]
        loss = logits.sparse_categorical_crossentropy(Tensor(self.labels[rows]))
        for weight, moment, gradient in zip(
            self.weights, self.moments, loss.gradient(*self.weights), strict=True
        ):
            moment.assign(moment * 0.9 + gradient)
            weight.assign(weight.detach() - moment * 0.1)
        loss.realize(*self.weights, *self.moments)
        return loss.item()


def bits(run: Run) -> list[bytes]:
    return [tensor.numpy().tobytes() for tensor in (*run.weights, *run.moments)]


def test_resumed_to_the_bit(tmp_path: Path):
    run = Run()
    losses = [run.step() for _ in range(3)]
    save_training_state(tmp_path / "state", run.state())
    losses += [run.step() for _ in range(4)]
    wanted = bits(run)

    other = Run()
    other.step()  # anything: the state decides
    saved = load_training_state(tmp_path / "state", into=other.state())
    other.position, other.order = saved["loader"]["position"], saved["loader"]["order"]
    assert saved["model"][0] is other.weights[0]
    assert [other.step() for _ in range(4)] == losses[3:]
    assert bits(other) == wanted


def test_random_numbers_go_on(tmp_path: Path):
    Tensor.manual_seed(5)
    Tensor.rand(3).realize()
    save_training_state(tmp_path / "x", {})
    first = Tensor.rand(4).tolist()
    Tensor.manual_seed(99)
    load_training_state(tmp_path / "x", random=False)
    assert Tensor.rand(4).tolist() != first
    load_training_state(tmp_path / "x")
    assert Tensor.rand(4).tolist() == first


VALUES = {
    "text": "grüße",
    "numbers": [1, -(2**70), 0.1, float("inf"), True, None],
    "nest": {"a": ({1: "one", "1": "text"}, []), "b": b"\0\xff"},
}


def test_plain_values(tmp_path: Path):
    save_training_state(tmp_path / "x", VALUES)
    loaded = load_training_state(tmp_path / "x")
    assert loaded == VALUES
    assert type(loaded["nest"]["a"]) is tuple
    assert type(loaded["numbers"][4]) is bool
    save_training_state(tmp_path / "x", float("nan"))
    assert np.isnan(load_training_state(tmp_path / "x"))


def test_tensors_come_as_they_were(tmp_path: Path):
    tensor = Tensor([[1.5, 2.5]]).cast("bfloat16")
    save_training_state(tmp_path / "x", [tensor, Tensor(3)])
    again, scalar = load_training_state(tmp_path / "x")
    assert (again.dtype.name, again.device, again.tolist()) == ("bfloat16", "CPU", [[1.5, 2.5]])
    assert scalar.item() == 3


@pytest.mark.parametrize("value", [object(), {1.5: 2}, np.float32(1), {"a": {(1, 2): 3}}])
def test_other_values_are_refused(value, tmp_path: Path):
    with pytest.raises(ArgumentTypeError, match="training state: state"):
        save_training_state(tmp_path / "x", value)


def test_a_state_that_holds_itself_is_refused(tmp_path: Path):
    state: list = []
    state.append(state)
    with pytest.raises(ArgumentTypeError, match="nested too deeply"):
        save_training_state(tmp_path / "x", state)


@pytest.mark.parametrize(
    "into",
    [{"w": Tensor([1.0])}, {"w": Tensor([1, 2])}, {"w": 1}, {"v": Tensor([1.0, 2.0])}, {}],
)
def test_a_state_of_another_form_is_refused(into, tmp_path: Path):
    save_training_state(tmp_path / "x", {"w": Tensor([1.0, 2.0])})
    with pytest.raises(ShapeError, match="does not fit"):
        load_training_state(tmp_path / "x", into=into)


@pytest.mark.parametrize(
    "nest",
    [
        *(3, [], ["v"], ["x", 1], ["v", []], ["t", "gone"], ["b", "?"], ["d", [1]]),
        *(["d", [[None, ["v", 1]]]], ["l", 3], ["v", 1], "x"),
    ],
)
def test_damaged_states(nest, tmp_path: Path):
    safe_save({"w": Tensor([1])}, tmp_path / "x", {"weft_training_state": json.dumps(nest)})
    with pytest.raises(FileFormatError, match=r"damaged|nest"):
        load_training_state(tmp_path / "x")


def test_other_files_are_no_states(tmp_path: Path):
    safe_save({"w": Tensor([1])}, tmp_path / "x")
    with pytest.raises(FileFormatError, match="expected a training state"):
        load_training_state(tmp_path / "x")
    save_training_state(tmp_path / "y", {"w": Tensor([4])})
    assert safe_load(tmp_path / "y")["state.state.w"].tolist() == [4]


def test_no_random_state():
    with pytest.raises(ArgumentError, match="expected a random state"):
        restore_random_state({"seed": 1})


WORDS = [1, 2, 3, 4]
RANDOM = {
    "a file": {"seed": 1, "devices": {"DISK:{}": WORDS}},
    "a file among devices": {"seed": 1, "devices": {"CPU, DISK:{}": WORDS}},
    "unknown device": {"seed": 1, "devices": {"CPU:{}": WORDS}},
    "no seed": {"devices": {"CPU": WORDS}},
    "a seed of text": {"seed": "1", "devices": {"CPU": WORDS}},
    "few words": {"seed": 1, "devices": {"CPU": [1, 2]}},
    "wide words": {"seed": 1, "devices": {"CPU": [1, 2, 3, 1 << 32]}},
    "no words": {"seed": 1, "devices": {"CPU": ["1", "2", "3", "4"]}},
    "more": {"seed": 1, "devices": {"CPU": WORDS}, "more": 1},
    "a list": [1],
}


@pytest.mark.parametrize("name", RANDOM)
def test_a_random_state_names_devices_and_words(name: str, tmp_path: Path):
    precious = tmp_path / "precious"
    precious.write_bytes(b"precious")
    weight = Tensor([1.0]).realize()
    save_training_state(tmp_path / "x", {"w": Tensor([2.0])})
    file = safe_load(tmp_path / "x")
    nest = [
        "d",
        [["state", ["d", [["w", ["t", "state.state.w"]]]]], ["random", packed(name, precious)]],
    ]
    tensors = {"state.state.w": file["state.state.w"]}
    safe_save(tensors, tmp_path / "y", {"weft_training_state": json.dumps(nest)})
    with pytest.raises(ArgumentError, match="expected a random state"):
        load_training_state(tmp_path / "y", into={"w": weight})
    assert precious.read_bytes() == b"precious"
    assert weight.tolist() == [1.0]


def packed(name: str, precious: Path):
    """A random state as a file has it."""

    def pack(value):
        if isinstance(value, dict):
            return ["d", [[key.replace("{}", str(precious)), pack(v)] for key, v in value.items()]]
        return ["l", [pack(v) for v in value]] if isinstance(value, list) else ["v", value]

    return pack(RANDOM[name])


def test_a_tensor_is_not_read_again_and_again(tmp_path: Path):
    nest = ["d", [["state", ["l", [["t", "w"]] * 1000]], ["random", ["v", None]]]]
    safe_save({"w": Tensor([1.0])}, tmp_path / "x", {"weft_training_state": json.dumps(nest)})
    with pytest.raises(FileFormatError, match="damaged"):
        load_training_state(tmp_path / "x")


def test_nothing_is_written_into_a_state_that_does_not_fit(tmp_path: Path):
    save_training_state(tmp_path / "x", {"a": Tensor([1.0]), "b": Tensor([1.0])})
    into = {"a": Tensor([5.0]).realize(), "b": Tensor([5.0, 6.0]).realize()}
    with pytest.raises(ShapeError):
        load_training_state(tmp_path / "x", into=into)
    assert into["a"].tolist() == [5.0]
