"""Attention in one kernel: every kind of mask, no value for each query and key in memory."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from weft import Tensor, Variable, dtypes, jit
from weft.ir.build import param, sink, store
from weft.ir.shapes import largest_size, shape_of
from weft.schedule.schedule import Schedule, make_schedule
from weft.support.settings import Context
from weft.target.cpu import cpu_target

Score = Callable[[Tensor, Tensor, Tensor], Tensor]
HEADS = 2


def positions(rows: int, columns: int) -> tuple[Tensor, Tensor]:
    return Tensor.arange(rows).reshape(rows, 1), Tensor.arange(columns).reshape(1, columns)


def masked(condition: Tensor, scores: Tensor) -> Tensor:
    return condition.where(scores, -math.inf)


# A function of scores, queries and keys each; the same on NumPy's arrays below.
SCORES: dict[str, Score] = {
    "full": lambda s, i, j: s,
    "causal": lambda s, i, j: masked(j <= i, s),
    "window": lambda s, i, j: masked((j <= i) & (i - j < 21), s),
    "both sides": lambda s, i, j: masked((i - j).abs() < 17, s),
    "prefix": lambda s, i, j: masked((j <= i) | (j < 9), s),
    "ALiBi": lambda s, i, j: s + (j - i).cast(dtypes.float32) * 0.25,
    "softcap": lambda s, i, j: masked(j <= i, (s / 3.0).tanh() * 3.0),
    "anticausal": lambda s, i, j: masked(j >= i, s),
}


def expected(name: str, q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    s = q.astype(np.float64) @ k.astype(np.float64).swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    i, j = np.arange(q.shape[-2])[:, None], np.arange(k.shape[-2])[None]
    seen = {
        "causal": j <= i,
        "window": (j <= i) & (i - j < 21),
        "both sides": abs(i - j) < 17,
        "prefix": (j <= i) | (j < 9),
        "softcap": j <= i,
        "anticausal": j >= i,
    }.get(name, True)
    s = {"ALiBi": s + (j - i) * 0.25, "softcap": np.tanh(s / 3) * 3}.get(name, s)
    return weighted(np.where(seen, s, -np.inf), v)


def weighted(s: np.ndarray, v: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        e = np.exp(s - s.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True) @ v


def attention(q: Tensor, k: Tensor, v: Tensor, score: Score) -> Tensor:
    scores = q @ k.transpose(-1, -2) / math.sqrt(int(q.shape[-1]))
    return score(scores, *positions(int(q.shape[-2]), int(k.shape[-2]))).softmax(-1) @ v


def drawn(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    random = np.random.default_rng(sum(map(sum, shapes)))
    return [random.standard_normal(shape).astype(np.float32) for shape in shapes]


def inputs(queries: int, keys: int, size: int) -> list[np.ndarray]:
    return drawn(*((1, HEADS, n, size) for n in (queries, keys, keys)))


def schedule_of(function: Callable[..., Tensor], shapes: list[tuple[int, ...]]) -> Schedule:
    memory = [param(slot, dtypes.float32, shape) for slot, shape in enumerate(shapes)]
    result = function(*map(Tensor, memory))
    graph = sink(store(param(len(shapes), result.dtype, result.shape), result.uop))
    return make_schedule(graph, cpu_target("x86_64", ("avx512f",), threads=2))


@pytest.mark.parametrize("sizes", [(40, 300, 16), (65, 65, 24), (33, 63, 8), (32, 130, 20)])
@pytest.mark.parametrize("name", SCORES)
def test_blocks_of_keys_give_what_whole_rows_give(name: str, sizes: tuple[int, int, int]) -> None:
    arrays = inputs(*sizes)
    with Context(FUSE_PRODUCTS="always"):
        got = attention(*map(Tensor, arrays), SCORES[name]).numpy()
    np.testing.assert_allclose(got, expected(name, *arrays), atol=1e-5)


@pytest.mark.parametrize("name", SCORES)
def test_no_value_for_each_query_and_key_is_in_memory(name: str) -> None:
    shape = (1, HEADS, 1024, 64)
    made = schedule_of(lambda q, k, v: attention(q, k, v, SCORES[name]), [shape] * 3)
    assert len(made.kernels.src) == 1
    assert not made.temporaries


def with_mask(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    return q.scaled_dot_product_attention(k, v, attn_mask=mask)


@pytest.mark.parametrize("kind", ["bool", "added"])
def test_masks_in_memory_are_read_block_by_block(kind: str) -> None:
    shape, mask = (1, HEADS, 1024, 64), param(3, dtypes.float32, (1024, 1024))
    memory = [*(param(slot, dtypes.float32, shape) for slot in range(3)), mask]
    q, k, v, m = map(Tensor, memory)
    result = with_mask(q, k, v, m > 0.0 if kind == "bool" else m)
    graph = sink(store(param(4, dtypes.float32, shape), result.uop))
    made = make_schedule(graph, cpu_target("x86_64", ("avx512f",), threads=2))
    assert all(largest_size(shape_of(each)) < 1024 * 1024 for each in made.temporaries)


@pytest.mark.parametrize("keys", [63, 200])
def test_rows_that_may_attend_to_nothing_are_zeros(keys: int) -> None:
    q, k, v = inputs(70, keys, 16)
    random = np.random.default_rng(5)
    mask = random.random((70, keys)) < 0.5
    mask[3], mask[20:50], mask[:, 0] = False, False, False
    bias = np.where(mask, random.standard_normal(mask.shape), -np.inf).astype(np.float32)
    s = q @ k.swapaxes(-1, -2) / 4.0
    for each, scores in ((mask, np.where(mask, s, -np.inf)), (bias, s + bias)):
        want = np.nan_to_num(weighted(scores, v))
        for setting in ("always", "never"):
            with Context(FUSE_PRODUCTS=setting):
                got = with_mask(*map(Tensor, (q, k, v, each))).numpy()
            np.testing.assert_allclose(got, want, atol=1e-5)


SMALL = {dtypes.float16: 2e-3, dtypes.bfloat16: 1.5e-2}


@pytest.mark.parametrize("dtype", SMALL, ids=str)
@pytest.mark.parametrize("sizes", [(40, 300, 16), (33, 63, 20)])
def test_small_floats_are_summed_in_float32(dtype, sizes: tuple[int, int, int]) -> None:
    q, k, v = (Tensor(x).cast(dtype).realize() for x in inputs(*sizes))
    with Context(FUSE_PRODUCTS="always"):
        got = q.scaled_dot_product_attention(k, v)
        assert got.dtype is dtype
        result = got.cast(dtypes.float32).numpy()
    want = expected("full", *(x.cast(dtypes.float32).numpy() for x in (q, k, v)))
    np.testing.assert_allclose(result, want, atol=SMALL[dtype])


@pytest.mark.parametrize("dtype", SMALL, ids=str)
def test_small_floats_are_one_kernel_too(dtype) -> None:
    memory = [param(slot, dtype, (1, HEADS, 1024, 64)) for slot in range(4)]
    q, k, v = map(Tensor, memory[:3])
    result = q.scaled_dot_product_attention(k, v, is_causal=True)
    graph = sink(store(memory[3], result.uop))
    made = make_schedule(graph, cpu_target("x86_64", ("avx512f",), threads=2))
    assert len(made.kernels.src) == 1
    assert not made.temporaries


def test_heads_share_keys() -> None:
    q, k, v = drawn((1, 4, 50, 16), (1, 2, 150, 16), (1, 2, 150, 16))
    with Context(FUSE_PRODUCTS="always"):
        got = Tensor(q).scaled_dot_product_attention(Tensor(k), Tensor(v), enable_gqa=True)
        result = got.numpy()
    want = expected("full", q, *(x.repeat(2, 1) for x in (k, v)))
    np.testing.assert_allclose(result, want, atol=1e-5)


@pytest.mark.parametrize("group", [4, 8])
def test_one_query_of_heads_that_share_keys(group: int) -> None:
    """Long enough to be read as a stream, also where the number of keys is symbolic."""
    q, k, v = drawn((1, 4 * group, 1, 64), (1, 4, 2100, 64), (1, 4, 2100, 64))
    count = Variable("count", 1, 2100)

    def attend(q: Tensor, k: Tensor, v: Tensor, n: object) -> Tensor:
        return q.scaled_dot_product_attention(k[:, :, :n], v[:, :, :n], enable_gqa=True)

    step = jit(attend)
    for keys in (2100, 1, 65, 2000):
        got = step(*map(Tensor, (q, k, v)), count.bind(keys)).numpy()
        want = expected("full", q, *(x[:, :, :keys].repeat(group, 1) for x in (k, v)))
        np.testing.assert_allclose(got, want, atol=1e-5)


def test_a_symbolic_number_of_keys() -> None:
    q, k, v = drawn((2, 40, 16), (2, 300, 16), (2, 300, 16))
    count = Variable("count", 1, 300)

    def attend(q: Tensor, k: Tensor, v: Tensor, n: object) -> Tensor:
        return q.scaled_dot_product_attention(k[:, :n], v[:, :n])

    with Context(FUSE_PRODUCTS="always"):
        step = jit(attend)
        for keys in (1, 63, 64, 65, 299, 300):
            got = step(*map(Tensor, (q, k, v)), count.bind(keys)).numpy()
            want = expected("full", q, k[:, :keys], v[:, :keys])
            np.testing.assert_allclose(got, want, atol=1e-5)


def test_infinities_and_nan_are_where_whole_rows_have_them() -> None:
    q, k, v = inputs(40, 200, 16)
    q[0, 0, 3, 0], q[0, 1, 7, 2], v[0, 0, 150, 4] = np.nan, np.inf, np.inf
    found = []
    for setting in ("always", "never"):
        with Context(FUSE_PRODUCTS=setting):
            found.append(Tensor(q).scaled_dot_product_attention(Tensor(k), Tensor(v)).numpy())
    np.testing.assert_allclose(*found, atol=1e-5)


def test_weights_that_are_read_elsewhere_keep_their_memory() -> None:
    """What is between the products has another reader: three kernels, as without the form."""
    shape = (1, HEADS, 1024, 64)

    def both(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        weights = (q @ k.transpose(-1, -2)).softmax(-1)
        return weights @ v + weights.sum((-1, -2), keepdim=True)

    assert any(
        largest_size(shape_of(each)) >= 1024 * 1024
        for each in schedule_of(both, [shape] * 3).temporaries
    )


CASES = [("full", (40, 130, 16)), ("softcap", (33, 65, 20)), ("window", (40, 63, 8))]
MORE = [("full", (40, 1, 8)), *((name, (40, 130, 16)) for name in SCORES if name != "full")]


@pytest.mark.parametrize(
    ("name", "sizes"), [*CASES, *(pytest.param(*case, marks=pytest.mark.long) for case in MORE)]
)
def test_gradients_are_those_of_whole_rows(name: str, sizes: tuple[int, int, int]) -> None:
    found = []
    for setting in ("always", "never"):
        with Context(FUSE_PRODUCTS=setting):
            tensors = [Tensor(x) for x in inputs(*sizes)]
            out = attention(*tensors, SCORES[name])
            loss = (out * out).sum()
            found.append([g.numpy() for g in (out, *loss.gradient(*tensors))])
    for got, want in zip(*found, strict=True):
        np.testing.assert_allclose(got, want, atol=1e-4)


def gradient_schedule(name: str, shape: tuple[int, ...], score: Score) -> Schedule:
    memory = [param(slot, dtypes.float32, shape) for slot in range(8)]
    q, k, v, g = map(Tensor, memory[:4])
    out = attention(q, k, v, score)
    results = [out, *(out * g).sum().gradient(q, k, v)]
    stores = [store(at, x.uop) for at, x in zip(memory[4:], results, strict=True)]
    return make_schedule(sink(*stores), cpu_target("x86_64", ("avx512f",), threads=2))


ENDING = ("causal", "window", "both sides", "softcap", "anticausal")


@pytest.mark.parametrize("name", SCORES)
def test_gradients_have_no_value_for_each_query_and_key(name: str) -> None:
    """Behind masks by position as the cost decides, for others if asked: those are not faster."""
    shape = (1, HEADS, 1024, 64)
    with Context(FUSE_PRODUCTS="" if name in ENDING else "always"):
        made = gradient_schedule(name, shape, SCORES[name])
    assert all(largest_size(shape_of(each)) < 1024 * 1024 for each in made.temporaries)
    assert len(made.kernels.src) <= 6


def test_gradients_of_full_rows_keep_memory_while_that_is_faster() -> None:
    made = gradient_schedule("full", (1, HEADS, 768, 64), SCORES["full"])
    assert any(largest_size(shape_of(each)) >= 768 * 768 for each in made.temporaries)
    made = gradient_schedule("full", (1, HEADS, 1024, 64), SCORES["full"])
    assert all(largest_size(shape_of(each)) < 1024 * 1024 for each in made.temporaries)


@pytest.mark.parametrize("dtype", SMALL, ids=str)
@pytest.mark.parametrize("is_causal", [False, True])
def test_gradients_of_small_floats_are_those_of_float32(dtype, is_causal: bool) -> None:
    arrays = [Tensor(x).cast(dtype).realize() for x in drawn(*[(1, HEADS, 70, 16)] * 4)]

    def slopes(dtype) -> list[np.ndarray]:
        q, k, v, g = (x.cast(dtype) for x in arrays)
        out = q.scaled_dot_product_attention(k, v, is_causal=is_causal)
        found = (out.float() * g.float()).sum().gradient(q, k, v)
        return [x.float().numpy() for x in found]

    exact = slopes(dtypes.float32)
    with Context(FUSE_PRODUCTS="always"):
        found = slopes(dtype)
    for got, want in zip(found, exact, strict=True):
        np.testing.assert_allclose(got, want, atol=3 * SMALL[dtype] * abs(want).max())


def test_dropped_weights_have_no_slopes() -> None:
    """The mask is computed anew in each kernel, from the same random numbers."""
    found = []
    for setting in ("always", "never"):
        Tensor.manual_seed(5)
        with Context(FUSE_PRODUCTS=setting), Tensor.train():
            tensors = [Tensor(x) for x in inputs(70, 130, 16)]
            q, k, v = tensors
            out = q.scaled_dot_product_attention(k, v, dropout_p=0.3)
            results = [out, *(out * out).sum().gradient(q, k, v)]
            Tensor.realize(*results)
            found.append([x.numpy() for x in results])
    for got, want in zip(*found, strict=True):
        np.testing.assert_allclose(got, want, atol=1e-4)


@pytest.mark.long
def test_gradients_with_masks_in_memory_and_shared_keys() -> None:
    q, k, v = drawn((1, 4, 40, 16), (1, 2, 130, 16), (1, 2, 130, 16))
    mask = np.random.default_rng(3).random((40, 130)) < 0.6
    mask[5] = False
    found = []
    for setting in ("always", "never"):
        with Context(FUSE_PRODUCTS=setting):
            tensors = [Tensor(x) for x in (q, k, v)]
            out = tensors[0].scaled_dot_product_attention(
                tensors[1], tensors[2], attn_mask=Tensor(mask), enable_gqa=True
            )
            found.append([g.numpy() for g in (out * out).sum().gradient(*tensors)])
    for got, want in zip(*found, strict=True):
        np.testing.assert_allclose(got, want, atol=1e-4)


def test_gradients_of_a_symbolic_number_of_keys() -> None:
    q, k, v = drawn((2, 40, 16), (2, 130, 16), (2, 130, 16))
    count = Variable("count", 1, 130)

    def slopes(q: Tensor, k: Tensor, v: Tensor, n: object) -> tuple[Tensor, ...]:
        out = q.scaled_dot_product_attention(k[:, :n], v[:, :n])
        return tuple((out * out).sum().gradient(q, k, v))

    found = []
    for setting in ("always", "never"):
        with Context(FUSE_PRODUCTS=setting):
            step = jit(slopes)
            found.append(
                [
                    g.numpy()
                    for keys in (63, 65)
                    for g in step(*map(Tensor, (q, k, v)), count.bind(keys))
                ]
            )
    for got, want in zip(*found, strict=True):
        np.testing.assert_allclose(got, want, atol=1e-4)


def test_slopes_of_slopes_are_those_of_whole_rows() -> None:
    found = []
    for setting in ("always", "never"):
        with Context(FUSE_PRODUCTS=setting):
            tensors = [Tensor(x) for x in inputs(16, 40, 8)]
            out = attention(*tensors, SCORES["full"])
            (first,) = (out * out).sum().gradient(tensors[0])
            second = (first * first).sum().gradient(*tensors)
            found.append([g.numpy() for g in second])
    for got, want in zip(*found, strict=True):
        np.testing.assert_allclose(got, want, atol=1e-3, rtol=1e-4)


def test_the_setting_forbids_the_form() -> None:
    shape = (1, HEADS, 1024, 64)
    with Context(FUSE_PRODUCTS="never"):
        made = schedule_of(lambda q, k, v: attention(q, k, v, SCORES["full"]), [shape] * 3)
    assert len(made.kernels.src) == 3


@pytest.mark.parametrize(("rows", "size"), [(2, 4), (4, 4), (5, 3), (8, 16)])
def test_queries_that_are_computed_where_they_are_read(rows: int, size: int) -> None:
    # What a row of sums reads again is in the sums before it too, and cannot be shared with them.
    rng = np.random.default_rng(rows)
    given = rng.standard_normal((rows, size)).astype(np.float32)
    seen = rng.random((rows, rows)) < 0.7
    seen[0], seen[1] = False, True
    q = np.sin(given.astype(np.float64))
    x = Tensor(given).sin()
    result = x.scaled_dot_product_attention(x, x, attn_mask=Tensor(seen)).numpy()
    wanted = weighted(np.where(seen, q @ q.T / math.sqrt(size), -np.inf), q)
    np.testing.assert_allclose(result, np.where(np.isnan(wanted), 0.0, wanted), atol=2e-6)
