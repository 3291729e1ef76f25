"""The device CUDA on a driver in Python: memory, launches, lists, faults and messages."""

import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.unit.runtime.fake_cuda import FakeDevice, FakeDriver
from weft import Context, Tensor, Variable, jit
from weft.cli.devices import describe
from weft.engine import compile as engine_compile
from weft.engine import devices, realize
from weft.engine.storage import GlobalCounters, buffer_of
from weft.ir.dtypes import dtypes
from weft.runtime.cuda import copies, driver
from weft.runtime.cuda.compiler import assemble
from weft.runtime.cuda.gpus import require_gpu
from weft.runtime.device import seconds_of
from weft.support.errors import (
    ArgumentError,
    DeviceError,
    InternalError,
    NotSupported,
    OutOfMemory,
)
from weft.tensor import dlpack

F32 = dtypes.float32


@pytest.fixture
def api() -> FakeDriver:
    return FakeDriver()


@pytest.fixture
def device(api: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDevice]:
    """A device that tensors find as CUDA; what was loaded for it goes with it."""
    made = FakeDevice(api)
    monkeypatch.setitem(devices._OPEN, "CUDA", made)
    monkeypatch.setattr(engine_compile, "_LOADED", {})
    monkeypatch.setattr(engine_compile, "_try_stored", lambda kernel, device: None)
    monkeypatch.setattr(realize, "_PREPARED", {})
    with Context(DEVICE="CUDA"):
        yield made


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
    assert "CUDA: 200000 bytes are not to be had" in message
    assert "float32 (100, 50)" in message and "20000 bytes" in message
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


def test_bad_ptx_is_shown_with_its_line(api: FakeDriver):
    text = ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k() {\nadd.f99 %r1;\n}"
    with pytest.raises(InternalError) as caught:
        assemble(api, text, "k")
    message = str(caught.value)
    assert "the driver refuses the PTX of 'k'" in message
    assert "Unknown modifier '.f99'" in message and "> add.f99 %r1;" in message
    assert api.calls["cuLinkDestroy"] == 1


def test_a_grid_that_is_refused_says_its_limits(device: FakeDevice):
    x = Tensor(np.ones(4, np.float32)).realize()
    (x + 1).realize()
    loaded = next(iter(engine_compile._LOADED.values()))
    handles = [device.allocate(16) for _ in loaded.program.parameters]
    with pytest.raises(DeviceError, match=r"cannot be launched") as caught:
        loaded.executable(handles, (), (1, 70_000))
    assert "(1, 70000, 1)" in str(caught.value) and "65535" in str(caught.value)


# Lists.


def chain(x: Tensor, y: Tensor) -> Tensor:
    """Three kernels, each behind the one before."""
    first = (x + 1).contiguous()
    second = (first.sum(0, keepdim=True) + first).contiguous()
    return second * y


def test_a_jitted_call_is_one_launch_of_a_graph(device: FakeDevice, api: FakeDriver):
    jitted = jit(chain)
    inputs = [[Tensor(np.full((3, 2), i + k, np.float32)) for k in (0, 1)] for i in range(4)]
    outputs = [jitted(*pair) for pair in inputs]
    api.calls.clear()
    for pair in inputs:
        outputs.append(jitted(*pair))
    for (x, y), out in zip(inputs * 2, outputs, strict=True):
        a, b = x.numpy() + 1, y.numpy()
        assert (out.numpy() == (a.sum(0, keepdims=True) + a) * b).all()
    assert api.calls["cuGraphLaunch"] == 4 and api.calls["cuLaunchKernel"] == 0
    assert api.calls["cuGraphInstantiateWithFlags"] == 0


def test_only_kernels_with_other_arguments_are_patched(device: FakeDevice, api: FakeDriver):
    kernels = 20

    @jit
    def step(x: Tensor) -> Tensor:
        for _ in range(kernels):
            x = (x + x.sum()).contiguous()
        return x

    x, y = (Tensor(np.ones(4, np.float32)).realize() for _ in range(2))
    kept = [step(x)]
    api.calls.clear()
    kept.append(step(y))
    patched = api.calls["cuGraphExecKernelNodeSetParams_v2"]
    assert 0 < patched <= 4  # the first reads y, the last writes the result
    assert api.calls["cuGraphLaunch"] == 1


def test_values_and_grids_of_symbolic_sizes_are_patched(device: FakeDevice, api: FakeDriver):
    jitted = jit(lambda x: (x * 2).sum(1))
    x = Tensor(np.arange(40, dtype=np.float32).reshape(8, 5)).realize()
    for rows in (3, 8, 1, 5):
        n = Variable("n", 1, 8).bind(rows)
        assert jitted(x[:n]).tolist() == (x.numpy()[:rows] * 2).sum(1).tolist()
    assert api.calls["cuGraphInstantiateWithFlags"] == 1


