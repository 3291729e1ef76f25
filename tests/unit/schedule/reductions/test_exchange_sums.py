"""The sum that the slope of a softmax needs is taken from the output of attention."""

import pytest

from weft import Tensor
from weft.ir.build import param, sink, store
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.schedule.context import ScheduleContext
from weft.schedule.normalize import normalize
from weft.schedule.reductions.exchange_sums import exchange_sums
from weft.support.settings import Context
from weft.target.cpu import cpu_target
from weft.target.cuda import cuda_target

N, D = 300, 16
CPU = cpu_target("x86_64", ("avx512f",))


def gradient_graph(is_normalized: bool = True) -> UOp:
    """Output and gradients of attention; without a softmax there is no sum to exchange."""
    memory = [param(slot, dtypes.float32, (2, N, D)) for slot in range(8)]
    q, k, v, g = map(Tensor, memory[:4])
    scores = q @ k.transpose(-1, -2)
    out = (scores.softmax(-1) if is_normalized else scores.tanh()) @ v
    results = [out, *(out * g).sum().gradient(q, k, v)]
    return sink(*[store(at, x.uop) for at, x in zip(memory[4:], results, strict=True)])


def slope_graph(wanted: tuple[int, ...], dtype=dtypes.float32, drops: bool = False) -> UOp:
    """Some of the output and the gradients of attention, in some order."""
    memory = [param(slot, dtype, (2, N, D)) for slot in range(8)]
    q, k, v, g = map(Tensor, memory[:4])
    mask = Tensor(param(8, dtypes.float32, (2, N, N))) > 0.0
    weights = (q.float() @ k.float().transpose(-1, -2)).softmax(-1)
    weights = mask.where(weights, 0.0) / 0.9 if drops else weights
    out = weights.cast(dtype).dot(v, dtype=dtypes.float32)
    results = [out, *(out * g.float()).sum().gradient(q, k, v)]
    stores = [store(memory[4 + at], results[at].cast(dtype).uop) for at in wanted]
    return sink(*stores)


def exchanged(graph: UOp, target=CPU, setting: str = "always") -> tuple[UOp, UOp]:
    context = ScheduleContext(graph, target, lambda body: pytest.fail("nothing is called"))
    graph = normalize(graph, context)
    with Context(FUSE_PRODUCTS=setting):
        return graph, exchange_sums(graph, context)


def sums_of_keys(graph: UOp) -> int:
    """Sums, along the keys, of values for each query and key."""
    return sum(
        node.op == Op.REDUCE and node.arg[0] == Op.ADD and shape_of(node.src[0]) == (2, N, N)
        for node in topological(graph)
    )


def test_the_sum_of_weights_times_slopes_comes_from_the_output() -> None:
    before, after = exchanged(gradient_graph())
    assert sums_of_keys(before) == 2  # of the softmax, and of its slope
    assert sums_of_keys(after) == 1
    assert any(node.op == Op.STAGE for node in topological(after))


@pytest.mark.parametrize(
    ("graph", "target", "setting"),
    [
        (gradient_graph(), CPU, "never"),
        (gradient_graph(), CPU, ""),  # memory for so few scores costs less
        (gradient_graph(), cuda_target(), "always"),
        (gradient_graph(is_normalized=False), CPU, "always"),
    ],
)
def test_nothing_is_exchanged_where_scores_have_memory(graph, target, setting: str) -> None:
    before, after = exchanged(graph, target, setting)
    assert after is before


@pytest.mark.parametrize("wanted", [(0, 1), (1, 0), (3, 2, 1, 0), (1,), (2,), (1, 2, 3)])
@pytest.mark.parametrize("drops", [False, True])
@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.bfloat16], ids=str)
def test_the_output_is_found_or_made(wanted: tuple[int, ...], drops: bool, dtype) -> None:
    """Wherever it stands, and behind what rounds, masks and scales the weights."""
    _, after = exchanged(slope_graph(wanted, dtype, drops))
    assert any(node.op == Op.STAGE for node in topological(after))
    assert sums_of_keys(after) == 1
