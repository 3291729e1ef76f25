"""The device CUDA on a driver in Python: memory, launches, lists, faults and messages."""

from typing import Any

import numpy as np
import pytest

from tests.unit.runtime.fake_cuda import FakeDevice, FakeDriver
from weft import Context, Tensor
from weft.cli.devices import describe
from weft.engine import compile as engine_compile
from weft.engine import devices
from weft.runtime.cuda import copies, driver
from weft.runtime.cuda.gpus import require_gpu
from weft.runtime.device import seconds_of
from weft.support.errors import (
    ArgumentError,
    DeviceError,
    OutOfMemory,
)


def words(values: Any) -> memoryview:
    return memoryview(np.asarray(values, np.float32)).cast("B")


# Memory.


def test_bytes_come_back(device: FakeDevice):
    handle = device.allocate(12)
    assert handle.address % 256 == 0
    device.copy_in(handle, words([1, 2, 3]))
    data = bytearray(8)
    device.copy_out(memoryview(data), device.view(handle, 4, 8))
    assert np.frombuffer(data, np.float32).tolist() == [2, 3]


@pytest.mark.parametrize("size", [copies.SMALL, copies.SMALL + 1, 3 * copies.CHUNK + 5])
def test_copies_of_any_size(device: FakeDevice, size: int):
    data = np.random.default_rng(size).integers(0, 256, size, np.uint8)
    handle = device.allocate(size)
    device.copy_in(handle, memoryview(data))
    back = np.zeros(size, np.uint8)
    device.copy_out(memoryview(back), handle)
    assert (back == data).all()


def test_large_copies_go_through_pinned_chunks(device: FakeDevice, api: FakeDriver):
    size = 5 * copies.CHUNK
    handle = device.allocate(size)
    device.copy_in(handle, memoryview(np.ones(size, np.uint8)))
    assert api.calls["cuMemcpyHtoDAsync_v2"] == 5
    assert api.calls["cuMemHostAlloc"] == copies.BLOCKS + 1  # and the word of the watch


def test_pinned_memory_is_copied_at_once(device: FakeDevice, api: FakeDriver):
    block = device.copies.pinned(5 * copies.CHUNK)
    handle = device.allocate(len(block))
    device.copy_in(handle, memoryview(block).cast("B"))
    device.copy_out(memoryview(block).cast("B"), handle)
    assert api.calls["cuMemcpyHtoDAsync_v2"] == api.calls["cuMemcpyDtoHAsync_v2"] == 1


def test_a_view_is_inside(device: FakeDevice):
    handle = device.allocate(16)
    with pytest.raises(ArgumentError, match="bytes 8 to 24 are not inside 16 bytes"):
        device.view(handle, 8, 16)


@pytest.mark.parametrize("has_pools", [True, False])
def test_memory_is_counted(has_pools: bool):
    device = FakeDevice(FakeDriver(has_pools=has_pools))
    first, second = device.allocate(1000), device.allocate(500)
    device.free(first)
    assert (device.pool.used, device.pool.peak, device.pool.taken) == (500, 1500, 2)
    device.free(second)
    device.free(second)  # a handle gives its memory back once
    assert device.pool.used == 0


def test_memory_goes_back_with_its_handle(device: FakeDevice, api: FakeDriver):
    handle = device.allocate(1000)
    part = device.view(handle, 0, 10)
    del part
    assert api.calls["cuMemFreeAsync"] == 0
    del handle
    assert api.calls["cuMemFreeAsync"] == 1


def test_idle_memory_is_given_back_before_a_refusal():
    api = FakeDriver(memory=10_000)
    device = FakeDevice(api)
    device.free(device.allocate(6000))
    assert api.held > 6000
    device.allocate(8000)
    assert api.calls["cuMemPoolTrimTo"] == 1


def test_out_of_memory_names_what_is_alive(device: FakeDevice, api: FakeDriver):
    api.memory = 100_000
    kept = Tensor(np.ones((100, 50), np.float32)).realize()
    with pytest.raises(OutOfMemory) as caught:
        Tensor(np.zeros(50_000, np.float32)).realize()
    message = str(caught.value)
    assert "CUDA: 200.0 kB are not to be had" in message
    assert "float32 [100, 50]" in message and "20.0 kB" in message
    assert kept.numpy().sum() == 5000  # the device goes on


# Programs.


