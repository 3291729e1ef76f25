"""What a user reads who lays tensors over several devices that do not fit, word for word."""

import pytest

from tests.error.messages import Messages, message_of
from weft.tensor import Tensor

TWO = ("CPU:0", "CPU:1")


def cut(axis: int | None) -> Tensor:
    return Tensor.ones(4, 6).shard(TWO, axis)


MESSAGES: Messages = {
    "on one device and on several": (
        lambda: cut(0) * Tensor.ones(4, 6),
        """DeviceError: mul: operands are on different devices (CPU, CPU:1 and CPU)

  left   (4, 6)   on CPU, CPU:1
  right  (4, 6)   on CPU

  one operation runs on one device, or on the same several

  fix: lay one out like the other: y.shard_like(x)""",
    ),
    "too few elements": (
        lambda: Tensor.ones(2, 3).shard(("CPU", "CPU:1", "CPU:2"), 0),
        """ShapeError: shard: 2 elements along axis 0 for 3 devices

  shape    (2, 3)
  devices  CPU, CPU:1, CPU:2

  each device has at least one element of the sharded axis

  fix: choose a longer axis or fewer devices, or leave axis out: whole on each device""",
    ),
    "one name": (
        lambda: Tensor.ones(2).shard("CPU:1"),
        """ArgumentTypeError: shard: expected several devices, got 'CPU:1'

  several devices are a tuple of their names

  fix: write ("CPU:0", "CPU:1"), for example""",
    ),
    "a device twice": (
        lambda: Tensor.ones(2).shard(("CPU", "cpu:0")),
        """DeviceError: shard: a device is named twice

  devices  CPU, CPU

  each device holds one shard""",
    ),
    "an axis that is not there": (
        lambda: Tensor.ones(2).shard(TWO, 1),
        """AxisError: shard: axis 1 is out of range for 1 axes

  an axis is from -1 to 0 here""",
    ),
    "like one of another size": (
        lambda: Tensor.ones(4).shard_like(cut(1)),
        """ShapeError: shard_like: axis 0 has 4 elements, and that of the other 6

  tensor  (4,)
  other   (4, 6)   axis 1 over CPU, CPU:1

  counted from the last axis, the sharded axis has the same size, or size 1

  fix: shard it by itself: .shard(('CPU', 'CPU:1'), axis=0)""",
    ),
}


@pytest.mark.parametrize("case", MESSAGES)
def test_message(case: str):
    function, expected = MESSAGES[case]
    assert message_of(function, __file__) == expected
