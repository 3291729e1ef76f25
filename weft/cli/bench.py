"""`weft bench`: how fast this machine runs some kernels, beside torch where it is installed.

The whole tables, with goals and more peers, are `python -m bench` in a checkout of Weft.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

SECONDS: Final = 0.4


class BenchRow(NamedTuple):
    """A function of some arrays, and what a call of it does: operations, and bytes moved."""

    name: str
    function: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    operations: float
    moved: float


def _rows() -> list[BenchRow]:
    rows = [
        BenchRow(f"matmul {n}", lambda x, y: x @ y, ((n, n), (n, n)), 2.0 * n**3, 12.0 * n * n)
        for n in (512, 1024, 2048)
    ]
    flat = 1 << 24
    both = ((flat,), (flat,))
    return [
        *rows,
        BenchRow("relu(a*b+a) 16M", lambda a, b: (a * b + a).relu(), both, 3 * flat, 12 * flat),
        BenchRow("sum 16M", lambda x: x.sum(), ((flat,),), flat, 4 * flat),
        BenchRow("exp 16M", lambda x: x.exp(), ((flat,),), flat, 8 * flat),
        BenchRow("softmax 4096x1024", lambda x: x.softmax(-1), ((4096, 1024),), 5 << 22, 8 << 22),
        BenchRow("transpose 4096", lambda x: x.T.contiguous(), ((4096, 4096),), 0, 8 << 24),
    ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--no-torch", action="store_true", help="measure Weft alone")


def run(options: argparse.Namespace) -> int:
    has_torch = not options.no_torch and importlib.util.find_spec("torch") is not None
    heads = ["ms", "GFLOPS", "GB/s", *(["of torch"] if has_torch else [])]
    widths = (9, 10, 8, 10)
    print(" " * 22 + "".join(f"{head:>{wide}}" for head, wide in zip(heads, widths, strict=False)))
    for row in _rows():
        ours, theirs = _measure(row, has_torch)
        line = f"{row.name:22}{ours * 1e3:9.2f}{row.operations / ours / 1e9:10.1f}"
        line += f"{row.moved / ours / 1e9:8.1f}"
        print(line + (f"{theirs / ours:9.2f}x" if theirs else ""), flush=True)
    return 0


def _measure(row: BenchRow, has_torch: bool) -> tuple[float, float]:
    """The fastest call of Weft and of torch, called alternately."""
    import numpy as np

    from weft.tensor.jit.jit import jit
    from weft.tensor.tensor import Tensor

    numbers = np.random.default_rng(0)
    arrays = [numbers.standard_normal(shape).astype(np.float32) for shape in row.shapes]
    tensors = [Tensor(array).realize() for array in arrays]
    jitted = jit(row.function)
    jitted(*tensors)
    ours = theirs = float("inf")
    other: list[Any] = []
    if has_torch:
        import torch

        other = [torch.from_numpy(array) for array in arrays]
    end, rounds = time.perf_counter() + SECONDS, 0
    while rounds < 3 or time.perf_counter() < end:
        rounds += 1
        ours = min(ours, _seconds(jitted, tensors))
        if other:
            theirs = min(theirs, _seconds(row.function, other))
    return ours, theirs if other else 0.0


def _seconds(function: Callable[..., Any], arguments: list[Any]) -> float:
    start = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - start
