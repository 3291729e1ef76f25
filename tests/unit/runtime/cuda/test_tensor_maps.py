"""Products on matrix units: tensor maps follow the addresses of a launch, alone and in graphs."""

import numpy as np

from tests.unit.runtime.fake_cuda import FakeDevice, FakeDriver
from weft import Tensor, dtypes, jit


def factor(seed: int, *shape: int) -> Tensor:
    values = np.random.default_rng(seed).integers(-4, 5, shape) / 4
    return Tensor(values.astype(np.float32)).cast(dtypes.bfloat16).realize()


def require_product(out: Tensor, x: Tensor, y: Tensor) -> None:
    wanted = Tensor(x.float().numpy() @ y.float().numpy()).cast(dtypes.bfloat16)
    assert (out.float().numpy() == wanted.float().numpy()).all()


def test_maps_are_made_where_an_address_is_new(device: FakeDevice, api: FakeDriver):
    x, y, z = factor(0, 64, 64), factor(1, 64, 64), factor(2, 64, 64)
    require_product((x @ y).realize(), x, y)
    assert api.calls["cuFuncSetAttribute"] == 1  # more local memory than a kernel may declare
    assert api.calls["cuTensorMapEncodeTiled"] == 2
    (x @ y).realize()
    assert api.calls["cuTensorMapEncodeTiled"] == 2
    require_product((x @ z).realize(), x, z)
    assert api.calls["cuTensorMapEncodeTiled"] == 3


def test_maps_of_a_graph_follow_its_arguments(device: FakeDevice, api: FakeDriver):
    step = jit(lambda x, y: x @ y)
    y = factor(3, 64, 64)
    inputs = [factor(4 + i, 64, 64) for i in range(2)]
    for x in (*inputs, inputs[0]):
        require_product(step(x, y), x, y)
    assert api.calls["cuGraphInstantiateWithFlags"] == 1
