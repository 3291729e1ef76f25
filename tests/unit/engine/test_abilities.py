"""The engine uses what a device states, and does without what it does not state."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from weft import Context, Device, Tensor
from weft.engine import devices
from weft.render.llvm.renderer import render
from weft.runtime.cpu.device import CpuDevice
from weft.runtime.cpu.memory import CpuMemory
from weft.runtime.host import host_target

PLAIN, ABLE = "CPU:91", "CPU:92"


class Able(CpuDevice):
    """A CPU that copies from its like by itself and has a clock that is always at one."""

    def __init__(self) -> None:
        super().__init__(render, host_target(1), ABLE)
        self.peers = self
        self.timer = self
        self.copied: list[int] = []

    def try_copy_from(self, handle: CpuMemory, source: Any, other: CpuMemory, size: int) -> bool:
        if not isinstance(source, CpuDevice):
            return False
        handle.view[:size] = other.view[:size]
        self.copied.append(size)
        return True

    def measure(self, run: Callable[[], None]) -> float:
        run()
        return 1.0


class Plain(CpuDevice):
    """A CPU that says nothing about what it could do."""

    def __init__(self) -> None:
        super().__init__(render, host_target(1), PLAIN)
        self.host_memory = self.lists = None
        self.copy_outs = 0

    def copy_out(self, data: memoryview, handle: CpuMemory) -> None:
        self.copy_outs += 1
        super().copy_out(data, handle)


@pytest.fixture
def able() -> Iterator[tuple[Able, Plain]]:
    found = Able(), Plain()
    devices._OPEN.update({ABLE: found[0], PLAIN: found[1]})
    yield found
    del devices._OPEN[ABLE], devices._OPEN[PLAIN]


def test_a_peer_copies_without_the_host(able: tuple[Able, Plain]) -> None:
    able_device, plain = able
    x = Tensor(np.arange(6, dtype=np.float32), device=PLAIN).realize()
    before = plain.copy_outs
    y = x.to(ABLE).realize()
    assert able_device.copied == [24] and plain.copy_outs == before
    assert y.to(PLAIN).tolist() == [0, 1, 2, 3, 4, 5]  # PLAIN states nothing: by the host
    python = Tensor([1.0, 2.0], device="PYTHON").to(ABLE)
    assert python.tolist() == [1.0, 2.0] and able_device.copied == [24]


def test_the_clock_of_a_device_is_taken(able: tuple[Able, Plain], capsys: Any) -> None:
    with Context(DEBUG=2):
        (Tensor(np.ones(8, np.float32), device=ABLE) + 1).realize()
        (Tensor(np.ones(8, np.float32), device=PLAIN) + 2).realize()
    shown = [line for line in capsys.readouterr().out.splitlines() if "map_8" in line]
    assert "1.000 s" in shown[0] and "1.000 s" not in shown[1]


def test_memory_that_is_not_of_the_host_is_copied(able: tuple[Able, Plain]) -> None:
    _, plain = able
    x = (Tensor(np.ones(4, np.float32), device=PLAIN) + 1).realize()
    before = plain.copy_outs
    assert x.numpy().tolist() == [2.0] * 4
    assert plain.copy_outs > before
    assert np.shares_memory((y := (Tensor(np.ones(4, np.float32)) + 1)).numpy(), y.numpy())


def test_kinds_of_files_are_in_the_table() -> None:
    assert devices.is_file("DISK:/tmp/x") and not devices.is_file("CPU")
    assert [kind for kind in Device if devices.KINDS[kind].is_file] == ["DISK"]
