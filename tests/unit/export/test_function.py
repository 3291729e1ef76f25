"""Functions that are saved and loaded: in this process, in another, on another device."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import weft
from weft import Context, Tensor, Variable, jit, load_function, nn, save_function
from weft.export.container import read_container, write_container
from weft.ir.build import bind
from weft.tensor.jit.program import TracedProgram


class Model:
    """A layer with state and noise."""

    def __init__(self):
        self.weight = Tensor([[1.0, 2.0], [3.0, 4.0]])
        self.count = Tensor([0])

    @jit
    def step(self, x, options):
        self.count += 1
        scale = Tensor([10.0, 20.0])
        return {
            "y": x @ self.weight * options["k"] + scale,
            "n": self.count,
            "noise": Tensor.rand(2),
        }


def values(result):
    return {name: tensor.tolist() for name, tensor in result.items()}


@pytest.fixture
def saved(tmp_path):
    model = Model()
    model.step(Tensor([[1.0, 1.0]]), {"k": 2})
    path = tmp_path / "step.weft"
    save_function(model.step, path)
    return model, path


def test_a_loaded_function_goes_on_where_the_saved_one_was(saved):
    model, path = saved
    loaded = load_function(path)
    for _ in range(3):
        x = Tensor([[1.0, 2.0]])
        assert values(loaded(x, {"k": 2})) == values(model.step(x, {"k": 2}))
    assert loaded.name == "step"
    assert [4] in [tensor.tolist() for tensor in loaded.state]
    assert values(load_function(path)(Tensor([[1.0, 2.0]]), {"k": 2}))["n"] == [2]


def test_another_device(saved):
    model, path = saved
    loaded = load_function(path, device="PYTHON")
    with Context(DEVICE="PYTHON"):
        got = loaded(Tensor([[1.0, 2.0]]), {"k": 2})
    wanted = model.step(Tensor([[1.0, 2.0]]), {"k": 2})
    assert got["y"].device == "PYTHON"
    assert values(got) == values(wanted)


def test_another_process_without_the_source(saved):
    model, path = saved
    program = (
        "import sys, weft, json\n"
        "f = weft.load_function(sys.argv[1])\n"
        "result = f(weft.Tensor([[1.0, 2.0]]), {'k': 2})\n"
        "print(json.dumps({name: t.tolist() for name, t in result.items()}))"
    )
    root = Path(weft.__file__).parents[1]
    made = subprocess.run(
        [sys.executable, "-c", program, str(path)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    assert json.loads(made.stdout) == values(model.step(Tensor([[1.0, 2.0]]), {"k": 2}))


def test_arguments_choose_the_trace_and_nothing_runs(tmp_path):
    total = Tensor([0])

    @jit
    def add(x):
        nonlocal total
        total += x.sum()
        return total * 1

    add(Tensor([1, 2]))
    add(Tensor([1, 2, 3]))
    with pytest.raises(weft.ArgumentTypeError, match="no single trace"):
        save_function(add, tmp_path / "add.weft")
    save_function(add, tmp_path / "add.weft", Tensor([0, 0]))
    assert total.item() == 9
    loaded = load_function(tmp_path / "add.weft")
    assert [loaded(Tensor([1, n])).item() for n in range(3)] == [10, 12, 15]


class Pair(NamedTuple):
    first: Tensor
    second: Tensor


def test_structures_views_and_arguments_that_are_written(tmp_path):
    @jit
    def swap(pair, by):
        pair.first.assign(pair.first + by)
        return Pair(pair.second, pair.first[1:]), [pair.first * 2, 7]

    x, y = Tensor([1, 2]), Tensor([3, 4])
    save_function(swap, tmp_path / "swap.weft", Pair(x, y), by=1)
    loaded = load_function(tmp_path / "swap.weft")
    base = Tensor([[1, 2], [5, 6]])
    (second, view), (doubled, number) = loaded(Pair(base[1], y), by=1)
    assert second is y and number == 7
    assert (view.tolist(), doubled.tolist(), base.tolist()) == ([7], [12, 14], [[1, 2], [6, 7]])
    assert x.tolist() == [1, 2]
    with pytest.raises(weft.ArgumentError, match="two arguments share memory"):
        loaded(Pair(y, y[:]), by=1)


def test_symbolic_sizes(tmp_path):
    n = Variable("n", 1, 10)
    save_function(
        jit(lambda x, n: x[:n].sum()), tmp_path / "f.weft", Tensor.arange(10), bind(n, 3)
    )
    loaded = load_function(tmp_path / "f.weft")
    assert [loaded(Tensor.arange(10), bind(n, k)).item() for k in (3, 4)] == [3, 6]
    with pytest.raises(weft.ArgumentTypeError, match="no bound size"):
        loaded(Tensor.arange(10), 4)


def test_low_precision_survives(tmp_path):
    weight = Tensor(np.arange(4), dtype="bfloat16")
    save_function(jit(lambda x: x * weight), tmp_path / "f.weft", Tensor([2.0] * 4))
    assert load_function(tmp_path / "f.weft")(Tensor([2.0] * 4)).tolist() == [0, 2, 4, 6]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (lambda: (Tensor([[1.0, 1.0]]), {"k": 3}), r"options\['k'\] is 3, and was 2"),
        (lambda: (Tensor([[1.0]]), {"k": 2}), "x does not fit"),
        (lambda: (Tensor([[1, 1]]), {"k": 2}), "x does not fit"),
        (lambda: (Tensor([[1.0, 1.0]], device="PYTHON"), {"k": 2}), "x is on PYTHON"),
        (lambda: (Tensor([[1.0, 1.0]]),), "structure"),
        (lambda: ([1.0, 1.0], {"k": 2}), "structure"),
        (lambda: (1.0, {"k": 2}), "x is a float, no tensor"),
    ],
)
def test_arguments_that_do_not_fit(saved, arguments, words):
    with pytest.raises(weft.UsageError, match=words):
        load_function(saved[1])(*arguments())


def test_damaged_files(saved, tmp_path):
    data = saved[1].read_bytes()
    path = tmp_path / "bad.weft"
    damaged = {
        b"": "no exported function",
        b"something else": "no exported function",
        data[:10]: "no exported function",
        data[:40]: "ends inside of its header",
        data[:-1]: "bytes where its header tells of",
        data + b"x": "bytes where its header tells of",
        data[:-5] + b"12345": "checksum",
        data.replace(b'"version": 2', b'"version": 7'): "the version of the format is 7",
        data.replace(b'"name"', b'"name'): "the header is damaged",
    }
    for contents, words in damaged.items():
        path.write_bytes(contents)
        with pytest.raises(weft.FileFormatError, match=words):
            load_function(path)


def test_headers_that_lie(saved, tmp_path):
    header, blocks = read_container(saved[1])
    path = tmp_path / "bad.weft"
    for key in ("roles", "rows", "recipes", "memory", "leaves", "outputs"):
        rest = {name: value for name, value in header.items() if name != key}
        write_container(path, rest, blocks)
        with pytest.raises(weft.FileFormatError, match="the header says what no function is"):
            load_function(path)
    write_container(path, header, [b"nonsense", *blocks[1:]])
    with pytest.raises(weft.FileFormatError):
        load_function(path)


def test_what_cannot_be_saved(tmp_path):
    path = tmp_path / "f.weft"
    with pytest.raises(weft.ArgumentTypeError, match="not jitted"):
        save_function(len, path)
    unused = Tensor([1])
    with pytest.raises(weft.NotSupported, match="returns a tensor from outside"):
        save_function(jit(lambda x: unused), path, Tensor([1]))
    x = Tensor([1, 2])
    with pytest.raises(weft.NotSupported, match="share memory"):
        save_function(jit(lambda x, y: x + y), path, x, x)
    with pytest.raises(weft.NotSupported, match="a type has no form in a file"):
        save_function(jit(lambda x: (x, int)), path, x)
    assert not path.exists()


def test_a_call_does_not_see_the_arguments_of_another_one(tmp_path, monkeypatch):
    """As two threads would do it: a whole tensor is passed while a call with a view runs."""
    save_function(jit(lambda x: x * 2), tmp_path / "f.weft", Tensor([1.0, 2.0]))
    loaded = load_function(tmp_path / "f.weft")
    call, between = TracedProgram.call, []

    def interleaved(self, leaves):
        if not between:
            between.append(None)
            between[0] = loaded(Tensor([5.0, 6.0]).realize()).tolist()
        return call(self, leaves)

    monkeypatch.setattr(TracedProgram, "call", interleaved)
    base = Tensor(np.arange(1000, dtype=np.float32)).realize()
    assert loaded(base[500:502]).tolist() == [1000.0, 1002.0]
    assert between == [[10.0, 12.0]]


def test_a_donated_argument_that_no_result_can_take(tmp_path):
    save_function(jit(lambda x: x.sum(), donate=(0,)), tmp_path / "f.weft", Tensor([1.0, 2.0]))
    assert load_function(tmp_path / "f.weft")(Tensor([3.0, 4.0]).realize()).item() == 7


def test_a_training_step_goes_on(tmp_path):
    def make():
        Tensor.manual_seed(3)
        layers = nn.Linear(4, 8), nn.BatchNorm(8), nn.Linear(8, 2)
        optimizer = nn.optim.Adam(nn.state.get_parameters(layers), 0.01)

        @jit
        def step(x, y):
            with Tensor.train():
                optimizer.zero_grad()
                hidden = layers[1](layers[0](x)).relu().dropout(0.1)
                loss = layers[2](hidden).sparse_categorical_crossentropy(y)
                loss.backward()
                optimizer.step()
                return loss

        return step

    x = Tensor(np.random.default_rng(0).standard_normal((6, 4), np.float32)).realize()
    y = Tensor([0, 1, 1, 0, 1, 0]).realize()
    step = make()
    step(x, y)
    save_function(step, tmp_path / "step.weft")
    loaded = load_function(tmp_path / "step.weft")
    assert [loaded(x, y).item() for _ in range(3)] == [step(x, y).item() for _ in range(3)]
