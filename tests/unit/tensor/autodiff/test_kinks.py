"""Slopes where a function has a kink, an end or a plateau, against PyTorch.

What differs on purpose is listed in tests/end_to_end/deviations.py.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from weft.nn import functional as ours
from weft.tensor import Tensor

pytestmark = pytest.mark.peers("torch")

KINKS = [-4.0, -3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0, 4.0, 6.0, 20.0, -20.0, 100.0, -100.0]
LEFT = [1.0, 2.0, -1.0, 0.0, 0.0, 3.0, -3.0, 2.0]
RIGHT = [1.0, -2.0, 2.0, 0.0, 1.0, 0.0, -3.0, 3.0]
LOGITS = [-200.0, -100.0, -50.0, -20.0, 0.0, 20.0, 50.0, 100.0, 200.0]
PAIRS = (
    *("maximum", "minimum", "fmax", "fmin", "atan2", "copysign", "fmod", "remainder", "pow"),
    *("logaddexp", "float_power"),
)
REDUCTIONS = (
    *("max", "min", "amax", "amin", "median", "nanmedian", "prod", "std", "var", "logsumexp"),
    *("mean", "norm", "cumprod"),
)
DEGREES = (1, 2, 3, 0.5, math.inf, -math.inf)


def assert_same_slopes(
    function: Callable[..., Any], other: Callable[..., Any], *values: Any
) -> None:
    import torch

    theirs = [torch.tensor(each, requires_grad=True) for each in values]
    other(*theirs).sum().backward()
    wanted = [torch.zeros_like(x) if x.grad is None else x.grad for x in theirs]
    mine = [Tensor(each, requires_grad=True) for each in values]
    found = function(*mine).sum().gradient(*mine)
    for ours_, theirs_ in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours_.numpy(), theirs_.numpy(), rtol=1e-4, atol=1e-6)


ACTIVATIONS: dict[str, dict[str, Any]] = {
    "relu": {},
    "relu6": {},
    "leaky_relu": {"negative_slope": 0.1},
    "hardtanh": {"min_val": -0.5, "max_val": 0.5},
    "elu": {"alpha": 2.0},
    "celu": {"alpha": 0.5},
    "selu": {},
    "gelu": {"approximate": "tanh"},
    "silu": {},
    "mish": {},
    "softplus": {"beta": 2.0, "threshold": 1.0},
    "softsign": {},
    "tanhshrink": {},
    "softshrink": {},
    "hardshrink": {},
    "hardsigmoid": {},
    "hardswish": {},
    "logsigmoid": {},
    "threshold": {"threshold": 0.5, "value": 2.0},
    "tanh": {},
    "sigmoid": {},
}


def _call(function: Callable[..., Any], options: dict[str, Any]) -> Callable[[Any], Any]:
    return lambda x: function(x, **options)


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_activations(name: str):
    import torch.nn.functional as theirs

    for options in ({}, ACTIVATIONS[name]):
        if name == "threshold" and not options:
            continue
        both = [_call(getattr(module, name), options) for module in (ours, theirs)]
        assert_same_slopes(*both, KINKS)
        if name != "gelu" or options:  # whose default differs
            method = getattr(Tensor, name)
            assert_same_slopes(lambda x, m=method, o=options: m(x, **o), both[1], KINKS)


ENDS = {
    "asin": [-1.0, -0.5, 0.0, 1.0],
    "acos": [-1.0, -0.5, 0.0, 1.0],
    "atanh": [-2.0, -1.0, 0.0, 0.5, 1.0, 2.0],
    "acosh": [-3.0, -1.0, 0.5, 1.0, 2.0],
    "logit": [-2.0, 0.0, 0.5, 1.0, 2.0],
    "sqrt": [0.0, 1.0],
    "rsqrt": [0.0, 1.0],
    "log": [0.0, 1.0],
    "log1p": [-1.0, 0.0],
    "abs": [-1.0, 0.0, 1.0],
    "sign": [0.0, 1.0],
    "sinc": [0.0, 1.0],
    "erfinv": [-1.0, 0.0, 1.0],
    "reciprocal": [0.0, 1.0],
    "frac": [-1.0, 0.0, 1.5],
    "trunc": [-1.0, 0.0, 1.5],
    "round": [0.5, 1.5],
}


@pytest.mark.parametrize("name", ENDS)
def test_ends(name: str):
    def call(x: Any) -> Any:
        return getattr(x, name)()

    assert_same_slopes(call, call, ENDS[name])


@pytest.mark.parametrize(
    "name",
    [
        "maximum",
        "minimum",
        "fmax",
        "fmin",
        "atan2",
        "copysign",
        "fmod",
        "remainder",
        "pow",
        "logaddexp",
        "float_power",
    ],
)
def test_pairs(name: str):
    def call(x: Any, y: Any) -> Any:
        return getattr(x, name)(y)

    assert_same_slopes(call, call, LEFT, RIGHT)


@pytest.mark.parametrize("limits", [(-1, 1), (1, -1), (0, None), (None, 0)])
def test_limits(limits: tuple[Any, Any]):
    low, high = limits

    def call(x: Any) -> Any:
        return x.clamp(low, high) if high is not None else x.clamp(min=low)

    assert_same_slopes(call, call, LEFT)

    def by_tensors(x: Any, y: Any) -> Any:
        return x.clamp(y, y + 1)

    assert_same_slopes(by_tensors, by_tensors, LEFT, RIGHT)


@pytest.mark.parametrize("values", [[2.0, 2.0, 2.0, 2.0], [1.0, 2.0, 2.0, 3.0], [0.0, 0.0], [5.0]])
@pytest.mark.parametrize(
    "name",
    [
        "max",
        "min",
        "amax",
        "amin",
        "median",
        "nanmedian",
        "prod",
        "std",
        "var",
        "logsumexp",
        "mean",
        "norm",
        "cumprod",
    ],
)
def test_reductions_of_equal_elements(name: str, values: list[float]):
    if name in ("std", "var") and len(values) == 1:
        pytest.skip("NaN in both")

    def call(x: Any) -> Any:
        needs_axis = name in ("amax", "amin", "logsumexp", "cumprod")
        return getattr(x, name)(0) if needs_axis else getattr(x, name)()

    assert_same_slopes(call, call, values)


@pytest.mark.parametrize("p", DEGREES)
@pytest.mark.parametrize("values", [[0.0, 0.0], [1.0, 2.0, 2.0, 0.0]])
def test_norms(p: float, values: list[float]):
    import torch.nn.functional as theirs

    assert_same_slopes(lambda x: x.norm(p), lambda x: x.norm(p), values)
    assert_same_slopes(
        lambda x: ours.normalize(x, p, 0), lambda x: theirs.normalize(x, p, 0), values
    )


@pytest.mark.parametrize("target", [0.0, 0.5, 1.0])
def test_saturated_losses(target: float):
    import torch
    import torch.nn.functional as theirs

    def after_sigmoid(module: Any, like: Any) -> Callable[[Any], Any]:
        return lambda x: module.binary_cross_entropy(x.sigmoid(), like(x))

    def of_logits(module: Any, like: Any) -> Callable[[Any], Any]:
        return lambda x: module.binary_cross_entropy_with_logits(x, like(x))

    like_ours: Any = lambda x: x.full_like(target)  # noqa: E731
    like_theirs: Any = lambda x: torch.full_like(x, target)  # noqa: E731
    for make in (after_sigmoid, of_logits):
        assert_same_slopes(make(ours, like_ours), make(theirs, like_theirs), LOGITS)
    assert_same_slopes(
        lambda x: x.sigmoid().binary_cross_entropy(x.full_like(target)),
        after_sigmoid(theirs, like_theirs),
        LOGITS,
    )
    x = Tensor(LOGITS, requires_grad=True)
    first = x.sigmoid().binary_cross_entropy(x.full_like(target)).gradient(x)[0]
    assert np.isfinite(first.sum().gradient(x)[0].numpy()).all()


CLASS_LOSSES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "cross_entropy": lambda f, x, y: f.cross_entropy(x, y),
    "cross_entropy ignored": lambda f, x, y: f.cross_entropy(x, y, ignore_index=1),
    "cross_entropy smooth": lambda f, x, y: f.cross_entropy(x, y, label_smoothing=0.1),
    "multi_margin": lambda f, x, y: f.multi_margin_loss(x, y),
    "multi_margin squares": lambda f, x, y: f.multi_margin_loss(x, y, p=2),
}


@pytest.mark.parametrize("scores", [[[1000.0, -1000.0], [1000.0, -1000.0]], [[1.0, 0.0]] * 2])
@pytest.mark.parametrize("name", CLASS_LOSSES)
def test_losses_of_classes(name: str, scores: list[list[float]]):
    import torch
    import torch.nn.functional as theirs

    f = CLASS_LOSSES[name]
    assert_same_slopes(
        lambda x: f(ours, x, Tensor([0, 1])), lambda x: f(theirs, x, torch.tensor([0, 1])), scores
    )


@pytest.mark.parametrize("is_bool", [True, False])
def test_attention_of_rows_without_keys(is_bool: bool):
    import torch
    import torch.nn.functional as theirs

    allowed = np.array([[True, False, True], [False] * 3, [True] * 3])
    mask = allowed if is_bool else np.where(allowed, 0, -np.inf).astype(np.float32)
    x = np.random.default_rng(0).normal(size=(1, 2, 3, 4)).astype(np.float32).tolist()

    def mine(x: Tensor) -> Tensor:
        result = ours.scaled_dot_product_attention(x, x * 2, x + 1, attn_mask=Tensor(mask))
        assert result.numpy()[:, :, 1].tolist() == [[[0.0] * 4] * 2]
        return result

    assert_same_slopes(
        mine,
        lambda x: theirs.scaled_dot_product_attention(
            x, x * 2, x + 1, attn_mask=torch.tensor(mask)
        ),
        x,
    )


SPECIAL = {
    "entr": [-1.0, 0.0, 0.5, 1.0, 2.0],
    "erfcx": [-1.0, 0.0, 1.0, 30.0],
    "log_ndtr": [-30.0, -1.0, 0.0, 5.0],
    "ndtr": [-1.0, 0.0, 2.0],
    "i0e": [-1.0, 0.0, 2.0],
    "i1": [-1.0, 0.0, 2.0],
    "i1e": [-1.0, 0.0, 2.0],
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_functions(name: str):
    import torch

    import weft

    ours_, theirs = (getattr(each.special, name) for each in (weft, torch))
    assert_same_slopes(ours_, theirs, SPECIAL[name])


@pytest.mark.parametrize("name", ["xlogy", "xlog1py"])
def test_logarithms_times_zero(name: str):
    import torch

    import weft

    ours_, theirs = (getattr(each.special, name) for each in (weft, torch))
    assert_same_slopes(ours_, theirs, [0.0, 0.0, 2.0, -1.0], [2.0, 0.5, 3.0, 1.0])


@pytest.mark.parametrize("name", ["erfcx", "log_ndtr", "entr", "ndtr"])
def test_special_functions_of_infinity(name: str):
    import torch

    import weft

    ends = [math.inf, -math.inf, math.nan]
    found = getattr(weft.special, name)(Tensor(ends))
    wanted = getattr(torch.special, name)(torch.tensor(ends))
    np.testing.assert_array_equal(found.numpy(), wanted.numpy())


def test_zeta_of_infinity():
    import torch

    import weft

    x, q = [math.inf, math.inf, math.nan, 3.0], [1.0, 0.5, 1.0, math.nan]
    found = weft.special.zeta(Tensor(x), Tensor(q))
    wanted = torch.special.zeta(torch.tensor(x), torch.tensor(q))
    np.testing.assert_array_equal(found.numpy(), wanted.numpy())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_ends_of_hardsigmoid_are_those_of_its_argument(dtype: str):
    """Not those of a product that is rounded, and fused with the addition behind it."""
    x = Tensor([-3.0, -2.9999, 0.0, 2.9999, 3.0], dtype=dtype)
    (slope,) = x.hardsigmoid().sum().gradient(x)
    np.testing.assert_allclose(slope.numpy(), [0, 1 / 6, 1 / 6, 1 / 6, 0], 1e-6)
    np.testing.assert_array_equal(x.hardsigmoid().numpy()[[0, 4]], [0, 1])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_log_ndtr_at_the_end(dtype: str):
    assert Tensor([-math.inf], dtype=dtype).log_ndtr().tolist() == [-math.inf]
