"""Products of several factors are summed in the order with the fewest multiplications."""

from collections.abc import Callable

import numpy as np
import pytest

from weft import Tensor, dtypes
from weft.ir.build import param, sink, store
from weft.ir.ops import Op
from weft.ir.shapes import largest_size, shape_of
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.schedule.context import ScheduleContext
from weft.schedule.normalize import normalize
from weft.schedule.reductions.order_contractions import order_contractions
from weft.target.cpu import cpu_target

CPU = cpu_target("x86_64", ("avx512f",))
T, S, D, E = 64, 48, 32, 40
SHAPES = {"q": (T, D), "k": (S, D), "v": (S, E), "w": (T, S), "h": (D, E)}


def outer(k: Tensor, v: Tensor) -> Tensor:
    return k.unsqueeze(-1) * v.unsqueeze(-2)  # (s, d, e)


def states(w: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (w.unsqueeze(-1).unsqueeze(-1) * outer(k, v).unsqueeze(0)).sum(1)  # (t, d, e)


def read(q: Tensor, states: Tensor) -> Tensor:
    return (q.unsqueeze(-1) * states).sum(-2)


Program = Callable[..., Tensor]
ORDERED: dict[str, Program] = {
    "a sum of outer products": lambda q, k, v, w, h: read(q, states(w, k, v)),
    "cut axes": lambda q, k, v, w, h: read(
        q, states(w, k, v).reshape(8, 8, D, E).permute(1, 0, 2, 3).reshape(T, D, E)
    ),
    "with another term": lambda q, k, v, w, h: read(q, states(w, k, v) + h),
    "one sum": lambda q, k, v, w, h: (
        q.reshape(T, 1, D, 1)
        * k.reshape(1, S, D, 1)
        * v.reshape(1, S, 1, E)
        * w.reshape(T, S, 1, 1)
    ).sum((1, 2)),
    "products of products": lambda q, k, v, w, h: (w @ k @ h)[:, :1] @ v.sum(0, keepdim=True),
    "numbers under views": lambda q, k, v, w, h: read(
        (q.T * 0.5).T, states(w, (k * 2.0).reshape(S * D).reshape(S, D), v) * 0.25
    ),
    "a chain": lambda q, k, v, w, h: w @ (k @ (h @ v[:1].transpose(0, 1))),
}
AS_THEY_ARE: dict[str, Program] = {
    "a product": lambda q, k, v, w, h: q @ h,
    "a product that is read elsewhere": lambda q, k, v, w, h: (
        read(q, states(w, k, v)) + states(w, k, v).tanh().sum(1)
    ),
    "weights of rows": lambda q, k, v, w, h: (q * w.sum(1, keepdim=True) * q).sum(1, keepdim=True),
}


def graphs(program: Program) -> tuple[UOp, UOp]:
    """A graph before and after the pass."""
    memory = [param(slot, dtypes.float32, shape) for slot, shape in enumerate(SHAPES.values())]
    result = program(*map(Tensor, memory)).uop
    graph = sink(store(param(len(memory), result.dtype, shape_of(result)), result))
    context = ScheduleContext(graph, CPU, lambda body: pytest.fail("nothing is called"))
    graph = normalize(graph, context)
    return graph, order_contractions(graph, context)


def work(graph: UOp) -> int:
    reductions = [node for node in topological(graph) if node.op == Op.REDUCE]
    return sum(largest_size(shape_of(node.src[0])) for node in reductions)


@pytest.mark.parametrize("name", [*ORDERED, *AS_THEY_ARE])
def test_values_are_the_same(name: str) -> None:
    random = np.random.default_rng(7)
    arrays = [random.standard_normal(shape) for shape in SHAPES.values()]
    program = {**ORDERED, **AS_THEY_ARE}[name]
    got = program(*[Tensor(x.astype(np.float32)) for x in arrays]).numpy()
    exact = program(*map(Tensor, arrays)).numpy()  # in float64
    np.testing.assert_allclose(got, exact, atol=1e-5 * abs(exact).max())


@pytest.mark.parametrize(
    "name", ["a sum of outer products", "cut axes", "with another term", "one sum"]
)
def test_much_less_work_is_done(name: str) -> None:
    before, after = graphs(ORDERED[name])
    assert work(before) >= T * S * D * E
    assert work(after) <= T * S * (D + E) + 2 * T * D * E


@pytest.mark.parametrize("name", AS_THEY_ARE)
def test_what_gains_nothing_stays(name: str) -> None:
    before, after = graphs(AS_THEY_ARE[name])
    assert after is before
