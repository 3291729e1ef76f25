"""`torch.compile(backend="weft")` on whole modules: results, gradients, buffers, randomness."""

import copy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from tests.unit.interop.torch.torch_modules import MODULES, example  # noqa: E402
from weft.interop.torch.backend import weft  # noqa: E402

pytestmark = [
    pytest.mark.peers("torch"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]
ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture(autouse=True)
def _fresh_dynamo():
    torch._dynamo.reset()
    with torch._dynamo.config.patch(allow_rnn=True):
        yield
    torch._dynamo.reset()


def compiled(function, **options):
    return torch.compile(function, backend=weft, fullgraph=True, **options)


def assert_close(found, wanted, name=""):
    scale = max(float(wanted.detach().abs().max()), 1.0) if wanted.numel() else 1.0
    assert found.dtype == wanted.dtype and found.shape == wanted.shape, name
    torch.testing.assert_close(found, wanted, rtol=2e-5, atol=3e-5 * scale, msg=lambda m: name + m)


def step(function, x, seed):
    """The result, after gradients of a sum that gives each element a weight of its own."""
    torch.manual_seed(seed)
    result = function(x)
    weights = torch.linspace(-1, 2, result.numel()).sin().reshape(result.shape)
    (result.square() * weights).sum().backward()
    return result


@pytest.mark.parametrize("name", MODULES)
def test_module_and_its_gradients(name):
    module, x = example(name)
    twin = copy.deepcopy(module)
    inputs = [x.clone().requires_grad_(x.is_floating_point()) for _ in range(2)]
    fast = compiled(module)
    for seed in range(2):  # the second step has the running statistics of the first
        found, wanted = step(fast, inputs[0], seed), step(twin, inputs[1], seed)
        assert_close(found, wanted, "result: ")
    if x.is_floating_point():
        assert_close(inputs[0].grad, inputs[1].grad, "input: ")
    for (key, own), other in zip(module.named_parameters(), twin.parameters(), strict=True):
        assert_close(own.grad, other.grad, f"{key}: ")
    for (key, own), other in zip(module.named_buffers(), twin.buffers(), strict=True):
        assert_close(own, other, f"{key}: ")


@pytest.mark.parametrize("name", ["CNN", "transformer encoder", "embedding bag"])
def test_module_in_evaluation(name):
    module, x = example(name)
    module.eval()
    with torch.no_grad():
        assert_close(compiled(module)(x), module(x))


def test_parameters_are_shared_and_updates_are_seen():
    module, x = example("MLP")
    fast = compiled(module)
    with torch.no_grad():
        before = fast(x)
        for parameter in module.parameters():
            parameter.mul_(0.5)
        assert_close(fast(x), module(x))
        assert not torch.equal(before, fast(x))


def test_training_goes_as_without_a_compiler():
    module, x = example("MLP")
    twin = copy.deepcopy(module)
    fast = compiled(module)
    for run, owner in ((fast, module), (twin, twin)):
        optimizer = torch.optim.Adam(owner.parameters(), lr=1e-2)
        for _ in range(5):
            optimizer.zero_grad()
            run(x).square().mean().backward()
            optimizer.step()
    for own, other in zip(module.parameters(), twin.parameters(), strict=True):
        assert_close(own, other)


def test_other_shapes_are_traced_anew():
    module, _ = example("GPT block")
    fast = compiled(module)
    for batch, time in ((2, 5), (3, 5), (4, 9), (2, 5)):
        x = torch.randn(batch, time, 16)
        assert_close(fast(x), module(x))


def test_symbolic_shapes_draw_and_save():
    """Sizes are inputs of the graph then, drawn numbers have them, and some go to backward."""

    def function(x):
        y = torch.nn.functional.dropout(x, 0.5) + torch.rand(x.shape[0], 1)
        return (y.sum(0) * x.shape[0]).exp()

    fast = compiled(function, dynamic=True)
    for rows in (3, 5, 8):
        x = torch.randn(rows, 4) * 0.01
        own, other = x.clone().requires_grad_(), x.clone().requires_grad_()
        assert_close(step(fast, own, rows), step(function, other, rows))
        assert_close(own.grad, other.grad)


def test_random_numbers_are_those_of_the_seed():
    def function(x):
        noise = torch.randn_like(x.t()).t() + torch.rand(3, 4)
        mask = torch.bernoulli(torch.full((3, 4), 0.5))
        order = torch.randperm(4)
        return torch.nn.functional.dropout(x + noise * mask, 0.3)[:, order]

    fast, x = compiled(function), torch.ones(3, 4)
    torch.manual_seed(5)
    first, second = fast(x), fast(x)
    torch.manual_seed(5)
    assert_close(first, function(x))
    assert_close(second, function(x))
    assert not torch.equal(first, second)


def test_memory_in_another_order():
    """Inputs, results and saved values keep their strides, without gaps or expanded axes."""

    def function(x, y):
        z = torch.nn.functional.conv2d(x, y).relu()
        return (
            z,
            z.permute(0, 2, 3, 1),
            x.transpose(1, 3) + 1,
            z.sum(0, keepdim=True).expand(5, -1, -1, -1),
        )

    x = torch.randn(2, 3, 6, 5).to(memory_format=torch.channels_last)
    y = torch.randn(4, 5, 3, 3)[:, :3]  # with gaps
    for found, wanted in zip(compiled(function)(x, y), function(x, y), strict=True):
        assert_close(found, wanted)
    scattered = torch.randn(4, 6)[:, ::2].t()
    assert_close(compiled(torch.softmax)(scattered, 1), torch.softmax(scattered, 1))


def test_outputs_have_memory_of_their_own():
    def function(x):
        return x + 1, (x + 1).clone(), x.view(-1), x

    x = torch.randn(2, 3)
    first, second, flat, same = compiled(function)(x)
    first.zero_()
    assert_close(second, x + 1)
    x.zero_()
    assert flat.count_nonzero() == 0 and same.data_ptr() == x.data_ptr()


def test_results_outlive_their_inputs():
    fast = compiled(lambda x: x * 2)
    kept = [fast(torch.full((64,), float(value))) for value in range(20)]
    assert [int(each[7]) for each in kept] == [2 * value for value in range(20)]


def test_writes_to_inputs_are_done():
    def function(x, y):
        x.add_(1)
        y[0] = x.sum()
        return x * y

    own, other = (torch.ones(3), torch.zeros(3)), (torch.ones(3), torch.zeros(3))
    assert_close(compiled(function)(*own), function(*other))
    assert_close(own[0], other[0])
    assert_close(own[1], other[1])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int32", "int64", "bool"])
def test_dtypes(dtype):
    x = torch.arange(6).reshape(2, 3).to(getattr(torch, dtype))

    def function(x):
        return x + 1, x * 0.5, x.float().sum(), x > 1, x.sum()

    for found, wanted in zip(compiled(function)(x), function(x), strict=True):
        torch.testing.assert_close(found, wanted)


def test_everything_missing_is_named_at_once():
    def function(x):
        values = torch.linalg.eigvalsh(x @ x.t()) + torch.special.airy_ai(x)
        return torch.special.zeta(values, x) + torch.special.zeta(x, values)

    with pytest.raises(Exception, match=r"lacks 3 of what") as caught:
        compiled(function)(torch.eye(3))
    text = str(caught.value)
    assert (
        "_linalg_eigh" in text
        and "special_airy_ai.default" in text
        and "special_zeta.default" in text
    )
    assert "2 times" in text and "torch.compiler.disable" in text


def test_complex_numbers_are_refused_by_name():
    with pytest.raises(Exception, match=r"tensors of torch\.complex64"):
        compiled(lambda x: torch.fft.fft(x).real)(torch.ones(4))


def test_name_works_without_an_import_of_weft(tmp_path):
    """PyTorch finds the backend among the entry points of what is installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    rows = project["entry-points"]["torch_dynamo_backends"]
    installed = tmp_path / "weft-0.1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: weft\nVersion: 0.1.0\n")
    text = "\n".join(f"{name} = {value}" for name, value in rows.items())
    (installed / "entry_points.txt").write_text(f"[torch_dynamo_backends]\n{text}\n")
    program = (
        f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(ROOT)!r}]\n"
        "import torch\n"
        "assert 'weft' in torch._dynamo.list_backends()\n"
        "assert 'weft' not in sys.modules\n"
        "print(torch.compile(lambda x: x.sin() + 1, backend='weft')(torch.zeros(2)).tolist())\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "[1.0, 1.0]\n", done.stderr
