"""Convolutions, pools and losses, against PyTorch."""

import itertools

import numpy as np
import pytest

from tests.unit.tensor.compare import assert_like_torch, numbers

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
