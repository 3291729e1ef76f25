"""Gradients of attention on matrix units: schedules are what NumPy says, thread by thread."""

import math
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.end_to_end.test_ptx import ptxas
from weft import Tensor, dtypes
from weft.codegen.choose.heuristic import choose_opts
from weft.codegen.generate import before_opts, generate
from weft.codegen.opts.opt import Opt
from weft.codegen.opts.table import TensorChain
from weft.gradient.reverse import gradients
from weft.ir.build import param, sink, store
from weft.ir.ops import Op
from weft.ir.scalar import from_bits, to_bits
from weft.ir.shapes import largest_size, shape_of
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.reference.memory import ElementMemory
from weft.reference.program import run_program
from weft.render.llvm.renderer import render
from weft.runtime.llvm.compiler import compile_ptx
from weft.schedule.schedule import Schedule, make_schedule
from weft.support.settings import Context
from weft.target.cuda import cuda_target

TARGET = cuda_target("sm_90a")
BF16 = dtypes.bfloat16
Shape = tuple[int, ...]


class Case(NamedTuple):
    """Shapes of queries, and of keys and values; the formula, and the mask of it in NumPy."""

    queries: Shape
    keys: Shape
    formula: Callable[..., Tensor]
    allowed: Callable[[np.ndarray, np.ndarray], Any] = lambda i, j: i + j >= 0
    bias: np.ndarray | None = None


def schedule_of(case: Case, setting: str = "always") -> Schedule:
    """Output and gradients; the arguments are q, k, v, the slopes of the output and the bias."""
    shapes = [case.queries, case.keys, case.keys, case.queries]
    memory = [param(slot, BF16, shape) for slot, shape in enumerate((*shapes, *shapes))]
    q, k, v, slopes = map(Tensor, memory[:4])
    more = []
    if case.bias is not None:
        more = [Tensor(param(8, dtypes.float32, case.bias.shape))]
    out = case.formula(q, k, v, *more)
    results = [out.uop, *gradients(out.uop, [q.uop, k.uop, v.uop], slopes.uop)]
    pairs = zip((memory[7], *memory[4:7]), results, strict=True)
    stores = [store(at, value) for at, value in pairs if value is not None]
    with Context(FUSE_PRODUCTS=setting):
        return make_schedule(sink(*stores), TARGET)


def opts_of(kernel: UOp, tile: tuple[int, int] | None = None) -> tuple[Opt, ...]:
    """What is chosen for a kernel, in tiles of another size if it is a chain."""
    opts, _ = choose_opts(before_opts(kernel, TARGET), TARGET)
    if tile is None or not opts or not isinstance(opts[-1], TensorChain):
        return opts
    return (*opts[:-1], replace(opts[-1], tile=tile))


def chains_of(made: Schedule) -> list[UOp]:
    """The kernels that matrix units compute with the weights in registers."""
    kernels = [call.arg for call in made.kernels.src]
    found = [opts_of(kernel) for kernel in kernels]
    return [k for k, opts in zip(kernels, found, strict=True) if isinstance(opts[-1], TensorChain)]


def run(made: Schedule, memory: dict[int, list[Any]]) -> None:
    """Run the programs of a schedule on memory, with all their threads."""
    for each in made.temporaries:
        memory[each.arg[0]] = [None] * largest_size(shape_of(each))
    for call in made.kernels.src:
        program = generate(call.arg, TARGET, opts_of(call.arg, (64, 64)))
        params = {n.arg[0]: n for n in topological(program.instructions) if n.op == Op.PARAM}
        given = [
            ElementMemory(params[slot].dtype, len(memory[n.arg[0]]), memory[n.arg[0]])
            for slot, n in enumerate(call.src)
        ]
        run_program(program.instructions, given)
        for n, each in zip(call.src, given, strict=True):
            memory[n.arg[0]] = each.values


