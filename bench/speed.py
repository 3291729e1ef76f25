"""How fast kernels run: Weft's jitted calls beside torch eager, both on the same threads.

The rows are the work that models are made of. A round calls each side for a moment and keeps its
fastest call; `python -m bench --only speed` prints the ratios. `TORCH_COMPILE=1` lets torch
compile its side too.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.contest import Contest, Figures, Goal, Line, Subject, times_faster
from bench.speed_models import gpt_block, mlp_step

SUBJECT = Subject("speed", peer="torch")
MILLION = 1 << 20
# How long a round calls a side, and the least number of calls.
SECONDS, CALLS = 0.25, 3

Call = Callable[[], Any]


@dataclass(frozen=True)
class Work:
    """A function of arrays, as each side writes it, and the shapes of its arguments."""

    name: str
    goal: Goal
    shapes: tuple[tuple[int, ...], ...]
    weft: Callable[..., Any]
    torch: Callable[..., Any] | None = None  # the same text where none is given


def matmul(x: Any, y: Any) -> Any:
    return x @ y


def _matmuls() -> list[Work]:
    rows = [Work(f"matmul {n}", times_faster(0.85), ((n, n), (n, n)), matmul) for n in SQUARES]
    more = times_faster(0.8)
    square = ((1024, 1024), (1024, 1024))
    rows += [
        Work("matmul 1024, left transposed", more, square, lambda x, y: x.T @ y),
        Work("matmul 1024, right transposed", more, square, lambda x, y: x @ y.T),
        Work("matmul 1024, both transposed", more, square, lambda x, y: x.T @ y.T),
        Work("64 of 128x64x128", more, ((64, 128, 64), (64, 64, 128)), matmul),
        Work("128x784x512", more, ((128, 784), (784, 512)), matmul),
        Work("1000x1000x1000", more, ((1000, 1000), (1000, 1000)), matmul),
        Work("vector 4096 by 4096x4096", times_faster(1), ((1, 4096), (4096, 4096)), matmul),
        Work("8x4096 by 4096x4096", times_faster(1), ((8, 4096), (4096, 4096)), matmul),
    ]
    return rows


def _convolution(name: str, shapes: tuple[tuple[int, ...], ...], **options: int) -> Work:
    def with_torch(x: Any, y: Any) -> Any:
        from torch.nn.functional import conv2d

        return conv2d(x, y, **options)

    return Work(name, times_faster(0.8), shapes, lambda x, y: x.conv2d(y, **options), with_torch)


def _torch_gelu(x: Any) -> Any:
    from torch.nn.functional import gelu

    return gelu(x, approximate="tanh")


def _torch_layernorm(x: Any) -> Any:
    from torch.nn.functional import layer_norm

    return layer_norm(x, (x.shape[-1],))


def _memory_bound() -> list[Work]:
    flat, square, rows = (16 * MILLION,), (4096, 4096), (4096, 1024)
    same = times_faster(1)
    return [
        Work("relu(a*b+a) 16M", times_faster(2), (flat, flat), lambda a, b: (a * b + a).relu()),
        Work("sum 16M", times_faster(0.9), (flat,), lambda x: x.sum()),
        Work("mean of rows 4096x4096", times_faster(0.9), (square,), lambda x: x.mean(1)),
        Work("mean of columns 4096x4096", times_faster(0.9), (square,), lambda x: x.mean(0)),
        Work("softmax 4096x1024", same, (rows,), lambda x: x.softmax(-1)),
        Work("layernorm 4096x1024", same, (rows,), lambda x: x.layernorm(), _torch_layernorm),
        Work("gelu 16M", same, (flat,), lambda x: x.gelu(), _torch_gelu),
        Work("exp 16M", same, (flat,), lambda x: x.exp()),
        Work("transpose 4096x4096", times_faster(0.9), (square,), lambda x: x.T.contiguous()),
    ]


SQUARES = (512, 1024, 2048, 4096)
WORK: tuple[Work, ...] = (
    *_matmuls(),
    _convolution("conv 8x64x56x56 3x3", ((8, 64, 56, 56), (64, 64, 3, 3)), padding=1),
    _convolution("conv 1x3x224x224 7x7/2", ((1, 3, 224, 224), (64, 3, 7, 7)), stride=2, padding=3),
    *_memory_bound(),
)


def fastest(call: Call) -> float:
    """The milliseconds of the fastest of several calls."""
    best, end, count = float("inf"), time.perf_counter() + SECONDS, 0
    while count < CALLS or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
        count += 1
    return best * 1e3


def peer_call(function: Callable[..., Any], arguments: list[Any]) -> Call:
    """A call of torch, compiled if asked for, on as many threads as Weft has."""
    import torch

    from weft.engine.devices import device

    torch.set_num_threads(device("CPU").target.threads)
    if os.environ.get("TORCH_COMPILE"):
        function = torch.compile(function)
    return lambda: function(*arguments)


def contest(work: Work) -> type[Contest]:
    """The contest of one row."""

    class Row(Contest):
        def __init__(self, has_peer: bool) -> None:
            super().__init__(has_peer)
            from weft import Tensor, jit

            numbers = np.random.default_rng(0)
            arrays = [numbers.standard_normal(s).astype(np.float32) for s in work.shapes]
            tensors = [Tensor(array).realize() for array in arrays]
            run = jit(work.weft)
            self.call: Call = lambda: run(*tensors)
            result = self.call().numpy()
            if has_peer:
                import torch

                function = work.torch or work.weft
                self.other = peer_call(function, [torch.from_numpy(a.copy()) for a in arrays])
                self.difference = _difference(result, self.other().numpy())

        def weft(self) -> Figures:
            return {work.name: fastest(self.call)}

        def peer(self) -> Figures:
            return {work.name: fastest(self.other)}

        def notes(self) -> list[str]:
            if self.has_peer and self.difference > 1e-4:
                return [f"{work.name}: results differ by {self.difference:.1e} of the greatest"]
            return []

    Row.__doc__ = f"{work.name}, float32, jitted, beside torch eager."
    return Row


def _difference(x: Any, y: Any) -> float:
    return float(np.max(np.abs(x - y)) / max(float(np.max(np.abs(y))), 1e-9))


for _work in WORK:
    SUBJECT.benchmark(_work.name, Line(_work.name, "ms", _work.goal))(contest(_work))


@SUBJECT.benchmark("mlp", Line("MLP step with Adam", "ms", times_faster(1)))
class Mlp(Contest):
    """One training step of the 784-512-512-10 MLP with Adam, batch 128, jitted."""

    def __init__(self, has_peer: bool) -> None:
        super().__init__(has_peer)
        self.ours, self.theirs = mlp_step(has_peer)

    def weft(self) -> Figures:
        return {"MLP step with Adam": fastest(self.ours)}

    def peer(self) -> Figures:
        assert self.theirs is not None
        return {"MLP step with Adam": fastest(self.theirs)}


@SUBJECT.benchmark("gpt", Line("GPT block forward+backward", "ms", times_faster(1)))
class Gpt(Contest):
    """A GPT block, batch 4, 256 tokens, 384 wide, 6 heads: loss and all gradients, jitted."""

    def __init__(self, has_peer: bool) -> None:
        super().__init__(has_peer)
        self.ours, self.theirs = gpt_block(has_peer)

    def weft(self) -> Figures:
        return {"GPT block forward+backward": fastest(self.ours)}

    def peer(self) -> Figures:
        assert self.theirs is not None
        return {"GPT block forward+backward": fastest(self.theirs)}


@SUBJECT.benchmark("jitted call", Line("jitted call of one kernel", "ms"))
class TrivialCall(Contest):
    """A jitted call of one trivial kernel: what Python costs."""

    def __init__(self, has_peer: bool) -> None:
        super().__init__(has_peer)
        from weft import Tensor, jit

        x = Tensor(np.zeros(16, np.float32)).realize()
        run = jit(lambda x: x + 1)
        self.ours: Call = lambda: run(x)
        self.ours()

    def weft(self) -> Figures:
        return {"jitted call of one kernel": fastest(self.ours)}

    def peer(self) -> Figures:
        import torch

        x = torch.zeros(16)
        return {"jitted call of one kernel": fastest(lambda: x + 1)}
