"""Tensors whose sizes are written otherwise, in the memory that they have."""

import numpy as np

from weft import Tensor, Variable, jit
from weft.engine.buffers import buffer_of
from weft.engine.counters import GlobalCounters
from weft.tensor.trace.sizes import resized, settle_sizes


def numbers(*shape: int) -> Tensor:
    data = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    return Tensor(data).realize()


def test_symbolic_sizes_are_another_view_of_the_same_memory() -> None:
    n = Variable("n", 1, 1 << 30)
    x = numbers(5, 3)
    seen = resized(x, (n.bind(5), 3))
    assert seen.shape == (n.bind(5), 3) and seen.numpy().tolist() == x.numpy().tolist()
    address = buffer_of(x.uop).allocated().address
    assert buffer_of(seen.uop).allocated().address == address
    del x  # the memory lives as long as somebody sees it
    assert (seen + 1).sum().item() == 15 * 14 / 2 + 15


def test_views_are_written_out_first() -> None:
    n = Variable("n", 1, 64)
    x = numbers(6, 4)
    seen = resized(x[1:4].T, (4, n.bind(3)))
    assert seen.numpy().tolist() == x.numpy()[1:4].T.tolist()


def test_settled_results_keep_their_memory() -> None:
    n = Variable("n", 1, 1 << 20)
    made = (resized(numbers(5, 3), (n.bind(5), 3)) * 2).contiguous().realize()
    address = buffer_of(made.uop).allocated().address
    (result,) = settle_sizes([made])
    assert result.shape == (5, 3) and buffer_of(result.uop).allocated().address == address
    assert result.numpy().tolist() == (numbers(5, 3).numpy() * 2).tolist()


def test_memory_follows_the_values() -> None:
    """Variables that may be very large: results and temporaries are as large as now."""
    n = Variable("n", 1, 1 << 24)

    @jit
    def step(x: Tensor) -> Tensor:
        y = (x @ x.transpose(0, 1)).contiguous()
        return (y - y.max()).exp().sum(1)

    for count in (3, 200, 7, 64):
        x = numbers(count, 4) / (4 * count)
        used = GlobalCounters.mem_used
        found = step(resized(x, (n.bind(count), 4)))
        assert GlobalCounters.mem_used - used < 1 << 20
        products = x.numpy() @ x.numpy().T
        wanted = np.exp(products - products.max()).sum(1)
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-5)
        assert buffer_of(found.uop).size <= 2 * 4 * count
    assert step.traces == 1
