"""Calls that convolve are written out where images get another layout."""

from tests.unit.schedule.layout.test_align_factors import HOPPER, factor
from tests.unit.schedule.layout.test_channels_last import CPU, IMAGES, images, never, weights
from weft import Tensor, function
from weft.ir.build import param, sink, store
from weft.ir.ops import Op
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.schedule.calls.open_calls import open_calls
from weft.schedule.context import ScheduleContext
from weft.target.target import Target


def opened(values: list[Tensor], target: Target = HOPPER) -> tuple[UOp, UOp]:
    """The graph before and after the pass."""
    stores = [
        store(param(9 + slot, each.dtype, each.shape), each.uop)
        for slot, each in enumerate(values)
    ]
    root = sink(*stores)
    return root, open_calls(root, ScheduleContext(root, target, never))


def calls(root: UOp) -> int:
    return sum(node.op == Op.CALL for node in topological(root))


def slopes(channels: int = 64) -> list[Tensor]:
    x, w = factor(0, 8, channels, 32, 32), factor(1, channels, channels, 3, 3)
    y = x.conv2d(w)
    return y.gradient(x, w, gradient=factor(2, *y.shape))


def test_gradients_of_a_convolution_are_seen_in_the_graph():
    before, after = opened(slopes())
    assert calls(before) and not calls(after)


def test_a_target_without_matrix_units_keeps_its_calls():
    before, after = opened(slopes(), CPU)
    assert calls(before) and after is before


def test_a_small_convolution_stays_a_call():
    before, after = opened(slopes(channels=2))
    assert calls(before) and after is before


def test_other_calls_stay():
    @function
    def scaled(x: Tensor) -> Tensor:
        return x * 3

    before, after = opened([scaled(images())])
    assert calls(before) == 1 and after is before


def test_a_pool_is_written_out_beside_a_convolution_alone():
    """Its gradient looks at windows of an image, whose layout follows the convolution's."""

    @function
    def pooled(x: Tensor) -> Tensor:
        return x.max_pool2d(2)

    alone = opened([pooled(images())])
    assert alone[0] is alone[1]
    before, after = opened([pooled(images()), factor(3, *IMAGES).conv2d(weights(), padding=1)])
    assert calls(after) < calls(before)
