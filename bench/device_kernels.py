"""Kernels of a device beside torch's on the same GPU: one row for each kind of work.

`python -m bench device CUDA` prints them. Times are taken by the device, the best of several. The
ratio is torch's time over Weft's; beside it stands the bandwidth as a share of that of a copy, or
the arithmetic rate, and the largest error as a share of the largest value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from weft import Tensor, jit
from weft.engine.devices import device
from weft.runtime.device import Device, seconds_of

Row = tuple[str, str, float, str, str]
MILLION = 1 << 20
ROUNDS = 8
# Calls that are timed together, and the size of the products that keep the GPU busy meanwhile.
CALLS = 20
LONG = 4096


class Kernel(NamedTuple):
    """One kind of work: `moved` bytes at least, or `operations`; functions of both libraries."""

    about: str
    inputs: list[Any]
    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    moved: int = 0
    operations: int = 0


def _maps(torch: Any, size: int) -> list[Kernel]:
    a, b = (torch.randn(size, device="cuda") for _ in range(2))
    f = torch.nn.functional
    half_gelu = lambda a: a.gelu(), lambda a: f.gelu(a, approximate="tanh")
    return [
        Kernel("copy", [a], lambda a: a + 0, lambda a: a.clone(), 8 * size),
        Kernel("relu(a * b + a)", [a, b], *2 * [lambda a, b: (a * b + a).relu()], 12 * size),
        Kernel("exp", [a], *2 * [lambda a: a.exp()], 8 * size),
        Kernel("tanh", [a], *2 * [lambda a: a.tanh()], 8 * size),
        Kernel("gelu", [a], lambda a: a.gelu(), lambda a: f.gelu(a, approximate="tanh"), 8 * size),
        Kernel("silu", [a], lambda a: a.silu(), f.silu, 8 * size),
        Kernel("a / b", [a, b], *2 * [lambda a, b: a / b], 12 * size),
        Kernel("to bfloat16", [a], *2 * [lambda a: a.bfloat16()], 6 * size),
        Kernel("bfloat16 gelu", [a.bfloat16()], *half_gelu, 4 * size),
        Kernel("odd size: exp", [a[: size - 5].contiguous()], *2 * [lambda a: a.exp()], 8 * size),
    ]


def _sums(torch: Any, size: int) -> list[Kernel]:
    a = torch.randn(size, device="cuda")
    square = torch.randn(4096, 4096, device="cuda")
    moved = 4 * square.numel()
    return [
        Kernel("sum", [a], *2 * [lambda a: a.sum()], 4 * size),
        Kernel("max", [a], *2 * [lambda a: a.max()], 4 * size),
        Kernel("sum, odd size", [a[: size - 5].contiguous()], *2 * [lambda a: a.sum()], 4 * size),
        Kernel("row sums 4096", [square], *2 * [lambda x: x.sum(1)], moved),
        Kernel("column sums 4096", [square], *2 * [lambda x: x.sum(0)], moved),
        Kernel("mean square rows", [square], *2 * [lambda x: (x * x).mean(1)], moved),
    ]


def _rows(torch: Any) -> list[Kernel]:
    f, found = torch.nn.functional, []
    for rows, columns in (
        *((65536, 128), (16384, 512), (16384, 1000), (16384, 1024)),
        *((16384, 4096), (8192, 8192), (4096, 16384), (2000, 50257)),
        *((16384, 129), (16384, 1001), (8192, 4097)),
    ):
        x = torch.randn(rows, columns, device="cuda")
        about = f"softmax {rows}x{columns}"
        found.append(Kernel(about, [x], *2 * [lambda x: x.softmax(1)], 8 * x.numel()))
    x, w = torch.randn(16384, 4096, device="cuda"), torch.randn(4096, device="cuda")
    y = torch.randint(0, 4096, (16384,), device="cuda", dtype=torch.int32)
    found += [
        Kernel(
            "layernorm 16384x4096",
            [x, w],
            lambda x, w: x.layer_norm((4096,), w, w),
            lambda x, w: f.layer_norm(x, (4096,), w, w),
            8 * x.numel(),
        ),
        Kernel(
            "rmsnorm 16384x4096",
            [x, w],
            lambda x, w: x.rms_norm((4096,), w),
            lambda x, w: f.rms_norm(x, (4096,), w),
            8 * x.numel(),
        ),
        Kernel(
            "cross-entropy 16384x4096",
            [x, y],
            lambda x, y: x.cross_entropy(y),
            lambda x, y: f.cross_entropy(x, y.long()),
            4 * x.numel(),
        ),
    ]
    return found


def _moves(torch: Any) -> list[Kernel]:
    f = torch.nn.functional
    square = torch.randn(4096, 4096, device="cuda")
    vector = torch.randn(4096, device="cuda")
    table = torch.randn(50257, 768, device="cuda")
    tokens = torch.randint(0, 50257, (8192,), device="cuda", dtype=torch.int32)
    moved = 4 * square.numel()
    return [
        Kernel(
            *("transpose 4096", [square], lambda x: x.T.contiguous()),
            *(lambda x: x.T.contiguous(), 2 * moved),
        ),
        Kernel("matvec W @ x 4096", [square, vector], *2 * [lambda w, x: w @ x], moved),
        Kernel("matvec x @ W 4096", [square, vector], *2 * [lambda w, x: x @ w], moved),
        Kernel(
            "embedding 8192 of 50257x768",
            [tokens, table],
            lambda i, w: w[i],
            lambda i, w: f.embedding(i, w),
            2 * 4 * 8192 * 768,
        ),
    ]


def _products(torch: Any) -> list[Kernel]:
    torch.backends.cuda.matmul.allow_tf32 = False
    found = []
    for size in (1024, 4096):
        x, y = (torch.randn(size, size, device="cuda") for _ in range(2))
        work = 2 * size**3
        found += [
            Kernel(f"matmul {size} float32", [x, y], *2 * [lambda x, y: x @ y], 0, work),
            Kernel(f"x @ y.T {size} float32", [x, y], *2 * [lambda x, y: x @ y.T], 0, work),
        ]
    x, y = torch.randn(1000, 1001, device="cuda"), torch.randn(1001, 999, device="cuda")
    work = 2 * 1000 * 1001 * 999
    found.append(Kernel("matmul 1000x1001x999", [x, y], *2 * [lambda x, y: x @ y], 0, work))
    return found


# How the factors of a product lie: by rows of the result or of the sum.
LAYOUTS = {
    "x @ y": lambda x, y: x @ y,
    "x @ y.T": lambda x, y: x @ y.T,
    "x.T @ y": lambda x, y: x.T @ y,
    "x.T @ y.T": lambda x, y: x.T @ y.T,
}


def _matrix_units(torch: Any) -> list[Kernel]:
    """Products of 16-bit floats, which matrix units compute."""
    f = torch.nn.functional
    found = []

    def draw(*shape: int, dtype: str = "bfloat16") -> Any:
        return torch.randn(*shape, device="cuda").to(getattr(torch, dtype))

    for size in (2048, 4096, 8192):
        x, y = draw(size, size), draw(size, size)
        for name, product in LAYOUTS.items():
            found.append(Kernel(f"{name} {size} bfloat16", [x, y], *2 * [product], 0, 2 * size**3))
    x, y = draw(4096, 4096, dtype="float16"), draw(4096, 4096, dtype="float16")
    found.append(Kernel("x @ y 4096 float16", [x, y], *2 * [LAYOUTS["x @ y"]], 0, 2 * 4096**3))
    for m, n, k in ((1024, 1024, 1024), (3072, 3072, 3072), (512, 4096, 4096), (1000, 999, 1001)):
        work = 2 * m * n * k
        pair = [draw(m, k), draw(n, k)]
        name = f"x @ y.T {m}x{n}x{k} bfloat16"
        found.append(Kernel(name, pair, *2 * [LAYOUTS["x @ y.T"]], 0, work))
    x, w, bias, rest = draw(4096, 4096), draw(4096, 4096), draw(4096), draw(4096, 4096)
    work = 2 * 4096**3
    found += [
        Kernel(
            "relu(x @ w.T + b) + r 4096 bfloat16",
            [x, w, bias, rest],
            lambda x, w, b, r: (x @ w.T + b).relu() + r,
            lambda x, w, b, r: f.relu(f.linear(x, w, b)) + r,
            *(0, work),
        ),
        Kernel(
            "gelu(x @ w.T + b) 4096 bfloat16",
            [x, w, bias],
            lambda x, w, b: (x @ w.T + b).gelu(),
            lambda x, w, b: f.gelu(f.linear(x, w, b), approximate="tanh"),
            *(0, work),
        ),
    ]
    return found


def kernel_rows(name: str, match: str = "") -> Iterator[Row]:
    """Kernels beside torch's: all, or those whose names have a text in them."""
    try:
        import torch
    except ImportError:
        return
    if not torch.cuda.is_available():
        return
    from bench.device_attention import attentions
    from bench.device_convolutions import convolutions

    torch.backends.cudnn.benchmark = True
    copy = _measured(name, _maps(torch, 16 * MILLION)[0], 0.0)[1]
    for make in (
        *(lambda: _maps(torch, 16 * MILLION), lambda: _maps(torch, 64 * MILLION)),
        lambda: _sums(torch, 16 * MILLION),
        *(lambda: _sums(torch, 64 * MILLION)[:2], lambda: _rows(torch)),
        *(lambda: _moves(torch), lambda: _products(torch), lambda: _matrix_units(torch)),
        *(lambda: convolutions(torch), lambda: attentions(torch)),
    ):
        for kernel in make():
            if match in kernel.about:
                yield _measured(name, kernel, copy)[0]
        torch.cuda.empty_cache()


