"""Lazy layers become those that their first input asks for; none is missing in silence."""

import pytest

from weft import NotSupported, ShapeError, Tensor, nn

CASES = [
    (nn.LazyLinear, (5,), {"bias": False}, (2, 3), nn.Linear),
    (nn.LazyConv1d, (4, 3), {"padding": 1}, (2, 3, 6), nn.Conv1d),
    (nn.LazyConv2d, (4, 3), {}, (3, 6, 6), nn.Conv2d),
    (nn.LazyConv3d, (4, 2), {}, (1, 3, 4, 4, 4), nn.Conv3d),
    (nn.LazyConvTranspose1d, (4, 3), {}, (2, 3, 6), nn.ConvTranspose1d),
    (nn.LazyConvTranspose2d, (4, 3), {"stride": 2}, (2, 3, 5, 5), nn.ConvTranspose2d),
    (nn.LazyConvTranspose3d, (4, 2), {}, (1, 3, 4, 4, 4), nn.ConvTranspose3d),
    (nn.LazyBatchNorm1d, (), {"eps": 1e-3}, (4, 3), nn.BatchNorm1d),
    (nn.LazyBatchNorm2d, (), {}, (4, 3, 2, 2), nn.BatchNorm2d),
    (nn.LazyBatchNorm3d, (), {}, (4, 3, 2, 2, 2), nn.BatchNorm3d),
    (nn.LazyInstanceNorm1d, (), {}, (4, 3, 5), nn.InstanceNorm1d),
    (nn.LazyInstanceNorm2d, (), {"affine": True}, (4, 3, 5, 5), nn.InstanceNorm2d),
    (nn.LazyInstanceNorm3d, (), {}, (4, 3, 2, 2, 2), nn.InstanceNorm3d),
]


@pytest.mark.parametrize(("lazy", "args", "options", "shape", "base"), CASES)
def test_becomes_the_layer(lazy, args, options, shape, base):
    layer, x = lazy(*args, **options), Tensor.rand(*shape)
    assert layer.has_uninitialized_params() and isinstance(layer, lazy)
    wanted = base(3, *args, **options)
    assert layer(x).shape == wanted(x).shape
    assert type(layer) is base
    shapes = [(name, each.shape) for name, each in layer.state_dict().items()]
    assert shapes == [(name, each.shape) for name, each in wanted.state_dict().items()]
    assert layer(x).shape == wanted(x).shape


def test_inside_of_a_model():
    model = nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.LazyLinear(1)).eval()
    assert "LazyLinear(?, 4)" in repr(model)
    for ask in (model.state_dict, lambda: list(model.parameters())):
        with pytest.raises(NotSupported, match="no parameters before the first input"):
            ask()
    model(Tensor.ones(2, 3))
    assert [tuple(each.shape) for each in model.parameters()] == [(4, 3), (4,), (1, 4), (1,)]
    assert not any(each.training for each in model.modules())


def test_inputs_that_fit_nothing_are_refused():
    with pytest.raises(ShapeError, match="LazyConv2d: an input with 2 axes"):
        nn.LazyConv2d(4, 3)(Tensor.ones(3, 3))
    with pytest.raises(ShapeError, match="LazyBatchNorm2d"):
        nn.LazyBatchNorm2d()(Tensor.ones(3, 3, 3))
