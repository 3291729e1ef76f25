"""Two products in one kernel on matrix units: the program is what NumPy says, thread by thread."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from weft import Tensor, dtypes
from weft.codegen.choose.heuristic import choose_opts
from weft.codegen.generate import before_opts, generate
from weft.codegen.opts.table import TensorChain
from weft.ir.build import param, sink, store
from weft.ir.dtypes import DType
from weft.ir.ops import Op
from weft.ir.program import Program
from weft.ir.scalar import from_bits, to_bits
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.reference.memory import ElementMemory
from weft.reference.program import run_program
from weft.schedule.schedule import make_schedule
from weft.support.settings import Context
from weft.target.cuda import cuda_target

TARGET = cuda_target("sm_90a")
Formula = Callable[..., Tensor]


class Case(NamedTuple):
    """Shapes of queries, keys and values, and what is computed of them and of further inputs."""

    shapes: tuple[tuple[int, ...], ...]
    formula: Formula
    wanted: Callable[..., np.ndarray]
    more: tuple[np.ndarray, ...] = ()
    dtype: DType = dtypes.bfloat16


def kernel_of(case: Case) -> tuple[UOp, list[int]]:
    """The one kernel of a case, and which input each of its arguments is."""
    inputs = [Tensor(param(n, case.dtype, shape)) for n, shape in enumerate(case.shapes, 1)]
    kinds = [dtypes.bool if each.dtype == bool else dtypes.float32 for each in case.more]
    inputs += [
        Tensor(param(n, kind, each.shape))
        for n, (kind, each) in enumerate(zip(kinds, case.more, strict=True), 4)
    ]
    out = case.formula(*inputs)
    shape = tuple(map(int, out.shape))
    with Context(FUSE_PRODUCTS="always"):
        made = make_schedule(sink(store(param(0, out.dtype, shape), out.uop)), TARGET)
    (call,) = made.kernels.src
    return call.arg, [node.arg[0] for node in call.src]


def program_of(kernel: UOp, tile: tuple[int, int] = (64, 64), stages: int = 2) -> Program:
    """The program with tiles of this size."""
    opts, _ = choose_opts(before_opts(kernel, TARGET), TARGET)
    assert isinstance(opts[-1], TensorChain), opts
    chosen = (*opts[:-1], TensorChain(opts[-1].row, opts[-1].column, tile, stages))
    with Context(SPEC=1):
        return generate(kernel, TARGET, chosen)


def computed(
    case: Case, tile: tuple[int, int] = (64, 64), stages: int = 2
) -> tuple[np.ndarray, np.ndarray]:
    """What a program makes of random inputs, and what is wanted."""
    kernel, _ = kernel_of(case)
    program = program_of(kernel, tile, stages)
    memories, wanted = arguments(case, program)
    run_program(program.instructions, memories)
    result = [float(from_bits(case.dtype, int(x))) for x in memories[0].values]
    return np.array(result).reshape(wanted.shape), wanted


def arguments(case: Case, program: Program) -> tuple[list[ElementMemory], np.ndarray]:
    """Memory with random inputs, and what is wanted."""
    _, order = kernel_of(case)
    rng = np.random.default_rng(0)
    params = {n.arg[0]: n for n in topological(program.instructions) if n.op == Op.PARAM}
    arrays: list[Any] = []
    for shape in case.shapes:
        bits = [to_bits(case.dtype, x) for x in rng.standard_normal(shape).ravel().tolist()]
        values = [float(from_bits(case.dtype, each)) for each in bits]
        arrays.append(np.array(values).reshape(shape))
    arrays += case.more
    wanted = case.wanted(*arrays)
    given = [np.zeros(wanted.shape), *arrays]
    memories = [
        _memory(params[slot].dtype, given[number], case.dtype) for slot, number in enumerate(order)
    ]
    return memories, wanted


def _memory(dtype: DType, array: np.ndarray, of: DType) -> ElementMemory:
    """Memory with an array, of which a target may have the bits only."""
    values = array.ravel().tolist()
    if dtype is dtypes.uint16:
        values = [to_bits(of, float(x)) for x in values]
    return ElementMemory(dtype, len(values), values)


def softmax(scores: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        return powers / powers.sum(-1, keepdims=True)


def scores(q: np.ndarray, k: np.ndarray) -> np.ndarray:
    return q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])


def indices(s: Any) -> tuple[Any, Any]:
    """The numbers of queries and keys, beside scores."""
    count = Tensor.arange if isinstance(s, Tensor) else np.arange
    return count(int(s.shape[-2])).reshape(-1, 1), count(int(s.shape[-1])).reshape(1, -1)


def windowed(s: Any, width: int) -> Any:
    i, j = indices(s)
    where = Tensor.where if isinstance(s, Tensor) else np.where
    return where((j <= i) & (i - j < width), s, -math.inf)


def formula(q: Tensor, k: Tensor, v: Tensor, score: Callable[[Tensor], Tensor]) -> Tensor:
    s = q.dot(k.transpose(-1, -2), dtype=dtypes.float32) / math.sqrt(int(q.shape[-1]))
    return score(s).softmax(-1).cast(v.dtype) @ v


def causal(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    return softmax(windowed(scores(q, k), 1 << 20)) @ v


MASK = np.random.default_rng(1).random((16, 72)) < 0.5
MASK[3] = False
BIAS = np.random.default_rng(2).standard_normal((16, 72)).astype(np.float32)


def masked(q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray) -> np.ndarray:
    return np.nan_to_num(softmax(np.where(mask, scores(q, k), -math.inf)) @ v)


def square(size: int, depth: int, heads: int = 1) -> tuple[tuple[int, ...], ...]:
    return ((heads, size, depth),) * 3


CASES = {
    "causal": Case(
        square(128, 64),
        lambda q, k, v: q.scaled_dot_product_attention(k, v, is_causal=True),
        causal,
    ),
    "window": Case(
        square(136, 16),
        lambda q, k, v: formula(q, k, v, lambda s: windowed(s, 20)),
        lambda q, k, v: softmax(windowed(scores(q, k), 20)) @ v,
    ),
    "odd sizes": Case(
        ((1, 24, 40), (1, 200, 40), (1, 200, 72)),
        lambda q, k, v: q.scaled_dot_product_attention(k, v),
        lambda q, k, v: softmax(scores(q, k)) @ v,
        dtype=dtypes.float16,
    ),
    "heads that share keys": Case(
        ((2, 4, 16, 16), (2, 2, 72, 16), (2, 2, 72, 16)),
        lambda q, k, v: q.scaled_dot_product_attention(k, v, enable_gqa=True),
        lambda q, k, v: softmax(scores(q, k.repeat(2, 1))) @ v.repeat(2, 1),
    ),
    "mask in memory": Case(
        ((1, 16, 16), (1, 72, 16), (1, 72, 16)),
        lambda q, k, v, m: q.scaled_dot_product_attention(k, v, attn_mask=m),
        masked,
        (MASK,),
    ),
    "rows without keys": Case(
        ((1, 16, 16), (1, 72, 16), (1, 72, 16)),
        lambda q, k, v, m: formula(q, k, v, lambda s: m.where(s, -math.inf)),
        lambda q, k, v, m: softmax(np.where(m, scores(q, k), -math.inf)) @ v,
        (MASK,),
    ),
    "bias and cap": Case(
        ((1, 16, 16), (1, 72, 16), (1, 72, 16)),
        lambda q, k, v, b: formula(q, k, v, lambda s: (s / 3.0).tanh() * 3.0 + b),
        lambda q, k, v, b: softmax(np.tanh(scores(q, k) / 3.0) * 3.0 + b) @ v,
        (BIAS,),
    ),
    "factors across memory": Case(
        ((1, 16, 16), (1, 16, 72), (1, 16, 72)),
        lambda q, k, v: q.scaled_dot_product_attention(k.transpose(1, 2), v.transpose(1, 2)),
        lambda q, k, v: softmax(scores(q, k.swapaxes(1, 2))) @ v.swapaxes(1, 2),
    ),
    "no softmax": Case(
        ((1, 16, 16), (1, 72, 16), (1, 72, 16)),
        lambda q, k, v: q.dot(k.transpose(1, 2), dtype=dtypes.float32).relu().cast(v.dtype) @ v,
        lambda q, k, v: np.maximum(q @ k.swapaxes(1, 2), 0.0) @ v,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_formulas(name: str):
    case = CASES[name]
    got, wanted = computed(case)
    scale = np.nanmax(np.abs(wanted))
    np.testing.assert_allclose(got / scale, wanted / scale, atol=1e-2)


def test_two_groups_of_warps_share_a_step():
    case = Case(
        ((1, 128, 16), (1, 264, 16), (1, 264, 16)),
        lambda q, k, v: q.scaled_dot_product_attention(k, v),
        lambda q, k, v: softmax(scores(q, k)) @ v,
    )
    got, wanted = computed(case, (128, 128))
    np.testing.assert_allclose(got, wanted, atol=1e-2)
