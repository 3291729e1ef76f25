"""Functions of several ops on bfloat16 and float16: as exact as one rounding, dtypes as PyTorch's.

The oracle is the same function in float64 on the same numbers.
"""

from collections.abc import Callable

import numpy as np
import pytest

from weft import Tensor, dtypes
from weft.nn import functional as F  # noqa: N812 -- as programs call it

DIGITS = {"bfloat16": 8, "float16": 11}
Call = Callable[..., Tensor]


def _methods(*names: str) -> dict[str, Call]:
    return {name: getattr(Tensor, name) for name in names}


# Of one tensor; those of the second table are functions of numbers from 0 to 1.
UNARY: dict[str, Call] = {
    **_methods("tan", "sinh", "cosh", "atan", "asinh", "expm1", "erfc", "sinc", "deg2rad"),
    **_methods("sigmoid", "logsigmoid", "softplus", "silu", "elu", "celu", "selu", "gelu", "mish"),
    **_methods("quick_gelu", "softsign", "hardswish", "hardsigmoid", "tanhshrink", "leaky_relu"),
    "exact gelu": lambda x: x.gelu("none"),
    "softmax": lambda x: x.softmax(0),
    "softmin": lambda x: x.softmin(1),
    "log_softmax": lambda x: x.log_softmax(-1),
    "logsumexp": lambda x: x.logsumexp(1),
    "glu": lambda x: x.glu(0),
    "softshrink": lambda x: x.softshrink(0.3),
    "normalize": lambda x: F.normalize(x),
    "layernorm": lambda x: x.layernorm(),
    "norm": lambda x: x.norm(3, 1),
    "instance norm": lambda x: F.instance_norm(x.reshape((2, 2, 8))),
    "local response norm": lambda x: F.local_response_norm(x.reshape((1, 4, 8)), 3),
    "averages of windows": lambda x: x.reshape((1, 1, 4, 8)).avg_pool2d(3, 1),
    "adaptive averages": lambda x: x.adaptive_avg_pool2d((3, 5)),
    "cov": lambda x: x.cov(),
    "trapezoid": lambda x: x.cumulative_trapezoid(dx=0.3),
}
POSITIVE = _methods(
    *("asin", "acos", "atanh", "log10", "log1p", "rsqrt", "logit", "ndtri", "lgamma", "digamma")
)
BINARY: dict[str, Call] = {
    **_methods("atan2", "hypot", "logaddexp", "logaddexp2"),
    "mse": F.mse_loss,
    "l1": F.l1_loss,
    "smooth l1": F.smooth_l1_loss,
    "huber": F.huber_loss,
    "lerp": lambda x, y: x.lerp(y, 0.3),
    "prelu": lambda x, y: x.prelu(y[0]),
    "cosine": F.cosine_similarity,
    "logits": lambda x, y: F.binary_cross_entropy_with_logits(x, y.sigmoid().round()),
    "addcmul": lambda x, y: x.addcmul(y, y, value=0.3),
    "addcdiv": lambda x, y: x.addcdiv(y, y.abs().clamp(0.25, 4), value=0.3),
    "addmm": lambda x, y: x[:, :4].addmm(x, y.T, beta=0.3, alpha=0.7),
    "addmv": lambda x, y: x[:, 0].addmv(y, x[0], beta=0.3),
    "linear": lambda x, y: F.linear(x, y, y[:, 0]),
    "layer norm": lambda x, y: F.layer_norm(x, (8,), y[0], y[1]),
    "rms norm": lambda x, y: F.rms_norm(x, (8,), y[0], 1e-5),
    "group norm": lambda x, y: F.group_norm(x, 2, y[0], y[1]),
    "batch norm": lambda x, y: F.batch_norm(x, None, None, y[0], y[1], True),
    "conv": lambda x, y: x.reshape(1, 4, 8).conv1d(y[:, :4].reshape(4, 4, 1), y[:, 7]),
    "transposed": lambda x, y: F.conv_transpose1d(
        x.reshape(1, 4, 8), y[:, :6].reshape(4, 2, 3), y[:2, 7], stride=2
    ),
}
CASES = [
    *((name, call, 1, False) for name, call in UNARY.items()),
    *((name, call, 1, True) for name, call in POSITIVE.items()),
    *((name, call, 2, False) for name, call in BINARY.items()),
]


