"""Every layer against PyTorch's: weights load by name; outputs and gradients agree."""

import numpy as np
import pytest

from tests.unit.nn.compare import assert_like_torch, drawn
from weft import nn
from weft.nn.state import get_state_dict
from weft.tensor import Tensor

pytestmark = pytest.mark.peers("torch")

IMAGE, LINE, BOX = (2, 4, 7, 6), (2, 4, 9), (1, 2, 4, 5, 4)

# (layer, its arguments, the shape of its input); the class has PyTorch's name.
CASES = [
    ("Linear", (5, 3), {}, (4, 5)),
    ("Linear", (5, 3), {"bias": False}, (2, 4, 5)),
    ("Conv1d", (4, 6, 3), {"stride": 2, "padding": 1}, LINE),
    ("Conv2d", (4, 6, 3), {}, IMAGE),
    ("Conv2d", (4, 6, (3, 2)), {"stride": (2, 1), "padding": (1, 0), "dilation": 2}, IMAGE),
    ("Conv2d", (4, 6, 3), {"groups": 2, "bias": False}, IMAGE),
    ("Conv2d", (4, 4, (4, 3)), {"padding": "same"}, IMAGE),
    ("Conv2d", (4, 4, 2), {"padding": "valid"}, IMAGE),
    ("Conv3d", (2, 3, 2), {"padding": 1}, BOX),
    ("ConvTranspose1d", (4, 6, 3), {"stride": 2, "output_padding": 1}, LINE),
    ("ConvTranspose2d", (4, 6, 3), {"stride": 2, "padding": 1}, IMAGE),
    ("ConvTranspose2d", (4, 6, 2), {"groups": 2, "dilation": 2, "bias": False}, IMAGE),
    ("GroupNorm", (2, 4), {}, IMAGE),
    ("GroupNorm", (4, 4), {"affine": False, "eps": 1e-3}, LINE),
    ("LayerNorm", (6,), {}, IMAGE),
    ("LayerNorm", ((7, 6),), {"elementwise_affine": False}, IMAGE),
    ("RMSNorm", (6,), {"eps": 1e-6}, IMAGE),
    ("ReLU", (), {}, LINE),
    ("LeakyReLU", (0.2,), {}, LINE),
    ("GELU", (), {}, LINE),
    ("GELU", ("tanh",), {}, LINE),
    ("SiLU", (), {}, LINE),
    ("Tanh", (), {}, LINE),
    ("Sigmoid", (), {}, LINE),
    ("Softmax", (1,), {}, LINE),
    ("Flatten", (), {}, IMAGE),
    ("MaxPool2d", (2,), {"stride": 1, "padding": 1}, IMAGE),
    ("AvgPool2d", (3,), {"padding": 1, "count_include_pad": False}, IMAGE),
    ("LSTMCell", (4, 5), {}, (3, 4)),
    ("GRUCell", (4, 5), {"bias": False}, (3, 4)),
    ("LSTM", (4, 5), {}, (6, 3, 4)),
    ("LSTM", (4, 5), {"num_layers": 2, "bidirectional": True, "batch_first": True}, (3, 4, 4)),
    ("LSTM", (4, 5), {"bias": False}, (6, 4)),
    ("GRU", (4, 5), {"num_layers": 2}, (4, 3, 4)),
    ("GRU", (4, 5), {"bidirectional": True}, (4, 4)),
]


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel")
@pytest.mark.parametrize(
    ("name", "args", "kwargs", "shape"), CASES, ids=[f"{c[0]}-{i}" for i, c in enumerate(CASES)]
)
def test_layer(name, args, kwargs, shape):
    import torch

    torch.manual_seed(0)
    theirs = getattr(torch.nn, name)(*args, **kwargs)
    assert_like_torch(getattr(nn, name)(*args, **kwargs), theirs, drawn(*shape))


def test_embedding():
    import torch

    indices = np.array([[1, 4, 1], [0, 6, 3]])
    assert_like_torch(nn.Embedding(7, 3), torch.nn.Embedding(7, 3), indices)


def test_instance_norm():
    import torch

    assert_like_torch(nn.InstanceNorm(4), torch.nn.InstanceNorm2d(4, affine=True), drawn(*IMAGE))


def test_recurrent_layers_take_first_states():
    import torch

    h, c = drawn(2, 3, 5), drawn(2, 3, 5, seed=1)

    class Ours(nn.LSTM):
        def __call__(self, x, h, c):
            return super().__call__(x, (h, c))

    class Theirs(torch.nn.LSTM):
        def forward(self, x, h, c):
            return super().forward(x, (h, c))

    assert_like_torch(Ours(4, 5, 2), Theirs(4, 5, 2), drawn(4, 3, 4), h, c)
    assert_like_torch(nn.GRU(4, 5, 2), torch.nn.GRU(4, 5, 2), drawn(4, 3, 4), h)


