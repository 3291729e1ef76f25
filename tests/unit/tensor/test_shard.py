"""Tensors over several devices: every program gives what it gives on one."""

import random

import numpy as np
import pytest

from tests.opencl import require_opencl
from weft import Tensor, Variable, dtypes
from weft.engine.buffers import parts_of
from weft.engine.contents import read_bytes
from weft.ir.layouts import layout_of

TWO = ("CPU:0", "CPU:1")
THREE = ("CPU:0", "CPU:1", "CPU:2")


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


# Programs of x (6, 5), y (6, 5) and w (5, 4).
PROGRAMS = {
    "itself": lambda x, y, w: x,
    "elementwise": lambda x, y, w: (x * y + 1).relu() / 2,
    "a scalar": lambda x, y, w: x - x.mean(),
    "a number": lambda x, y, w: 3 - x,
    "where": lambda x, y, w: (x > 0).where(x, y),
    "a row": lambda x, y, w: x + w[:, 0],
    "sum of all": lambda x, y, w: x.sum(),
    "sum over rows": lambda x, y, w: x.sum(0),
    "sum over columns": lambda x, y, w: x.sum(1, keepdim=True),
    "max": lambda x, y, w: x.max(0) + x.min(1).max(),
    "prod": lambda x, y, w: x.prod(0),
    "argmax": lambda x, y, w: x.argmax(0),
    "mean and deviation": lambda x, y, w: (x - x.mean(0)) / x.std(0),
    "any": lambda x, y, w: (x > 1).any(0),
    "softmax over rows": lambda x, y, w: x.softmax(0),
    "softmax over columns": lambda x, y, w: x.softmax(1),
    "log_softmax": lambda x, y, w: x.log_softmax(0),
    "logsumexp": lambda x, y, w: x.logsumexp(0),
    "matmul": lambda x, y, w: x @ w,
    "matmul twice": lambda x, y, w: (x @ w).relu() @ w.T,
    "contraction over the cut axis": lambda x, y, w: x.T @ y,
    "a bias": lambda x, y, w: x @ w + w.sum(0),
    "transpose": lambda x, y, w: x.T,
    "reshape to more axes": lambda x, y, w: x.reshape(2, 3, 5).sum(1),
    "reshape to fewer axes": lambda x, y, w: x.reshape(30) * 2,
    "unsqueeze": lambda x, y, w: x.unsqueeze(1).expand(6, 3, 5) + 1,
    "permute and pad": lambda x, y, w: x.permute(1, 0).pad(((1, 2), (0, 0))),
    "pad rows": lambda x, y, w: x.pad(((1, 2), (0, 1))),
    "flip": lambda x, y, w: x.flip(0) + x.flip(1),
    "shrink columns": lambda x, y, w: x[:, 1:4],
    "shrink rows": lambda x, y, w: x[1:4],
    "a row of it": lambda x, y, w: x[4] + x[-1],
    "strides": lambda x, y, w: x[::2, ::-1],
    "cat": lambda x, y, w: x.cat(y, dim=1),
    "cat rows": lambda x, y, w: x.cat(y, dim=0),
    "stack": lambda x, y, w: x.stack(y).sum(1),
    "split": lambda x, y, w: x.split(2, dim=1)[1],
    "cumsum": lambda x, y, w: x.cumsum(0) + x.cumsum(1),
    "sort": lambda x, y, w: x.sort(1)[0],
    "sort rows": lambda x, y, w: x.sort(0)[0],
    "cast": lambda x, y, w: (x * 10).int().float(),
    "clone": lambda x, y, w: x.clone() + x.contiguous(),
    "einsum": lambda x, y, w: Tensor.einsum("bi,io->bo", x, w),
    "one_hot": lambda x, y, w: x.argmax(1).one_hot(5),
    "gather": lambda x, y, w: x.gather(1, x.argsort(1)),
    "indexed by a tensor": lambda x, y, w: w[(x[:, :2] > 0).int()],
    "rows by a tensor": lambda x, y, w: x[(w[:, 0] > 0).int()],
    "columns by a tensor": lambda x, y, w: x[:, (w[0] > 0).int()],
    "layernorm": lambda x, y, w: x.layernorm(),
    "conv": lambda x, y, w: (
        x.reshape(6, 1, 5).unsqueeze(2).conv2d(w[:3, 0].reshape(1, 1, 1, 3), padding=(0, 1))
    ),
    "attention": lambda x, y, w: x.scaled_dot_product_attention(y, y),
}


