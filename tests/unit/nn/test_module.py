"""`nn.Module`: what everyone types, and what a tensor attribute is."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

from weft import Tensor, nn
from weft.support.errors import ArgumentError, ArgumentTypeError, UnknownAttribute


class Net(nn.Module):
    """A parameter, a buffer, a constant, layers as attributes and in a list."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 2)
        self.norm = nn.BatchNorm2d(2)
        self.layers = [nn.Linear(2, 2), nn.Dropout(0.5)]
        self.scale = nn.Parameter(Tensor([1.0]))
        self.positions = Tensor([1.0, 2.0])
        self.register_buffer("count", Tensor([3.0]))
        self.register_buffer("scratch", Tensor([0.0]), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.layers[1](self.layers[0](self.fc(x))) * self.scale


PARAMETERS = [
    "scale",
    "fc.weight",
    "fc.bias",
    "norm.weight",
    "norm.bias",
    "layers.0.weight",
    "layers.0.bias",
]
BUFFERS = [
    "count",
    "scratch",
    "norm.running_mean",
    "norm.running_var",
    "norm.num_batches_tracked",
]


def test_what_a_tensor_attribute_is():
    net = Net()
    assert sorted(name for name, _ in net.named_parameters()) == sorted(PARAMETERS)
    assert sorted(name for name, _ in net.named_buffers()) == sorted(BUFFERS)
    saved = set(PARAMETERS + BUFFERS) - {"scratch"}
    assert set(net.state_dict()) == saved
    # A constant is neither trained nor saved, by tinygrad's walk either.
    assert all(each is not net.positions for each in nn.state.get_parameters(net))


def test_a_frozen_parameter_stays_one():
    net = Net().requires_grad_(False)
    assert sorted(name for name, _ in net.named_parameters()) == sorted(PARAMETERS)
    assert all(each.requires_grad is False for each in net.parameters())


def test_modes():
    net, x = Net(), Tensor.ones(200, 3)
    assert net.training
    assert (net(x) == 0).any().item()
    assert not net.eval().training and not net.layers[1].training
    assert not (net(x) == 0).any().item() and not Tensor.training
    assert net.train() is net and net.layers[1].training


def test_a_layer_of_tinygrad_follows_tensor_training_until_told():
    x, zeros = Tensor([[1.0], [3.0]]), [0.0]
    layer = nn.BatchNorm(1)
    layer(x).realize()
    assert layer.running_mean.tolist() == zeros
    with Tensor.train():
        layer.eval()(x).realize()
        assert layer.running_mean.tolist() == zeros
    layer.train()(x).realize()
    assert layer.running_mean.tolist() != zeros and not Tensor.training


ALONE = {
    "a container": lambda: nn.Sequential(nn.Linear(3, 3), nn.Dropout(1.0)),
    "a container in another": lambda: nn.Sequential(nn.Sequential(nn.Dropout(1.0))),
    "a list of layers": lambda: nn.ModuleList([nn.Dropout(1.0)])[0],
    "a layer": lambda: nn.Dropout(1.0),
    "a layer of channels": lambda: nn.Dropout1d(1.0),
    "a function in a container": lambda: nn.Sequential(Tensor.exp, lambda x: x.dropout(1.0)),
}


@pytest.mark.parametrize("name", ALONE)
def test_modules_that_pytorch_alone_has_train_until_told(name: str):
    module, x = ALONE[name](), Tensor.ones(2, 2, 3)
    assert not module(x).any().item()
    if isinstance(module, nn.Module):
        assert module.training and not module.eval().training
    assert module(x).any().item()
    assert not module.train()(x).any().item() and not Tensor.training


def test_batch_norm_in_a_container_trains():
    model = nn.Sequential(nn.BatchNorm1d(2))
    model(Tensor([[1.0, 2.0], [3.0, 4.0]])).realize()
    moved = model[0].running_mean.tolist()
    assert moved != [0.0, 0.0]
    model.eval()(Tensor.ones(2, 2)).realize()
    assert model[0].running_mean.tolist() == moved


def test_hooks():
    seen: list[str] = []
    layer = nn.Identity()
    first = layer.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
    layer.register_forward_hook(lambda module, args, out: seen.append("after"))
    second = layer.register_forward_hook(lambda module, args, out: out * 10)
    assert layer(Tensor([1.0])).tolist() == [20.0] and seen == ["after"]
    first.remove()
    second.remove()
    assert layer(Tensor([1.0])).tolist() == [1.0]


def test_state_dict_round_trip():
    one, other = Net(), Net()
    result = other.load_state_dict(one.state_dict())
    assert result == ([], [])
    for (_, a), (_, b) in zip(one.named_parameters(), other.named_parameters(), strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
    assert all(each.requires_grad for each in other.parameters())


def test_load_state_dict_names_what_differs():
    net = nn.Linear(2, 1)
    with pytest.raises(
        ArgumentError, match=r"Linear and the dict differ \(1 missing, 1 unexpected\)"
    ):
        net.load_state_dict({"weight": Tensor.ones(1, 2), "bais": Tensor.ones(1)})
    loose = net.load_state_dict(
        {"weight": Tensor.ones(1, 2), "bais": Tensor.ones(1)}, strict=False
    )
    assert loose.missing_keys == ["bias"] and loose.unexpected_keys == ["bais"]
    with pytest.raises(ArgumentError, match="of another shape"):
        net.load_state_dict({"weight": Tensor.ones(2, 2), "bias": Tensor.ones(1)})


def test_casts_reach_floats_alone():
    net = Net().half()
    assert {each.dtype.name for each in net.parameters()} == {"float16"}
    assert net.norm.num_batches_tracked.dtype.name == "int64"
    assert net.float().fc.weight.dtype.name == "float32"


def test_apply_and_modules():
    names: list[str] = []
    net = Net()
    net.apply(lambda module: names.append(type(module).__name__))
    assert names[-1] == "Net" and "Linear" in names
    assert [name for name, _ in net.named_modules()][:2] == ["", "fc"]
    assert net.get_submodule("layers.0") is net.layers[0]
    assert net.get_parameter("fc.weight") is net.fc.weight


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies(copied: Any):
    model = nn.Sequential(nn.Linear(2, 2), nn.ELU(0.5), nn.BatchNorm1d(2))
    twin = copied(model)
    assert repr(twin) == repr(model)
    assert list(twin.state_dict()) == list(model.state_dict())
    assert twin[0].weight is not model[0].weight
    x = Tensor.ones(1, 2)
    assert twin(x).tolist() == model(x).tolist()


def test_repr_shows_the_tree():
    text = repr(nn.Sequential(nn.Linear(3, 2), nn.ReLU()))
    assert text.splitlines() == [
        "Sequential(",
        "  (0): Linear(weight (2, 3), bias (2,))",
        "  (1): ReLU()",
        ")  # 8 parameters",
    ]


def test_containers():
    layers = nn.ModuleList([nn.Linear(1, 1)])
    layers.append(nn.Linear(1, 2))
    assert len(layers) == 2 and layers[-1].weight.shape == (2, 1)
    assert [name for name, _ in layers.named_parameters()][-1] == "1.bias"
    by_name = nn.ModuleDict({"a": nn.Linear(1, 1)})
    assert "a" in by_name and [*by_name.state_dict()] == ["a.weight", "a.bias"]
    assert len(list(nn.ParameterList([Tensor([1.0])]).parameters())) == 1
    assert nn.Sequential([nn.ReLU()])(Tensor([-1.0])).tolist() == [0.0]


def test_mistakes_are_answered():
    net = Net()
    with pytest.raises(UnknownAttribute, match="Net has no attribute 'fcc'"):
        _ = net.fcc
    with pytest.raises(ArgumentTypeError, match="unknown argument 'in_feature'"):
        nn.Linear(in_feature=3, out_features=2)
    with pytest.raises(ArgumentTypeError, match="expected a Tensor, got a numpy"):
        nn.Linear(3, 2)(np.ones((1, 3), np.float32))
    with pytest.raises(ArgumentTypeError, match="ELU: got an unexpected keyword"):
        nn.ELU(alpa=1.0)


def test_keyword_names_of_pytorch():
    assert nn.Embedding(num_embeddings=3, embedding_dim=2).weight.shape == (3, 2)
    assert nn.BatchNorm2d(num_features=3).weight.shape == (3,)
    assert nn.BatchNorm2d(3, 1e-5, 0.2).momentum == 0.2
    assert nn.Linear(2, 2, dtype="float16").weight.dtype.name == "float16"


def test_padding_idx_is_zero_and_stays():
    table = nn.Embedding(3, 2, padding_idx=1)
    assert table.weight.tolist()[1] == [0.0, 0.0]
    (slope,) = table(Tensor([0, 1])).sum().gradient(table.weight)
    assert slope.tolist() == [[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]]


def test_a_state_dict_has_parameters_before_buffers():
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", Tensor([0.0]))
            self.inner = nn.Linear(1, 1)
            self.scale = nn.Parameter(Tensor([1.0]))

    assert list(Scaled().state_dict()) == ["scale", "count", "inner.weight", "inner.bias"]
