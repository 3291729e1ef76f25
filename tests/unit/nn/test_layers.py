"""Layers against formulas in NumPy; first values; errors. PyTorch is in test_layers_torch.py."""

import math

import numpy as np
import pytest

from tests.unit.nn.compare import drawn
from weft import nn
from weft.engine.counters import GlobalCounters
from weft.nn.state import get_parameters, get_state_dict
from weft.support.errors import ArgumentError, DTypeError, ShapeError
from weft.tensor import Tensor


def close(ours: Tensor, expected: np.ndarray, **tolerance: float) -> None:
    np.testing.assert_allclose(ours.numpy(), expected, **{"rtol": 1e-5, "atol": 1e-5, **tolerance})


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_linear():
    layer, x = nn.Linear(5, 3), drawn(4, 5)
    close(layer(Tensor(x)), x @ layer.weight.numpy().T + layer.bias.numpy())


def test_embedding():
    layer = nn.Embedding(7, 3)
    close(layer(Tensor([[6, 0], [2, 2]])), layer.weight.numpy()[[[6, 0], [2, 2]]])


def convolved(x, weight, bias):
    """A convolution by its definition."""
    batch, _, height, width = x.shape
    outputs, _, rows, columns = weight.shape
    result = np.zeros((batch, outputs, height - rows + 1, width - columns + 1))
    for i in range(result.shape[2]):
        for j in range(result.shape[3]):
            window = x[:, :, i : i + rows, j : j + columns]
            result[:, :, i, j] = np.tensordot(window, weight, ([1, 2, 3], [1, 2, 3])) + bias
    return result


def test_conv2d():
    layer, x = nn.Conv2d(3, 4, (3, 2)), drawn(2, 3, 6, 5)
    close(layer(Tensor(x)), convolved(x, layer.weight.numpy(), layer.bias.numpy()))


@pytest.mark.parametrize("axes", [1, 3])
def test_convolutions_of_other_ranks_are_conv2d_on_thin_axes(axes):
    layer = (nn.Conv1d if axes == 1 else nn.Conv3d)(2, 3, 2)
    x = drawn(2, 2, *[4] * axes)
    if axes == 1:
        flat = convolved(x[:, :, None], layer.weight.numpy()[:, :, None], layer.bias.numpy())
        close(layer(Tensor(x)), flat[:, :, 0])
    else:
        weight, bias = layer.weight.numpy(), layer.bias.numpy()
        planes = [
            convolved(x[:, :, i], weight[:, :, 0], bias)
            + convolved(x[:, :, i + 1], weight[:, :, 1], 0 * bias)
            for i in range(3)
        ]
        close(layer(Tensor(x)), np.stack(planes, 2))


@pytest.mark.parametrize("axes", [1, 2])
def test_a_transposed_convolution_is_the_transposed_matrix(axes):
    kind, other = [(nn.Conv1d, nn.ConvTranspose1d), (nn.Conv2d, nn.ConvTranspose2d)][axes - 1]
    down = kind(2, 3, 3, stride=2, bias=False)
    up = other(3, 2, 3, stride=2, bias=False)
    up.weight = down.weight
    x, y = drawn(1, 2, *[7] * axes), drawn(1, 3, *[3] * axes)
    left = (down(Tensor(x)).numpy() * y).sum()
    right = (up(Tensor(y)).numpy() * x).sum()
    assert left == pytest.approx(right, rel=1e-4)


@pytest.mark.parametrize(
    ("layer", "shape", "axes"),
    [
        (nn.LayerNorm(6), (2, 4, 3, 6), (3,)),
        (nn.LayerNorm((3, 6)), (2, 4, 3, 6), (2, 3)),
        (nn.LayerNorm2d(4), (2, 4, 3, 6), (1,)),
        (nn.InstanceNorm(4), (2, 4, 3, 6), (2, 3)),
        (nn.GroupNorm(1, 4), (2, 4, 3, 6), (1, 2, 3)),
    ],
)
def test_normalization(layer, shape, axes):
    x = drawn(*shape)
    mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    close(layer(Tensor(x)), (x - mean) / np.sqrt(variance + 1e-5))


def test_rms_norm():
    layer, x = nn.RMSNorm(6), drawn(4, 6)
    layer.weight.assign(drawn(6, seed=5))
    expected = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * drawn(6, seed=5)
    close(layer(Tensor(x)), expected)


def test_norms_of_halves_are_computed_in_float32():
    x = Tensor(drawn(4, 6) * 300, dtype="float16")
    for layer in (nn.RMSNorm(6), nn.LayerNorm(6)):
        layer.weight.replace(layer.weight.half())
        made = layer(x)
        assert made.dtype.name == "float16"
        assert np.isfinite(made.numpy()).all()


