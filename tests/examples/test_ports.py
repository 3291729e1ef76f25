"""Programs written for PyTorch that run here with other imports, and what they differ in.

`examples/ports/torch_NAME.py` is the original and `NAME.py` the port. Under the marker `peers`
both run from the same weights and with the same random numbers, and their losses are compared.
"""

import difflib
import functools
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

PORTS = Path(__file__).resolve().parents[2] / "examples" / "ports"
NAMES = ("diffusion", "gan", "pinn", "ppo", "translate")
TINY = {
    "diffusion": "--steps 2 --images 8 --batch 4 --size 8 --noise-steps 2 --channels 4 "
    "--multipliers 1 --samples 1",
    "gan": "--epochs 1 --images 64 --batch 32 --width 4 --nz 8",
    "pinn": "--adam 3 --lbfgs 6 --points 32 --width 8 --depth 2",
    "ppo": "--updates 1 --num-steps 16 --envs 4 --hidden 16 --epochs 2 --minibatches 2",
    "translate": "--rows 16 --batch 8 --longest 2 --width 16 --layers 1 --dropout 0",
}


def load(name: str) -> ModuleType:
    """A program as a module of its own."""
    spec = importlib.util.spec_from_file_location(f"port_{name}", PORTS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def changed_lines(before: str, after: str) -> list[str]:
    """Lines of the port that the original does not have, imports and blank ones left out."""
    lines = difflib.ndiff(before.splitlines(), after.splitlines())
    added = [line[2:] for line in lines if line.startswith("+ ")]
    return [line for line in added if line.strip() and not line.startswith(("import ", "from "))]


@pytest.mark.parametrize("name", NAMES)
def test_a_port_differs_in_its_imports(name: str):
    before = (PORTS / f"torch_{name}.py").read_text(encoding="utf-8")
    after = (PORTS / f"{name}.py").read_text(encoding="utf-8")
    changed = changed_lines(before, after)
    assert len(changed) <= 5
    assert [line for line in changed if "python" not in line] == []  # the command in the docstring
    assert "weft" not in before and "torch." not in "".join(
        line for line in after.splitlines() if line.startswith(("import", "from"))
    )


def test_changed_lines_are_found():
    assert changed_lines("import torch\nx = 1\n", "import weft\nx = 2\n") == ["x = 2"]


def test_every_port_is_listed():
    assert {path.stem for path in PORTS.glob("*.py")} == {
        each for name in NAMES for each in (name, f"torch_{name}")
    }


@pytest.mark.long
def test_gan(capsys):
    d_losses, g_losses, fake = load("gan").main(TINY["gan"].split())
    assert len(d_losses) == len(g_losses) == 2
    assert fake.shape == (4, 1, 16, 16)
    assert "Loss_D" in capsys.readouterr().out


def test_pinn():
    losses, u = load("pinn").main(TINY["pinn"].split())
    assert losses[-1] < losses[0]
    assert u.shape == (41,)


@pytest.mark.long
def test_ppo(capsys):
    losses, _ = load("ppo").main(TINY["ppo"].split())
    assert len(losses) == 4 and np.isfinite(losses).all()
    assert "the pole stood" in capsys.readouterr().out


@pytest.mark.long
def test_diffusion():
    losses, pictures = load("diffusion").main(TINY["diffusion"].split())
    assert len(losses) == 2 and np.isfinite(losses).all()
    assert pictures.abs().max().item() <= 1


@pytest.mark.long
def test_translate_goes_on_where_it_was(tmp_path, capsys):
    """Two epochs are the same two epochs where a checkpoint lies between them."""
    options, module = TINY["translate"].split(), load("translate")
    whole, model = module.main([*options, "--epochs", "2", "--checkpoint", str(tmp_path / "a")])
    for epochs in ("1", "2"):
        path = str(tmp_path / "b")
        parts, other = module.main([*options, "--epochs", epochs, "--checkpoint", path])
    assert "resumed after epoch 1" in capsys.readouterr().out
    assert len(whole) == 4
    assert parts == whole
    for name, value in model.state_dict().items():
        assert (value == other.state_dict()[name]).all().item(), name


class SameNumbers:
    """A framework whose random numbers are NumPy's, so that two of them draw the same."""

    def __init__(self, framework, seed: int = 0) -> None:
        self._framework, self._random = framework, np.random.default_rng(seed)

    def __getattr__(self, name: str):
        return getattr(self._framework, name)

    def _made(self, values):
        return self._framework.tensor(values)

    def manual_seed(self, seed: int) -> None:
        pass

    def rand(self, *shape, **_):
        shape = shape[0] if isinstance(shape[0], tuple) else shape
        return self._made(self._random.random(shape, np.float32))

    def randn(self, *shape, **_):
        shape = shape[0] if isinstance(shape[0], tuple) else shape
        return self._made(self._random.standard_normal(shape, np.float32))

    def randn_like(self, x):
        return self.randn(tuple(x.shape))

    def randint(self, low, high, size, **_):
        return self._made(self._random.integers(low, high, size))


def with_same_numbers(module: ModuleType) -> ModuleType:
    """The program with random numbers of NumPy, and batches in the order of the dataset."""
    module.torch = SameNumbers(module.torch)
    if hasattr(module, "DataLoader"):
        loader = module.DataLoader
        module.DataLoader = lambda *args, shuffle=False, **kwargs: loader(*args, **kwargs)
    if hasattr(module, "Categorical"):
        random = np.random.default_rng(1)

        class Drawn(module.Categorical):
            def sample(self, sample_shape=()):
                chance = self.probs.detach().numpy().cumsum(-1)
                drawn = (chance < random.random((*chance.shape[:-1], 1))).sum(-1)
                return module.torch.tensor(np.minimum(drawn, chance.shape[-1] - 1))

        module.Categorical = Drawn
    return module


def models_of(name: str, module: ModuleType) -> list:
    """The networks whose weights both programs begin with."""
    makers = {
        "diffusion": lambda: [module.UNet(4, [1])],
        "gan": lambda: [module.Generator(8, 4), module.Discriminator(4)],
        "pinn": lambda: [module.MLP([2, 8, 8, 1])],
        "ppo": lambda: [module.Agent(16)],
        "translate": lambda: [module.Translator(16, layers=1, dropout=0)],
    }
    return makers[name]()


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("name", NAMES)
def test_losses_are_those_of_the_original(name: str, tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(sys, "argv", ["port"])
    torch.manual_seed(0)
    original, port = (with_same_numbers(load(each)) for each in (f"torch_{name}", name))
    files = []
    for number, model in enumerate(models_of(name, original)):
        files.append(str(tmp_path / f"{number}.pt"))
        torch.save(model.state_dict(), files[-1])
    options = [*TINY[name].split(), "--weights", *files]
    if name == "translate":
        options += ["--epochs", "2"]
        first, second = ([*options, "--checkpoint", str(tmp_path / part)] for part in "ab")
    else:
        first = second = options
    expected, found = original.main(first), port.main(second)
    assert len(expected[0]) > 1
    np.testing.assert_allclose(found[0], expected[0], rtol=3e-4, atol=1e-5)
    values = functools.partial(np.testing.assert_allclose, rtol=2e-3, atol=2e-3)
    if name in ("diffusion", "gan", "pinn"):
        values(found[-1].numpy(), expected[-1].detach().numpy())
    if name == "ppo":
        assert found[-1] == expected[-1]  # how long each pole stood
