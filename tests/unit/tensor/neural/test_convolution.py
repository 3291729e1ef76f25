"""Convolutions, pools and losses, against PyTorch."""

import itertools

import numpy as np
import pytest

from tests.unit.tensor.compare import assert_like_torch, numbers
from weft import ArgumentError, GlobalCounters, Tensor, Variable

pytestmark = pytest.mark.peers("torch")


@pytest.mark.parametrize("groups", (1, 2))
@pytest.mark.parametrize("stride", (1, 2, (2, 1)))
@pytest.mark.parametrize("dilation", (1, 2))
@pytest.mark.parametrize("padding", (0, 1, (2, 1)))
def test_conv2d(groups: int, stride: int, dilation: int, padding: int):
    import torch.nn.functional as functional

    x, w = numbers("float32", (2, 4, 7, 6), 1), numbers("float32", (4, 4 // groups, 3, 2), 2)
    bias = numbers("float32", (4,), 3)
    rest = {"groups": groups, "stride": stride, "dilation": dilation, "padding": padding}
    assert_like_torch(
        lambda x, w, b: x.conv2d(w, b, **rest),
        *(x, w, bias),
        other=lambda x, w, b: functional.conv2d(x, w, b, **rest),
    )


def test_the_batch_of_a_convolution_may_be_symbolic():
    """One program convolves batches of all sizes, with its gradient."""
    x, w = (Tensor(numbers("float32", shape)).realize() for shape in ((4, 2, 5, 5), (3, 2, 3, 3)))
    batch = Variable("batch", 1, 4)
    for rows in (1, 3, 4):
        cut = x[: batch.bind(rows)]
        result, wanted = cut.conv2d(w, padding=1), x[:rows].conv2d(w, padding=1)
        slopes = [each.sum().gradient(w)[0].numpy() for each in (result, wanted)]
        np.testing.assert_allclose(result.numpy(), wanted.numpy(), rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(*slopes, rtol=1e-5, atol=1e-5)


def test_convolutions_of_other_ranks():
    import torch.nn.functional as functional

    x, w = numbers("float32", (1, 2, 5), 1), numbers("float32", (3, 2, 2), 2)
    assert_like_torch(
        lambda x, w: x.conv2d(w, stride=2),
        x,
        w,
        other=lambda x, w: functional.conv1d(x, w, stride=2),
    )
    x, w = numbers("float32", (1, 1, 3, 4, 3), 1), numbers("float32", (2, 1, 2, 2, 2), 2)
    assert_like_torch(lambda x, w: x.conv2d(w), x, w, other=functional.conv3d)


@pytest.mark.parametrize(
    "case", list(itertools.product((1, 2), (1, 3), (1, 2), (0, 1), (0, 1))), ids=str
)
def test_conv_transpose2d(case: tuple[int, ...]):
    import torch.nn.functional as functional

    groups, stride, dilation, padding, extra = case
    if extra >= max(stride, dilation):
        pytest.skip("PyTorch refuses it")
    rest = {"groups": groups, "stride": stride, "dilation": dilation, "padding": padding}
    rest["output_padding"] = extra
    x, w = numbers("float32", (2, 4, 3, 4), 1), numbers("float32", (4, 2, 2, 3), 2)
    assert_like_torch(
        lambda x, w: x.conv_transpose2d(w, **rest),
        *(x, w),
        other=lambda x, w: functional.conv_transpose2d(x, w, **rest),
    )


@pytest.mark.parametrize("kernel", (2, (3, 2)))
@pytest.mark.parametrize("stride", (None, 1, 3))
@pytest.mark.parametrize("padding", (0, 1))
@pytest.mark.parametrize("ceil_mode", (False, True))
def test_pools(kernel: int, stride: int | None, padding: int, ceil_mode: bool):
    import torch.nn.functional as functional

    x = numbers("float32", (1, 2, 7, 6))
    rest = {"kernel_size": kernel, "stride": stride, "padding": padding, "ceil_mode": ceil_mode}
    assert_like_torch(
        lambda x: x.max_pool2d(**rest), x, other=lambda x: functional.max_pool2d(x, **rest)
    )
    for included in (True, False):
        assert_like_torch(
            lambda x, i=included: x.avg_pool2d(**rest, count_include_pad=i),
            x,
            other=lambda x, i=included: functional.avg_pool2d(x, **rest, count_include_pad=i),
        )
    assert_like_torch(
        lambda x: x.max_pool2d(2, dilation=2),
        x,
        other=lambda x: functional.max_pool2d(x, 2, dilation=2),
    )


@pytest.mark.parametrize("rest", ((2, 2, 0), (3, 1, 1), (3, 2, 1), (2, 3, 1)), ids=str)
def test_the_gradient_of_a_max_pool_goes_to_the_first(rest: tuple[int, int, int]):
    import torch.nn.functional as functional

    kernel, stride, padding = rest
    few = numbers("float32", (2, 3, 7, 6), 4).round()  # many equal elements
    lowest = np.full((1, 1, 5, 5), -np.inf, "float32")  # as low as the padding
    for x in (few, np.maximum(few, 0), lowest):
        assert_like_torch(
            lambda x: x.max_pool2d(kernel, stride, padding=padding),
            x,
            other=lambda x: functional.max_pool2d(x, kernel, stride, padding),
        )


def test_a_max_pool_is_differentiated_twice():
    import torch

    values = numbers("float32", (2, 2, 6, 6), 5)
    x = Tensor(values)
    (first,) = (x.max_pool2d(3, 2) ** 3).sum().gradient(x)
    (second,) = (first * first).sum().gradient(x)
    y = torch.tensor(values, requires_grad=True)
    pooled = torch.nn.functional.max_pool2d(y, 3, 2)
    (slope,) = torch.autograd.grad((pooled**3).sum(), y, create_graph=True)
    (expected,) = torch.autograd.grad((slope * slope).sum(), y)
    np.testing.assert_allclose(second.numpy(), expected.numpy(), rtol=1e-5, atol=1e-5)


STRIDED = (
    ((2, 3, 9, 8), (4, 3, 3, 3), 2, 1, 1),
    ((2, 3, 9, 8), (4, 3, 3, 3), 3, 1, 1),
    ((1, 2, 10, 10), (3, 2, 1, 1), 2, 0, 1),  # phases without a tap
    ((1, 2, 10, 10), (3, 2, 2, 2), 3, 0, 1),
    ((1, 2, 12, 12), (3, 2, 5, 5), 2, 2, 1),
    ((1, 2, 12, 12), (3, 2, 3, 3), 2, 2, 2),  # gaps as well: zeros between
    ((2, 3, 11, 8), (4, 3, 3, 2), (2, 1), (1, 0), (1, 2)),
    ((1, 2, 7, 7), (3, 2, 3, 3), 4, 0, 1),
)


@pytest.mark.parametrize("case", STRIDED, ids=str)
def test_gradients_of_strided_convolutions(case):
    import torch

    of_x, of_w, stride, padding, dilation = case
    rest = {"stride": stride, "padding": padding, "dilation": dilation}
    values = numbers("float32", of_x, 1), numbers("float32", of_w, 2)
    inputs = [Tensor(each) for each in values]
    slopes = (inputs[0].conv2d(inputs[1], **rest) ** 2).sum().gradient(*inputs)
    second = sum((slope * slope).sum() for slope in slopes).gradient(*inputs)
    theirs = [torch.tensor(each, requires_grad=True) for each in values]
    result = torch.nn.functional.conv2d(*theirs, **rest)
    first = torch.autograd.grad((result**2).sum(), theirs, create_graph=True)
    again = torch.autograd.grad(sum((slope * slope).sum() for slope in first), theirs)
    for ours, other in zip((*slopes, *second), (*first, *again), strict=True):
        expected = other.detach().numpy()
        scale = np.abs(expected).max()
        np.testing.assert_allclose(ours.numpy() / scale, expected / scale, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("reduction", ("mean", "sum", "none"))
def test_losses(reduction: str):
    import torch.nn.functional as functional

    scores, classes = numbers("float32", (4, 3), 1), np.array([0, 2, 1, 2])
    for smoothing in (0.0, 0.1):
        rest = {"reduction": reduction, "label_smoothing": smoothing}
        assert_like_torch(
            lambda x, y, rest=rest: x.cross_entropy(y, **rest),
            *(scores, classes),
            other=lambda x, y, rest=rest: functional.cross_entropy(x, y, **rest),
        )
        assert_like_torch(
            lambda x, y, rest=rest: x.sparse_categorical_crossentropy(y, **rest),
            *(scores, np.array([0, -1, 1, 2])),
            other=lambda x, y, rest=rest: functional.cross_entropy(x, y, ignore_index=-1, **rest),
        )
    many, spots = numbers("float32", (2, 3, 2), 2), np.array([[0, 1], [2, 2]])
    assert_like_torch(
        lambda x, y: x.cross_entropy(y, reduction=reduction),
        *(many, spots),
        other=lambda x, y: functional.cross_entropy(x, y, reduction=reduction),
    )
    weight = np.array([1.0, 2.0, 0.5], np.float32)
    assert_like_torch(
        lambda x, y, w: x.nll_loss(y, w, ignore_index=1, reduction=reduction),
        *(scores, classes, weight),
        other=lambda x, y, w: functional.nll_loss(x, y, w, ignore_index=1, reduction=reduction),
    )
    chance, truth = np.array([0.1, 0.9, 1.0, 0.0], "f"), np.array([0, 1, 1, 1], "f")
    assert_like_torch(
        lambda x, y: x.binary_crossentropy(y, reduction),
        *(chance, truth),
        other=lambda x, y: functional.binary_cross_entropy(x, y, reduction=reduction),
    )
    logits = np.array([-50.0, 3.0, 0.0, 200.0], "f")
    assert_like_torch(
        lambda x, y: x.binary_crossentropy_logits(y, reduction),
        *(logits, truth),
        other=lambda x, y: functional.binary_cross_entropy_with_logits(x, y, reduction=reduction),
    )


@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_padding_by_name(rank: int, size: int, dilation: int):
    """As much on both sides as keeps the size; what is left over goes behind."""
    x = Tensor.arange(7**rank).reshape(1, 1, *(7,) * rank).float()
    weight = Tensor.arange(size**rank).reshape(1, 1, *(size,) * rank).float()
    conv = {1: Tensor.conv1d, 2: Tensor.conv2d, 3: Tensor.conv3d}[rank]
    total = dilation * (size - 1)
    flat = (total // 2, total - total // 2) * rank
    same = conv(x, weight, padding="same", dilation=dilation)
    assert same.shape == x.shape
    assert same.tolist() == conv(x, weight, padding=flat, dilation=dilation).tolist()
    valid = conv(x, weight, padding="valid", dilation=dilation)
    assert valid.tolist() == conv(x, weight, dilation=dilation).tolist()


WORDS = {
    "unknown": (lambda x, w: x.conv2d(w, padding="sam"), "unknown padding 'sam'"),
    "stride": (lambda x, w: x.conv2d(w, padding="same", stride=2), 'padding "same" with stride'),
    "transposed": (lambda x, w: x.conv_transpose2d(w, padding="same"), "padding 'same'"),
    "pool": (lambda x, w: x.max_pool2d(2, padding="same"), "padding 'same'"),
}


@pytest.mark.parametrize("name", WORDS)
def test_padding_by_a_name_that_means_nothing_here(name: str):
    use, text = WORDS[name]
    with pytest.raises(ArgumentError, match=text):
        use(Tensor.ones(1, 1, 4, 4), Tensor.ones(1, 1, 2, 2))


@pytest.mark.parametrize("outputs", (4, 8))
@pytest.mark.parametrize("stride", (1, 2, (2, 3)))
@pytest.mark.parametrize("dilation", (1, 2))
def test_convolutions_of_each_channel_by_itself(outputs: int, stride: int, dilation: int):
    import torch.nn.functional as functional

    x, w = numbers("float32", (2, 4, 9, 8), 1), numbers("float32", (outputs, 1, 3, 2), 2)
    rest = {"groups": 4, "stride": stride, "dilation": dilation, "padding": (2, 1)}
    assert_like_torch(
        lambda x, w: x.conv2d(w, **rest),
        *(x, w),
        other=lambda x, w: functional.conv2d(x, w, **rest),
    )


@pytest.mark.parametrize(("groups", "stride", "most"), ((8, 1, 1.2), (2, 2, 1.7), (8, 2, 3.2)))
def test_gradients_of_groups_multiply_no_zeros(groups: int, stride: int, most: float):
    """Each phase of the strides meets its own taps: about the operations of the forward pass."""
    x = Tensor(numbers("float32", (2, 8, 16, 16), 1)).realize()
    w = Tensor(numbers("float32", (8, 8 // groups, 3, 3), 2)).realize()

    def operations(value: Tensor) -> int:
        before = GlobalCounters.global_ops
        value.realize()
        return GlobalCounters.global_ops - before

    y = x.conv2d(w, groups=groups, stride=stride, padding=1)
    seed = Tensor(numbers("float32", y.shape, 3)).realize()
    of_x, of_w = (y * seed).sum().gradient(x, w)
    forward = operations(y)
    assert operations(of_x) <= most * forward
    assert operations(of_w) <= 1.2 * forward