def test_batch_norm_in_and_after_training():
    layer, x = nn.BatchNorm(3), drawn(4, 3, 5)
    axes = (0, 2)
    mean, variance = x.mean(axes), x.var(axes)
    with Tensor.train():
        made = layer(Tensor(x))
    close(made, (x - mean[:, None]) / np.sqrt(variance[:, None] + 1e-5))
    running = 0.1 * mean, 0.9 + 0.1 * variance * 20 / 19
    close(layer.running_mean, running[0])
    close(layer.running_var, running[1])
    assert layer.num_batches_tracked.item() == 1
    close(layer(Tensor(x)), (x - running[0][:, None]) / np.sqrt(running[1][:, None] + 1e-5))
    assert layer.num_batches_tracked.item() == 1


def test_running_statistics_are_written_with_the_step():
    layer, x = nn.BatchNorm(3, affine=False), Tensor(drawn(4, 3)).realize()
    with Tensor.train():
        for _ in range(5):
            layer(x).realize()
            assert layer.running_mean._storage.is_realized
    assert layer.num_batches_tracked.item() == 5


def test_batch_norm_without_statistics():
    layer, x = nn.BatchNorm2d(3, affine=False, track_running_stats=False), drawn(2, 3, 2, 2)
    assert get_state_dict(layer) == {}
    mean = x.mean((0, 2, 3), keepdims=True)
    expected = (x - mean) / np.sqrt(x.var((0, 2, 3), keepdims=True) + 1e-5)
    close(layer(Tensor(x)), expected)