def _measured(name: str, kernel: Kernel, copy: float) -> tuple[Row, float]:
    """The row of a kernel, and its bytes per second."""
    on = device(name)
    try:
        ours = [Tensor.from_dlpack(each) for each in kernel.inputs]
        run = jit(kernel.ours)
        first = run(*ours)
        error = _error(first, kernel.theirs(*kernel.inputs))
        own = _own_seconds(on, lambda: run(*ours))
        theirs = torch_seconds(lambda: kernel.theirs(*kernel.inputs))
    except Exception as problem:  # the others are still of use
        text = f"{type(problem).__name__}: {str(problem).splitlines()[0]}"
        return ("torch", kernel.about, 0.0, "failed", text), 0.0
    rate = kernel.moved / own
    facts = [f"{own * 1e6:9.1f} us"]
    if kernel.moved:
        facts.append(f"{rate / 1e12:.2f} TB/s, {rate / (copy or rate):.2f} of a copy")
    if kernel.operations:
        facts.append(f"{kernel.operations / own / 1e12:.1f} Tflop/s")
    facts.append(f"error {error:.0e}")
    return ("torch", kernel.about, theirs / own, "ratio", ", ".join(facts)), rate


def _error(ours: Any, theirs: Any) -> float:
    """The largest difference of two results, as a share of the largest value of theirs."""
    if isinstance(theirs, tuple):
        return max(map(_error, ours, theirs))
    got, wanted = ours.float().numpy(), theirs.float().cpu().numpy()
    scale = float(np.abs(wanted).max()) or 1.0
    return float(np.abs(got.astype(np.float64) - wanted).max()) / scale


