"""Random attention with random scores, in one kernel and in several, compared with float64.

    python -m fuzz.attention --count 300 --seed 1

Shapes, small floats, weights by softmax and by others, heads that share keys, masks by position
and in memory, biases, caps and what is done with the result are drawn; rows and blocks may be
masked altogether. Each program runs with the products in one kernel, and as the cost decides, with
blocks of rows joined or not. `--device` has the device that they run on: on a GPU shapes are those
that matrix units multiply.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from weft.ir.dtypes import dtypes
from weft.ir.uop import sweep
from weft.support.settings import Context
from weft.tensor import Tensor

Arrays = dict[str, Any]
Score = Callable[[Any, Arrays, Any], Any]  # of scores, further inputs, and the library
# By how much results may be off, for each dtype of the inputs; weights are rounded to it.
TOLERANCES: Final = {dtypes.float32: 2e-5, dtypes.float16: 4e-3, dtypes.bfloat16: 3e-2}
MODES: Final = (
    {"FUSE_PRODUCTS": "always"},
    {"FUSE_PRODUCTS": "always", "JOIN": "always"},
    {"FUSE_PRODUCTS": "always", "NOOPT": True},
    {"FUSE_PRODUCTS": "", "JOIN": "never"},
)


class Case:
    """One program: its inputs, and what is done with scores and with the result."""

    def __init__(self, seed: int, is_on_units: bool = False) -> None:
        self.random = draw = random.Random(seed)
        self.queries = draw.choice((8, 16, 17, 31, 32, 33, 40, 64, 65, 96))
        self.keys = draw.choice((8, 9, 31, 63, 64, 65, 96, 100, 127, 128, 129, 200, 257, 260))
        self.size = draw.choice((4, 8, 12, 16, 20, 33))
        self.columns = draw.choice((8, 9, 12, 16, 20, 24, 40))
        if is_on_units:
            self.keys = draw.choice((65, 72, 96, 128, 136, 200))
            self.size = draw.choice((8, 16, 40, 64, 80))
            self.columns = draw.choice((8, 16, 40, 64, 72))
        self.group = draw.choice((1, 1, 2, 3))
        self.heads = self.group * draw.choice((1, 2))
        shared = self.heads // self.group
        values = np.random.default_rng(seed)

        def normal(*shape: int) -> Any:
            return values.standard_normal(shape).astype(np.float32)

        batch = draw.choice((1, 2))
        self.arrays: Arrays = {
            "q": normal(batch, self.heads, self.queries, self.size),
            "k": normal(batch, shared, self.keys, self.size),
            "v": normal(batch, shared, self.keys, self.columns),
            "bias": normal(self.heads, self.queries, self.keys),
            "row": normal(self.queries, 1),
            "mask": values.random((self.queries, self.keys)) < draw.choice((0.05, 0.5, 0.9)),
        }
        self.form = draw.choice(("softmax", "softmax", *FORMS))
        self.fill = -np.inf if self.form == "softmax" else 0.0
        self.steps = [draw.choice(list(STEPS)) for _ in range(draw.choice((0, 1, 1, 2, 3)))]
        self.shift = draw.randint(-70, 70)
        self.width = draw.randint(1, 90)
        self.is_safe = draw.random() < 0.5
        self.end = draw.choice(list(ENDS))
        self.dtype = draw.choice((dtypes.float32, dtypes.float32, *TOLERANCES))
        if is_on_units:
            self.dtype = draw.choice((dtypes.float16, dtypes.bfloat16))
        is_plain = self.dtype is dtypes.float32 and "large" not in self.steps
        self.has_slopes = is_plain and draw.random() < 0.5
        for name in "qkv":
            rounded = Tensor(self.arrays[name], device="CPU").cast(self.dtype).cast(dtypes.float32)
            self.arrays[name] = rounded.numpy()

    def __repr__(self) -> str:
        shapes = {name: array.shape for name, array in self.arrays.items()}
        drawn = f"{self.form} {self.steps} {self.shift} {self.width} {self.is_safe} {self.end}"
        return f"{self.dtype} {shapes} {drawn}"

    def result(self, arrays: Arrays, lib: Any) -> Any:
        q, k, v = (arrays[name] for name in "qkv")
        k, v = (lib.repeated(x, self.group) for x in (k, v))
        s = lib.product(q, lib.swapped(k)) / float(np.sqrt(self.size))
        i, j = lib.counted(self.queries).reshape(-1, 1), lib.counted(self.keys).reshape(1, -1)
        for step in self.steps:
            s = STEPS[step](self, s, arrays, i, j, lib)
        if self.form != "softmax":
            weights = lib.rounded(FORMS[self.form](s, q, k, lib), v)
            return ENDS[self.end](lib.product(weights, v), arrays)
        top = lib.greatest(s)
        top = lib.where(top == -np.inf, 0.0, top) if self.is_safe else top
        e = lib.exp(s - top)
        total = lib.total(e)
        total = lib.where(total == 0.0, 1.0, total) if self.is_safe else total
        return ENDS[self.end](lib.product(lib.rounded(e / total, v), v), arrays)


STEPS: Final[dict[str, Callable[..., Any]]] = {
    "causal": lambda c, s, a, i, j, lib: lib.where(j <= i + c.shift, s, c.fill),
    "later": lambda c, s, a, i, j, lib: lib.where(j >= i + c.shift, s, c.fill),
    "window": lambda c, s, a, i, j, lib: lib.where(
        (j <= i + c.shift) & (i + c.shift - j < c.width), s, c.fill
    ),
    "either": lambda c, s, a, i, j, lib: lib.where((j <= i) | (j < c.width), s, c.fill),
    "mask": lambda c, s, a, i, j, lib: lib.where(a["mask"], s, c.fill),
    "bias": lambda c, s, a, i, j, lib: s + a["bias"],
    "row": lambda c, s, a, i, j, lib: s * a["row"],
    "far": lambda c, s, a, i, j, lib: s + (j - i) * 0.125,
    "cap": lambda c, s, a, i, j, lib: lib.tanh(s / 3.0) * 3.0,
    "large": lambda c, s, a, i, j, lib: s * 40.0,
}
# What weights are without a softmax.
FORMS: Final[dict[str, Callable[..., Any]]] = {
    "scores": lambda s, q, k, lib: s,
    "positive": lambda s, q, k, lib: lib.where(s > 0.0, s, 0.0),
    "bounded": lambda s, q, k, lib: lib.tanh(s),
    "gated": lambda s, q, k, lib: s * lib.tanh(lib.product(q * 0.5 + 1.0, lib.swapped(k))),
}
ENDS: Final[dict[str, Callable[..., Any]]] = {
    "plain": lambda o, a: o,
    "scaled": lambda o, a: o * 2.0 + 1.0,
    "row": lambda o, a: o * a["row"],
    "heads": lambda o, a: o.swapaxes(1, 2).reshape(o.shape[0], o.shape[2], -1),
    "twice": lambda o, a: o * o,
    "mean": lambda o, a: o - o.mean(-1, keepdims=True),
}


class Plain:
    """NumPy, in float64."""

    where, exp, tanh = staticmethod(np.where), staticmethod(np.exp), staticmethod(np.tanh)
    product, counted = staticmethod(np.matmul), staticmethod(np.arange)

    @staticmethod
    def swapped(x: Any) -> Any:
        return x.swapaxes(-1, -2)

    @staticmethod
    def repeated(x: Any, times: int) -> Any:
        return x.repeat(times, 1)

    @staticmethod
    def rounded(x: Any, like: Any) -> Any:
        return x

    @staticmethod
    def greatest(x: Any) -> Any:
        return x.max(-1, keepdims=True)

    @staticmethod
    def total(x: Any) -> Any:
        return x.sum(-1, keepdims=True)


class Ours:
    """Weft, by the same names."""

    @staticmethod
    def where(condition: Any, x: Any, y: Any) -> Any:
        return condition.where(x, y)

    @staticmethod
    def exp(x: Any) -> Any:
        return x.exp()

    @staticmethod
    def tanh(x: Any) -> Any:
        return x.tanh()

    @staticmethod
    def product(x: Any, y: Any) -> Any:
        return x.dot(y, dtype=dtypes.float32)

    @staticmethod
    def rounded(x: Any, like: Any) -> Any:
        return x.cast(like.dtype)

    @staticmethod
    def counted(size: int) -> Any:
        return Tensor.arange(size)

    @staticmethod
    def swapped(x: Any) -> Any:
        return x.transpose(-1, -2)

    @staticmethod
    def repeated(x: Any, times: int) -> Any:
        return x.repeat_interleave(times, 1)

    @staticmethod
    def greatest(x: Any) -> Any:
        return x.max(axis=-1, keepdim=True)

    @staticmethod
    def total(x: Any) -> Any:
        return x.sum(axis=-1, keepdim=True)


def try_difference(case: Case, mode: dict[str, Any]) -> str | None:
    """By how much a program is off, or None."""
    exact = {n: a if a.dtype == bool else a.astype(np.float64) for n, a in case.arrays.items()}
    with np.errstate(all="ignore"):
        wanted = case.result(exact, Plain)
    with Context(**mode, CACHE=False):
        inputs = {name: Tensor(a) for name, a in case.arrays.items()}
        inputs |= {name: inputs[name].cast(case.dtype).realize() for name in "qkv"}
        got = case.result(inputs, Ours).numpy()
    if got.shape != wanted.shape or not np.array_equal(np.isnan(got), np.isnan(wanted)):
        return f"shape {got.shape}, {np.isnan(got).sum()} NaN, not {np.isnan(wanted).sum()}"
    is_large = "large" in case.steps
    slack = (
        TOLERANCES[case.dtype] * (20 if is_large else 1) * np.nanmax(np.abs(wanted), initial=1.0)
    )
    off = np.nanmax(np.abs(got - wanted), initial=0.0)
    return f"off by {off}" if off > slack else None


def try_slopes(case: Case, mode: dict[str, Any]) -> str | None:
    """By how much gradients are off from those with scores in memory, or None.

    Where a row sees no key, all its weights are NaN, also those behind its mask: a loop that skips
    them gives a number to a key, where scores in memory give NaN (docs/attention.md).
    """
    found = []
    for setting in ({"FUSE_PRODUCTS": "never"}, mode):
        with Context(**setting, CACHE=False):
            inputs = {name: Tensor(a) for name, a in case.arrays.items()}
            out = case.result(inputs, Ours)
            slopes = (out * out).sum().gradient(*(inputs[name] for name in "qkv"))
            found.append([slope.numpy() for slope in slopes])
    for want, got in zip(*found, strict=True):
        new, gone = np.isnan(got) & ~np.isnan(want), np.isnan(want) & ~np.isnan(got)
        if new.any() or (gone.any() and (case.is_safe or case.form != "softmax")):
            return f"slopes with {np.isnan(got).sum()} NaN, not {np.isnan(want).sum()}"
        slack = 2e-4 * np.nanmax(np.abs(want), initial=1.0)
        off = np.nanmax(np.abs(got - want), initial=0.0)
        if off > slack:
            return f"slopes off by {off} of {slack}"
    return None


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    parser.add_argument("--device", default="CPU")
    options = parser.parse_args(arguments)
    print(f"seed {options.seed}", flush=True)
    with Context(DEVICE=options.device):
        wrong = run(options.count, options.seed, options.device != "CPU")
    print(f"{options.count} programs, {wrong} differences, seed {options.seed}")
    return 1 if wrong else 0


def run(count: int, seed: int, is_on_units: bool) -> int:
    """How many programs differ from what is wanted."""
    wrong = 0
    for number in range(count):
        case = Case(seed * 1_000_003 + number, is_on_units)
        for mode in MODES[:1] if is_on_units else MODES:
            problem = try_difference(case, mode)
            if problem is not None:
                wrong += 1
                print(f"program {number}, {mode}: {problem}: {case}", flush=True)
        problem = try_slopes(case, MODES[0]) if case.has_slopes else None
        if problem is not None:
            wrong += 1
            print(f"program {number}: {problem}: {case}", flush=True)
        if number % 20 == 19:
            sweep()
    return wrong


if __name__ == "__main__":
    raise SystemExit(main())
