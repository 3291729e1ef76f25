"""What goes wrong on a GPU names its kernel and the user's line."""

import numpy as np
import pytest

from tests.unit.runtime.fake_cuda import FakeDevice, FakeDriver
from weft import Context, Tensor, jit
from weft.runtime.cuda.compiler import assemble
from weft.support.errors import DeviceError, InternalError


def chain(x: Tensor, y: Tensor) -> Tensor:
    """Three kernels, each behind the one before."""
    first = (x + 1).contiguous()
    second = (first.sum(0, keepdim=True) + first).contiguous()
    return second * y


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


def test_bad_ptx_is_shown_with_its_line(api: FakeDriver):
    text = ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k() {\nadd.f99 %r1;\n}"
    with pytest.raises(InternalError) as caught:
        assemble(api, text, "k")
    message = str(caught.value)
    assert "the driver refuses the PTX of 'k'" in message
    assert "Unknown modifier '.f99'" in message and "> add.f99 %r1;" in message
    assert api.calls["cuLinkDestroy"] == 1
