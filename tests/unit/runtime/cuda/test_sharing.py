"""Memory of a GPU between libraries, by DLPack."""

import weakref
from typing import Any

import numpy as np
import pytest

from tests.unit.runtime.fake_cuda import FakeDevice, FakeDriver
from weft import Tensor
from weft.engine.buffers import buffer_of
from weft.ir.dtypes import dtypes
from weft.support.errors import NotSupported
from weft.tensor.host import dlpack

F32 = dtypes.float32


def words(values: Any) -> memoryview:
    return memoryview(np.asarray(values, np.float32)).cast("B")


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
        return 2, 0

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
