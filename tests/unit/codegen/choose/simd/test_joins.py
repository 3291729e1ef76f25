"""Rows that do not fit into a near cache are read once for reductions that need each other."""

import numpy as np
import pytest

from weft import Tensor
from weft.codegen.choose.heuristic import choose_opts
from weft.codegen.generate import before_opts
from weft.codegen.opts.table import Join
from weft.ir.build import param, sink, store
from weft.ir.dtypes import dtypes
from weft.schedule.schedule import make_schedule
from weft.support.settings import Context
from weft.target.cpu import cpu_target

TARGET = cpu_target("x86_64", ("avx512f",))
LONG, SHORT = 1 << 18, 1 << 12


def joins(make, shape: tuple[int, ...], target=TARGET) -> list[int]:
    """How many ranges each kernel joins."""
    values = make(Tensor(param(0, dtypes.float32, shape)))
    values = values if isinstance(values, tuple) else (values,)
    stores = [store(param(1 + i, v.uop.dtype, v.uop.shape), v.uop) for i, v in enumerate(values)]
    found = []
    for call in make_schedule(sink(*stores), target).kernels.src:
        opts, _ = choose_opts(before_opts(call.arg, target), target)
        found.append(sum(len(opt.ranges) for opt in opts if isinstance(opt, Join)))
    return found


def cross_entropy(x: Tensor) -> Tensor:
    classes = Tensor(param(9, dtypes.int32, (x.shape[0],)))
    return x.cross_entropy(classes, reduction="none")


@pytest.mark.parametrize(
    ("name", "make", "ranges"),
    [
        ("logsumexp", lambda x: x.logsumexp(1), 2),
        ("softmax", lambda x: x.softmax(1), 2),
        ("cross-entropy", cross_entropy, 2),
        ("argmax", lambda x: x.argmax(1), 2),
        ("maximum and its index", lambda x: (x.max(1), x.argmax(1)), 2),
        ("variance and mean", lambda x: x.var_mean(1), 2),
        ("layernorm", lambda x: x.layernorm(1), 2),
        ("gumbel", lambda x: (x + x.sin()).argmax(1), 2),
        ("sum", lambda x: x.sum(1), 0),
        ("what no rule joins", lambda x: (x * x.max(1, keepdim=True)).sum(1), 0),
    ],
)
def test_rows_beyond_a_cache_are_joined(name: str, make, ranges: int) -> None:
    assert joins(make, (128, LONG)) == [ranges]
    assert joins(make, (128, SHORT)) == [0]


def test_columns_count_as_the_vectors_that_are_read() -> None:
    assert joins(lambda x: x.softmax(0), (1 << 15, 256)) == [2]
    assert joins(lambda x: x.softmax(0), (1 << 9, 256)) == [0]


def test_blocks_over_several_ranges() -> None:
    """Statistics of channels: images are blocks, or several of them, or none is small enough."""
    for images, size, ranges in ((256, 56, 2), (1024, 14, 2), (64, 400, 0)):
        found = joins(lambda x: x.var_mean((0, 2, 3)), (images, 64, size, size))
        assert found == [ranges]
    assert joins(lambda x: x.var_mean((0, 2, 3)), (4, 64, 14, 14)) == [0]


@pytest.mark.parametrize(("join", "ranges"), [("always", 2), ("never", 0)])
def test_the_setting_decides(join: str, ranges: int) -> None:
    with Context(JOIN=join):
        assert joins(lambda x: x.softmax(1), (8, 100)) == [ranges]
        assert joins(lambda x: x.softmax(1), (64, LONG)) == [ranges]


def test_statistics_of_channels_have_the_same_results() -> None:
    x = np.random.default_rng(0).standard_normal((12, 3, 5, 7)).astype(np.float32) + 100
    for join in ("always", "never"):
        with Context(JOIN=join):
            got = Tensor(x).var((0, 2, 3)).numpy()
        np.testing.assert_allclose(got, x.astype(np.float64).var((0, 2, 3), ddof=1), rtol=1e-5)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_rows_of_small_floats_are_joined(dtype: str) -> None:
    kind = getattr(dtypes, dtype)
    x = Tensor(param(0, kind, (128, 2 * LONG)))
    value = x.softmax(1).uop
    (call,) = make_schedule(sink(store(param(1, kind, value.shape), value)), TARGET).kernels.src
    opts, _ = choose_opts(before_opts(call.arg, TARGET), TARGET)
    assert any(isinstance(opt, Join) for opt in opts)
    array = np.random.default_rng(0).standard_normal((3, 200)).astype(np.float32)
    for make in (lambda t: t.softmax(1), lambda t: t.argmax(1), lambda t: t.logsumexp(1)):
        found = []
        for join in ("always", "never"):
            with Context(JOIN=join):
                found.append(make(Tensor(array).cast(dtype)).float().numpy())
        np.testing.assert_allclose(*found, rtol=3e-2, atol=1e-3)


@pytest.mark.parametrize("size", [37, 4096, 50257])
def test_joined_rows_have_the_same_results(size: int) -> None:
    rng = np.random.default_rng(size)
    x = rng.standard_normal((5, size)).astype(np.float32)
    classes = rng.integers(0, size, 5).astype(np.int32)
    x[1, 3], x[2] = np.inf, -np.inf
    made = {
        "softmax": lambda t: t.softmax(1),
        "argmin": lambda t: t.argmin(1),
        "variance": lambda t: t.var(1),
        "loss": lambda t: t.cross_entropy(Tensor(classes), reduction="none"),
        "gradient": lambda t: t.cross_entropy(Tensor(classes)).gradient(t)[0],
    }
    for make in made.values():
        found = []
        for join in ("always", "never"):
            with Context(JOIN=join):
                found.append(make(Tensor(x)).numpy())
        np.testing.assert_allclose(*found, rtol=3e-5, atol=1e-6)
