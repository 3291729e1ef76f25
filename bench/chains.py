"""How the time to compile grows with a program: chains of n elements, and the fitted exponents.

    python -m bench.chains [NAME ...]

A chain is compiled at several n, cold, up to the source of its kernels. A row has the seconds of
processor time of each phase at the largest n and the exponent of each: the slope of log time over
log n, 1 where twice the elements take twice the time. Tests count calls instead, which depend on
no machine.
"""

from __future__ import annotations

import gc
import math
import sys
import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from weft.codegen.generate import generate
from weft.ir.build import param, sink, store
from weft.ir.dtypes import dtypes
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp, sweep
from weft.render.llvm.renderer import render
from weft.schedule.schedule import make_schedule
from weft.target.cpu import cpu_target
from weft.tensor.tensor import Tensor

SIZES: Final = (25, 50, 100, 200, 400)
TARGET: Final = cpu_target("x86_64", ("avx2",))
PHASES: Final = ("build", "schedule", "codegen", "render")


class Compiled(NamedTuple):
    """What compiling one graph took and gave."""

    seconds: dict[str, float]
    kernels: int
    instructions: list[int]  # of each distinct kernel


# ---- the chains: n elements on inputs that are all alike


def _inputs(count: int, *shape: int) -> list[Tensor]:
    return [Tensor(param(slot, dtypes.float32, shape)) for slot in range(count)]


def softmaxes(count: int) -> list[Tensor]:
    (x,) = _inputs(1, 4, 8)
    for _ in range(count):
        x = x.softmax(-1)
    return [x]


def sines(count: int) -> list[Tensor]:
    (x,) = _inputs(1, 64)
    for _ in range(count):
        x = (x * 1.0001).sin()
    return [x]


def elementwise(count: int) -> list[Tensor]:
    (x,) = _inputs(1, 64)
    for number in range(count):
        x = (x * 1.0001 + number).maximum(0.5) - x
    return [x]


def means(count: int) -> list[Tensor]:
    (x,) = _inputs(1, 32, 64)
    for _ in range(count):
        x = x - x.mean(-1, keepdim=True)
    return [x]


def products(count: int) -> list[Tensor]:
    x, weight = _inputs(2, 16, 16)
    for _ in range(count):
        x = (x @ weight).relu()
    return [x]


def rolls(count: int) -> list[Tensor]:
    (x,) = _inputs(1, 64)
    for _ in range(count):
        x = x + x.roll(1, 0)
    return [x]


def gathers(count: int) -> list[Tensor]:
    (x,), indices = _inputs(1, 64), Tensor(param(1, dtypes.int32, (64,)))
    for _ in range(count):
        x = x.gather(0, indices) + 1
    return [x]


def scatters(count: int) -> list[Tensor]:
    (x,), indices = _inputs(1, 64), Tensor(param(1, dtypes.int32, (64,)))
    for _ in range(count):
        x = x.scatter_add(0, indices, x * 2)
    return [x]


def scans(count: int) -> list[Tensor]:
    """Each along another axis, so that none is computed in the kernel of the next."""
    (x,) = _inputs(1, 8, 8)
    for _ in range(count):
        x = x.cumprod(1).cummax(0)[0]
    return [x]


def attentions(count: int) -> list[Tensor]:
    (x,) = _inputs(1, 1, 2, 8, 8)
    for _ in range(count):
        x = x.scaled_dot_product_attention(x, x)
    return [x]


def halves(count: int) -> list[Tensor]:
    """A cat of two parts in each element."""
    (x,) = _inputs(1, 64)
    for _ in range(count):
        x = x[:32].cat(x[32:] * 2)
    return [x]


def convolutions(count: int) -> list[Tensor]:
    (x,), weight = _inputs(1, 1, 4, 8, 8), Tensor(param(1, dtypes.float32, (4, 4, 3, 3)))
    for _ in range(count):
        x = x.conv2d(weight, padding=1).relu()
    return [x]


def sorts(count: int) -> list[Tensor]:
    (x,) = _inputs(1, 16)
    for _ in range(count):
        x = x.sort()[0] * 1.1
    return [x]


def argmaxes(count: int) -> list[Tensor]:
    (x,) = _inputs(1, 8, 8)
    for _ in range(count):
        x = x + x.argmax(1, keepdim=True)
    return [x]


