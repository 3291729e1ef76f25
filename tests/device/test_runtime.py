"""The CUDA device on a real GPU: memory, copies, lists, time, and memory of torch."""

import threading
from typing import Any

import numpy as np
import pytest

from weft import Context, GlobalCounters, Tensor, Variable, dtypes, jit
from weft.engine.buffers import buffer_of
from weft.engine.devices import device
from weft.engine.search import FINDINGS
from weft.runtime.cuda.gpus import gpu_count
from weft.runtime.device import seconds_of
from weft.support.errors import OutOfMemory


def gpu() -> Any:
    return device("CUDA")


def numbers(*shape: int) -> Any:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("size", [1, 1000, 64 << 10, (64 << 10) + 1, (37 << 20) + 3])
def test_bytes_come_back(size: int):
    data = np.random.default_rng(size).integers(0, 256, size, np.uint8)
    x = Tensor(data)
    assert (x.numpy() == data).all() and (x.to("CPU").numpy() == data).all()


def test_pinned_memory():
    block = gpu().copies.pinned(8 << 20)
    array = np.frombuffer(block, np.uint8)
    array[:] = np.arange(8 << 20) % 251
    handle = gpu().allocate(8 << 20)
    gpu().copy_in(handle, memoryview(array))
    back = np.zeros_like(array)
    gpu().copy_out(memoryview(back), handle)
    assert (back == array).all()
    gpu().free(handle)


def test_memory_is_counted_and_used_again():
    pool = gpu().pool
    Tensor.ones(1 << 20).contiguous().realize()
    gpu().synchronize()
    used, reserved = pool.used, pool.reserved
    for _ in range(50):
        (Tensor.ones(1 << 20).contiguous() + 1).realize()
    assert pool.used == used
    assert pool.reserved <= reserved + (64 << 20)
    assert GlobalCounters.peak_memory["CUDA"] > 0


def test_out_of_memory_and_on():
    with pytest.raises(OutOfMemory) as caught:
        Tensor.ones(1 << 40, dtype=dtypes.uint8).contiguous().realize()
    assert "are not to be had" in str(caught.value) and "memory of the GPU" in str(caught.value)
    assert (Tensor([1.0, 2.0]) + 1).tolist() == [2.0, 3.0]


def test_idle_memory_makes_room():
    """More than half of the GPU, twice: the first has to be given back."""
    free, total = gpu().pool.free_and_total()
    size = int(free * 0.6)
    for _ in range(2):
        gpu().free(gpu().allocate(size))
    assert gpu().pool.reserved <= total


