"""What a call of a jitted function costs, beside the kernels that it runs."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

from bench.contest import Contest, Figures, Line, Subject, at_most

SUBJECT = Subject("jit", peer="tinygrad")
BATCHES, CALLS = 60, 10


def microseconds_per_call(function: Callable[..., Any], *args: Any) -> float:
    """The time of a call, in the best of many short batches: others use the machine too."""
    best = float("inf")
    for _ in range(BATCHES):
        start = perf_counter()
        for _ in range(CALLS):
            function(*args)
        best = min(best, perf_counter() - start)
    return best / CALLS * 1e6


@SUBJECT.benchmark("call", Line("one kernel", "us", at_most(10, "us")), Line("sixteen", "us"))
class Call(Contest):
    """Call functions of one trivial kernel and of sixteen, on three floats."""

    def __init__(self, has_peer: bool) -> None:
        super().__init__(has_peer)
        from weft import Tensor, jit

        self._weft = _functions(Tensor, jit)
        if has_peer:
            from tinygrad import Tensor as PeerTensor
            from tinygrad import TinyJit

            self._peer = _functions(PeerTensor, TinyJit)

    def weft(self) -> Figures:
        return _figures(*self._weft)

    def peer(self) -> Figures:
        return _figures(*self._peer)


def _functions(tensor: Any, jit: Any) -> tuple[Any, Any, Any]:
    """Both functions, traced, and what they are called with."""

    def one(x: Any) -> Any:
        return (x + 1).realize()

    def sixteen(x: Any) -> Any:
        for _ in range(16):
            x = (x + 1).contiguous()
        return x.realize()

    x = tensor([1.0, 2.0, 3.0]).realize()
    functions = jit(one), jit(sixteen)
    for _ in range(4):  # the peer runs twice before it replays
        for function in functions:
            function(x)
    return (*functions, x)


def _figures(one: Any, sixteen: Any, x: Any) -> Figures:
    return {
        "one kernel": microseconds_per_call(one, x),
        "sixteen": microseconds_per_call(sixteen, x),
    }