def cat(count: int) -> list[Tensor]:
    first, *others = _inputs(count, 8)
    return [first.cat(*others)]


def total(count: int) -> list[Tensor]:
    """Inputs added from the last to the first, each after some work."""
    result, *others = _inputs(count, 64)
    for x in others:
        result = (x * 2 + 1).sqrt() + result
    return [result]


def independent(count: int) -> list[Tensor]:
    return [x * 2 + 1 for x in _inputs(count, 64)]


def stored(count: int) -> list[Tensor]:
    """A chain of which each element is a result."""
    results = _inputs(1, 64)
    for _ in range(count):
        results.append((results[-1] * 1.0001).sin())
    return results[1:]


def slopes(count: int) -> list[Tensor]:
    """The gradient through a chain."""
    (x,) = _inputs(1, 64)
    y = x
    for _ in range(count):
        y = (y * 1.0001).sin()
    return list(y.sum().gradient(x))


CHAINS: Final[dict[str, Callable[[int], list[Tensor]]]] = {
    chain.__name__: chain
    for chain in (
        *(softmaxes, sines, elementwise, means, products, rolls),
        *(gathers, scatters, scans, attentions, halves, convolutions, sorts, argmaxes),
        *(cat, total, independent, stored, slopes),
    )
}


# ---- compiling them


def graph_of(values: Sequence[Tensor]) -> UOp:
    """A SINK that stores all values."""
    slot = 1 << 20  # behind those of all inputs
    return sink(
        *(
            store(param(slot + number, value.uop.dtype, shape_of(value.uop)), value.uop)
            for number, value in enumerate(values)
        )
    )


def compile_chain(name: str, count: int) -> Compiled:
    """Compile a chain of `count` elements that nobody remembers, phase by phase."""
    gc.collect()
    sweep()
    seconds: dict[str, float] = {}

    def timed(phase: str, start: float) -> float:
        now = time.process_time()
        seconds[phase] = seconds.get(phase, 0.0) + now - start
        return now

    clock = time.process_time()
    graph = graph_of(CHAINS[name](count))
    clock = timed("build", clock)
    calls = make_schedule(graph, TARGET).kernels.src
    clock = timed("schedule", clock)
    instructions = []
    for kernel in dict.fromkeys(call.arg for call in calls):
        program = generate(kernel, TARGET)
        clock = timed("codegen", clock)
        render(program, TARGET)
        clock = timed("render", clock)
        instructions.append(len(program.instructions.src))
    return Compiled(seconds, len(calls), instructions)


def exponent(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """The slope of log seconds over log sizes, by least squares."""
    xs = [math.log(size) for size in sizes]
    ys = [math.log(max(second, 1e-9)) for second in seconds]
    middle_x, middle_y = sum(xs) / len(xs), sum(ys) / len(ys)
    slope = sum((x - middle_x) * (y - middle_y) for x, y in zip(xs, ys, strict=True))
    return slope / sum((x - middle_x) ** 2 for x in xs)


def row(name: str, sizes: Sequence[int] = SIZES) -> str:
    """One line of the table."""
    compile_chain(name, sizes[0])  # warm-up: imports, compiled rules
    runs = [compile_chain(name, size) for size in sizes]
    cells = []
    for phase in PHASES:
        seconds = [run.seconds[phase] for run in runs]
        cells.append(f"{seconds[-1]:7.2f} s n^{exponent(sizes, seconds):4.2f}")
    whole = exponent(sizes, [sum(run.seconds.values()) for run in runs])
    last = runs[-1]
    sizes_of = f"{last.kernels:5} {max(last.instructions):6}"
    return f"{name:12} {'  '.join(cells)}   n^{whole:4.2f}  {sizes_of}"


def main(arguments: Sequence[str]) -> int:
    unknown = set(arguments) - set(CHAINS)
    if unknown:
        raise SystemExit(f"no chain is called {sorted(unknown)}; there are: {', '.join(CHAINS)}")
    heads = "  ".join(f"{phase:>16}" for phase in PHASES)
    print(f"n = {SIZES[-1]}".ljust(12), heads, "   whole  kernels, most instructions")
    for name in arguments or CHAINS:
        print(row(name), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
