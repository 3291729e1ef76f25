"""Linear recurrences in chunks: what a loop over tokens gives, and no state for each token."""

import numpy as np
import pytest

from weft import Tensor, associative_scan, dtypes
from weft.ir.build import param, sink, store
from weft.ir.shapes import largest_size, shape_of
from weft.schedule.schedule import make_schedule
from weft.target.cpu import cpu_target
from weft.tensor.trace.linear_scans import try_linear_scan


def joined(first, then):
    return first[0] * then[0], then[0] * first[1] + then[1]


def swapped(first, then):
    """The state first, and a decay with fewer axes."""
    decay = then[1].reshape((-1, then[1].shape[1], 1, 1))
    return first[0] * decay + then[0], then[1] * first[1]


def looped(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    states = np.zeros_like(b)
    state = np.zeros_like(b[0])
    for t in range(len(b)):
        state = a[t] * state + b[t]
        states[t] = state
    return states


def drawn(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    random = np.random.default_rng(sum(map(sum, shapes)))
    return [random.standard_normal(shape).astype(np.float32) for shape in shapes]


SHAPES = {
    "a number for each head": (2, 1, 1),
    "a row for each head": (2, 6, 1),
    "a column for each head": (2, 1, 24),
    "a number": (1, 1, 1),
}


@pytest.mark.parametrize("size", [64, 96, 257, 1000])
@pytest.mark.parametrize("name", SHAPES)
def test_states_are_those_of_a_loop(name: str, size: int) -> None:
    a, b = drawn((size, *SHAPES[name]), (size, 2, 6, 24))
    a = np.tanh(a)  # zeros and signs are no problem: nothing is divided
    a[size // 3] = 0.0
    decays, states = associative_scan(joined, (Tensor(a), Tensor(b)))
    np.testing.assert_allclose(states.numpy(), looped(a, b), atol=1e-4)
    np.testing.assert_allclose(decays.numpy(), np.cumprod(a, 0), atol=1e-6)


@pytest.mark.parametrize("reverse", [False, True])
def test_the_order_of_the_tensors_and_the_direction_are_free(reverse: bool) -> None:
    a, b = drawn((128, 2), (128, 2, 6, 8))
    states, decays = associative_scan(swapped, (Tensor(b), Tensor(a)), reverse=reverse)
    step = -1 if reverse else 1
    expected = looped(a[::step, :, None, None], b[::step])[::step]
    np.testing.assert_allclose(states.numpy(), expected, rtol=1e-3, atol=1e-3)
    assert decays.shape == (128, 2)


def is_linear(fn, shapes: list[tuple[int, ...]]) -> bool:
    rows = [Tensor(x) for x in drawn(*shapes)]
    return try_linear_scan(lambda x, y: list(fn(x, y)), rows, shapes[0][0]) is not None


def test_only_linear_recurrences_with_small_decays_are_chunked() -> None:
    small, large = (128, 2, 1, 1), (128, 2, 8, 8)
    assert is_linear(joined, [small, large])
    assert not is_linear(joined, [large, large])  # a decay for each element: pairs are better
    assert not is_linear(joined, [(48, *small[1:]), (48, *large[1:])])  # few tokens
    assert not is_linear(lambda x, y: (x[0] * y[0], x[0] * y[1] + x[1]), [small, large])
    assert not is_linear(lambda x, y: (x[0] + y[0], y[0] * x[1] + y[1]), [small, large])
    assert not is_linear(lambda x, y: (x[0] * y[0], (y[0] * x[1]).maximum(y[1])), [small, large])


def layer(q: Tensor, k: Tensor, v: Tensor, a: Tensor) -> Tensor:
    """Linear attention with a gate for each head: (tokens, heads, size)."""
    outer = k.unsqueeze(-1) * v.unsqueeze(-2)
    states = associative_scan(joined, (a.unsqueeze(-1).unsqueeze(-1), outer))[1]
    return (q.unsqueeze(-1) * states).sum(-2)


@pytest.mark.peers("torch")
def test_gradients_are_those_of_a_loop() -> None:
    import torch

    arrays = [*drawn((128, 2, 8), (128, 2, 8), (128, 2, 16)), *drawn((128, 2))]
    arrays[3] = np.tanh(arrays[3])
    ours = [Tensor(x) for x in arrays]
    theirs = [torch.tensor(x, requires_grad=True) for x in arrays]
    out = layer(*ours)
    state, rows = torch.zeros(2, 8, 16), []
    for q, k, v, a in zip(*theirs, strict=True):
        state = a[:, None, None] * state + k[:, :, None] * v[:, None, :]
        rows.append((q[:, :, None] * state).sum(1))
    expected = torch.stack(rows)
    (expected * expected).sum().backward()
    found = (out * out).sum().gradient(*ours)
    np.testing.assert_allclose(out.numpy(), expected.detach().numpy(), atol=1e-4)
    for got, each in zip(found, theirs, strict=True):
        scale = float(each.grad.abs().max())
        np.testing.assert_allclose(got.numpy() / scale, each.grad.numpy() / scale, atol=1e-5)


@pytest.mark.parametrize("has_slopes", [False, True])
def test_no_state_of_every_token_is_in_memory(has_slopes: bool) -> None:
    tokens, heads, size = 2048, 2, 64
    shapes = [*[(tokens, heads, size)] * 4, (tokens, heads)]
    q, k, v, g, a = (Tensor(param(i, dtypes.float32, s)) for i, s in enumerate(shapes))
    out = layer(q, k, v, a)
    slopes = (out * g).sum().gradient(q, k, v, a) if has_slopes else []
    stores = [store(param(5 + i, x.dtype, x.shape), x.uop) for i, x in enumerate([out, *slopes])]
    made = make_schedule(sink(*stores), cpu_target("x86_64", ("avx512f",), threads=2))
    most = max(largest_size(shape_of(each)) for each in made.temporaries)
    assert most <= 2 * tokens * heads * size