def _own_seconds(on: Device, run: Callable[[], object]) -> float:
    """The seconds of a call on the device. Long work before it lets the host queue them all."""
    x, y = (Tensor.randn(LONG, LONG, device=on.name).realize() for _ in range(2))
    wait = jit(lambda x, y: x @ y)
    wait(x, y)
    seconds = []
    for _ in range(ROUNDS):
        on.synchronize()
        wait(x, y)
        seconds.append(seconds_of(on, lambda: [run() for _ in range(CALLS)] and None))
    return min(seconds) / CALLS


def torch_seconds(run: Callable[[], object]) -> float:
    import torch

    run()
    x, y = (torch.randn(LONG, LONG, device="cuda") for _ in range(2))
    seconds = []
    for _ in range(ROUNDS):
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        x @ y
        first.record()
        for _ in range(CALLS):
            run()
        last.record()
        last.synchronize()
        seconds.append(first.elapsed_time(last) * 1e-3 / CALLS)
    return min(seconds)


def step_rows(name: str) -> list[Row]:
    """A step of training of torch as one CUDA graph, for the MLP that `start_rows` trains."""
    try:
        import torch
    except ImportError:
        return []
    if not torch.cuda.is_available():
        return []
    layers = (torch.nn.Linear(784, 512), torch.nn.Linear(512, 512), torch.nn.Linear(512, 10))
    model = torch.nn.Sequential(
        *(layers[0], torch.nn.ReLU(), layers[1], torch.nn.ReLU(), layers[2])
    ).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x = torch.ones(512, 784, device="cuda")
    y = torch.zeros(512, device="cuda", dtype=torch.long)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    seconds = torch_seconds(graph.replay)
    return [("MLP", "torch's step in a CUDA graph", seconds * 1e6, "us", "")]
