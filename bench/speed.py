"""How fast kernels run: Weft's jitted calls beside torch eager, both on the same threads.

The rows are the work that models are made of. A round calls each side for a moment and keeps its
fastest call; `python -m bench --only speed` prints the ratios. With `--beside`, compiled torch and
jitted tinygrad take turns too; with `--search`, Weft with the kernels that the search finds. The
lines of compile times hold the slowest kernel of the work, in milliseconds of processor time.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.contest import Contest, Figures, Goal, Line, Subject, at_most, times_faster
from bench.peers import is_installed
from bench.speed_models import gpt_block, mlp_step

SUBJECT = Subject("speed", peer="torch")
MILLION = 1 << 20
# How long a round calls a side, and the least number of calls.
SECONDS, CALLS = 0.25, 3
# After this long a side that is slow is not called again in a round.
PATIENCE = 2.0

Call = Callable[[], Any]
Sides = dict[str, Call]  # "weft", "torch", and the further ones that were asked for
SEARCHED = "searched"
WIDTH = 2  # of the search
COMPILE = at_most(60, "ms")


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
    begin, best, count = time.perf_counter(), float("inf"), 0
    while True:
        start = time.perf_counter()
        call()
        end = time.perf_counter()
        best, count = min(best, end - start), count + 1
        if end - begin > (SECONDS if count >= CALLS else PATIENCE):
            return best * 1e3


@functools.cache
def warm_up() -> None:
    """Compile something once, so that no row of the table pays for what every process does."""
    from weft import Context, Tensor

    with Context(CACHE=0):
        x = Tensor.ones(40, 50).contiguous()
        (x @ x.T).gelu().softmax().sum(0).realize()


class Race(Contest):
    """A contest of calls: what each side calls is made when it is first needed."""

    line: str
    compile_line: str

    def __init__(self, has_peer: bool) -> None:
        super().__init__(has_peer)
        if has_peer:
            import torch

            from weft.engine.devices import device

            torch.set_num_threads(device("CPU").target.units)
        self.calls: Sides = {}
        self.is_slow: dict[str, bool] = {}
        self.keeps_all = False  # whether the search found nothing faster

    def call_of(self, side: str) -> Call:
        """What one side calls: "weft", "torch", "torch compiled" or "tinygrad"."""
        raise NotImplementedError

    def play(self, side: str) -> Figures:
        if side not in self.calls:
            self.calls[side] = self.call_of("weft" if side == SEARCHED else side)
            self.calls[side]()
        elif self.is_slow.get(side):
            return {}
        milliseconds = fastest(self.calls[side])
        self.is_slow[side] = milliseconds > PATIENCE * 1e3
        return {self.line: milliseconds}

    def weft(self) -> Figures:
        from weft import Context
        from weft.engine.compile import CompileStatistics
        from weft.ir.uop import sweep

        if "weft" in self.calls:
            return self.play("weft")
        warm_up()
        sweep()
        CompileStatistics.slowest = ("", 0.0)
        with Context(CACHE=0):
            figures = self.play("weft")
        slowest, seconds = CompileStatistics.slowest
        return {**figures, self.compile_line: seconds * 1e3} if slowest else figures

    def searched(self) -> Figures:
        """Weft again, with the kernels that a search finds; nothing where it keeps all as is."""
        from weft import Context
        from weft.engine.search import FINDINGS

        if self.keeps_all:
            return {}
        before = len(FINDINGS)
        # Another process may have searched before; what it found is not looked at.
        with Context(BEAM=WIDTH, CACHE=SEARCHED in self.calls):
            figures = self.play(SEARCHED)
        new = [found for _, found in FINDINGS[before:]]
        self.keeps_all = bool(new) and all(found.keeps_default for found in new)
        return {} if self.keeps_all else figures

    def peer(self) -> Figures:
        return self.play("torch")

    def others(self, asked: Sequence[str]) -> dict[str, Callable[[], Figures]]:
        sides: dict[str, Callable[[], Figures]] = {}
        if "beside" in asked:
            there = {"torch compiled": self.has_peer, "tinygrad": is_installed("tinygrad")}
            names = [name for name in there if there[name]]
            sides = {name: functools.partial(self.play, name) for name in names}
        if "search" in asked:
            sides[SEARCHED] = self.searched
        return sides

    def shares(self, figures: Figures) -> dict[str, str]:
        from bench.machine import peaks
        from weft import GlobalCounters
        from weft.engine.watch.show import share_of_peak
        from weft.ir.program import Estimate

        if self.line not in figures:
            return {}
        GlobalCounters.reset()
        self.calls["weft"]()
        work = Estimate(GlobalCounters.global_ops, GlobalCounters.global_mem)
        return {self.line: share_of_peak(work, peaks(), figures[self.line] / 1e3).strip()}


def race(work: Work) -> type[Race]:
    """The contest of one row."""

    class Row(Race):
        line = work.name
        compile_line = compiling(work.name)

        def call_of(self, side: str) -> Call:
            numbers = np.random.default_rng(0)
            arrays = [numbers.standard_normal(s).astype(np.float32) for s in work.shapes]
            if side == "weft":
                return _weft_call(work, arrays)
            if side == "tinygrad":
                return _tinygrad_call(work, arrays)
            return _torch_call(work, arrays, side == "torch compiled")

        def notes(self) -> list[str]:
            if not self.has_peer:
                return []
            difference = _difference(*(self.calls[side]().numpy() for side in ("weft", "torch")))
            if difference > 1e-4:
                return [f"{work.name}: results differ by {difference:.1e} of the greatest"]
            return []

    Row.__doc__ = f"{work.name}, float32, jitted, beside torch eager."
    return Row


def _weft_call(work: Work, arrays: list[Any]) -> Call:
    from weft import Tensor, jit

    tensors = [Tensor(array).realize() for array in arrays]
    run = jit(work.weft)
    return lambda: run(*tensors)


def _torch_call(work: Work, arrays: list[Any], is_compiled: bool) -> Call:
    import torch

    function = work.torch or work.weft
    if is_compiled:
        function = torch.compile(function, dynamic=False)
    tensors = [torch.from_numpy(array.copy()) for array in arrays]
    return lambda: function(*tensors)


def _tinygrad_call(work: Work, arrays: list[Any]) -> Call:
    from tinygrad import Device, Tensor, TinyJit

    tensors = [Tensor(array).realize() for array in arrays]
    run = TinyJit(lambda *tensors: work.weft(*tensors).realize())

    def call() -> None:
        run(*tensors)
        Device[Device.DEFAULT].synchronize()

    call()
    return call


def _difference(x: Any, y: Any) -> float:
    return float(np.max(np.abs(x - y)) / max(float(np.max(np.abs(y))), 1e-9))


def compiling(line: str) -> str:
    return f"{line}, slowest compile"


def lines(name: str, goal: Goal) -> tuple[Line, Line]:
    """The lines of a race: how long a call takes, and how long a kernel of it compiles."""
    return Line(name, "ms", goal), Line(compiling(name), "ms", COMPILE)


for _work in WORK:
    SUBJECT.benchmark(_work.name, *lines(_work.name, _work.goal))(race(_work))


@SUBJECT.benchmark("mlp", *lines("MLP step with Adam", times_faster(1)))
class Mlp(Race):
    """One training step of the 784-512-512-10 MLP with Adam, batch 128, jitted."""

    line = "MLP step with Adam"
    compile_line = compiling(line)

    def call_of(self, side: str) -> Call:
        return mlp_step(side)


@SUBJECT.benchmark("gpt", *lines("GPT block forward+backward", times_faster(1)))
class Gpt(Race):
    """A GPT block, batch 4, 256 tokens, 384 wide, 6 heads: loss and all gradients, jitted."""

    line = "GPT block forward+backward"
    compile_line = compiling(line)

    def call_of(self, side: str) -> Call:
        return gpt_block(side)


_TRIVIAL = Work("jitted call of one kernel", at_most(0.01, "ms"), ((16,),), lambda x: x + 1)
SUBJECT.benchmark("jitted call", *lines(_TRIVIAL.name, _TRIVIAL.goal))(race(_TRIVIAL))
