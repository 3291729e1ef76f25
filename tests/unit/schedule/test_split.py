"""The kernels that split cuts out: what they are called on."""

import pytest

from weft import Context, Tensor, custom_kernel
from weft.ir.build import index_of, load, param, range_, sink, store
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.walk import topological
from weft.schedule.schedule import make_schedule
from weft.target.cpu import cpu_target

TARGET = cpu_target("x86_64", ("avx2",))
WAYS = {
    "xor": lambda x: x.contiguous() ^ x,
    "difference": lambda x: x.contiguous() - x,
    "comparison": lambda x: (x.contiguous() != x).cast("int32"),
    "choice": lambda x: (x.contiguous() < x).where(x.contiguous(), 0),
}


def parameters(kernel) -> set[int]:
    return {node.arg[0] for node in topological(kernel) if node.op == Op.PARAM}


@pytest.mark.parametrize("way", WAYS)
def test_a_kernel_is_called_on_the_memory_that_it_has_parameters_for(way):
    """What is kept and what it was kept of are one memory, and cancel each other."""
    x = Tensor(param(1, dtypes.int32, (4,))) + 1
    total = WAYS[way](x).sum().cast("int32")
    written = sink(
        store(param(0, dtypes.int32, ()), total.uop), store(param(2, dtypes.int32, (4,)), x.uop)
    )
    for call in make_schedule(written, TARGET).kernels.src:
        assert parameters(call.arg) == set(range(len(call.src)))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("noopt", [0, 1])
def test_values_that_cancel_are_written_at_an_index(way, noopt):
    with Context(NOOPT=noopt):
        x = Tensor.arange(4)
        rest = WAYS[way](x)
        x[Tensor([2])] = rest.sum().cast(x.dtype)
        assert x.tolist() == [0, 1, 0, 3]
        assert rest.tolist() == [0, 0, 0, 0]


def test_a_kernel_of_a_user_may_ignore_an_input():
    def second(out, x, y):
        i = range_(0, 4)
        return store(index_of(out, [i]), load(index_of(y, [i])) + 1.0, [i])

    x, y = Tensor([1.0, 2.0, 3.0, 4.0]), Tensor([5.0, 6.0, 7.0, 8.0])
    assert custom_kernel(second, x, y, shape=(4,)).tolist() == [6.0, 7.0, 8.0, 9.0]