def computed(made: Schedule, case: Case, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """What the programs of a schedule make of inputs, with all their threads."""
    shapes = [case.queries, case.keys, case.keys, case.queries]
    sizes = {slot: math.prod(shape) for slot, shape in enumerate((*shapes, *shapes))}
    memory: dict[int, list[Any]] = {}
    for slot, array in enumerate(arrays[:4]):
        memory[slot] = [to_bits(BF16, float(x)) for x in array.ravel()]
    if len(arrays) > 4:
        memory[8] = arrays[4].ravel().tolist()
    memory |= {slot: [0] * sizes[slot] for slot in range(4, 8)}
    run(made, memory)
    return [
        np.array([float(from_bits(BF16, int(x))) for x in memory[slot]]).reshape(shape)
        for slot, shape in zip(range(4, 8), shapes, strict=True)
    ]


def expected(case: Case, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """The gradients for queries, keys and values, and the output, in float64."""
    q, k, v, slopes, *bias = arrays
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat(group, 1), v.repeat(group, 1)
    i, j = np.arange(q.shape[2])[:, None], np.arange(k.shape[2])[None, :]
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    scores = scores + bias[0] if bias else scores
    scores = np.where(case.allowed(i, j), scores, -math.inf)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    weights = powers / powers.sum(-1, keepdims=True)
    out = weights @ v
    of_weights = slopes @ v.swapaxes(-1, -2)
    of_scores = weights * (of_weights - (slopes * out).sum(-1, keepdims=True))
    of_scores = of_scores / math.sqrt(q.shape[-1])
    found = [of_scores @ k, of_scores.swapaxes(-1, -2) @ q, weights.swapaxes(-1, -2) @ slopes]
    shared = (k.shape[0], k.shape[1] // group, group, *k.shape[2:])
    return [found[0], *[each.reshape(shared).sum(2) for each in found[1:]], out]


def causal(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return q.scaled_dot_product_attention(k, v, is_causal=True)


def full(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return q.scaled_dot_product_attention(k, v, enable_gqa=True)


def window(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    i = Tensor.arange(int(q.shape[-2])).reshape(-1, 1)
    j = Tensor.arange(int(k.shape[-2])).reshape(1, -1)
    return q.scaled_dot_product_attention(k, v, attn_mask=(j <= i) & (i - j < 20))


def rounded(array: np.ndarray) -> np.ndarray:
    """The nearest numbers that have 16 bits."""
    values = [float(from_bits(BF16, to_bits(BF16, float(x)))) for x in array.ravel()]
    return np.array(values).reshape(array.shape)


BIAS = np.random.default_rng(2).standard_normal((72, 72)).astype(np.float32)
CASES = {
    "causal": Case((1, 1, 136, 8), (1, 1, 136, 8), causal, lambda i, j: j <= i),
    "full, odd sizes": Case((1, 1, 72, 24), (1, 1, 80, 24), full),
    "window": Case((1, 1, 136, 8), (1, 1, 136, 8), window, lambda i, j: (j <= i) & (i - j < 20)),
    "heads that share keys": Case((1, 2, 72, 8), (1, 1, 72, 8), full),
    "bias": Case(
        (1, 1, 72, 8),
        (1, 1, 72, 8),
        lambda q, k, v, bias: q.scaled_dot_product_attention(k, v, attn_mask=bias),
        bias=BIAS,
    ),
}


SHORT = ("causal", "full, odd sizes")
LONG = [pytest.param(name, marks=pytest.mark.long) for name in CASES if name not in SHORT]


@pytest.mark.parametrize("name", [*SHORT, *LONG])
def test_gradients_are_those_of_whole_rows(name: str):
    case = CASES[name]
    rng = np.random.default_rng(0)
    shapes = (case.queries, case.keys, case.keys, case.queries)
    arrays = [rounded(rng.standard_normal(shape)) for shape in shapes]
    arrays += [] if case.bias is None else [case.bias]
    made = schedule_of(case)
    assert len(chains_of(made)) == 3
    for got, want in zip(computed(made, case, arrays), expected(case, arrays), strict=True):
        scale = np.abs(want).max()
        np.testing.assert_allclose(got / scale, want / scale, atol=2e-2)


def test_the_assembler_spills_nothing(tmp_path: Path):
    assembler = ptxas()
    if assembler is None:
        pytest.skip("ptxas is not installed")
    for size, heads, is_causal in ((128, 8, True), (64, 8, False), (64, 2, True)):
        shape = (1, 8, 1000 if heads == 2 else 1024, size)
        case = Case(
            shape,
            (1, heads, *shape[2:]),
            lambda q, k, v, ends=is_causal: q.scaled_dot_product_attention(
                k, v, is_causal=ends, enable_gqa=True
            ),
        )
        for kernel in chains_of(schedule_of(case)):
            text = compile_ptx(render(generate(kernel, TARGET), TARGET), TARGET)
            (tmp_path / "kernel.ptx").write_text(text)
            command = [assembler, "-arch=sm_90a", "-O3", "-v", "kernel.ptx", "-o", "kernel.cubin"]
            done = subprocess.run(
                command, cwd=tmp_path, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stderr
            assert "0 bytes spill stores, 0 bytes spill loads" in done.stderr
            assert "C75" not in done.stderr, "multiplications wait for each other"


def test_nothing_for_each_query_and_key_is_in_memory():
    """Without being asked; the products of a gradient of so many heads have no parts either."""
    case = Case((2, 4, 1024, 64), (2, 4, 1024, 64), causal)
    made = schedule_of(case, "")
    assert len(chains_of(made)) == 3
    assert all(largest_size(shape_of(each)) < 2 * 4 * 1024 * 1024 for each in made.temporaries)


def test_parts_of_one_gradient_are_stored_side_by_side():
    """Queries, keys and values are cut from one value, whose gradient the two kernels fill."""
    shape, size = (1, 72, 48), 3 * 72 * 16
    memory = [param(0, BF16, shape), param(1, BF16, (1, 72, 16)), param(2, BF16, shape)]
    whole, slopes = Tensor(memory[0]), Tensor(memory[1])
    q, k, v = (each.reshape(1, 72, 2, 8).transpose(1, 2) for each in whole.chunk(3, -1))
    out = q.scaled_dot_product_attention(k, v, is_causal=True).transpose(1, 2)
    (found,) = gradients(out.reshape(1, 72, 16).uop, [whole.uop], slopes.uop)
    assert found is not None
    with Context(FUSE_PRODUCTS="always"):
        made = make_schedule(sink(store(memory[2], found)), TARGET)
    rng = np.random.default_rng(0)
    arrays = [rounded(rng.standard_normal(shape)), rounded(rng.standard_normal((1, 72, 16)))]
    given = {n: [to_bits(BF16, float(x)) for x in each.ravel()] for n, each in enumerate(arrays)}
    given[2] = [0] * size
    run(made, given)
    got = np.array([float(from_bits(BF16, int(x))) for x in given[2]]).reshape(shape)
    heads = [x.reshape(1, 72, 2, 8).swapaxes(1, 2) for x in np.split(arrays[0], 3, -1)]
    case = Case((1, 2, 72, 8), (1, 2, 72, 8), causal, lambda i, j: j <= i)
    slopes_of_heads = arrays[1].reshape(1, 72, 2, 8).swapaxes(1, 2)
    parts = expected(case, [*heads, slopes_of_heads])[:3]
    want = np.concatenate([x.swapaxes(1, 2).reshape(1, 72, 16) for x in parts], -1)
    np.testing.assert_allclose(got / np.abs(want).max(), want / np.abs(want).max(), atol=2e-2)
