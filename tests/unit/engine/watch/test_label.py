"""A kernel is named for what it computes."""

import pytest

import weft
from weft import Tensor
from weft.engine.watch.label import label_of
from weft.ir.build import param, sink, store
from weft.schedule.schedule import make_schedule
from weft.target.cpu import cpu_target


def labels(result):
    graph = sink(store(param(9, result.dtype, result.shape), result.uop))
    calls = make_schedule(graph, cpu_target("x86_64", ("avx2",))).kernels.src
    return [label_of(call.arg) for call in calls]


@pytest.mark.parametrize(
    ("function", "label"),
    [
        (lambda x, y: x @ y, "matmul"),
        (lambda x, y: x.sum(0), "sum"),
        (lambda x, y: x.max(), "max"),
        (lambda x, y: (x @ y).exp(), "matmul.exp"),
        (lambda x, y: x * 2 + y, "mul.add"),
        (lambda x, y: x.T.contiguous(), "copy"),
        (lambda x, y: x.cumsum(0), "cumsum"),
        (lambda x, y: x.softmax(), "max.exp.sum"),
        (lambda x, y: x.cast(weft.int32), "cast"),
        (lambda x, y: Tensor.ones(40, 40), "fill"),
    ],
)
def test_a_kernel_is_named_for_what_it_computes(function, label):
    x, y = (Tensor(param(slot, weft.dtypes.float32, (40, 40))) for slot in range(2))
    assert label in labels(function(x, y))
