"""Tensors over several devices that are written and trained; what each device holds of them."""

import numpy as np
import pytest

from weft import Tensor, function, jit, nn
from weft.engine.counters import GlobalCounters
from weft.ir.layouts import layout_of
from weft.nn import optim
from weft.support.errors import DeviceError

TWO = ("CPU:0", "CPU:1")


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


class TestWrites:
    @pytest.mark.parametrize("axis", [0, 1, None])
    @pytest.mark.parametrize("is_realized", [False, True])
    def test_writes_mean_what_numpy_means(self, axis, is_realized):
        values = numbers(6, 4)
        x = Tensor(values).shard(TWO, axis)
        expected = values.copy()
        if is_realized:
            x.realize()
        before = x * 1
        view = x[1:5]
        x += 1
        expected += 1
        x[2:5] = 7
        expected[2:5] = 7
        x[:, 1] = x[:, 2] * 3
        expected[:, 1] = expected[:, 2] * 3
        view[0, 3] = -1
        expected[1, 3] = -1
        x[x > 5] = 0
        expected[expected > 5] = 0
        x.assign(x * 2)
        expected *= 2
        np.testing.assert_allclose(x.numpy(), expected, rtol=1e-6)
        np.testing.assert_allclose(view.numpy(), expected[1:5], rtol=1e-6)
        np.testing.assert_allclose(before.numpy(), values, rtol=1e-6)

    @pytest.mark.parametrize("axis", [0, 1, None])
    def test_index_tensors(self, axis):
        values = numbers(6, 4)
        x = Tensor(values).shard(TWO, axis).realize()
        expected = values.copy()
        index = Tensor([0, 4, 5]).shard(TWO)
        x[index] = Tensor(numbers(3, 4, seed=3)).shard(TWO)
        expected[[0, 4, 5]] = numbers(3, 4, seed=3)
        x[:, index[:1]] = 2.0
        expected[:, [0]] = 2.0
        x[1:5][index[:2] % 4, 2] = 9.0
        expected[1:5][[0, 0], 2] = 9.0
        np.testing.assert_array_equal(x.numpy(), expected)

    def test_memory_is_written_in_place(self):
        x = Tensor(numbers(8, 4)).shard(TWO, 0).realize()
        used = dict(GlobalCounters.mem_used_by)
        for _ in range(3):
            x.assign(x + 1)
            x.realize()
        assert GlobalCounters.mem_used_by == used

    def test_a_whole_value_is_cut_when_it_is_written(self):
        x = Tensor.zeros(4, 2).shard(TWO, 0).realize()
        x.assign(Tensor(numbers(4, 2)).shard(TWO))
        assert layout_of(x.realize().uop).axis == 0
        np.testing.assert_array_equal(x.numpy(), numbers(4, 2))

    def test_a_view_that_is_copied_and_written(self):
        x = Tensor([1.0, 2.0, 3.0]).realize()
        copy = x[1:].to("CPU:1")
        x[1:] = copy.to("CPU") * 10
        assert x.tolist() == [1.0, 20.0, 30.0]
        assert copy.tolist() == [2.0, 3.0]

    def test_copy_of_what_was_written_on_another_device(self):
        """A copy computes the write that it reads, once."""
        a = Tensor([1.0, 2.0]).realize()
        a += 1
        b = a.to("CPU:1") * 2
        a += 1
        assert b.tolist() == [4.0, 6.0]
        assert a.tolist() == [3.0, 4.0]


