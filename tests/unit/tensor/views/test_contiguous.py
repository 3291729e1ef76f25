"""`contiguous()` copies only where elements have gaps; else it shares the memory, as PyTorch's."""

import random

import numpy as np
import pytest

from weft import GlobalCounters, Tensor, Variable, jit

SHAPE = (4, 3, 2)
STEPS = {
    "whole": lambda x: x,
    "rows": lambda x: x[1:3],
    "one row": lambda x: x[2],
    "part of a row": lambda x: x[2, 1:],
    "part of the only row": lambda x: x[1:2, 1:3],
    "columns": lambda x: x[:, 1:],
    "last axis": lambda x: x[..., 0],
    "reshaped": lambda x: x.reshape(6, 4)[2:5].reshape(3, 2, 2),
    "reshaped columns": lambda x: x.reshape(6, 4)[:, :2],
    "transposed": lambda x: x.transpose(0, 1),
    "transposed row": lambda x: x[1:2].transpose(0, 1),
    "every other": lambda x: x[::2],
    "reversed": lambda x: x.flip(0),
    "spread": lambda x: x[:1].expand(4, 3, 2),
    "detached": lambda x: x[1:].detach(),
    "nothing": lambda x: x[2:2],
}


@pytest.mark.parametrize("name", STEPS)
def test_memory_is_shared_where_numpy_says_that_a_view_has_no_gaps(name: str):
    array = np.arange(24.0, dtype=np.float32).reshape(SHAPE)
    x = Tensor(array.copy()).realize()
    view = STEPS[name]
    places = view(Tensor(np.arange(24).reshape(SHAPE))).numpy()
    is_one_piece = bool((np.diff(places.reshape(-1)) == 1).all())
    GlobalCounters.reset()
    made = view(x).contiguous().realize()
    assert GlobalCounters.kernel_count == (0 if is_one_piece or not places.size else 1)
    before = array.reshape(-1)[places]
    x += 100
    assert made.tolist() == (before + 100 if is_one_piece else before).tolist()


def test_a_copy_of_a_view_without_gaps_is_not_written_with_it():
    x = Tensor([1, 2, 3, 4]).realize()
    copied = x[1:3].clone()
    x += 1
    assert copied.tolist() == [2, 3]


@pytest.mark.parametrize("rows", [1, 3, 4])
def test_a_view_with_a_symbolic_size_shares_memory_as_one_with_an_int(rows: int):
    n = Variable("n", 1, 4).bind(rows)
    wanted = []
    for size in (rows, n):
        x = Tensor.arange(8).reshape(4, 2).contiguous().realize()
        part = x[:size].contiguous()
        x += 1
        wanted.append(part[:rows].tolist())
    assert wanted[0] == wanted[1] == (np.arange(8).reshape(4, 2)[:rows] + 1).tolist()


@pytest.mark.parametrize("name", STEPS)
def test_a_jitted_function_shares_where_eager_code_does(name: str):
    def run(x: Tensor) -> tuple[Tensor, Tensor]:
        made = STEPS[name](x).contiguous()
        x += 1
        made[...] = made * 2
        return made + 0, x + 0

    jitted = jit(run)
    generator = random.Random(1)
    for _ in range(4):
        values = np.array([generator.random() for _ in range(24)], dtype=np.float32).reshape(SHAPE)
        wanted = run(Tensor(values.copy()).realize())
        found = jitted(Tensor(values.copy()).realize())
        for a, b in zip(wanted, found, strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_gradients_flow_through_a_shared_view():
    x = Tensor([1.0, 2.0, 3.0]).realize().requires_grad_()
    (x[1:].contiguous() * Tensor([2.0, 3.0])).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [0.0, 2.0, 3.0]
