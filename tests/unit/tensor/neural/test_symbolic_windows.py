"""Layers of images along symbolic sizes: one trace for all, with the results of ints."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from weft import Tensor, Variable, jit, nn
from weft.ir.build import bind
from weft.nn import functional
from weft.support.errors import UsageError
from weft.support.settings import Context

B, H, W = Variable("b", 1, 3), Variable("h", 8, 20), Variable("w", 8, 20)
# Batches, heights and widths; even and odd, the least and the greatest.
SIZES = ((2, 9, 14), (1, 8, 8), (3, 20, 20), (2, 13, 11), (1, 16, 17))
IMAGES = np.random.default_rng(0).standard_normal((3, 4, 20, 20)).astype(np.float32)
VOLUMES = np.random.default_rng(1).standard_normal((3, 2, 20, 20, 5)).astype(np.float32)


def weight(*shape: int) -> Tensor:
    return Tensor(np.random.default_rng(2).standard_normal(shape).astype(np.float32)).realize()


W33, W13, W44, W6 = (6, 4, 3, 3), (6, 4, 1, 3), (4, 4, 4, 4), (6,)
GROUPED, LINE, CUBE, BACK = (8, 2, 3, 3), (3, 4, 5), (3, 2, 3, 3, 2), W44


CONVOLUTIONS: dict[str, Callable[[Tensor], Any]] = {
    "plain": lambda x: x.conv2d(weight(*W33), weight(*W6)),
    "padded": lambda x: x.conv2d(weight(*W33), padding=1),
    "padded by one number for each side": lambda x: x.conv2d(weight(*W33), padding=(1, 2, 0, 1)),
    "same": lambda x: x.conv2d(weight(*W44), padding="same"),
    "one row": lambda x: x.conv2d(weight(*W13), padding=(0, 1)),
    "stride 2": lambda x: x.conv2d(weight(*W33), stride=2, padding=1),
    "strides": lambda x: x.conv2d(weight(*W44), stride=(2, 3)),
    "side by side": lambda x: x.conv2d(weight(*W44), stride=4),
    "dilated": lambda x: x.conv2d(weight(*W33), dilation=2, padding=2),
    "all": lambda x: x.conv2d(
        weight(*W33), weight(*W6), stride=(3, 2), dilation=(2, 1), padding=(2, 1)
    ),
    "groups": lambda x: x.conv2d(weight(*GROUPED), groups=2, padding=1, stride=2),
    "depthwise": lambda x: x.conv2d(weight(4, 1, 3, 3), groups=4, padding=1),
    "one axis": lambda x: x[:, :, 0].conv1d(weight(*LINE), stride=2, padding=3),
    "two in a row": lambda x: (
        x.conv2d(weight(*W44), stride=2, padding=1).relu().conv2d(weight(*W33), padding=1)
    ),
    "transposed": lambda x: x.conv_transpose2d(weight(*BACK)),
    "transposed, stride 2": lambda x: x.conv_transpose2d(weight(*BACK), stride=2, padding=1),
    "transposed, strides": lambda x: x.conv_transpose2d(
        weight(*BACK), stride=(3, 2), padding=(0, 2), output_padding=1
    ),
    "transposed, dilated": lambda x: x.conv_transpose2d(
        weight(*BACK), stride=2, dilation=2, padding=3
    ),
    "transposed, groups": lambda x: x.conv_transpose2d(weight(4, 3, 3, 3), groups=2, stride=2),
}
POOLS: dict[str, Callable[[Tensor], Any]] = {
    "max": lambda x: x.max_pool2d(2),
    "max, overlapping": lambda x: x.max_pool2d(3, stride=2, padding=1),
    "max, stride 1": lambda x: x.max_pool2d((3, 2), stride=1),
    "max, dilated": lambda x: x.max_pool2d(2, stride=2, dilation=3),
    "max, ceil": lambda x: x.max_pool2d(3, stride=2, ceil_mode=True),
    "max, ceil, far": lambda x: x.max_pool2d(2, stride=3, ceil_mode=True),
    "max, ceil, padded": lambda x: x.max_pool2d(3, stride=4, padding=1, ceil_mode=True),
    "average": lambda x: x.avg_pool2d(2),
    "average, overlapping": lambda x: x.avg_pool2d(3, stride=2, padding=1),
    "average, counted": lambda x: x.avg_pool2d(3, stride=2, padding=1, count_include_pad=False),
    "average, ceil": lambda x: x.avg_pool2d(3, stride=2, ceil_mode=True),
    "average, ceil, far": lambda x: x.avg_pool2d(2, stride=3, padding=1, ceil_mode=True),
    "average of everything": lambda x: x.adaptive_avg_pool2d(1),
    "greatest of everything": lambda x: x.adaptive_max_pool2d((1, 1)),
    "average of parts": lambda x: x.adaptive_avg_pool2d((3, 2)),
    "greatest of parts": lambda x: x.adaptive_max_pool2d((4, 3)),
    "one axis kept": lambda x: functional.adaptive_avg_pool2d(x, (None, 2)),
    "lp": lambda x: functional.lp_pool2d(x.abs() + 1, 2, 2),
}
OTHERS: dict[str, Callable[[Tensor], Any]] = {
    "patches": lambda x: functional.unfold(x, 3, padding=1, stride=2),
    "patches, dilated": lambda x: functional.unfold(x, (2, 3), dilation=2),
    "patches put back": lambda x: functional.fold(
        functional.unfold(x, 3, padding=1, stride=2), x.shape[2:], 3, padding=1, stride=2
    ),
    "windows of an axis": lambda x: x.unfold(2, 3, 2),
    "layer norm": lambda x: x.layer_norm(x.shape[1:]),
    "group norm": lambda x: x.group_norm(2, weight(4), weight(4)),
    "instance norm": lambda x: functional.instance_norm(x),
    "local response": lambda x: functional.local_response_norm(x, 3),
    "nearest, twice": lambda x: x.interpolate(scale_factor=2, mode="nearest"),
    "nearest, half": lambda x: x.interpolate(scale_factor=0.5, mode="nearest"),
    "nearest, exact": lambda x: x.interpolate(scale_factor=1.5, mode="nearest-exact"),
    "bilinear, twice": lambda x: x.interpolate(scale_factor=2, mode="bilinear"),
    "bilinear, corners": lambda x: x.interpolate(
        scale_factor=(2, 0.75), mode="bilinear", align_corners=True
    ),
    "bilinear to a size": lambda x: x.interpolate((12, 7), mode="bilinear"),
    "bicubic to a size": lambda x: x.interpolate((12, 7), mode="bicubic", align_corners=True),
    "as large as another": lambda x: x.max_pool2d(2).interpolate(x.shape[2:], mode="bilinear"),
    "area": lambda x: functional.interpolate(x, (3, 2), mode="area"),
    "reflected": lambda x: x.pad((3, 2, 1, 4), mode="reflect"),
    "replicated": lambda x: x.pad((3, 0, 1, 4), mode="replicate"),
    "circular": lambda x: x.pad((3, 2, 0, 4), mode="circular"),
    "shuffled pixels": lambda x: functional.pixel_shuffle(x, 2),
    "every second": lambda x: x[:, :, ::2, 1::3],
    "every second, from the end": lambda x: x[:, :, ::-2, ::-1],
}
PROGRAMS = {**CONVOLUTIONS, **POOLS, **OTHERS}


def images(b: int, h: int, w: int) -> Tensor:
    return Tensor(IMAGES[:b, :, :h, :w])


def bound(b: int, h: int, w: int) -> Tensor:
    """The same in a tensor of symbolic sizes."""
    whole = Tensor(IMAGES)[: bind(B, b), :, : bind(H, h), : bind(W, w)]
    return whole.contiguous().realize()


def with_slope(program: Callable[[Tensor], Tensor]) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    """A program with the gradient of a sum of its squares."""

    def both(x: Tensor) -> tuple[Tensor, Tensor]:
        result = program(x)
        return result, result.square().sum().gradient(x)[0]

    return both


def assert_close(found: Any, wanted: Any) -> None:
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_trace_has_the_results_and_gradients_of_ints(name: str):
    program = with_slope(PROGRAMS[name])
    traced = jit(program)
    for sizes in SIZES:
        assert_close(traced(bound(*sizes)), program(images(*sizes)))
    assert traced.traces == 1


@pytest.mark.parametrize("name", ["all", "max, ceil, far", "patches put back", "transposed"])
def test_the_interpreter_agrees(name: str):
    program = with_slope(PROGRAMS[name])
    with Context(DEVICE="PYTHON"):
        for sizes in SIZES[:2]:
            assert_close(program(bound(*sizes)), program(images(*sizes)))


@pytest.mark.parametrize("ceil_mode", [False, True])
def test_where_the_greatest_was_found(ceil_mode: bool):
    def program(x: Tensor) -> tuple[Tensor, ...]:
        return x.max_pool2d(3, stride=2, padding=1, ceil_mode=ceil_mode, return_indices=True)

    traced = jit(program)
    for sizes in SIZES:
        assert_close(traced(bound(*sizes)), program(images(*sizes)))
    assert traced.traces == 1


def test_three_spatial_axes():
    def program(x: Tensor) -> tuple[Tensor, ...]:
        y = x.conv2d(weight(*CUBE), padding=1, stride=(2, 1, 2))
        return y, y.max_pool2d((2, 2, 2)), y.avg_pool2d((3, 3, 1), stride=2)

    for _, h, w in SIZES[:3]:
        whole = Tensor(VOLUMES)
        found = program(whole[:, :, : bind(H, h), : bind(W, w)])
        assert_close(found, program(whole[:, :, :h, :w]))


class Network:
    """What people write: strides, a norm, a skip connection, a pool, a head."""

    def __init__(self) -> None:
        self.stem = nn.Conv2d(4, 8, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.body = nn.Conv2d(8, 8, 3, padding="same")
        self.skip = nn.Conv2d(8, 16, 1, stride=2)
        self.down = nn.Conv2d(8, 16, 3, stride=2, padding=1)
        self.head = nn.Linear(16, 5)

    def __call__(self, x: Tensor) -> Tensor:
        x = self.norm(self.stem(x)).relu()
        x = x + self.body(x).gelu()
        x = (self.skip(x) + self.down(x)).max_pool2d(2, ceil_mode=True)
        return self.head(x.mean((2, 3)))


def test_a_network_trains_with_images_of_all_sizes():
    """One trace of a training step; the losses are those of steps with ints."""
    found = []
    for is_symbolic in (True, False):
        Tensor.manual_seed(0)
        network = Network()
        optimizer = nn.optim.SGD(nn.state.get_parameters(network), lr=0.05)

        @jit
        def step(x: Tensor, network: Any = network, optimizer: Any = optimizer) -> Tensor:
            optimizer.zero_grad()
            loss = network(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        make = bound if is_symbolic else images
        with Tensor.train():
            found.append([step(make(*sizes)).item() for sizes in SIZES])
        assert step.traces == (1 if is_symbolic else len(SIZES))
    np.testing.assert_allclose(*found, rtol=1e-3)


def test_dropout_of_elements_and_channels():
    for sizes in SIZES[:2]:
        Tensor.manual_seed(3)
        x = bound(*sizes)
        for drop in (functional.dropout, functional.dropout2d):
            kept = drop(x, 0.5).numpy()
            share = (kept != 0).mean()
            assert 0.2 < share < 0.8
            np.testing.assert_allclose(kept, np.where(kept != 0, x.numpy() * 2, 0), rtol=1e-6)


def test_a_copy_with_symbolic_sizes_is_one_signature():
    traced = jit(lambda x: x.conv2d(weight(6, 4, 3, 3), stride=2).relu())
    for b, h, w in SIZES:
        x = images(b, h, w)
        found = traced(x.with_sizes(bind(B, b), 4, bind(H, h), bind(W, w)))
        np.testing.assert_allclose(
            found.numpy(), x.conv2d(weight(6, 4, 3, 3), stride=2).relu().numpy(), atol=1e-5
        )
        assert found.with_sizes(*found.numpy().shape).shape == found.numpy().shape
    assert traced.traces == 1


def test_a_copy_with_symbolic_sizes_is_a_copy():
    x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    y = x.T.with_sizes(bind(B, 2), 2)
    x += 1
    assert y.tolist() == [[1, 3], [2, 4]] and x.tolist() == [[2, 3], [4, 5]]
    slope = y.requires_grad_().square().sum().gradient(y)[0]
    assert slope.tolist() == [[2, 6], [4, 8]]


def test_sizes_that_meet_again():
    """Halved and doubled again, an axis of a multiple is itself; paths of one stride agree."""
    m = Variable("m", 1, 4)
    x = Tensor(IMAGES)[:, :, : 4 * bind(m, 3), : 4 * bind(m, 3)]
    low = x.max_pool2d(2).max_pool2d(2).interpolate(scale_factor=4, mode="nearest")
    assert (x + low).numpy().shape == (3, 4, 12, 12)
    x = bound(1, 9, 14)
    halves = x.conv2d(weight(4, 4, 3, 3), stride=2, padding=1)
    assert halves.shape == x.conv2d(weight(4, 4, 1, 1), stride=2).shape
    assert halves.avg_pool2d(3, 2, padding=1).shape == x.max_pool2d(1, stride=4).shape


REFUSED: dict[str, tuple[Callable[[Tensor], Any], str]] = {
    "windows that do not always fit": (
        lambda x: x.conv2d(weight(4, 4, 9, 9)),
        r"no window of 9 taps fits in 8 \(the least bind\(h, 9\)\) elements",
    ),
    "sizes that differ for some values": (
        lambda x: x + x.max_pool2d(2).interpolate(scale_factor=2, mode="nearest"),
        "shapes do not broadcast at axis -2",
    ),
    "a scale factor that is not a fraction": (
        lambda x: x.interpolate(scale_factor=0.3),
        "the scale factor 0.3 of a symbolic size",
    ),
    "reflection past the end": (lambda x: x.pad((8, 0), mode="reflect"), "cannot add 8 to axis 3"),
    "a symbolic number of windows": (
        lambda x: x.adaptive_avg_pool2d((x.shape[2] // 2, 1)),
        "is symbolic",
    ),
    "pixels that a factor does not divide": (
        lambda x: functional.pixel_unshuffle(x, 2),
        "pixels for a factor of 2",
    ),
    "other sizes": (lambda x: x.with_sizes(1, 4, 9, 15), "are not"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_says_so(name: str):
    program, message = REFUSED[name]
    with pytest.raises(UsageError, match=message):
        program(bound(1, 9, 14))