class TestMemory:
    @pytest.mark.parametrize("kind", ["CPU", "NULL"])
    def test_each_device_holds_its_part(self, kind):
        devices = tuple(f"{kind}:{number}" for number in range(4, 8))
        before = dict(GlobalCounters.mem_used_by)
        x = Tensor.zeros(1024, 64, device=devices[0]).shard(devices, 0).contiguous().realize()
        used = [GlobalCounters.mem_used_by[name] - before.get(name, 0) for name in devices]
        assert used == [1024 * 64] * 4  # of 4 bytes each, a quarter of the elements
        del x
        after = [GlobalCounters.mem_used_by[name] - before.get(name, 0) for name in devices]
        assert after == [0] * 4

    def test_a_model_on_devices_that_are_not_there(self):
        """NULL counts the kernels and the memory of a training step, and runs nothing."""
        devices = tuple(f"NULL:{number}" for number in range(8))
        x = Tensor.empty(64, 32, device="NULL").shard(devices, 0).realize()
        w = Tensor.empty(32, 16, device="NULL", requires_grad=True).shard_(devices).realize()
        GlobalCounters.reset()
        (x @ w).relu().sum().backward()
        w.assign(w - 0.1 * w.grad).realize()
        assert GlobalCounters.kernel_count >= 16
        assert {GlobalCounters.peak_memory[name] for name in devices[1:-1]}.__len__() == 1
        with pytest.raises(DeviceError, match="has no value"):
            w.numpy()


def train(devices, axes, jitted=False, make=optim.SGD, steps=3, **options):
    """Losses and parameters of a small network after some steps."""
    Tensor.manual_seed(3)
    first, second = nn.Linear(6, 8), nn.Linear(8, 3)
    parameters = [first.weight, first.bias, second.weight, second.bias]
    x, y = Tensor(numbers(12, 6)), Tensor(np.arange(12) % 3)
    if devices is not None:
        for parameter, axis in zip(parameters, axes[1:], strict=True):
            parameter.shard_(devices, axis)
        x, y = x.shard(devices, axes[0]), y.shard(devices, axes[0])
    optimizer = make(parameters, lr=0.1, **options)

    def step(x, y):
        optimizer.zero_grad()
        loss = second(first(x).relu()).cross_entropy(y).backward()
        optimizer.step()
        return loss

    run = jit(step) if jitted else step
    with Tensor.train():
        losses = [run(x, y).item() for _ in range(steps)]
    return losses, [each.numpy().copy() for each in parameters]


