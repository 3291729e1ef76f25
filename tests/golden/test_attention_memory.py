"""Attention and its gradient with every kind of score: how many kernels, and no memory for scores.

With 1,024 queries and keys a temporary of so many elements squared is one that a longer row
multiplies out of memory. The counts are golden: a change that moves one says so and why.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import pytest

from weft import Tensor, Variable, dtypes
from weft.ir.build import param, sink, store
from weft.ir.dtypes import DType
from weft.ir.ops import Op
from weft.ir.shapes import largest_size, shape_of
from weft.ir.walk import substitute, topological
from weft.nn import functional
from weft.schedule.schedule import Schedule, make_schedule
from weft.target.cpu import cpu_target

N, SIZE, BLOCK = 1024, 64, 64
TARGET = cpu_target("x86_64", ("avx512f",), threads=2)
Score = Callable[[Tensor, Tensor, Tensor, Tensor | None], Tensor]
FLOAT, INT = dtypes.float32, dtypes.int32


class Kind(NamedTuple):
    """A kind of attention: what is done with scores, and a further input for that."""

    attend: Callable[[Tensor, Tensor, Tensor, Tensor | None], Tensor]
    forward: int = 1  # kernels
    gradient: int = 6  # of output and gradients of queries, keys and values
    extra: tuple[tuple[int, ...], DType] | None = None
    heads: tuple[int, int] = (2, 2)  # of queries and of keys
    dtype: DType = FLOAT


def scored(score: Score) -> Callable[..., Tensor]:
    """Attention with a function of scores, queries and keys, and what else is read."""

    def attend(q: Tensor, k: Tensor, v: Tensor, extra: Tensor | None) -> Tensor:
        scores = q @ k.transpose(-1, -2) / math.sqrt(SIZE)
        i, j = Tensor.arange(N).reshape(N, 1), Tensor.arange(N).reshape(1, N)
        return score(scores, i, j, extra).softmax(-1) @ v

    return attend


def masked(condition: Tensor, scores: Tensor) -> Tensor:
    return condition.where(scores, -math.inf)


def built_in(is_bool: bool = False, **options) -> Callable[..., Tensor]:
    def attend(q: Tensor, k: Tensor, v: Tensor, extra: Tensor | None) -> Tensor:
        mask = extra > 0.0 if is_bool and extra is not None else extra
        return functional.scaled_dot_product_attention(q, k, v, mask, **options)

    return attend


def keys_up_to(q: Tensor, k: Tensor, v: Tensor, extra: Tensor | None) -> Tensor:
    count = Variable("count", 1, N)
    return q.scaled_dot_product_attention(k[:, :, :count], v[:, :, :count])


MASK, SMALL = ((N, N), FLOAT), {"dtype": dtypes.bfloat16}
CAUSAL, GROUPED = {"is_causal": True}, {"enable_gqa": True}
KINDS: dict[str, Kind] = {
    "full": Kind(scored(lambda s, i, j, x: s)),
    "causal": Kind(scored(lambda s, i, j, x: masked(j <= i, s))),
    "window": Kind(scored(lambda s, i, j, x: masked((j <= i) & (i - j < 128), s))),
    "prefix": Kind(scored(lambda s, i, j, x: masked((j <= i) | (j < 64), s))),
    "bool": Kind(built_in(is_bool=True), extra=MASK),
    "bool of heads": Kind(built_in(is_bool=True), extra=((1, 2, N, N), FLOAT)),
    "added": Kind(built_in(), extra=MASK),
    "ALiBi": Kind(scored(lambda s, i, j, x: s + (j - i) * x), extra=((2, 1, 1), FLOAT)),
    "softcap": Kind(scored(lambda s, i, j, x: (s / 30.0).tanh() * 30.0)),
    "relative": Kind(scored(lambda s, i, j, x: s + x[:, i - j + N]), extra=((2, 2 * N), FLOAT)),
    "buckets": Kind(
        scored(lambda s, i, j, x: s + x[:, (i - j).abs().clip(0, 31)]), extra=((2, 32), FLOAT)
    ),
    "dropout": Kind(built_in(dropout_p=0.1)),
    "causal dropout": Kind(built_in(dropout_p=0.1, **CAUSAL)),
    "documents": Kind(
        scored(lambda s, i, j, x: masked((x.reshape(N, 1) == x) & (j <= i), s)), extra=((N,), INT)
    ),
    "blocks": Kind(
        scored(lambda s, i, j, x: masked(x[i // BLOCK, j // BLOCK] > 0, s)),
        extra=((N // BLOCK, N // BLOCK), INT),
    ),
    "shared keys": Kind(built_in(**GROUPED), gradient=7, heads=(4, 2)),
    "one head of keys": Kind(built_in(**GROUPED, **CAUSAL), gradient=7, heads=(4, 1)),
    "bfloat16": Kind(built_in(), **SMALL),
    "causal bfloat16": Kind(built_in(**CAUSAL), **SMALL),
    "masked bfloat16": Kind(built_in(is_bool=True), extra=MASK, **SMALL),
    "shared keys of bfloat16": Kind(built_in(**GROUPED), gradient=7, heads=(4, 2), **SMALL),
    "dropout of bfloat16": Kind(built_in(dropout_p=0.1), **SMALL),
    "float16": Kind(built_in(), dtype=dtypes.float16),
    "symbolic": Kind(keys_up_to),
}


def inputs(kind: Kind) -> tuple[list[Tensor], Tensor | None, Tensor]:
    """Queries, keys and values, the further input, and the gradient of the output."""
    shapes = [(1, heads, N, SIZE) for heads in (kind.heads[0], kind.heads[1], kind.heads[1])]
    tensors = [Tensor(param(at, kind.dtype, shape)) for at, shape in enumerate(shapes)]
    extra = Tensor(param(3, kind.extra[1], kind.extra[0])) if kind.extra else None
    return tensors, extra, Tensor(param(4, kind.dtype, shapes[0]))


def schedule_of(results: list[Tensor]) -> Schedule:
    stores = [store(param(5 + i, x.dtype, x.shape), x.uop) for i, x in enumerate(results)]
    graph = sink(*stores)
    memory = [node for node in topological(graph) if node.op == Op.BUFFER]  # of random numbers
    placed = {n: param(5 + len(stores) + i, n.dtype, shape_of(n)) for i, n in enumerate(memory)}
    return make_schedule(substitute(graph, placed), TARGET)


def require_no_scores(made: Schedule) -> None:
    assert [n for n in made.temporaries if largest_size(shape_of(n)) >= N * N] == []


@pytest.mark.parametrize("name", KINDS)
def test_no_scores_are_in_memory(name: str) -> None:
    kind = KINDS[name]
    tensors, extra, _ = inputs(kind)
    made = schedule_of([kind.attend(*tensors, extra)])
    require_no_scores(made)
    assert len(made.kernels.src) == kind.forward


@pytest.mark.parametrize("name", KINDS)
def test_no_scores_are_in_memory_with_gradients(name: str) -> None:
    kind = KINDS[name]
    tensors, extra, slope = inputs(kind)
    out = kind.attend(*tensors, extra)
    slopes = (out.float() * slope.float()).sum().gradient(*tensors)
    made = schedule_of([out, *slopes])
    require_no_scores(made)
    assert len(made.kernels.src) == kind.gradient


@pytest.mark.parametrize("name", ["full", "causal", "dropout", "bfloat16"])
@pytest.mark.parametrize("wanted", [(0, 1, 2), (0,), (1,), (1, 2), (2, 1, 3)], ids=str)
def test_gradients_without_the_output_and_in_any_order(name: str, wanted: tuple[int, ...]) -> None:
    kind = KINDS[name]
    tensors, extra, slope = inputs(kind)
    out = kind.attend(*tensors, extra)
    slopes = (out.float() * slope.float()).sum().gradient(*tensors)
    require_no_scores(schedule_of([[*slopes, out][at] for at in wanted]))