def lstm_step(x, h, c, layer, end=""):
    parts = get_state_dict(layer)
    weights = [
        parts[f"{n}{end}"].numpy() for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    ]
    i, f, g, o = np.split(x @ weights[0].T + h @ weights[1].T + weights[2] + weights[3], 4, -1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def test_lstm_cell_and_lstm():
    cell, x = nn.LSTMCell(4, 5), drawn(3, 4)
    zeros = np.zeros((3, 5))
    h, c = lstm_step(x, zeros, zeros, cell)
    close(cell(Tensor(x))[0], h)
    close(cell(Tensor(x))[1], c)
    layer, sequence = nn.LSTM(4, 5), drawn(6, 3, 4)
    h = c = zeros
    outputs = []
    for step in sequence:
        h, c = lstm_step(step, h, c, layer, "_l0")
        outputs.append(h)
    made, (last_h, last_c) = layer(Tensor(sequence))
    close(made, np.stack(outputs))
    close(last_h, h[None])
    close(last_c, c[None])


def test_gru_cell_and_gru():
    layer, sequence = nn.GRU(4, 5), drawn(6, 3, 4)
    weight_ih, weight_hh = layer.weight_ih_l0.numpy(), layer.weight_hh_l0.numpy()
    bias_ih, bias_hh = layer.bias_ih_l0.numpy(), layer.bias_hh_l0.numpy()
    h, outputs = np.zeros((3, 5)), []
    for x in sequence:
        a, b = x @ weight_ih.T + bias_ih, h @ weight_hh.T + bias_hh
        r, z = (sigmoid(a[:, k : k + 5] + b[:, k : k + 5]) for k in (0, 5))
        h = (1 - z) * np.tanh(a[:, 10:] + r * b[:, 10:]) + z * h
        outputs.append(h)
    made, last = layer(Tensor(sequence))
    close(made, np.stack(outputs))
    close(last, h[None])
    cell = nn.GRUCell(4, 5)
    cell.weight_ih, cell.weight_hh = layer.weight_ih_l0, layer.weight_hh_l0
    cell.bias_ih, cell.bias_hh = layer.bias_ih_l0, layer.bias_hh_l0
    close(cell(Tensor(sequence[0])), outputs[0])


def test_attention_of_one_head():
    layer, x = nn.MultiHeadAttention(4, 1, batch_first=True), drawn(2, 3, 4)
    q, k, v = np.split(x @ layer.in_proj_weight.numpy().T, 3, -1)
    scores = np.exp(q @ k.transpose(0, 2, 1) / 2)
    weights = scores / scores.sum(-1, keepdims=True)
    output, found = layer(Tensor(x))
    close(found, weights)
    close(output, weights @ v @ layer.out_proj.weight.numpy().T)


def test_weights_of_attention_cost_nothing_unless_read():
    layer, x = nn.MultiHeadAttention(8, 2, batch_first=True), Tensor(drawn(2, 3, 8)).realize()
    x.realize(*get_parameters(layer))
    counts = []
    for need in (True, False):
        output, _ = layer(x, need_weights=need)
        GlobalCounters.reset()
        output.realize()
        counts.append(GlobalCounters.kernel_count)
    assert counts[0] == counts[1]


def test_dropout_of_layers_acts_until_they_evaluate():
    Tensor.manual_seed(1)
    layer, x = nn.Dropout(0.25), Tensor.ones(4000)
    values = layer(x).numpy()
    assert set(np.round(values, 4)) == {0.0, np.float32(1.3333)}
    assert values.mean() == pytest.approx(1, abs=0.05)
    assert layer.eval()(x).numpy().tolist() == [1.0] * 4000
    stacked = nn.LSTM(3, 4, num_layers=2, dropout=0.5)
    sequence = Tensor(drawn(3, 2, 3))
    noisy = stacked(sequence)[0].numpy()
    stacked.eval()
    assert not np.allclose(noisy, stacked(sequence)[0].numpy())
    assert np.array_equal(stacked(sequence)[0].numpy(), stacked(sequence)[0].numpy())


def test_sequential_is_a_list():
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    assert list(get_state_dict(model)) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert model(Tensor(drawn(5, 3))).shape == (5, 2)
    assert nn.Identity()(model) is model


@pytest.mark.parametrize(
    ("layer", "bound"),
    [
        (lambda: nn.Linear(100, 200), 1 / 10),
        (lambda: nn.Conv2d(4, 64, 5, groups=2), 1 / math.sqrt(50)),
        (lambda: nn.LSTMCell(30, 49), 1 / 7),
        (lambda: nn.MultiHeadAttention(96, 2), math.sqrt(6 / (4 * 96))),
    ],
)
def test_first_values_are_uniform_within_a_bound(layer, bound):
    Tensor.manual_seed(3)
    values = next(iter(get_state_dict(layer()).values())).numpy()
    assert abs(values).max() <= bound
    assert values.std() == pytest.approx(bound / math.sqrt(3), rel=0.05)


def test_first_values_of_an_embedding_are_normal():
    Tensor.manual_seed(3)
    values = nn.Embedding(200, 50).weight.numpy()
    assert values.mean() == pytest.approx(0, abs=0.05)
    assert values.std() == pytest.approx(1, rel=0.05)


def test_parameters_require_gradients_and_statistics_do_not():
    layer = nn.BatchNorm(4)
    assert [each.requires_grad for each in get_parameters(layer)] == [True, True] + [False] * 3


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: nn.Linear(0, 3), ArgumentError, "Linear: in_features is 0"),
        (lambda: nn.Linear(3, 2)(Tensor.ones(4, 5)), ShapeError, "for 3 features"),
        (lambda: nn.Embedding(3, 2)(Tensor([1.0])), DTypeError, "indices of dtype float32"),
        (lambda: nn.Conv2d(4, 6, 3, groups=3), ArgumentError, "3 groups of 4 to 6 channels"),
        (lambda: nn.Conv2d(4, 6, (3, 3, 3)), ArgumentError, "a kernel of 3 sizes"),
        (lambda: nn.Conv2d(1, 1, 3, padding="half"), ArgumentError, "unknown padding 'half'"),
        (lambda: nn.Conv2d(1, 1, 3, 2, "same"), ArgumentError, "with stride 2"),
        (lambda: nn.BatchNorm(3)(Tensor.ones(2, 4)), ShapeError, "for 3 channels"),
        (lambda: nn.GroupNorm(3, 4), ArgumentError, "3 groups of 4 channels"),
        (lambda: nn.GroupNorm(2, 4)(Tensor.ones(2, 3)), ShapeError, "for 4 channels"),
        (lambda: nn.LayerNorm(3)(Tensor.ones(2, 4)), ShapeError, "shape \\(2, 4\\)"),
        (lambda: nn.RMSNorm(3)(Tensor.ones(2, 4)), ShapeError, "for 3 features"),
        (lambda: nn.LSTMCell(3, 4)(Tensor.ones(2, 5)), ShapeError, "for 3 features"),
        (lambda: nn.LSTM(3, 4, dropout=2), ArgumentError, "dropout is 2"),
        (lambda: nn.GRU(3, 4)(Tensor.ones(0, 2, 3)), ShapeError, "without steps"),
        (
            lambda: nn.GRU(3, 4)(Tensor.ones(2, 2, 3), Tensor.ones(1, 1, 4)),
            ShapeError,
            "a first state of shape \\(1, 1, 4\\)",
        ),
        (lambda: nn.Dropout(1.5), ArgumentError, "p is 1.5"),
        (lambda: nn.MultiHeadAttention(7, 2), ArgumentError, "2 heads of 7 features"),
        (lambda: nn.MultiHeadAttention(4, 2)(Tensor.ones(4)), ShapeError, "shape \\(4,\\)"),
        (
            lambda: nn.TransformerEncoderLayer(4, 2, activation="sine"),
            ArgumentError,
            "unknown activation 'sine'",
        ),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()