class TestTraining:
    @pytest.mark.parametrize(
        ("devices", "make", "options", "jitted"),
        [
            (TWO, optim.SGD, {"momentum": 0.9}, False),
            (TWO, optim.Adam, {}, True),
            (("CPU:0", "CPU:1", "CPU:2", "CPU:3", "CPU:4"), optim.SGD, {}, True),
        ],
    )
    def test_data_parallel(self, devices, make, options, jitted):
        self.compare(devices, (0, None, None, None, None), make, options, jitted)

    @pytest.mark.parametrize("jitted", [False, True])
    def test_tensor_parallel(self, jitted):
        """Columns of the first layer and rows of the second: one exchange at the end."""
        self.compare(TWO, (None, 0, 0, 1, None), optim.SGD, {"momentum": 0.9}, jitted)

    def compare(self, devices, axes, make, options, jitted):
        losses, parameters = train(None, None, make=make, **options)
        sharded_losses, sharded = train(devices, axes, jitted, make=make, **options)
        np.testing.assert_allclose(sharded_losses, losses, rtol=1e-5)
        for one, other in zip(sharded, parameters, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)

    def test_state_of_an_optimizer_lies_like_its_parameter(self):
        w = Tensor(numbers(8, 4), requires_grad=True).shard_(TWO, 0)
        optimizer = optim.Adam([w])
        slots = [each for each in nn.state.get_parameters(optimizer) if each.shape == w.shape]
        assert slots
        assert {layout_of(each.uop).axis for each in slots} <= {0}

    def test_batch_norm_over_a_cut_batch(self):
        found = []
        for devices in (None, TWO):
            norm = nn.BatchNorm2d(3)
            x = Tensor(numbers(6, 3, 4, 4), requires_grad=True)
            if devices is not None:
                for each in nn.state.get_state_dict(norm).values():
                    each.shard_(devices)
                x.shard_(devices, 0)
            with Tensor.train():
                out = norm(x)
                (out * out * out).sum().backward()
            found.append([t.numpy() for t in (out, norm.running_mean, norm.running_var, x.grad)])
        for plain, sharded in zip(*found, strict=True):
            np.testing.assert_allclose(sharded, plain, rtol=1e-3, atol=1e-4)

    def test_gradient_goes_back_through_shard(self):
        w = Tensor(numbers(4, 2), requires_grad=True)
        (w.shard(TWO, 0) * w.shard(TWO, 1).shard(TWO, 0)).sum().backward()
        assert w.grad.device == "CPU"
        np.testing.assert_allclose(w.grad.numpy(), 2 * numbers(4, 2), rtol=1e-6)

    def test_gradients_that_are_cut_differently_add_up(self):
        values = numbers(4, 6)
        w = Tensor(values, requires_grad=True).shard_(TWO)
        rows, columns = Tensor(values).shard(TWO, 0), Tensor(values).shard(TWO, 1)
        ((w * rows).sum() + (w * columns).sum()).backward()
        np.testing.assert_allclose(w.grad.numpy(), 2 * values, rtol=1e-6)

    def test_embedding_rows_are_not_gathered(self):
        found = []
        for devices in (None, TWO):
            table = Tensor(numbers(10, 4), requires_grad=True)
            tokens = Tensor(np.arange(12).reshape(4, 3) % 7)
            if devices is not None:
                table.shard_(devices)
                tokens = tokens.shard(devices, 0)
            out = table[tokens]
            assert devices is None or layout_of(out.uop).axis == 0
            (out * out).sum().backward()
            found.append((out.numpy(), table.grad.numpy()))
        for plain, sharded in zip(*found, strict=True):
            np.testing.assert_allclose(sharded, plain, rtol=1e-5)

    def test_gather_along_another_axis_stays_on_its_device(self):
        logits = Tensor(numbers(6, 5)).shard(TWO, 0)
        labels = Tensor(np.arange(6) % 5).shard(TWO, 0)
        picked = logits.gather(1, labels.unsqueeze(1))
        assert layout_of(picked.uop).axis == 0
        assert layout_of(logits[Tensor.arange(6, device=TWO), labels].uop).axis == 0
        np.testing.assert_array_equal(
            picked.numpy()[:, 0], numbers(6, 5)[np.arange(6), np.arange(6) % 5]
        )

    def test_function(self):
        @function
        def layer(x, w):
            return (x @ w).relu()

        x, w = Tensor(numbers(6, 5)).shard(TWO, 0), Tensor(numbers(5, 4)).shard(TWO)
        result = layer(x, w)
        assert layout_of(result.uop).axis == 0
        expected = np.maximum(numbers(6, 5) @ numbers(5, 4), 0)
        slope = numbers(6, 5).T @ (expected > 0)
        found = result.sum().gradient(w)[0].numpy()
        np.testing.assert_allclose(found, slope, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-5)

    def test_no_reduction_is_computed_twice(self):
        """What comes before an exchange and is read after it stays in memory."""
        x, w = Tensor(numbers(8, 8)).shard(TWO, 0).realize(), Tensor(numbers(8, 8)).shard(TWO)
        w.realize()
        hidden = x @ w
        GlobalCounters.reset()
        (hidden - hidden.mean(0)).realize()
        once = GlobalCounters.global_ops
        assert once < 2 * (2 * 8 * 8 * 8)


class TestErrors:
    def test_other_devices(self):
        x = Tensor(numbers(6, 4))
        with pytest.raises(DeviceError, match="shard_like"):
            x.shard(TWO, 0) @ x.T.shard(("CPU:0", "CPU:1", "CPU:2"))

    def test_unknown_device(self):
        with pytest.raises(DeviceError, match="unknown device"):
            Tensor([1.0, 2.0]).shard(("CPU", "CPX"))