def test_a_kernel_with_an_empty_grid_is_switched_off(device: FakeDevice, api: FakeDriver):
    jitted = jit(lambda x: x + 1)
    x = Tensor(np.arange(8, dtype=np.float32)).realize()
    for size in (3, 0, 2):
        n = Variable("n", 0, 8).bind(size)
        assert jitted(x[:n]).tolist() == (x.numpy()[:size] + 1).tolist()


def test_a_list_is_counted(device: FakeDevice):
    jitted = jit(chain)
    x, y = (Tensor(np.ones((3, 2), np.float32)).realize() for _ in range(2))
    jitted(x, y)
    before = GlobalCounters.kernel_count
    jitted(x, y)
    assert GlobalCounters.kernel_count - before == 3


def test_a_list_is_checked_between_zones(device: FakeDevice):
    with Context(CHECK="memory"):
        jitted = jit(chain)
        x, y = (Tensor(np.ones((3, 2), np.float32)).realize() for _ in range(2))
        for _ in range(2):
            assert jitted(x, y).tolist() == [[8.0, 8.0]] * 3


# Faults.


def faulty_kernel(device: FakeDevice, api: FakeDriver, how: str) -> Tensor:
    """A result whose kernel is the second of three, and goes wrong in its second run."""
    x = Tensor(np.ones((4, 3), np.float32)).realize()
    x.exp().realize()
    (x.sum(1) + 1).realize()
    x.sqrt().realize()
    second = api.launches[-2][0]
    getattr(api, how).add(second)
    x.exp().realize()
    result = (x.sum(1) + 1).realize()  # the guilty line
    x.sqrt().realize()
    return result


def test_an_illegal_access_names_its_kernel_and_line(device: FakeDevice, api: FakeDriver):
    result = faulty_kernel(device, api, "faulty")
    name = next(iter(api.faulty))
    with pytest.raises(DeviceError) as caught:
        result.numpy()
    message = str(caught.value)
    assert f"CUDA: kernel {name!r} touched memory that it does not own" in message
    assert "CUDA_ERROR_ILLEGAL_ADDRESS (700)" in message
    assert "# the guilty line" in message


def test_after_a_fault_the_driver_is_left_alone(device: FakeDevice, api: FakeDriver):
    result = faulty_kernel(device, api, "faulty")
    with pytest.raises(DeviceError):
        result.numpy()
    api.calls.clear()
    for use in (lambda: Tensor([1.0]), device.synchronize, result.numpy):
        with pytest.raises(DeviceError, match="CUDA cannot be used any more: kernel"):
            use()
    del result, use
    assert not api.calls


def test_an_endless_kernel_is_named(device: FakeDevice, api: FakeDriver):
    result = faulty_kernel(device, api, "endless")
    name = next(iter(api.endless))
    with Context(KERNEL_SECONDS=1), pytest.raises(DeviceError) as caught:
        result.numpy()
    message = str(caught.value)
    assert f"kernel {name!r} has not ended after 1 s" in message
    assert "# the guilty line" in message and "KERNEL_SECONDS" in message


def test_a_fault_in_a_list_names_its_kernels(device: FakeDevice, api: FakeDriver):
    jitted = jit(chain)
    x, y = (Tensor(np.ones((3, 2), np.float32)).realize() for _ in range(2))
    jitted(x, y).realize()
    names = [name for name, _, _ in api.launches[-3:]]
    api.faulty.add(names[1])
    with pytest.raises(DeviceError) as caught:
        jitted(x, y).numpy()
    message = str(caught.value)
    assert "one of 3 kernels touched memory" in message
    assert all(name in message for name in names) and "DEBUG=2" in message


def test_without_numbers_all_that_may_be_at_fault_are_named(monkeypatch: pytest.MonkeyPatch):
    api = FakeDriver()
    api.codes["cuStreamWriteValue32_v2"] = [801]
    device = FakeDevice(api)
    device.watch.launched(("first",))
    device.watch.launched(("second",))
    api.state = 700
    with pytest.raises(DeviceError, match="one of 2 kernels"):
        device.synchronize()


def test_what_was_waited_for_is_not_at_fault(device: FakeDevice, api: FakeDriver):
    device.watch.launched(("first",))
    device.synchronize()
    api.state = 700
    device.watch.launched(("second",))
    with pytest.raises(DeviceError, match="kernel 'second'"):
        device.synchronize()


