"""`weft.from_torch`: layers, containers and traced modules, on shared weights."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402, N812 -- as everyone calls it

import weft  # noqa: E402
from tests.unit.interop.torch.torch_modules import GPTBlock, ResidualBlock  # noqa: E402
from weft import Tensor  # noqa: E402

pytestmark = pytest.mark.peers("torch")


def layers():
    yield nn.Linear(4, 3), (2, 4)
    yield nn.Linear(4, 3, bias=False), (2, 4)
    yield nn.Bilinear(4, 4, 2), (2, 4)
    yield nn.Conv1d(4, 6, 3, stride=2, padding=1, groups=2), (2, 4, 9)
    yield nn.Conv2d(3, 4, (3, 5), padding="same", bias=False), (2, 3, 6, 5)
    yield nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect", dilation=2), (2, 3, 8, 8)
    yield nn.Conv3d(2, 3, 2), (1, 2, 4, 4, 4)
    yield nn.ConvTranspose1d(4, 3, 3, stride=2), (2, 4, 5)
    yield nn.ConvTranspose2d(4, 2, 3, stride=2, padding=1, output_padding=1), (2, 4, 5, 5)
    yield nn.BatchNorm1d(4), (5, 4)
    yield nn.BatchNorm2d(4, eps=1e-3, momentum=0.3), (2, 4, 3, 3)
    yield nn.BatchNorm2d(4, affine=False), (2, 4, 3, 3)
    yield nn.GroupNorm(2, 4), (2, 4, 3)
    yield nn.LayerNorm((3, 4), eps=1e-3), (2, 3, 4)
    yield nn.LayerNorm(4, bias=False), (2, 4)
    yield nn.LSTM(4, 5, num_layers=2, batch_first=True, bidirectional=True), (2, 3, 4)
    yield nn.GRU(4, 5, bias=False), (3, 2, 4)
    yield nn.LSTMCell(4, 5), (2, 4)
    yield nn.GRUCell(4, 5), (2, 4)
    yield nn.MaxPool2d(2, stride=1, padding=1), (2, 3, 5, 5)
    yield nn.AvgPool2d(3, ceil_mode=True), (2, 3, 7, 7)
    yield nn.AdaptiveAvgPool2d((2, 3)), (2, 3, 7, 7)
    yield nn.Upsample(scale_factor=2, mode="nearest"), (1, 2, 3, 3)
    yield nn.PixelShuffle(2), (1, 4, 3, 3)
    yield nn.ZeroPad2d(1), (1, 2, 3, 3)
    yield nn.Flatten(), (2, 3, 4)
    yield nn.Unflatten(1, (2, 2)), (3, 4)
    yield nn.PReLU(), (3, 4)
    yield nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True), (2, 5, 8)
    yield nn.TransformerEncoderLayer(8, 2, 16, activation="gelu"), (5, 2, 8)
    activations = (
        nn.ReLU(inplace=True), nn.GELU(), nn.GELU(approximate="tanh"), nn.SiLU(), nn.Mish(),
        nn.Sigmoid(), nn.Tanh(), nn.ELU(0.7), nn.CELU(0.7), nn.SELU(), nn.LeakyReLU(0.2),
        nn.Softplus(2, 5), nn.Softmax(1), nn.LogSoftmax(0), nn.Hardtanh(-2, 0.5), nn.ReLU6(),
        nn.Hardswish(), nn.Hardsigmoid(), nn.Softsign(), nn.Tanhshrink(), nn.Softshrink(0.2),
        nn.Hardshrink(0.2), nn.LogSigmoid(), nn.GLU(1), nn.Threshold(0.1, 2.0), nn.Identity(),
    )  # fmt: skip
    for layer in activations:
        yield layer, (3, 4)


torch.manual_seed(0)
LAYERS = list(layers())


def flat(value):
    if isinstance(value, (tuple, list)):
        return [each for part in value for each in flat(part)]
    return [value]


def assert_same(found, wanted, **tolerance):
    for own, other in zip(flat(found), flat(wanted), strict=True):
        np.testing.assert_allclose(
            own.numpy(), other.detach().numpy(), **{"rtol": 1e-5, "atol": 1e-5, **tolerance}
        )


@pytest.mark.parametrize("number", range(len(LAYERS)), ids=lambda n: f"{LAYERS[n][0]}"[:30])
def test_layer(number):
    module, shape = copy.deepcopy(LAYERS[number])
    torch.manual_seed(number)
    x = torch.randn(shape)
    inputs = (x, x.flip(0)) if isinstance(module, nn.Bilinear) else (x,)
    for training in (True, False):
        module.train(training and not isinstance(module, nn.TransformerEncoderLayer))
        twin = weft.from_torch(copy.deepcopy(module))
        with torch.no_grad():
            wanted = module(*(each.clone() for each in inputs))
        found = twin(*(Tensor(each.numpy()) for each in inputs))
        assert_same(found, wanted)
        own = {key: value.numpy() for key, value in twin.state_dict().items()}
        for key, value in module.state_dict().items():
            if key in own or value.is_floating_point():
                np.testing.assert_allclose(own[key], value.numpy(), rtol=1e-5, atol=1e-5)


def test_attention_with_a_mask():
    module = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    x, mask = torch.randn(2, 5, 8), torch.ones(5, 5, dtype=torch.bool).triu(1)
    twin = weft.from_torch(module)
    shared = Tensor(x.numpy())
    found = twin(shared, shared, shared, attn_mask=Tensor(mask.numpy()))
    assert_same(found, module(x, x, x, attn_mask=mask))


def test_embeddings():
    index = torch.tensor([[1, 2, 0], [4, 3, 1]])
    for module in (nn.Embedding(5, 3, padding_idx=1), nn.EmbeddingBag(5, 3, mode="sum")):
        assert_same(weft.from_torch(module)(Tensor(index.numpy())), module(index))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 6))
        self.blocks = nn.ModuleList([nn.Linear(6, 6) for _ in range(2)])
        self.scale = nn.Parameter(torch.randn(6))
        self.register_buffer("shift", torch.randn(6))

    def forward(self, x, factor=2.0):
        y = self.body(x) * self.scale + self.shift
        for block in self.blocks:
            y = F.gelu(block(y)) + torch.cat([y[:, :3], y[:, 3:].tanh()], dim=1)
        return y.view(x.size(0), 2, -1).mean(dim=1) * factor


def test_module_with_a_forward_of_its_own():
    module, x = Net(), torch.randn(4, 6)
    twin = weft.from_torch(module)
    assert_same(twin(Tensor(x.numpy())), module(x))
    assert_same(twin(Tensor(x.numpy()), factor=3.0), module(x, factor=3.0))
    assert set(twin.state_dict()) == set(module.state_dict())
    assert {name for name, _ in twin.named_parameters()} == dict(module.named_parameters()).keys()


@pytest.mark.parametrize("make", [ResidualBlock, GPTBlock])
def test_blocks(make):
    module = make().eval()
    x = torch.randn(2, 8, 5, 5) if make is ResidualBlock else torch.randn(2, 7, 16)
    assert_same(weft.from_torch(module)(Tensor(x.numpy())), module(x))


def test_gradients_are_equal():
    module, x = Net(), torch.randn(4, 6)
    twin = weft.from_torch(module)
    module(x).square().sum().backward()
    twin(Tensor(x.numpy())).square().sum().backward()
    theirs = dict(module.named_parameters())
    for name, parameter in twin.named_parameters():
        assert_same(parameter.grad, theirs[name].grad, rtol=1e-4, atol=1e-4)


def test_weights_are_shared_both_ways():
    module = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    twin = weft.from_torch(module)
    with torch.no_grad():
        module[0].weight.fill_(3.0)
    assert (twin[0].weight.numpy() == 3.0).all()
    optimizer = weft.nn.optim.SGD(list(twin.parameters()), lr=0.5)
    x = Tensor([[1.0, 2.0, 3.0], [0.0, 1.0, -1.0]])
    (twin(x) * Tensor([[1.0, 2.0], [-0.5, 1.0]])).sum().backward()
    optimizer.step()
    for own, other in zip(twin.parameters(), module.parameters(), strict=True):
        np.testing.assert_array_equal(own.numpy(), other.detach().numpy())
    np.testing.assert_array_equal(twin[1].running_mean.numpy(), module[1].running_mean.numpy())
    assert module[1].running_mean.abs().sum() > 0


def test_frozen_and_tied_weights_stay_so():
    module = nn.ModuleDict({"a": nn.Linear(3, 3), "b": nn.Linear(3, 3)})
    module["b"].weight = module["a"].weight
    module["a"].bias.requires_grad_(False)
    twin = weft.from_torch(module)
    assert twin["a"].weight is twin["b"].weight
    assert twin["a"].bias.requires_grad is False and twin["b"].bias.requires_grad is True
    assert {name for name, _ in twin.named_parameters()} >= {"a.bias", "b.bias"}


def test_all_missing_layers_are_named():
    module = nn.Sequential(
        nn.CosineSimilarity(), nn.LinearCrossEntropyLoss(2, 3), nn.DataParallel(nn.Linear(2, 2))
    )
    with pytest.raises(weft.NotSupported, match="DataParallel, LinearCrossEntropyLoss"):
        weft.from_torch(module)


def test_options_that_are_missing_are_refused():
    with pytest.raises(weft.NotSupported, match="proj_size=2"):
        weft.from_torch(nn.LSTM(3, 4, proj_size=2))


def test_forward_that_depends_on_values_is_refused():
    class Asks(nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x

    with pytest.raises(weft.NotSupported, match="cannot be traced"):
        weft.from_torch(Asks())


def test_other_objects_are_refused():
    with pytest.raises(weft.ArgumentTypeError, match="expected a module"):
        weft.from_torch(torch.ones(2))


DTYPES = ("float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8",
          "bool")  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
def test_dlpack_both_ways(dtype):
    theirs = torch.tensor([[0, 1, 2], [3, 1, 0]]).to(getattr(torch, dtype))
    ours = Tensor.from_dlpack(theirs)
    assert ours.dtype.name == dtype
    theirs[0, 0] = 1
    assert ours.cast("int32").tolist() == theirs.int().tolist()
    back = torch.from_dlpack(ours)
    assert back.data_ptr() == theirs.data_ptr() and back.dtype == theirs.dtype
    computed = torch.from_dlpack((ours + ours).cast(dtype))
    assert torch.equal(computed, (theirs + theirs).to(theirs.dtype))


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_recurrent_layers_and_transformers():
    """Options that constructors do not name are taken too: the nonlinearity, the parts."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(4, 2, 8, 0.0, "gelu", batch_first=True)
    pair = (torch.randn(2, 3, 4), torch.randn(2, 3, 4))
    for module, given in (
        (nn.RNN(4, 3, 1, "relu", batch_first=True), pair[:1]),
        (nn.TransformerEncoder(layer, 2, nn.LayerNorm(4)), pair[:1]),
        (nn.TransformerDecoderLayer(4, 2, 8, 0.0, norm_first=True), pair),
        (nn.Transformer(4, 2, 1, 1, 8, 0.0, batch_first=True), pair),
    ):
        expected = module.eval()(*given)
        found = weft.from_torch(module)(*(weft.Tensor(each.numpy()) for each in given))
        if isinstance(expected, tuple):
            expected, found = expected[0], found[0]
        np.testing.assert_allclose(found.numpy(), expected.detach().numpy(), 1e-4, 1e-5)