def test_a_jitted_call_is_one_graph():
    @jit
    def step(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        z = (x @ y).relu().contiguous()
        return z.softmax(1), z.sum(0)

    for seed in range(4):
        rng = np.random.default_rng(seed)
        a, b = (rng.standard_normal((64, 64)).astype(np.float32) for _ in range(2))
        soft, total = step(Tensor(a), Tensor(b))
        z = np.maximum(a.astype(np.float64) @ b, 0)
        e = np.exp(z - z.max(1, keepdims=True))
        assert np.allclose(soft.numpy(), e / e.sum(1, keepdims=True), atol=1e-5)
        assert np.allclose(total.numpy(), z.sum(0), rtol=1e-4, atol=1e-3)


def test_symbolic_sizes_in_a_graph():
    jitted = jit(lambda x: (x * 2).sum(1))
    data = numbers(64, 32)
    x = Tensor(data).realize()
    for rows in (3, 7, 64, 5):
        n = Variable("n", 1, 64).bind(rows)
        assert np.allclose(jitted(x[:n]).numpy(), (data[:rows] * 2).sum(1), atol=1e-4)


@pytest.mark.parametrize("size", [64, 2048])
def test_kernels_that_start_early_wait_for_each_other(size: int):
    """Long and short kernels, each of which reads what those before have just written."""

    def chain(x: Tensor, y: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        for _ in range(20):
            y = (x.sum(1) * 0.01 + w @ y).contiguous()
            y = y / y.abs().max()
            x = (x * 0.99 + y.sum() * 1e-3).contiguous()
        return x, y

    jitted = jit(chain)
    shapes = (size, 999), (size,), (size, size)
    inputs = [Tensor(numbers(*shape) / size).realize() for shape in shapes]
    wanted = [each.numpy() for each in jitted(*inputs)]
    for _ in range(30):
        for found, want in zip(jitted(*inputs), wanted, strict=True):
            assert (found.numpy() == want).all()


def test_an_empty_grid_in_a_graph():
    jitted = jit(lambda x: x + 1)
    x = Tensor(numbers(8)).realize()
    for size in (3, 0, 2, 0, 8):
        n = Variable("n", 0, 8).bind(size)
        assert jitted(x[:n]).tolist() == (x.numpy()[:size] + 1).tolist()


def test_a_training_step_goes_on():
    w = Tensor(numbers(32, 32)).realize()

    @jit
    def step(x: Tensor) -> Tensor:
        loss = ((x @ w) ** 2).mean()
        w.assign(w - 0.1 * loss.gradient(w)[0])
        return loss

    losses = [step(Tensor(numbers(16, 32))).item() for _ in range(20)]
    assert losses[-1] < losses[0] * 0.9


def test_times_are_those_of_the_gpu(capsys: pytest.CaptureFixture[str]):
    x = Tensor.ones(1 << 24).contiguous().realize()
    run = jit(lambda x: x + 1)
    run(x)
    assert 1e-6 < seconds_of(gpu(), lambda: run(x)) < 0.1
    with Context(DEBUG=2):
        (x * 3).realize()
    assert "GB/s" in capsys.readouterr().out


def test_threads():
    problems: list[str] = []

    def work(number: int) -> None:
        try:
            with Context(DEVICE="CUDA"):
                for iteration in range(20):
                    x = Tensor(np.full(1000 + number, iteration, np.float32))
                    assert np.allclose((x * 2 + number).numpy(), 2 * iteration + number)
        except Exception as error:
            problems.append(repr(error)[:300])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems


@pytest.mark.parametrize("check", ["memory", "levels"])
def test_checks(check: str):
    data = numbers(16, 16)
    with Context(CHECK=check):
        x = Tensor(data)
        assert np.allclose((x @ x).relu().sum(0).numpy(), np.maximum(data @ data, 0).sum(0), 1e-4)


def test_search_runs_on_the_gpu():
    data = numbers(1024, 1024)
    with Context(BEAM=2, BEAM_SECONDS=6):
        assert np.allclose((Tensor(data) * 2).sum(1).numpy(), (data * 2).sum(1), atol=1e-2)
    found = FINDINGS[-1][1]
    print(found)
    assert found.measured > 1


def test_copies_between_gpus():
    if gpu_count(gpu().api) < 2:
        pytest.skip("there is one GPU")
    data = numbers(1000)
    x = Tensor(data).to("CUDA:1")
    assert ((x + 1).to("CUDA").numpy() == data + 1).all()


# Torch.


@pytest.mark.peers("torch")
def test_torch_memory_is_shared():
    import torch

    theirs = torch.arange(12, dtype=torch.float32, device="cuda").reshape(3, 4)
    x = Tensor.from_dlpack(theirs)
    assert x.device == "CUDA"
    assert buffer_of(x._storage.uop).handle.address == theirs.data_ptr()
    theirs += 1
    assert ((x * 2).numpy() == theirs.cpu().numpy() * 2).all()


@pytest.mark.peers("torch")
@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16", "int64", "uint8", "bool"])
def test_torch_sees_our_memory(name: str):
    import torch

    x = (Tensor(np.arange(12).reshape(3, 4)) % 2).cast(name).realize()
    theirs = torch.from_dlpack(x)
    assert theirs.is_cuda and theirs.dtype == getattr(torch, name) and theirs.shape == (3, 4)
    assert theirs.data_ptr() == buffer_of(x._storage.uop).handle.address
    assert theirs.float().cpu().numpy().tolist() == x.cast("float32").tolist()
    del x
    assert (theirs.float().sum().item(),) == (6.0,)


@pytest.mark.peers("torch")
def test_torch_views_and_gaps():
    import torch

    whole = torch.arange(100, dtype=torch.float32, device="cuda")
    x = Tensor.from_dlpack(whole[1:4])  # not aligned: a copy
    assert x.tolist() == [1, 2, 3]
    y = Tensor(numbers(5, 7)).realize()
    assert (torch.from_dlpack(y.T).cpu().numpy() == y.numpy().T).all()


@pytest.mark.peers("torch")
def test_torch_streams_wait():
    """Work of both on the same memory, without a wait between them."""
    import torch

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        theirs = torch.zeros(1 << 24, device="cuda")
        for _ in range(50):
            theirs += 1
        x = Tensor.from_dlpack(theirs)
        y = (x * 2 + 1).realize()
        back = torch.from_dlpack(y)
        assert back.min().item() == back.max().item() == 101.0
