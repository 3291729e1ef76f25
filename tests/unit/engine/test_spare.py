"""Memory that lies idle: how much, of how many sizes, and what goes first."""

from weft.engine.spare import Spare
from weft.runtime.device import Abilities


class CountingDevice(Abilities):
    """Hands out numbers for memory and counts what is there."""

    name = "COUNTING"

    def __init__(self) -> None:
        self.live: dict[int, int] = {}
        self.next = 0

    def allocate(self, size: int) -> int:
        self.next += 1
        self.live[self.next] = size
        return self.next

    def free(self, handle: int) -> None:
        del self.live[handle]


def test_the_same_size_is_handed_out_again():
    spare, device = Spare(), CountingDevice()
    first = spare.take(device, 100)
    spare.give(device, 100, first)
    assert spare.take(device, 100) == first
    assert spare.take(device, 100) != first


def test_many_sizes_leave_few_behind():
    """A program that meets ever new sizes keeps no memory, and no entry, for each of them."""
    spare, device = Spare(), CountingDevice()
    for size in range(1, 5000):
        spare.give(device, size, spare.take(device, size))
    assert len(device.live) == len(spare._handles) == spare.SIZES
    assert min(device.live.values()) == 5000 - spare.SIZES
    assert spare._idle == {device.name: sum(device.live.values())}


def test_the_limit_in_bytes_is_kept_and_the_oldest_goes():
    spare, device = Spare(), CountingDevice()
    part = spare.LIMIT // 8
    handles = [spare.take(device, part + number) for number in range(20)]
    for number, handle in enumerate(handles):
        spare.give(device, part + number, handle)
        assert spare._idle[device.name] <= spare.LIMIT
    assert sorted(device.live) == handles[-7:]
    spare.give(device, spare.LIMIT + 1, spare.take(device, spare.LIMIT + 1))
    assert sorted(device.live) == handles[-7:]


def test_all_idle_memory_can_be_given_back():
    spare, device = Spare(), CountingDevice()
    handles = [spare.take(device, size) for size in (10, 10, 20)]
    for size, handle in zip((10, 10, 20), handles, strict=True):
        spare.give(device, size, handle)
    spare.release(device)
    assert not device.live and spare._idle == {device.name: 0}
