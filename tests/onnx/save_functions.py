"""Functions that are saved and run again: ops, layers, gradients, programs of the examples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft import Tensor, dtypes, fft, nn
from weft.nn import functional as F  # noqa: N812
from weft.tensor.trace.function import function

RNG = np.random.default_rng(7)


def floats(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def positive(*shape: int) -> Any:
    return (RNG.random(shape) + 0.5).astype(np.float32)


def ints(*shape: int, high: int = 5) -> Any:
    return RNG.integers(0, high, shape).astype(np.int64)


def _layer(make: Callable[[], Any]) -> Callable[..., Any]:
    Tensor.manual_seed(3)
    layer = make()
    return lambda x: layer(x)


@function
def _block(x: Tensor, w: Tensor) -> Tensor:
    return (x @ w).relu() + x


def _in_place(x: Tensor) -> Tensor:
    y = x.clone()
    y[1:3] = y[1:3] * 2
    y[:, 0] = 7.0
    return y


def _gradients(x: Tensor, w: Tensor) -> list[Tensor]:
    loss = ((x @ w).tanh() ** 2).mean()
    return [loss, *loss.gradient(x, w)]


def _conv_gradient(x: Tensor, w: Tensor) -> list[Tensor]:
    return list(x.conv2d(w, padding=1).relu().sum().gradient(x, w))


def _attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return q.scaled_dot_product_attention(k, v, is_causal=True)


_TURNS = Tensor(np.exp(1j * np.arange(4)).astype(np.complex64))


def _step(w: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """A step of a linear model, as a value."""
    loss = ((x @ w - y) ** 2).mean()
    (slope,) = loss.gradient(w)
    return w - 0.1 * slope


FUNCTIONS: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "add": (lambda x, y: x + y, [floats(3, 4), floats(4)]),
    "sub": (lambda x, y: x - y, [floats(3, 1), floats(1, 4)]),
    "mul-div": (lambda x, y: x * y / (y.abs() + 1), [floats(5), floats(5)]),
    "pow": (lambda x, y: x**y, [positive(6), floats(6)]),
    "exp-log": (lambda x: (x.exp() + 1).log(), [floats(7)]),
    "exp2-log2": (lambda x: (x.exp2() + 1).log2(), [floats(7)]),
    "sin-cos-tan": (lambda x: x.sin() + x.cos() * x.tan(), [floats(7)]),
    "erf-tanh": (lambda x: x.erf() + x.tanh(), [floats(7)]),
    "rounding": (lambda x: x.floor() + x.ceil() + x.trunc() + x.round(), [floats(9) * 3]),
    "sign-abs": (lambda x: x.sign() * x.abs().sqrt(), [floats(9)]),
    "inverse-trig": (lambda x: x.asin() + x.acos() + x.atan(), [floats(9).clip(-0.9, 0.9)]),
    "logaddexp": (lambda x, y: x.logaddexp(y), [floats(9), floats(9)]),
    "maximum": (lambda x, y: x.maximum(y) - x.minimum(y), [floats(9), floats(9)]),
    "compare": (lambda x, y: [x < y, x <= y, x == y, x != y], [ints(9), ints(9)]),
    "logic": (lambda x, y: [(x > 1) & (y > 1), (x > 1) | (y > 1), ~(x > 1)], [ints(9), ints(9)]),
    "where": (lambda x, y: (x > 0).where(x, y), [floats(9), floats(9)]),
    "clamp": (lambda x: x.clamp(-0.5, 0.5), [floats(9)]),
    "integers": (lambda x, y: (x * y + 3) // 2, [ints(9) - 2, ints(9)]),
    "remainders": (lambda x, y: [x % y, x.fmod(y)], [ints(9) - 2, ints(9) + 1]),
    "float-remainders": (lambda x, y: [x % y, x.fmod(y)], [floats(9), positive(9)]),
    "bits": (lambda x, y: [x & y, x | y, x ^ y, ~x], [ints(9), ints(9)]),
    "shifts": (lambda x: [x << 2, x >> 1], [ints(9) - 2]),
    "small-integers": (lambda x: (x.cast("int8") * 3 + 1).cast("int32"), [ints(9)]),
    "half": (lambda x: (x.half() * 2 + 1).float(), [floats(9)]),
    "casts": (lambda x: [x.cast("int32"), x.cast("bool"), x.cast("float64")], [floats(9) * 4]),
    "reshape-permute": (lambda x: x.reshape(2, 6).permute(1, 0) + 1, [floats(3, 4)]),
    "expand": (lambda x: x.reshape(3, 1).expand(3, 4), [floats(3)]),
    "pad-shrink": (lambda x: x.pad(((1, 2), (0, 1)))[1:, :3], [floats(3, 4)]),
    "pad-reflect": (lambda x: x.pad((2, 1), mode="reflect"), [floats(3, 4)]),
    "flip-roll": (lambda x: x.flip(0) + x.roll(1, 1), [floats(3, 4)]),
    "cat-stack": (
        lambda x, y: x.cat(y, dim=1).stack(x.cat(y, dim=1)),
        [floats(2, 3), floats(2, 1)],
    ),
    "steps": (lambda x: x[::2, 1::2], [floats(6, 7)]),
    "split": (lambda x: list(x.split([1, 3], 1)), [floats(2, 4)]),
    "repeat": (lambda x: x.repeat(2, 3), [floats(2, 2)]),
    "tril": (lambda x: x.tril() - x.triu(1), [floats(4, 4)]),
    "sum-mean": (lambda x: [x.sum(), x.sum(0), x.mean(1)], [floats(3, 4)]),
    "max-min-prod": (lambda x: [x.max(0), x.min(1), x.prod(1)], [floats(3, 4)]),
    "any-all": (lambda x: [(x > 0).any(0), (x > 0).all(1)], [floats(3, 4)]),
    "var-std": (lambda x: [x.var(0), x.std(1)], [floats(3, 4)]),
    "argmax": (lambda x: [x.argmax(1), x.argmin(0)], [floats(3, 4)]),
    "softmax": (lambda x: [x.softmax(1), x.log_softmax(0)], [floats(3, 4)]),
    "logsumexp": (lambda x: x.logsumexp(1), [floats(3, 4)]),
    "cumsum": (lambda x: x.cumsum(1), [floats(3, 4)]),
    "cumprod-cummax": (lambda x: [x.cumprod(1), x.cummax(0)[0]], [floats(3, 4)]),
    "sort-topk": (lambda x: [x.sort(1)[0], x.topk(2, 1)[0]], [floats(3, 5)]),
    "matmul": (lambda x, y: x @ y, [floats(3, 4), floats(4, 5)]),
    "batched-matmul": (lambda x, y: x @ y, [floats(2, 3, 4), floats(2, 4, 5)]),
    "einsum": (
        lambda x, y: Tensor.einsum("bij,bkj->bik", x, y),
        [floats(2, 3, 4), floats(2, 5, 4)],
    ),
    "linear": (_layer(lambda: nn.Linear(4, 3)), [floats(2, 4)]),
    "conv": (_layer(lambda: nn.Conv2d(2, 3, 3, stride=2, padding=1)), [floats(1, 2, 7, 7)]),
    "conv1d-groups": (_layer(lambda: nn.Conv1d(4, 4, 3, groups=2)), [floats(2, 4, 9)]),
    "conv-transpose": (
        _layer(lambda: nn.ConvTranspose2d(2, 3, 3, stride=2)),
        [floats(1, 2, 4, 4)],
    ),
    "pools": (
        lambda x: [x.max_pool2d(), x.avg_pool2d((3, 3), 1, padding=1)],
        [floats(1, 2, 6, 6)],
    ),
    "interpolate": (lambda x: x.interpolate((5, 7)), [floats(1, 2, 3, 4)]),
    "layernorm": (_layer(lambda: nn.LayerNorm(6)), [floats(3, 6)]),
    "rmsnorm": (_layer(lambda: nn.RMSNorm(6)), [floats(3, 6)]),
    "groupnorm": (_layer(lambda: nn.GroupNorm(2, 4)), [floats(2, 4, 3, 3)]),
    "batchnorm": (_layer(lambda: nn.BatchNorm2d(3)), [floats(2, 3, 4, 4)]),
    "embedding": (_layer(lambda: nn.Embedding(10, 4)), [ints(2, 3)]),
    "activations": (
        lambda x: x.gelu() + x.silu() + x.elu() + x.softplus() + x.mish() + x.hardswish(),
        [floats(9)],
    ),
    "attention": (_attention, [floats(1, 2, 5, 4), floats(1, 2, 5, 4), floats(1, 2, 5, 4)]),
    "lstm": (_layer(lambda: nn.LSTM(3, 4)), [floats(5, 2, 3)]),
    "gru": (_layer(lambda: nn.GRU(3, 4)), [floats(5, 2, 3)]),
    "gather": (lambda x, i: x.gather(1, i), [floats(3, 5), ints(3, 2)]),
    "index": (lambda x, i: x[i], [floats(5, 3), ints(4)]),
    "index-pairs": (lambda x, i, j: x[i, j], [floats(5, 3), ints(4), ints(4, high=3)]),
    "scatter-add": (
        lambda x, i, y: x.scatter_add(0, i, y),
        [floats(5, 3), ints(2, 3), floats(2, 3)],
    ),
    "scatter-max": (
        lambda x, i, y: x.scatter_reduce(0, i, y, "amax"),
        [floats(5, 3), ints(2, 3), floats(2, 3)],
    ),
    "one-hot": (lambda i: i.one_hot(5), [ints(4)]),
    "in-place": (_in_place, [floats(4, 3)]),
    "called-twice": (lambda x, w: _block(_block(x, w), w), [floats(2, 4), floats(4, 4)]),
    "cross-entropy": (lambda x, y: x.cross_entropy(y), [floats(4, 5), ints(4)]),
    "gradients": (_gradients, [floats(3, 4), floats(4, 2)]),
    "conv-gradient": (_conv_gradient, [floats(1, 2, 5, 5), floats(3, 2, 3, 3)]),
    "softmax-gradient": (
        lambda x: x.softmax(1)[:, 0].sum().gradient(x)[0],
        [floats(3, 4)],
    ),
    "training-step": (_step, [floats(4, 1), floats(8, 4), floats(8, 1)]),
    "arange": (lambda x: x + Tensor.arange(4, dtype=dtypes.float32), [floats(3, 4)]),
    "fft": (lambda x: x.rfft(), [floats(8)]),
    "solve": (lambda a, b: (a + Tensor.eye(3) * 4).solve(b), [floats(3, 3), floats(3, 2)]),
    "conv-transpose-groups": (
        _layer(lambda: nn.ConvTranspose2d(4, 4, 3, 2, padding=1, output_padding=1, groups=2)),
        [floats(1, 4, 5, 5)],
    ),
    "conv3d": (_layer(lambda: nn.Conv3d(2, 3, 3, padding=1)), [floats(1, 2, 4, 4, 4)]),
    "pools-with-edges": (
        lambda x: [
            F.max_pool2d(x, 3, 2, ceil_mode=True),
            F.avg_pool2d(x, 3, 2, padding=1, count_include_pad=False),
            F.adaptive_avg_pool2d(x, (3, 2)),
        ],
        [floats(1, 2, 8, 8)],
    ),
    "interpolate-linear": (
        lambda x: F.interpolate(x, size=(7, 9), mode="bilinear"),
        [floats(1, 2, 4, 5)],
    ),
    "einsum-of-three": (
        lambda x, y, z: Tensor.einsum("ij,jk,kl->il", x, y, z),
        [floats(2, 3), floats(3, 4), floats(4, 5)],
    ),
    "sort-down": (lambda x: list(x.sort(1, descending=True)), [floats(3, 5)]),
    "index-add": (
        lambda x, i, y: x.index_add(0, i, y),
        [floats(5, 3), ints(4), floats(4, 3)],
    ),
    "bytes": (lambda x: [x + 200, x * 3, x // 2, x >> 1], [ints(8, high=255).astype(np.uint8)]),
    "bools": (lambda x, y: [x & y, x ^ y, ~x, x.any(), x.sum()], [floats(6) > 0, floats(6) > 0]),
    "attention-masked": (
        lambda q, k, v, m: q.scaled_dot_product_attention(k, v, attn_mask=m > -0.5),
        [floats(1, 2, 4, 8), floats(1, 2, 6, 8), floats(1, 2, 6, 8), floats(4, 6)],
    ),
    "attention-gradient": (
        lambda q, k, v: list(_attention(q, k, v).sum().gradient(q, k, v)),
        [floats(1, 2, 4, 8), floats(1, 2, 4, 8), floats(1, 2, 4, 8)],
    ),
    "loss-gradient": (
        lambda x, y: x.cross_entropy(y, label_smoothing=0.1).gradient(x)[0],
        [floats(4, 5), ints(4)],
    ),
    "padded": (
        lambda x: [x.pad((1, 1), mode="replicate"), x.pad((1, 1), mode="circular")],
        [floats(3, 4)],
    ),
    "pixel-shuffle": (lambda x: F.pixel_shuffle(x, 2), [floats(1, 8, 3, 3)]),
    "nan-inf": (
        lambda x: [x.isnan(), x.isinf(), x.nan_to_num()],
        [np.array([1, np.nan, np.inf, -np.inf], np.float32)],
    ),
    "spectrum": (lambda x: fft.fft(x).abs(), [floats(3, 8)]),
    "spectrum-gradient": (
        lambda x: (fft.rfft(x) * _TURNS).abs().sum().gradient(x)[0],
        [floats(6)],
    ),
}