def test_a_tensor_is_computed(device: FakeDevice, api: FakeDriver):
    x = Tensor(np.arange(6, dtype=np.float32))
    assert (x * 2 + 1).tolist() == [1, 3, 5, 7, 9, 11]
    assert len(api.launches) == 1
    assert api.calls["cuLinkComplete"] == 1


def test_a_binary_of_the_same_text_is_not_compiled_twice(device: FakeDevice, api: FakeDriver):
    for start in range(3):
        (Tensor(np.full(7, start, np.float32)) + 1).realize()
    assert api.calls["cuLinkComplete"] == 1 and len(api.launches) == 3


def test_the_key_of_a_binary_names_the_driver(device: FakeDevice):
    assert "driver 13000" in device.compiler and "llvmlite" in device.compiler


def test_copies_between_devices_pass_no_bytes_through_python(device: FakeDevice):
    x = Tensor(np.arange(5, dtype=np.float32), device="CPU")
    assert x.to("CUDA").to("CPU").tolist() == [0, 1, 2, 3, 4]


def test_copies_between_gpus_are_direct(monkeypatch: pytest.MonkeyPatch):
    api = FakeDriver(gpus=2)
    for name in ("CUDA", "CUDA:1"):
        monkeypatch.setitem(devices._OPEN, name, FakeDevice(api, name))
    x = Tensor(np.arange(5, dtype=np.float32), device="CUDA").realize()
    before = api.calls["cuMemcpyDtoHAsync_v2"]
    y = x.to("CUDA:1").realize()
    assert api.calls["cuMemcpyPeerAsync"] == 1 and api.calls["cuMemPoolSetAccess"] == 1
    assert api.calls["cuMemcpyDtoHAsync_v2"] == before
    assert y.tolist() == [0, 1, 2, 3, 4]


def test_times_are_those_of_the_device(device: FakeDevice, capsys: pytest.CaptureFixture[str]):
    assert seconds_of(device, lambda: None) == pytest.approx(0.0025)
    with Context(DEBUG=2):
        (Tensor(np.ones(4, np.float32)) + 1).realize()
    assert "2500.0 us" in capsys.readouterr().out


def test_a_grid_that_is_refused_says_its_limits(device: FakeDevice):
    x = Tensor(np.ones(4, np.float32)).realize()
    (x + 1).realize()
    loaded = next(iter(engine_compile._LOADED.values()))
    handles = [device.allocate(16) for _ in loaded.program.parameters]
    with pytest.raises(DeviceError, match=r"cannot be launched") as caught:
        loaded.executable(handles, (), (1, 70_000))
    assert "(1, 70000, 1)" in str(caught.value) and "65535" in str(caught.value)


# What is missing.


def test_no_driver(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(driver, "_NAMES", ("libnothing-of-the-kind.so.1",))
    driver.load_driver.cache_clear()
    with pytest.raises(DeviceError, match="there is no NVIDIA driver") as caught:
        devices._open_cuda("CUDA")
    assert "DEVICE=CPU" in str(caught.value)
    driver.load_driver.cache_clear()


def test_a_driver_that_is_too_old():
    with pytest.raises(DeviceError, match="the driver is too old") as caught:
        driver.require_version(11080)
    assert "12.1 or newer, got 11.8" in str(caught.value)
    driver.require_version(12010)


def test_a_driver_without_a_gpu(api: FakeDriver, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(DeviceError, match="there is no GPU") as caught:
        driver.require_started(api, 100)
    assert "CUDA_VISIBLE_DEVICES" in str(caught.value)


def test_a_gpu_that_is_not_there():
    with pytest.raises(DeviceError, match="CUDA:3 does not exist") as caught:
        require_gpu(FakeDriver(gpus=2), 3)
    assert "CUDA:1" in str(caught.value) and "Fake GPU" in str(caught.value)


def test_a_gpu_that_is_too_old(api: FakeDriver):
    api.attributes[75] = 6
    with pytest.raises(DeviceError, match=r"Fake GPU is too old"):
        require_gpu(api, 0)


def test_a_number_that_is_none():
    with pytest.raises(DeviceError, match="'one' is not the number of a GPU"):
        FakeDevice(FakeDriver(), "CUDA:one")


def test_what_weft_devices_says(device: FakeDevice, capsys: pytest.CaptureFixture[str]):
    assert describe("CUDA") == (
        "found: CUDA:PTX:sm_90a, Fake GPU, 1.0 GiB, 1.0 free, driver for CUDA 13.0"
    )
