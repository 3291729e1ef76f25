"""Memory that Weft and other libraries share, capsules, pickles and copies."""

import copy
import gc
import pickle
import sys
from importlib import import_module

import numpy as np
import pytest

from weft import Context, Device, Tensor, config, dtypes
from weft.support.errors import ArgumentError, ArgumentTypeError, DeviceError
from weft.tensor.host import dlpack


def test_numpy_is_a_view_that_may_not_be_written():
    x = Tensor([[1.0, 2.0], [3.0, 4.0]], device="CPU").realize()
    assert np.shares_memory(x.numpy(), x.numpy())
    assert np.shares_memory(x.T[1].numpy(), x.numpy())
    with pytest.raises(ValueError, match="read-only"):
        x.numpy()[0] = 5


def test_a_write_leaves_arrays_alone():
    x = Tensor([1, 2, 3], device="CPU")
    before = x.numpy()
    x += 10
    middle = x.numpy()
    x[0] = 0
    assert (before.tolist(), middle.tolist()) == ([1, 2, 3], [11, 12, 13])
    assert x.tolist() == [0, 12, 13]


def test_an_array_outlives_its_tensor():
    array = (Tensor.arange(64, device="CPU") + 1).numpy()
    gc.collect()
    others = [(Tensor.full((64,), value, device="CPU") + 1).realize() for value in range(8)]
    assert array.tolist() == list(range(1, 65))
    del others


def test_dead_arrays_cost_no_copy():
    x = Tensor([1, 2, 3], device="CPU").realize()
    address = x.numpy().ctypes.data
    x += 1
    assert x.numpy().ctypes.data == address


def test_asarray():
    x = Tensor([1, 2], device="CPU")
    assert np.shares_memory(np.asarray(x), x.numpy())
    assert np.array(x).flags.writeable
    assert np.asarray(x, dtype=np.float64).dtype == np.float64
    assert np.shares_memory(x.__array__(copy=False), x.numpy())
    with pytest.raises(ArgumentError):
        x.__array__(np.float64, copy=False)
    with pytest.raises(ArgumentError):
        Tensor([1, 2], device="PYTHON").__array__(copy=False)


def test_buffer_protocol():
    """Python asks for it from 3.12 on; before that it can be called."""
    x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    view = x.__buffer__(0)
    assert (view.format, view.shape, view.readonly) == ("f", (2, 2), True)
    assert np.frombuffer(view, np.float32).tolist() == [1.0, 2.0, 3.0, 4.0]
    with pytest.raises(BufferError):
        x.__buffer__(1)
    if sys.version_info >= (3, 12):
        assert memoryview(x).tolist() == x.tolist()  # type: ignore[arg-type]
        assert np.frombuffer(x, np.float32).tolist() == [1.0, 2.0, 3.0, 4.0]


def test_a_tensor_of_an_array_is_a_copy():
    array = np.array([1, 2, 3])
    x = Tensor(array, device="CPU") * 2
    array[0] = 9
    assert x.tolist() == [2, 4, 6]


def test_from_numpy_shares_both_ways():
    array = np.zeros(3, np.float32)
    x = Tensor.from_numpy(array, device="CPU")
    later = x + 1
    array[1] = 5
    assert later.tolist() == [1, 6, 1]
    x += 2
    x.realize()
    assert array.tolist() == [2, 7, 2]
    del array
    gc.collect()
    assert x.tolist() == [2, 7, 2]


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6)[::2],
        np.arange(6).reshape(2, 3).T,
        np.frombuffer(bytes(8), np.int32),
        np.arange(3, dtype=">i4"),
        np.zeros((0, 2)),
        np.arange(3, dtype=np.int8)[1:],
    ],
)
def test_from_numpy_copies_what_it_cannot_share(array: np.ndarray):
    x = Tensor.from_numpy(array, device="CPU")
    assert x.tolist() == array.tolist()
    y = Tensor.from_numpy(array, device="PYTHON")
    assert y.tolist() == array.tolist()


def test_from_numpy_takes_arrays_only():
    with pytest.raises(ArgumentTypeError):
        Tensor.from_numpy([1, 2])