def test_numbers_of_launches_may_wrap(device: FakeDevice, api: FakeDriver):
    device.watch._count = device.watch._done = 2**32 - 2
    device.watch._word.value = 2**32 - 2
    for name in ("a", "b", "c"):
        device.watch.launched((name,))
    assert device.watch.unfinished() == []
    api.state = 700
    device.watch.launched(("d",))
    assert [each.kernels for each in device.watch.unfinished()] == [("d",)]


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


def test_the_graph_of_nothing(device: FakeDevice, api: FakeDriver):
    device.run_list([])()
    assert api.calls["cuGraphLaunch"] == 0


# Memory of other libraries.


class OnGpu:
    """An object of another library: memory of the fake driver, shown by DLPack."""

    def __init__(self, device: FakeDevice, values: Any, offset: int = 0) -> None:
        array = np.asarray(values, np.float32)
        self.handle = device.allocate(array.nbytes + offset)
        device.copy_in(device.view(self.handle, offset, array.nbytes), memoryview(array).cast("B"))
        self.shape, self.offset = array.shape, offset
        self.strides = tuple(step // 4 for step in array.strides)
        self.stream: Any = None

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.CUDA_KIND, 0

    def __dlpack__(self, stream: Any = None, max_version: Any = None) -> Any:
        self.stream = stream
        address = self.handle.address + self.offset
        return dlpack.capsule_of(
            dlpack.Shown(address, (2, 0), F32, self.shape, self.strides, False, self.handle)
        )


def test_memory_of_another_library_is_shared(device: FakeDevice):
    theirs = OnGpu(device, [[1, 2, 3], [4, 5, 6]])
    x = Tensor.from_dlpack(theirs)
    assert x.device == "CUDA" and theirs.stream == device.stream_number
    device.copy_in(theirs.handle, words([10]))
    assert (x + 1).tolist() == [[11, 3, 4], [5, 6, 7]]


def test_memory_of_another_library_lives_as_long_as_its_tensor(device: FakeDevice):
    theirs = OnGpu(device, [1, 2, 3])
    end = weakref.ref(theirs.handle)
    x = Tensor.from_dlpack(theirs)
    del theirs
    assert end() is not None
    del x
    assert end() is None


def test_memory_that_is_not_aligned_is_copied(device: FakeDevice, api: FakeDriver):
    x = Tensor.from_dlpack(OnGpu(device, [1, 2, 3], offset=4))
    assert api.calls["cuMemcpyDtoDAsync_v2"] == 1
    assert (x + 1).tolist() == [2, 3, 4]


def test_memory_with_gaps_is_refused(device: FakeDevice):
    theirs = OnGpu(device, np.ones((4, 4)))
    theirs.shape, theirs.strides = (4, 2), (4, 1)
    with pytest.raises(NotSupported, match="with gaps"):
        Tensor.from_dlpack(theirs)


def test_a_tensor_is_handed_out_in_place(device: FakeDevice):
    x = Tensor(np.arange(6, dtype=np.float32)).realize()
    y = Tensor.from_dlpack(x.reshape(2, 3))
    assert buffer_of(y._storage.uop).handle.address == buffer_of(x._storage.uop).handle.address
    x += 1  # what is lent stays as it is
    assert y.tolist() == [[0, 1, 2], [3, 4, 5]] and x.tolist() == [1, 2, 3, 4, 5, 6]


def test_memory_that_is_lent_outlives_its_tensor(device: FakeDevice, api: FakeDriver):
    x = Tensor(np.arange(6, dtype=np.float32)).realize()
    capsule = x.__dlpack__(stream=7)
    assert api.calls["cuStreamWaitEvent"] == 1
    used = device.pool.used
    del x
    assert device.pool.used == used
    del capsule
    assert device.pool.used == 0


def test_a_view_is_handed_out_as_a_copy(device: FakeDevice):
    x = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3)).realize()
    assert Tensor.from_dlpack(x.T[1:]).tolist() == [[1, 4], [2, 5]]


def test_a_tensor_of_a_gpu_is_handed_out_on_the_cpu_when_asked(device: FakeDevice):
    x = Tensor(np.arange(3, dtype=np.float32))
    assert x.__dlpack_device__() == (2, 0)
    assert x.__dlpack__(dl_device=(1, 0)) is not None
    with pytest.raises(NotSupported, match="device"):
        x.__dlpack__(dl_device=(10, 0))


def test_what_weft_devices_says(device: FakeDevice, capsys: pytest.CaptureFixture[str]):
    assert describe("CUDA") == (
        "found: CUDA:PTX:sm_90a, Fake GPU, 1.0 GiB, 1.0 free, driver for CUDA 13.0"
    )
