"""Sizes and counts at the limits of a GPU."""

from typing import Any

import numpy as np
import pytest

from weft import Tensor


def near(result: Tensor, expected: Any, tolerance: float = 1e-6) -> None:
    found, wanted = result.numpy().astype(np.float64), np.asarray(expected, np.float64)
    assert found.shape == wanted.shape
    scale = max(float(np.abs(wanted).max(initial=0.0)), 1e-30)
    assert float(np.abs(found - wanted).max(initial=0.0)) <= tolerance * scale


def softmax(x: Any) -> Any:
    wide = x.astype(np.float64)
    e = np.exp(wide - wide.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def numbers(*shape: int) -> Any:
    return np.random.default_rng(5).standard_normal(shape).astype(np.float32)


def test_more_groups_than_axis_y_has():
    a = (np.arange(100_000) % 100).astype(np.int8).reshape(-1, 1)
    b = (np.arange(32_768) % 20).astype(np.int8)
    result = (Tensor(a) + Tensor(b)).realize()
    for row in (0, 65_534, 65_535, 65_536, 99_999):
        assert (result[row].numpy() == a[row] + b).all()


def test_a_long_axis_in_the_middle():
    x = numbers(70_000, 3, 40)
    assert (Tensor(x).permute(1, 0, 2).contiguous().numpy() == x.transpose(1, 0, 2)).all()


def test_more_arguments_than_4_kilobytes():
    count = 600
    parts = [np.full(32, i, np.float32) for i in range(count)]
    result = Tensor(parts[0])
    for part in parts[1:]:
        result = result + Tensor(part)
    near(result, np.full(32, sum(range(count))))


def test_a_concatenation_of_600():
    parts = [np.full((3, 5), i, np.float32) for i in range(600)]
    near(Tensor.cat(*[Tensor(part) for part in parts]), np.concatenate(parts))


@pytest.mark.parametrize(("rows", "columns"), [(64, 8192), (64, 16384), (8, 100_000), (33, 1001)])
def test_softmax(rows: int, columns: int):
    x = numbers(rows, columns)
    near(Tensor(x).softmax(), softmax(x), 1e-5)


def test_three_thousand_million_elements():
    x = Tensor.ones(3_000_000_000, dtype="int8").contiguous().realize()
    tail = (x + x).realize()[2_999_999_000:].numpy()
    assert tail.size == 1000 and (tail == 2).all()


def test_a_long_sum_of_prefixes():
    x = (np.arange(1 << 22) % 7 - 3).astype(np.float32)
    near(Tensor(x).cumsum(0), np.cumsum(x.astype(np.float64)))


def test_sorting():
    x = numbers(65_536)
    assert (Tensor(x).sort()[0].numpy() == np.sort(x)).all()


def test_the_address_of_the_greatest():
    x = numbers(1 << 24)
    assert Tensor(x).argmax().item() == x.argmax()


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.float32])
@pytest.mark.parametrize("size", [3, 4, 7, 16, 33, 1000])
def test_extremes_of_negated_numbers(size: int, dtype: type):
    """The assembler must not lose a sign where it joins maxima."""
    x = (np.arange(size) * 7919 % 23 + 1).astype(dtype)
    negated = Tensor(-x)
    assert (-Tensor(x)).max().item() == (-x).max()
    assert (-Tensor(x)).min().item() == (-x).min()
    assert (-Tensor(x)).argmax().item() == (-x).argmax()
    assert negated.argmin().item() == (-x).argmin()


def test_adding_at_indices():
    addresses = (np.arange(1 << 20) * 7919 % 1000).astype(np.int64)
    zeros, ones = Tensor.zeros(1000), Tensor(np.ones(1 << 20, np.float32))
    result = zeros.scatter_reduce(0, Tensor(addresses), ones, reduce="sum")
    near(result, np.bincount(addresses, minlength=1000))


def test_an_embedding():
    table, rows = numbers(50_000, 64), np.random.default_rng(1).integers(0, 50_000, (32, 128))
    assert (Tensor(table)[Tensor(rows)].numpy() == table[rows]).all()


def test_matrix_products():
    a, b = numbers(1000, 1000), numbers(1000, 1000)
    near(Tensor(a) @ Tensor(b), a.astype(np.float64) @ b, 1e-4)
    x, y = (numbers(*shape).astype(np.float16) for shape in ((777, 333), (333, 555)))
    near((Tensor(x) @ Tensor(y)).cast("float32"), x.astype(np.float64) @ y, 1e-2)


@pytest.mark.peers("torch")
def test_gradients_of_a_convolution():
    import torch

    x, w = numbers(4, 8, 30, 30), numbers(16, 8, 3, 3)
    ours = [Tensor(x), Tensor(w)]
    found = (ours[0].conv2d(ours[1], padding=1) ** 2).sum().gradient(*ours)
    theirs = [torch.tensor(x).double().requires_grad_(), torch.tensor(w).double().requires_grad_()]
    (torch.nn.functional.conv2d(*theirs, padding=1) ** 2).sum().backward()
    for one, other in zip(found, theirs, strict=True):
        assert other.grad is not None
        near(one, other.grad.numpy(), 1e-4)


def test_random_numbers_are_those_of_the_cpu():
    found = []
    for name in ("CUDA", "CPU"):
        Tensor.manual_seed(1)
        found.append(Tensor.rand(1 << 16, device=name).numpy())
    assert (found[0] == found[1]).all()


@pytest.mark.peers("torch")
def test_float8():
    import torch

    x = numbers(1000)
    wanted = torch.tensor(x).to(torch.float8_e4m3fn).float().numpy()
    assert (Tensor(x).cast("fp8e4m3").cast("float32").numpy() == wanted).all()