def _inputs(count: int, positive: bool) -> list[np.ndarray]:
    draw = np.random.default_rng(5)
    made = [draw.standard_normal((4, 8)) * 1.5 for _ in range(count)]
    return [np.clip(np.abs(each) / 4, 0.01, 0.95) if positive else each for each in made]


def _ulps(actual: np.ndarray, exact: np.ndarray, digits: int) -> float:
    """The greatest error in units in the last place, of normal numbers of float16."""
    size = 2.0 ** np.floor(np.log2(np.maximum(np.abs(exact), 2.0**-14)))
    return float(np.max(np.abs(actual - exact) / size) * 2 ** (digits - 1))


@pytest.mark.parametrize("dtype", DIGITS)
@pytest.mark.parametrize(
    ("name", "call", "count", "positive"), CASES, ids=lambda x: x if isinstance(x, str) else ""
)
def test_one_rounding(name: str, call: Call, count: int, positive: bool, dtype: str):
    small = [Tensor(x).cast(dtype).realize() for x in _inputs(count, positive)]
    result = call(*small)
    exact = call(*(x.double() for x in small)).numpy()
    assert result.dtype.name == dtype
    assert _ulps(result.double().numpy(), exact, DIGITS[dtype]) < 0.53


def test_what_is_asked_for_or_wider_stays():
    x, y = (Tensor(each).bfloat16() for each in _inputs(2, False))
    assert x.softmax(dtype=dtypes.float32).dtype is dtypes.float32
    assert x.float().softmax(dtype=dtypes.bfloat16).dtype is dtypes.bfloat16
    assert x.lerp(y.float(), 0.5).dtype is x.hypot(y.half()).dtype is dtypes.float32
    assert x.atan2(y.double()).dtype is dtypes.float64


def test_arguments_have_their_other_names_still():
    x = Tensor([[-2.0, 4.0]])
    assert x.leaky_relu(negative_slope=0.5).tolist() == x.leaky_relu(neg_slope=0.5).tolist()
    assert x.softmax(dim=0).tolist() == [[1.0, 1.0]] and x.glu(axis=1).shape == (1, 1)
    assert x.logsumexp(dim=1, keepdims=True).shape == (1, 1)
    assert x.mse_loss(target=x).item() == 0.0 and x.atan2(other=x).shape == (1, 2)


@pytest.mark.parametrize("call", [Tensor.gelu, Tensor.softmax, Tensor.layernorm])
def test_gradients_are_rounded_once_too(call: Call):
    (x,) = _inputs(1, False)
    slopes = []
    for dtype in (dtypes.bfloat16, dtypes.float64):
        leaf = Tensor(x).bfloat16().cast(dtype).realize().requires_grad_()
        (call(leaf) * Tensor(x * x).bfloat16().cast(dtype)).sum().backward()
        assert leaf.grad.dtype is dtype
        slopes.append(leaf.grad.double().numpy())
    # The product with the weights rounds the slope that arrives, and the other one its sum.
    assert np.abs(slopes[0] - slopes[1]).max() < 2.0**-8 * np.abs(slopes[1]).max()


@pytest.mark.peers
@pytest.mark.parametrize("dtype", DIGITS)
def test_norms_have_the_dtype_of_their_input_as_in_torch(dtype: str):
    torch = pytest.importorskip("torch")
    x, w = (each.astype(np.float32) for each in _inputs(2, False))
    theirs, weight = torch.tensor(x).to(getattr(torch, dtype)), torch.tensor(w[0])
    ours, same = Tensor(x).cast(dtype), Tensor(w[0])
    for f, given, affine in ((F, ours, same), (torch.nn.functional, theirs, weight)):
        results = [
            f.layer_norm(given, (8,), affine, affine),
            f.group_norm(given, 2, affine, affine),
            f.batch_norm(given, affine * 0, affine * 0 + 1, affine, affine, True),
            f.instance_norm(given.reshape(1, 8, 4), None, None, affine, affine),
        ]
        assert [str(each.dtype).split(".")[-1] for each in results] == [dtype] * 4
