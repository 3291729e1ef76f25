"""`x.data`: the tensor without its gradient, and the bytes of it when it is called."""

import copy
import pickle

import pytest

import weft
from weft import ArgumentTypeError, Tensor, nn


def test_data_is_a_view_and_can_be_called():
    x = Tensor([1.0, 2.0], requires_grad=True)
    x.data.mul_(3)
    x.data[0] = 9
    assert x.tolist() == [9, 6] and x.requires_grad
    assert list(x.data()) == [9, 6]
    assert x.data.requires_grad is False
    assert type(x.data + 1) is Tensor and isinstance(x.data, Tensor)
    x.data = x.data - 1
    assert x.tolist() == [8, 5] and x.requires_grad
    x.data = Tensor([1, 2, 3])
    assert x.shape == (3,) and x.dtype.name == "int32"
    with pytest.raises(ArgumentTypeError, match="set to a list"):
        x.data = [1.0]


def test_data_goes_where_tensors_go():
    x = Tensor([[1.0, 2.0]], requires_grad=True)
    assert nn.Linear(2, 3)(x.data).shape == (1, 3)
    assert copy.deepcopy(x.data).tolist() == pickle.loads(pickle.dumps(x.data)).tolist()
    assert weft.jit(lambda a: a * 2)(x.data).tolist() == [[2, 4]]


def test_names_of_devices():
    name = weft.device("cuda:1")
    assert (name, name.type, name.index) == ("CUDA:1", "cuda", 1)
    x = Tensor([1.0])
    assert x.device.type == "cpu" and x.device.index is None
    assert x.device == weft.device("cpu") and isinstance(x.device, weft.device)
    assert pickle.loads(pickle.dumps(x.device)).__class__ is str


def test_files_of_tensors_are_read_without_trust(tmp_path):
    """The name of a device in a file is a string."""
    weft.save({"x": Tensor([1.0, 2.0]), "on": Tensor([1.0]).device}, tmp_path / "a")
    found = weft.load(tmp_path / "a", weights_only=True)
    assert found["x"].tolist() == [1, 2] and found["on"] == "CPU"
