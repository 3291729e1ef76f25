"""What eager calls of small tensors cost: building, keys and launches, hardly any arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np

from bench.contest import Contest, Figures, Line, Subject, at_most
from bench.jit import microseconds_per_call

SUBJECT = Subject("eager", peer="torch")
Calls = dict[str, Callable[[], Any]]
BESIDE, MANY = "x + 1 beside 1,000 lazy", 1000


@SUBJECT.benchmark(
    "small",
    Line("x + 1", "us", at_most(20, "us")),
    Line("sum to a number", "us", at_most(25, "us")),
    Line("stack of 8", "us", at_most(40, "us")),
    Line("randn(4)", "us", at_most(40, "us")),
    Line("a policy to NumPy", "us", at_most(100, "us")),
    Line("x + 1 beside 1,000 lazy", "us", at_most(20, "us")),
)
class Small(Contest):
    """Eager calls on a few floats, each computed at once."""

    def __init__(self, has_peer: bool) -> None:
        super().__init__(has_peer)
        self._weft = _weft_calls()
        self._peer = _torch_calls() if has_peer else {}
        for call in (*self._weft.values(), *self._peer.values()):
            for _ in range(5):
                call()

    def weft(self) -> Figures:
        from weft import Tensor

        figures = {name: microseconds_per_call(call) for name, call in self._weft.items()}
        held = [Tensor([1.0]).realize() for _ in range(MANY)]
        lazy = [each * 2 for each in held]
        figures[BESIDE] = microseconds_per_call(self._weft["x + 1"])
        del lazy
        return figures

    def peer(self) -> Figures:
        import torch

        figures = {name: microseconds_per_call(call) for name, call in self._peer.items()}
        held = [torch.ones(1) * 2 for _ in range(MANY)]
        figures[BESIDE] = microseconds_per_call(self._peer["x + 1"])
        del held
        return figures


def _arrays() -> dict[str, Any]:
    ones = {"x": (4, 4), "first": (4, 64), "second": (64, 2), "seen": (1, 4)}
    return {name: np.ones(shape, np.float32) for name, shape in ones.items()}


def _weft_calls() -> Calls:
    from weft import Tensor

    arrays = _arrays()
    x, first, second = (Tensor(arrays[name]).realize() for name in ("x", "first", "second"))
    rows = [Tensor(arrays["x"][0]).realize() for _ in range(8)]
    return {
        "x + 1": lambda: (x + 1).realize(),
        "sum to a number": lambda: x.sum().item(),
        "stack of 8": lambda: Tensor.stack(*rows).realize(),
        "randn(4)": lambda: Tensor.randn(4).realize(),
        "a policy to NumPy": lambda: (
            ((Tensor(arrays["seen"]) @ first).tanh() @ second).softmax().numpy()
        ),
    }


def _torch_calls() -> Calls:
    import torch

    arrays = _arrays()
    x, first, second = (torch.tensor(arrays[name]) for name in ("x", "first", "second"))
    rows = [torch.tensor(arrays["x"][0]) for _ in range(8)]
    return {
        "x + 1": lambda: x + 1,
        "sum to a number": lambda: x.sum().item(),
        "stack of 8": lambda: torch.stack(rows),
        "randn(4)": lambda: torch.randn(4),
        "a policy to NumPy": lambda: (
            ((torch.tensor(arrays["seen"]) @ first).tanh() @ second).softmax(-1).numpy()
        ),
    }


@SUBJECT.benchmark(
    "much",
    Line("64 draws at once", "ms", at_most(100, "ms")),
    Line("a chain of 3,000 sines", "ms", at_most(3000, "ms")),
    rounds=3,
)
class Much(Contest):
    """Graphs with many outputs, or with many nodes, that were not computed on the way."""

    def weft(self) -> Figures:
        from weft import Tensor

        x = Tensor([1.0, 2.0]).realize()
        draw = _milliseconds(lambda: Tensor.realize(*[Tensor.randn(64, 64) for _ in range(64)]))
        return {
            "64 draws at once": draw,
            "a chain of 3,000 sines": _milliseconds(lambda: _sines(x).realize()),
        }

    def peer(self) -> Figures:
        import torch

        x = torch.tensor([1.0, 2.0])
        draw = _milliseconds(lambda: [torch.randn(64, 64) for _ in range(64)])
        return {
            "64 draws at once": draw,
            "a chain of 3,000 sines": _milliseconds(lambda: _sines(x)),
        }


def _sines(x: Any) -> Any:
    for _ in range(3000):
        x = (x * 1.0001).sin()
    return x


def _milliseconds(run: Callable[[], Any]) -> float:
    start = process_time()
    run()
    return (process_time() - start) * 1e3
