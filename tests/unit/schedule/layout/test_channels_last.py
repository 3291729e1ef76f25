"""Images of convolutions on matrix units lie with their channels last, and so do the results."""

import pytest

from tests.unit.schedule.layout.test_align_factors import BF16, HOPPER, factor, schedule
from weft import Tensor
from weft.ir.build import param, sink, store
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.schedule.context import Body, ScheduleContext
from weft.schedule.layout.channels_last import channels_last
from weft.schedule.normalize import normalize
from weft.target.cpu import cpu_target
from weft.target.target import Target

IMAGES = 8, 64, 32, 32
CPU = cpu_target("x86_64", ("avx512f",))


def never(body: UOp) -> Body:
    raise AssertionError("nothing here calls")


def laid_out(out: Tensor, target: Target = HOPPER) -> tuple[UOp, UOp]:
    """The graph before and after the pass."""
    root = sink(store(param(9, BF16, out.shape), out.uop))
    context = ScheduleContext(root, target, never)
    before = normalize(root, context)
    return before, channels_last(before, context)


def images() -> Tensor:
    return factor(0, *IMAGES)


def weights(slot: int = 1, channels: int = 64) -> Tensor:
    return factor(slot, 64, channels, 3, 3)


def stages(root: UOp) -> list[tuple[int, ...]]:
    return [shape_of(node.src[0]) for node in topological(root) if node.op == Op.STAGE]


def test_factors_and_result_have_channels_last():
    _, after = laid_out(images().conv2d(weights(), padding=1))
    assert stages(after) == [(8, 32, 32, 64), (64, 3, 3, 64), (8, 1, 32, 32, 64)]


def test_nothing_is_copied_between_convolutions():
    """Images and both weights are brought into order, and what leaves into its own."""
    one = images().conv2d(weights(1), padding=1).relu()
    calls = schedule(one.conv2d(weights(2), padding=1)).kernels.src
    products = [call for call in calls if call.arg.ops >> Op.REDUCE & 1]
    assert len(calls) == 6 and len(products) == 2
    assert products[0].src[0] in products[1].src  # the second reads what the first wrote


@pytest.mark.parametrize(
    "out",
    [
        lambda: factor(0, 2, 4, 8, 8).conv2d(factor(1, 4, 4, 3, 3)),  # small
        lambda: factor(0, 512, 512) @ factor(1, 512, 512),  # no image
        lambda: images().relu(),
    ],
)
def test_other_graphs_are_unchanged(out):
    before, after = laid_out(out())
    assert after is before


def test_targets_that_copy_no_boxes_see_their_graphs_unchanged():
    before, after = laid_out(images().conv2d(weights(), padding=1), CPU)
    assert after is before


def test_the_result_leaves_in_its_own_order():
    out = images().conv2d(weights(), padding=1)
    calls = schedule(out).kernels.src
    slots = {memory.arg[0]: memory for memory in calls[-1].src if memory.op == Op.PARAM}
    assert shape_of(slots[9]) == out.shape
