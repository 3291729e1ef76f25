"""Every example runs, with settings small enough for a test, and does what it says."""

import importlib
from pathlib import Path
from types import ModuleType

import pytest

from weft.support.settings import settings

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SHARED = {"package_file", "progress"}
WITH_WEIGHTS = {"minilm", "smollm2"}  # in tests/end_to_end/test_examples.py


@pytest.fixture
def example(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module of the example that the test is called after."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return importlib.import_module(request.node.name.removeprefix("test_").partition("_on_")[0])


def test_every_example_has_a_test():
    tested = {name.removeprefix("test_") for name in globals() if name.startswith("test_")}
    examples = {path.stem for path in EXAMPLES.glob("*.py")} - SHARED
    assert not examples - tested - WITH_WEIGHTS


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


def test_char_gpt(example, capsys, tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("to be, or not to be: that is the question.\n" * 40, encoding="utf-8")
    model = ["--width", "32", "--layers", "1", "--heads", "2", "--context", "16", "--batch", "8"]
    losses = example.main([*model, "--steps", "60", "--length", "20", "--text", str(path)])
    assert losses[0] > 2.5
    assert losses[-1] < 1.2
    written = capsys.readouterr().out.partition("not seen\n")[2]
    assert len(written) == 22  # the first character, 20 more, and the end of the line
    assert set(written) <= set(path.read_text(encoding="utf-8"))


def test_char_gpt_on_what_comes_after(example):
    """No logits depend on later tokens, so a window can be filled with anything behind them."""
    example.Tensor.manual_seed(0)
    model = example.GPT(symbols=5, context=8, width=16, layers=2, heads=2)
    example.Tensor.realize(*example.nn.state.get_parameters(model))  # both run the same kernels
    tokens = example.np.array([[1, 2, 3, 4, 0, 1, 2, 3]], example.np.int32)
    later = tokens.copy()
    later[0, 5:] = 0
    first, second = (model(example.Tensor(each)).numpy() for each in (tokens, later))
    assert (first[0, :5] == second[0, :5]).all()
    assert (first[0, 5:] != second[0, 5:]).all()


def test_cifar_resnet(example):
    args = ["--synthetic", "500", "--epochs", "3", "--batch", "40", "--width", "4"]
    assert example.main(args) > 0.25  # a guess is right once in ten times


def test_cifar_resnet_on_moved_images(example):
    """Every augmented image is the image or its mirror image, moved, with black behind it."""
    np = example.np
    side, margin = 6, 2
    images = np.arange(1, 1 + 20 * 3 * side * side, dtype=np.int32).reshape(20, 3, side, side)
    example.Tensor.manual_seed(0)
    found = example.augmented(example.Tensor(images), margin).numpy()
    seen = set()
    for image, made in zip(images, found, strict=True):
        for flipped in (False, True):
            padded = np.pad(
                image[:, :, ::-1] if flipped else image, ((0, 0), *[(margin,) * 2] * 2)
            )
            for y in range(2 * margin + 1):
                for x in range(2 * margin + 1):
                    if (padded[:, y : y + side, x : x + side] == made).all():
                        seen.add((len(seen), flipped, y, x))
    assert len(seen) == len(images)
    assert {flipped for _, flipped, _, _ in seen} == {False, True}
    assert len({(y, x) for _, _, y, x in seen}) > 5


def test_custom_gradient(example):
    plain, straight = example.main(["--epochs", "2", "--hidden", "32"])
    assert plain < 0.5
    assert straight > 0.7


def test_linear_attention(example):
    found = example.main(["--steps", "60"])
    assert found["StateSpace"] > 0.8
    assert found["TimeMix"] > 0.8
