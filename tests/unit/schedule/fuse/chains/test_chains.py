"""Which products and softmaxes become one kernel, and which do not."""

import math
from collections.abc import Callable

import pytest

from weft import Tensor
from weft.ir.build import param, sink, store
from weft.ir.dtypes import dtypes
from weft.ir.walk import topological
from weft.schedule.context import ScheduleContext
from weft.schedule.fuse.chains.chains import find_chains
from weft.schedule.normalize import normalize
from weft.support.settings import Context
from weft.target.cpu import cpu_target
from weft.target.cuda import cuda_target

TARGET = cpu_target("x86_64", ("avx512f",), threads=2)
N, D = 512, 64
Function = Callable[[Tensor, Tensor, Tensor], Tensor]


def scores(q: Tensor, k: Tensor) -> Tensor:
    return q @ k.transpose(-1, -2)


def unlike_maximum(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    s = scores(q, k)
    return (s - (s * 2.0).max(axis=-1, keepdim=True)).exp() @ v


def two_products(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (scores(q, k) + scores(k, q)).sigmoid() @ v


def softmax_of_two(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (scores(q, k) + scores(k, q)).softmax(-1) @ v


def chains(function: Function, size: int = N, target=TARGET) -> int:
    q, k, v = (Tensor(param(slot, dtypes.float32, (2, size, D))) for slot in range(3))
    result = function(q, k, v).uop
    graph = sink(store(param(3, dtypes.float32, result.shape), result))
    graph = normalize(graph, ScheduleContext(graph, target, pytest.fail))
    return len(find_chains(graph, topological(graph), target).results)


FOUND: dict[str, Function] = {
    "softmax": lambda q, k, v: scores(q, k).softmax(-1) @ v,
    "scaled and masked": lambda q, k, v: (
        (q > 0.0)
        .sum((1, 2), keepdim=True)
        .cast(dtypes.bool)
        .where(scores(q, k) / 8.0, -math.inf)
        .softmax(-1)
        @ v
    ),
    "values first": lambda q, k, v: (
        v.transpose(-1, -2) @ scores(q, k).softmax(-1).transpose(-1, -2)
    ),
    "no softmax": lambda q, k, v: scores(q, k).relu() @ v,
    "two products": two_products,
    "transposed": lambda q, k, v: scores(q, k).relu().transpose(-1, -2) @ v,
    "weights that are masked": lambda q, k, v: (scores(q, k).softmax(-1) * 2.0) @ v,
}
NOT_FOUND: dict[str, Function] = {
    "along the queries": lambda q, k, v: scores(q, k).softmax(-2) @ v,
    "the other way around": lambda q, k, v: scores(q, k).softmax(-1).transpose(-1, -2) @ v,
    "another maximum": unlike_maximum,
    "weights read twice": lambda q, k, v: (
        scores(q, k).softmax(-1) @ v + scores(q, k).softmax(-1).sum()
    ),
    "softmax of two products": softmax_of_two,
    "three products": lambda q, k, v: (scores(q, k) + scores(k, q) + scores(v, k)).sigmoid() @ v,
    "logarithms": lambda q, k, v: scores(q, k).log_softmax(-1) @ v,
}


@pytest.mark.parametrize("name", FOUND)
def test_chains_are_found(name: str) -> None:
    assert chains(FOUND[name]) == 1


@pytest.mark.parametrize("name", NOT_FOUND)
def test_what_is_no_chain_keeps_its_memory(name: str) -> None:
    for setting in ("", "always"):
        with Context(FUSE_PRODUCTS=setting):
            assert chains(NOT_FOUND[name]) == 0


def causal(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    i, j = Tensor.arange(q.shape[1]).reshape(-1, 1), Tensor.arange(q.shape[1]).reshape(1, -1)
    return (j <= i).where(scores(q, k), -math.inf).softmax(-1) @ v


def of_memory(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (q.sum((0, 2)) > 0.0).where(scores(q, k), -math.inf).softmax(-1) @ v


def small(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    q, k, v = (x.cast(dtypes.bfloat16) for x in (q, k, v))
    return q.scaled_dot_product_attention(k, v)


@pytest.mark.parametrize(
    ("function", "found"),
    [(FOUND["softmax"], 0), (of_memory, 0), (causal, 1), (small, 1)],
)
def test_rows_of_some_hundred_keys_are_blocks_where_that_pays(function, found: int) -> None:
    assert chains(function, 300) == found
    assert chains(function, 600) == 1


def test_wide_layers_without_a_softmax_keep_their_memory() -> None:
    """Two layers of a network are products of products too; their tiles want wider columns."""

    def layers(size: int, hidden: int) -> int:
        shapes = ((4096, size), (size, hidden), (hidden, size))
        x, a, b = (Tensor(param(i, dtypes.float32, shape)) for i, shape in enumerate(shapes))
        graph = sink(store(param(3, dtypes.float32, (4096, size)), ((x @ a).relu() @ b).uop))
        return len(find_chains(graph, topological(graph), TARGET).results)

    assert [layers(64, 512), layers(64, 256), layers(256, 1024)] == [1, 0, 0]


def test_short_rows_stay_in_memory_unless_asked() -> None:
    assert chains(FOUND["softmax"], 64) == 0
    with Context(FUSE_PRODUCTS="always"):
        assert chains(FOUND["softmax"], 64) == 1
    with Context(FUSE_PRODUCTS="never"):
        assert chains(FOUND["softmax"]) == 0


@pytest.mark.parametrize(("queries", "count"), [(8, 0), (16, 1)])
def test_queries_of_a_head_fill_the_lanes(queries: int, count: int) -> None:
    """Many heads of few queries do not: three kernels are faster for these."""
    shapes = ((8, queries, D), (8, N, D), (8, N, D))
    q, k, v = (Tensor(param(i, dtypes.float32, shape)) for i, shape in enumerate(shapes))
    result = FOUND["softmax"](q, k, v).uop
    graph = sink(store(param(3, dtypes.float32, result.shape), result))
    assert len(find_chains(graph, topological(graph), TARGET).results) == count


def test_machines_without_vectors_keep_three_kernels() -> None:
    assert chains(FOUND["softmax"], target=cuda_target()) == 0


def on_units(queries: int, keys: int, heads: int = 32) -> int:
    """The chains of attention in bfloat16 on a GPU."""
    lengths = (queries, keys, keys)
    q, k, v = (
        Tensor(param(slot, dtypes.bfloat16, (1, heads, length, D)))
        for slot, length in enumerate(lengths)
    )
    result = q.scaled_dot_product_attention(k, v).uop
    graph, target = (
        sink(store(param(3, dtypes.bfloat16, result.shape), result)),
        cuda_target("sm_90a"),
    )
    graph = normalize(graph, ScheduleContext(graph, target, pytest.fail))
    return len(find_chains(graph, topological(graph), target).results)


def test_matrix_units_take_rows_of_any_length() -> None:
    assert [on_units(size, size) for size in (65, 77, 128, 300, 2048)] == [1] * 5
    assert on_units(64, 64) == 0  # one block, which no loop is over
    with Context(FUSE_PRODUCTS="never"):
        assert on_units(2048, 2048) == 0


@pytest.mark.parametrize(
    ("queries", "keys", "heads", "count"),
    [(1, 1024, 32, 0), (16, 1024, 1, 1), (16, 8192, 1, 0), (16, 8192, 64, 1)],
)
def test_few_queries_do_not_walk_over_many_keys_alone(
    queries: int, keys: int, heads: int, count: int
) -> None:
    assert on_units(queries, keys, heads) == count
    with Context(FUSE_PRODUCTS="always"):
        assert on_units(queries, keys, heads) == int(queries > 1)