# Rows meet columns: the two axes of the result cannot both be cut over the same devices.


def operands(devices, axis):
    x, y, w = Tensor(numbers(6, 5)), Tensor(numbers(6, 5, seed=1)), Tensor(numbers(5, 4, seed=2))
    if devices is None:
        return x, y, w
    return x.shard(devices, axis), y.shard(devices, axis), w.shard(devices)


UNEVEN = (
    *(
        "itself",
        "elementwise",
        "a row",
        "sum over columns",
        "max",
        "softmax over columns",
        "matmul",
    ),
    *(
        "contraction over the cut axis",
        "transpose",
        "reshape to fewer axes",
        "flip",
        "cat",
        "sort",
    ),
    *("shrink columns", "strides", "cumsum", "gather", "columns by a tensor", "pad rows", "conv"),
)
CASES = [(name, TWO, 0) for name in PROGRAMS] + [(name, THREE, 1) for name in UNEVEN]
CASES += [(name, TWO, None) for name in ("sum over rows", "matmul", "shrink rows", "sort")]
DIFFERENTIATED_UNEVENLY = (
    "matmul",
    "softmax over columns",
    "reshape to fewer axes",
    "cat",
    "gather",
)
SMOOTH = [name for name in PROGRAMS if name not in ("argmax", "any", "one_hot", "cast")]


@pytest.mark.parametrize(("name", "devices", "axis"), CASES)
def test_program(name, devices, axis):
    """Six rows on two devices are even; five columns on three are two, two and one."""
    found = []
    for leaves in (operands(None, None), operands(devices, axis)):
        value = PROGRAMS[name](*leaves)
        found.append([value.numpy()])
        if name in SMOOTH and (axis == 0 or name in DIFFERENTIATED_UNEVENLY):
            leaves = [leaf.clone().requires_grad_() for leaf in leaves]
            value = PROGRAMS[name](*leaves)
            given = (value * value).sum().gradient(*leaves, materialize_grads=True)
            found[-1] += [each.numpy() for each in given]
    for plain, sharded in zip(*found, strict=True):
        assert plain.dtype == sharded.dtype
        np.testing.assert_allclose(sharded, plain, rtol=1e-4, atol=1e-4)
    assert value.device == tuple(each.replace(":0", "") for each in devices)


@pytest.mark.parametrize("axes", [(0, 1), (1, 0), (0, None), (None, 1)])
@pytest.mark.parametrize("name", ["add", "where", "matmul", "cat", "maximum", "assign"])
def test_operands_that_are_sharded_differently(name: str, axes: tuple[int | None, int | None]):
    first, second = np.random.default_rng(0).normal(size=(2, 6, 6)).astype(np.float32)
    calls = {
        "add": lambda a, b: a + b * 2,
        "where": lambda a, b: (a > b).where(a, b),
        "matmul": lambda a, b: a @ b,
        "cat": lambda a, b: a.cat(b, dim=0),
        "maximum": lambda a, b: a.maximum(b),
        "assign": lambda a, b: (a + 0).realize().assign(b),
    }
    a, b = (Tensor(x).shard(TWO, axis) for x, axis in zip((first, second), axes, strict=True))
    wanted = calls[name](Tensor(first), Tensor(second)).numpy()
    np.testing.assert_allclose(calls[name](a, b).numpy(), wanted, rtol=1e-5, atol=1e-5)