def test_from_blob():
    array = np.array([1.5, 2.5], np.float32)
    x = Tensor.from_blob(array.ctypes.data, (2, 1), device="CPU")
    assert x.tolist() == [[1.5], [2.5]]
    assert Tensor.from_blob(0, (0,), "int32").tolist() == []
    with pytest.raises(ArgumentError):
        Tensor.from_blob(0, (1,))


@pytest.mark.parametrize("name", ["float32", "int8", "uint16", "bool", "float16", "int64"])
def test_dlpack_with_numpy(name: str):
    array = np.array([[0, 1, 1], [1, 0, 1]]).astype(name)
    assert np.from_dlpack(Tensor(array, device="CPU").T).tolist() == array.T.tolist()
    back = Tensor.from_dlpack(array.T, device="CPU")
    assert back.dtype.name == name
    assert back.tolist() == array.T.tolist()
    shared = Tensor.from_dlpack(array, device="CPU")
    array[0, 0] = 1
    assert shared[0, 0].item() == 1


def test_dlpack_of_nothing_and_of_one():
    assert Tensor.from_dlpack(np.zeros((0, 2))).shape == (0, 2)
    assert np.from_dlpack(Tensor(2.5, device="CPU")).item() == 2.5
    assert Tensor.from_dlpack(np.arange(5)[::-2]).tolist() == [4, 2, 0]


def test_capsules_let_go():
    gc.collect()
    before = len(dlpack._ALIVE)
    x = Tensor([1, 2], device="CPU")
    held = np.from_dlpack(x)
    x.__dlpack__()
    assert len(dlpack._ALIVE) == before + 1
    del held
    gc.collect()
    assert len(dlpack._ALIVE) == before


def test_dlpack_refuses():
    with pytest.raises(ArgumentTypeError):
        Tensor.from_dlpack([1])
    with pytest.raises(Exception, match="device"):
        Tensor([1]).__dlpack__(dl_device=(2, 0))
    assert Tensor([1]).__dlpack_device__() == (1, 0)


@pytest.mark.peers("torch")
@pytest.mark.parametrize("name", ["float32", "bfloat16", "bool", "int64", "float64"])
def test_torch_there_and_back(name: str):
    torch = import_module("torch")
    theirs = torch.tensor([[0, 1], [1, 1]]).to(getattr(torch, name))
    ours = Tensor(theirs, device="CPU")
    assert ours.dtype.name == name
    assert torch.equal(ours.to_torch(), theirs)
    assert torch.equal(torch.from_dlpack(ours), theirs)
    shared = Tensor.from_dlpack(theirs, device="CPU")
    theirs[0, 0] = 1
    assert shared[0, 0].item() == 1
    assert ours[0, 0].item() == 0


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.bfloat16, dtypes.bool, dtypes.fp8e4m3])
def test_pickle(dtype: object):
    x = Tensor([[0.0, 1.0], [2.0, 1.5]], device="CPU").cast(dtype)[:, ::-1]
    y = pickle.loads(pickle.dumps(x))
    assert (y.dtype, y.shape, y.device) == (x.dtype, x.shape, x.device)
    assert y.tolist() == x.tolist()


def test_pickle_keeps_the_mark_of_a_leaf():
    x = pickle.loads(pickle.dumps(Tensor([1.0, 2.0], requires_grad=True)))
    (x * x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_copies():
    x = Tensor([1.0, 2.0], requires_grad=True)
    (x * 3).sum().backward()
    deep, shallow = copy.deepcopy(x), copy.copy(x)
    x.assign(x * 10)
    assert (deep.tolist(), shallow.tolist()) == ([1, 2], [10, 20])
    assert deep.requires_grad
    assert deep.grad.tolist() == [3, 3]
    pair = copy.deepcopy([x, x])
    assert pair[0] is pair[1]


def test_device_object():
    assert Device["PYTHON"].name == "PYTHON"
    assert "cpu:1" in Device
    assert "TOASTER" not in Device
    assert "CPU" in list(Device)
    with pytest.raises(DeviceError):
        Device["TOASTER"]
    before = Device.DEFAULT
    try:
        Device.DEFAULT = "python"
        assert Tensor([1]).device == "PYTHON"
        with Context(DEVICE="NULL"):
            assert Device.DEFAULT == "NULL"
    finally:
        Device.DEFAULT = before
    assert Device.canonicalize(None) == before


def test_config_is_the_settings():
    with Context(DEBUG=0):
        assert config.DEBUG == 0