@pytest.mark.parametrize("momentum", [0.1, 0.3, None])
@pytest.mark.parametrize("shape", [(5, 3), (4, 3, 6), (4, 3, 2, 5), (2, 3, 2, 2, 3)])
def test_batch_norm(shape, momentum):
    import torch

    kind = {2: "BatchNorm1d", 3: "BatchNorm1d", 4: "BatchNorm2d", 5: "BatchNorm3d"}[len(shape)]
    theirs = getattr(torch.nn, kind)(3, momentum=momentum)
    ours = nn.BatchNorm(3, momentum=momentum)
    with Tensor.train():
        assert_like_torch(ours, theirs, drawn(*shape))
        x = drawn(*shape, seed=3)
        ours(Tensor(x)), theirs(torch.tensor(x))
    assert_like_torch(ours, theirs.eval(), drawn(*shape))
    for name, value in theirs.state_dict().items():
        got = get_state_dict(ours)[name].numpy()
        np.testing.assert_allclose(got, value.numpy(), rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("affine", [True, False])
def test_batch_norm_is_differentiated_twice(affine):
    import torch

    theirs = torch.nn.BatchNorm2d(3, affine=affine)
    ours = nn.BatchNorm(3, affine=affine)
    values = drawn(4, 3, 2, 5)
    x, y = Tensor(values), torch.tensor(values, requires_grad=True)
    with Tensor.train():
        weights = [ours.weight] if affine else []
        slopes = (ours(x) ** 3).sum().gradient(x, *weights)
    second = sum((slope * slope).sum() for slope in slopes).gradient(x)[0]
    wanted = [y, theirs.weight] if affine else [y]
    first = torch.autograd.grad((theirs(y) ** 3).sum(), wanted, create_graph=True)
    (expected,) = torch.autograd.grad(sum((slope * slope).sum() for slope in first), y)
    for mine, other in zip((*slopes, second), (*first, expected), strict=True):
        np.testing.assert_allclose(mine.numpy(), other.detach().numpy(), rtol=2e-4, atol=1e-3)


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("bias", [True, False])
def test_multi_head_attention(batch_first, bias):
    import torch

    theirs = torch.nn.MultiheadAttention(8, 2, bias=bias, batch_first=batch_first)
    ours = nn.MultiHeadAttention(8, 2, bias=bias, batch_first=batch_first)
    other = (3, 6, 8) if batch_first else (6, 3, 8)
    query = (3, 5, 8) if batch_first else (5, 3, 8)
    key, value = drawn(*other, seed=1), drawn(*other, seed=2)
    assert_like_torch(ours, theirs, drawn(*query), key, value)
    assert_like_torch(ours, theirs, drawn(*query), key, value, average_attn_weights=False)


def test_masks_of_attention():
    import torch

    theirs = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    ours = nn.MultiHeadAttention(8, 2, batch_first=True)
    x = drawn(3, 5, 8)
    padding = np.zeros((3, 5), bool)
    padding[1, 3:] = True
    added = np.triu(drawn(5, 5), 1)
    forbidden = np.triu(np.ones((5, 5), bool), 1)
    each = np.tile(forbidden, (6, 1, 1))
    load = nn.state.load_state_dict
    load(ours, {k: Tensor(v.detach().numpy()) for k, v in theirs.state_dict().items()})
    a, b = Tensor(x), torch.tensor(x)
    for attn, pad in [(forbidden, None), (None, padding), (forbidden, padding), (added, None),
                      (each, padding)]:  # fmt: skip
        masks = {"attn_mask": attn, "key_padding_mask": pad}
        got, _ = ours(a, a, a, **{k: v if v is None else Tensor(v) for k, v in masks.items()})
        want, _ = theirs(b, b, b, **{
            k: v if v is None else torch.tensor(v) for k, v in masks.items()
        })  # fmt: skip
        np.testing.assert_allclose(got.numpy(), want.detach().numpy(), rtol=1e-4, atol=1e-5)
    causal, _ = ours(a, is_causal=True)
    want, _ = theirs(b, b, b, attn_mask=torch.tensor(forbidden))
    np.testing.assert_allclose(causal.numpy(), want.detach().numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_transformer_encoder_layer(norm_first, activation):
    import torch

    options = {"activation": activation, "norm_first": norm_first, "batch_first": True}
    theirs = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, **options)
    ours = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, **options)
    assert_like_torch(ours, theirs, drawn(3, 5, 8))