def test_new_values_lie_as_what_they_are_like():
    x = Tensor.ones(4, 6).shard(TWO, 1)
    for made in (x.rand_like(), x.randn_like(), x.zeros_like(), x.full_like(2), x.empty_like()):
        assert layout_of(made.uop) == layout_of(x.uop)
        assert made.shape == x.shape
    assert x.rand_like(device="CPU").device == "CPU"


@pytest.mark.parametrize("device", ["PYTHON", "OPENCL"])
def test_other_devices(device):
    if device == "OPENCL":
        require_opencl()
    devices = (device, "CPU:1")
    x = Tensor(numbers(6, 5), device=device).shard(devices, 0)
    w = Tensor(numbers(5, 4)).shard(devices)
    loss = ((x @ w).softmax(0) * 2).sum()
    expected = numbers(6, 5) @ numbers(5, 4)
    assert loss.item() == pytest.approx(8.0, rel=1e-4)
    np.testing.assert_allclose((x @ w).numpy(), expected, rtol=1e-4, atol=1e-5)


STEPS = (
    lambda x, w: x * 2 + 1,
    lambda x, w: x - x.mean(0, keepdim=True),
    lambda x, w: x - x.sum(1, keepdim=True),
    lambda x, w: x.softmax(0),
    lambda x, w: x.T,
    lambda x, w: x.reshape(x.shape[1], x.shape[0]),
    lambda x, w: x.reshape(2, x.numel() // 2),
    lambda x, w: x.pad(((0, 0), (1, 2))),
    lambda x, w: x.pad(((2, 1), (0, 0))).flip(0),
    lambda x, w: x[:, 1:],
    lambda x, w: x[1:],
    lambda x, w: x.cumsum(1),
    lambda x, w: x.flip(1).cat(x, dim=1),
    lambda x, w: x.unsqueeze(1).expand(x.shape[0], 2, x.shape[1]).reshape(-1, x.shape[1]),
    lambda x, w: x @ w[: x.shape[1]],
    lambda x, w: x.clone(),
)


@pytest.mark.parametrize("number", range(12))
def test_random_programs(number, seed):
    """Steps and layouts by chance: one device against several."""
    draw = random.Random(f"{seed} {number}")
    w = numbers(200, 4, seed=9) / 8
    x = Tensor(numbers(6, 4), requires_grad=True)
    plain, sharded = x, x.shard(THREE, draw.choice((0, 1, None)))
    weights = Tensor(w)
    whole = weights.shard(THREE)
    for _ in range(5):
        step = draw.choice(STEPS)
        if plain.shape[0] * plain.shape[1] > 100 or min(plain.shape) < 2 or plain.numel() % 2:
            break
        plain, sharded = step(plain, weights), step(sharded, whole)
        longest = [axis for axis in (0, 1) if plain.shape[axis] >= 3]
        if draw.random() < 0.3:
            sharded = sharded.shard(THREE, draw.choice((*longest, None)))
    slopes = [(each * each).sum().gradient(x)[0].numpy() for each in (plain, sharded)]
    np.testing.assert_allclose(sharded.numpy(), plain.numpy(), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(slopes[1], slopes[0], rtol=1e-2, atol=1e-3)


class TestLayout:
    def test_device_is_a_tuple_and_the_parts_differ_by_one(self):
        x = Tensor(numbers(7, 2)).shard(THREE, 0)
        assert x.device == ("CPU", "CPU:1", "CPU:2")
        assert layout_of(x.uop).sizes == (3, 2, 2)
        assert x.realize().uop.arg[2] == (("CPU", "CPU:1", "CPU:2"), 0, (3, 2, 2))

    def test_one_device_is_no_shard(self):
        assert Tensor([1.0]).shard(("CPU:1",), 0).device == "CPU:1"

    def test_negative_axis(self):
        assert layout_of(Tensor(numbers(2, 6)).shard(TWO, -1).uop).axis == 1

    def test_gathers(self):
        values = numbers(5, 3)
        x = Tensor(values).shard(TWO, 0)
        for back in (x.to("CPU"), x.to("CPU:2"), (x * 1).to("CPU:1")):
            assert isinstance(back.device, str)
            np.testing.assert_array_equal(back.numpy(), values)
        assert x.tolist() == values.tolist()
        assert bytes(x.data()) == values.tobytes()

    def test_another_layout(self):
        values = numbers(4, 6)
        rows = Tensor(values).shard(TWO, 0).realize()
        for other in (rows.shard(TWO, 1), rows.shard(THREE, 1), rows.shard(TWO), rows.to("CPU")):
            np.testing.assert_array_equal(other.numpy(), values)
        assert rows.shard(TWO, 0) is rows

    def test_shard_like(self):
        x = Tensor(numbers(2, 6)).shard(TWO, 1)
        row = Tensor(numbers(6)).shard_like(x)
        column = Tensor(numbers(2, 1)).shard_like(x)
        assert (layout_of(row.uop).axis, layout_of(column.uop).axis) == (0, None)
        expected = numbers(2, 6) * numbers(6) + numbers(2, 1)
        np.testing.assert_allclose((x * row + column).numpy(), expected, rtol=1e-6)
        assert x.shard_like(Tensor([1.0])).device == "CPU"

    def test_new_tensors_like_it(self):
        x = Tensor(numbers(4, 6)).shard(TWO, 1)
        assert layout_of(x.zeros_like().uop) == layout_of(x.uop)
        assert x.ones_like().sum().item() == 24.0
        assert Tensor.zeros(3, device=TWO).device == x.device

    def test_replicas_hold_the_same_bits(self):
        for shape in ((64, 7), (64, 30_000)):
            x = Tensor(numbers(*shape)).shard(THREE, 0)
            total = x.sum(0).realize()
            contents = {bytes(read_bytes(part)) for part in parts_of(total.uop)}
            assert len(contents) == 1
            np.testing.assert_allclose(total.numpy(), numbers(*shape).sum(0), rtol=1e-3, atol=1e-4)

    def test_random_numbers_do_not_depend_on_devices(self):
        Tensor.manual_seed(5)
        plain = Tensor.rand(6, 4).numpy()
        Tensor.manual_seed(5)
        sharded = Tensor.rand(6, 4, device=TWO)
        np.testing.assert_array_equal(sharded.numpy(), plain)
        Tensor.manual_seed(5)
        np.testing.assert_array_equal(Tensor.rand(6, 4).shard(TWO, 0).numpy(), plain)

    def test_dropout(self):
        with Tensor.train():
            x = Tensor.ones(1000, 4).shard(TWO, 0).dropout(0.5)
            kept = (x.numpy() == 2).mean()
        assert 0.4 < kept < 0.6

    def test_detach_and_copies_keep_the_layout(self):
        x = Tensor(numbers(4, 6)).shard(TWO, 1)
        for each in (x.detach(), x.clone(), x.contiguous(), x.half().float()):
            assert layout_of(each.uop).axis == 1

    def test_symbolic_size_of_another_axis(self):
        n = Variable("n", 1, 6).bind(4)
        x = Tensor(numbers(6, 6)).shard(TWO, 1)[:n]
        np.testing.assert_allclose(x.sum(1).numpy(), numbers(6, 6)[:4].sum(1), rtol=1e-5)
        np.testing.assert_allclose(x.sum(0).numpy(), numbers(6, 6)[:4].sum(0), rtol=1e-5)


def test_other_dtypes():
    for dtype in (dtypes.int64, dtypes.uint8, dtypes.bfloat16, dtypes.bool):
        x = Tensor(np.arange(12).reshape(4, 3) % 5).cast(dtype)
        sharded = x.shard(TWO, 0)
        np.testing.assert_array_equal(sharded.numpy(), x.numpy())
        np.testing.assert_array_equal(sharded.max(0).numpy(), x.max(0).numpy())
