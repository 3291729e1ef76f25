"""What a tensor looks like: numbers where there are some, and nothing is computed for it."""

import math

import pytest

from weft import GlobalCounters, Variable
from weft.tensor import Tensor
from weft.tensor.jit.jit import jit


def test_numbers_that_are_in_memory():
    assert repr(Tensor([1.5, 2.0])) == "<Tensor (2,) float32 CPU realized\n  [1.5, 2. ]>"
    assert repr(Tensor([[1, 2], [3, 4]])).endswith("[[1, 2],\n   [3, 4]]>")
    assert "nan" in repr(Tensor([math.nan, math.inf]))
    assert "[0. , 0.5]" in repr(Tensor([0.0, 0.5], dtype="bfloat16"))
    assert "..." in repr(Tensor.arange(1000).realize())
    assert len(repr(Tensor.rand(300, 300).realize())) < 1000
    assert repr(Tensor([[1, 2], [3, 4]])[1]).endswith("[3, 4]>")


@pytest.mark.parametrize("show", [repr, str, lambda x: x._repr_html_()])
def test_a_lazy_value_is_not_computed(show):
    x = Tensor([1.0, 2.0]) * 3
    before = GlobalCounters.kernel_count
    assert "lazy" in show(x)
    assert GlobalCounters.kernel_count == before
    x.realize()
    assert "3." in show(x)


def test_values_without_numbers():
    assert repr(Tensor([])) == "<Tensor (0,) float32 CPU realized>"
    assert "lazy" in repr(Tensor.ones(Variable("n", 1, 4).bind(2)))
    assert "CPU:1" in repr(Tensor([1.0, 2.0]).shard(("CPU", "CPU:1"), 0).realize())
    assert Tensor([1.0])._repr_html_().startswith("<div><b>Tensor</b>")


def test_print_inside_of_a_jitted_function(capsys: pytest.CaptureFixture[str]):
    @jit
    def step(x: Tensor) -> Tensor:
        print(x)
        return x + 1

    assert step(Tensor([1.0])).tolist() == [2.0]
    assert "<Tensor (1,) float32 CPU" in capsys.readouterr().out
