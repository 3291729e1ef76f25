"""Recurrent layers, jitted, beside torch eager: two layers over 16 steps, forward and trained."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.contest import Contest, Figures, Line, Subject, times_faster

SUBJECT = Subject("recurrent", peer="torch")
STEPS, BATCH, INPUTS, HIDDEN, LAYERS = 16, 64, 128, 256, 2
SECONDS, CALLS = 0.25, 3  # of a round, at least
KINDS = ("LSTM", "GRU")
Calls = dict[str, Callable[[], Any]]


@SUBJECT.benchmark(
    "layers",
    Line("LSTM forward", "ms", times_faster(1.2)),
    Line("LSTM training step", "ms", times_faster(1.2)),
    Line("GRU forward", "ms", times_faster(1.2)),
    Line("GRU training step", "ms", times_faster(1.2)),
)
class Layers(Contest):
    """Two layers of 256, batch 64, 16 steps of 128 numbers; SGD in a training step."""

    def __init__(self, has_peer: bool) -> None:
        super().__init__(has_peer)
        self._weft = _weft_calls()
        self._peer = _torch_calls() if has_peer else {}

    def weft(self) -> Figures:
        return {name: _milliseconds(call) for name, call in self._weft.items()}

    def peer(self) -> Figures:
        return {name: _milliseconds(call) for name, call in self._peer.items()}


def _milliseconds(call: Callable[[], Any]) -> float:
    """The fastest of the calls of a moment."""
    best, calls, end = float("inf"), 0, time.perf_counter() + SECONDS
    while calls < CALLS or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
        calls += 1
    return best * 1e3


def _input() -> Any:
    numbers = np.random.default_rng(0)
    return numbers.standard_normal((STEPS, BATCH, INPUTS)).astype(np.float32)


def _weft_calls() -> Calls:
    from weft import Tensor, jit, nn

    x = Tensor(_input()).realize()
    calls: Calls = {}
    for kind in KINDS:
        layer = getattr(nn, kind)(INPUTS, HIDDEN, LAYERS)
        rule = nn.optim.SGD(layer.parameters(), lr=0.01)

        def forward(x: Any, layer: Any = layer) -> Any:
            return layer(x)[0]

        def step(x: Any, layer: Any = layer, rule: Any = rule) -> Any:
            rule.zero_grad()
            loss = layer(x)[0].square().mean()
            loss.backward()
            rule.step()
            return loss

        for name, function in ((f"{kind} forward", forward), (f"{kind} training step", step)):
            jitted = jit(function)
            calls[name] = lambda jitted=jitted: jitted(x)
    for call in calls.values():
        call()
    return calls


def _torch_calls() -> Calls:
    import torch

    x = torch.from_numpy(_input())
    calls: Calls = {}
    for kind in KINDS:
        layer = getattr(torch.nn, kind)(INPUTS, HIDDEN, LAYERS)
        rule = torch.optim.SGD(layer.parameters(), lr=0.01)

        def forward(layer: Any = layer) -> Any:
            with torch.no_grad():
                return layer(x)[0]

        def step(layer: Any = layer, rule: Any = rule) -> Any:
            rule.zero_grad()
            loss = layer(x)[0].square().mean()
            loss.backward()
            rule.step()
            return loss

        calls |= {f"{kind} forward": forward, f"{kind} training step": step}
    return calls
