"""Every example runs, with settings small enough for a test, and does what it says."""

import importlib
from pathlib import Path
from types import ModuleType

import pytest

from weft.support.settings import settings

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SHARED = {"progress"}
TESTED = {"cartpole", "custom_kernel", "gradient_accumulation", "mnist_convnet", "vae"}


@pytest.fixture
def example(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module of the example that the test is called after."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return importlib.import_module(request.node.name.removeprefix("test_").partition("_on_")[0])


def test_every_example_has_a_test():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == TESTED | SHARED


def test_mnist_convnet(example):
    args = ["--dataset", "digits", "--epochs", "2", "--batch", "60"]
    assert example.main(args) > 0.85


@pytest.mark.skipif(not settings.DATA, reason="WEFT_DATA names no folder with MNIST")
def test_mnist_convnet_on_mnist(example):
    assert example.main(["--epochs", "1", "--limit", "2000"]) > 0.75


def test_gradient_accumulation(example):
    assert example.main(["--batch", "256", "--pieces", "4"]) < 1e-5


def test_vae(example, capsys):
    losses = example.main(["--epochs", "3", "--batch", "256", "--hidden", "32", "--show", "1"])
    assert losses == sorted(losses, reverse=True)
    picture = capsys.readouterr().out.splitlines()[1:9]
    assert {len(line) for line in picture} == {16}


def test_cartpole(example):
    assert example.main(["--updates", "4", "--carts", "8", "--steps", "16"]) > 5
    carts = example.Carts(3, seed=0)
    for _ in range(40):  # pushed to one side alone, every pole falls soon
        carts.step(example.np.ones(3))
    assert 3 <= len(carts.finished) <= 15
    assert max(carts.finished) < 40


def test_custom_kernel(example, capsys):
    assert example.main(["--rows", "5", "--length", "40", "--window", "4"]) < 1e-5
    assert "3 kernels" in capsys.readouterr().out
