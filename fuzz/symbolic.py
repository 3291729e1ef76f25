"""Random programs with symbolic sizes, against the same programs with ints.

    python -m fuzz.symbolic --count 500 --seed 1 --device CPU

A program is a list of lines over the names n, m and p. It runs with bound variables and with ints
instead of them, for several values, and as the body of a jitted function; the results must agree,
and after the first value nothing may be scheduled or compiled again. A program that fails is
shrunk and printed.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from weft import Tensor, Variable, jit
from weft.engine import work
from weft.engine.compile import CompileStatistics
from weft.ir.sizes import most
from weft.ir.text import dump
from weft.ir.uop import UOp, sweep
from weft.support.bounded_cache import clear_bounded_caches
from weft.support.errors import ShapeError, UsageError
from weft.support.settings import Context

VARIABLES: Final = {"n": (1, 8), "m": (1, 8), "p": (0, 7)}
VALUES: Final = ((5, 3, 2), (1, 1, 0), (8, 8, 7), (2, 7, 6), (7, 2, 1), (3, 3, 3))
MODES: Final = {
    "lazy": {},
    "eager": {},
    "noopt": {"NOOPT": True},
    "python": {"DEVICE": "PYTHON"},
    "jit": {},
}
SIZES: Final = ("n", "m", "p", "n + 1", "p + 1", "8 - p", "n * 2", "n + m", "m - 1")
MOST_ELEMENTS: Final = 3000

# x and y are tensors, s and t sizes, a an axis of x.
EXPRESSIONS: Final = (
    *("x * 2 + 1", "x + y", "x.maximum(y)", "x * s", "x - s", "(x > y).where(x, y)", "-x"),
    *("x[:s]", "x[s:]", "x[:, :s]", "x[..., s:]", "x[p]", "x[p:p + 1]", "x[-n:]", "x[:, p]"),
    *("x[..., :n]", "x[:m]", "x[..., 1:]", "x[0]", "x[::-1]", "x[p:p + 1, :n]"),
    *("x.sum(a) % 11", "x.max(a)", "x.sum(a, keepdim=True) % 7", "x.min()", "x.argmax(a)"),
    *("x.reshape(-1)", "x.unsqueeze(a)", "x.transpose(0, -1)", "x.flip(a)", "x.flatten(0, 1)"),
    *("x.reshape(*x.shape[:-1], 2, -1)", "x.reshape(2, -1, *x.shape[1:])"),
    *("x.pad(((s, t),) + ((0, 0),) * (x.ndim - 1))", "x.pad((s, 1), value=3)"),
    *("x.cat(y, dim=a)", "x.stack(x, dim=a)", "x.unsqueeze(0).expand(s, *x.shape)"),
    *("x.repeat(*[2] * x.ndim)", "(x + 1).contiguous()", "x.clone()"),
    "x.split([s, x.shape[0] - s])[1]",
    *("x @ y % 13", "x @ y.transpose(-1, -2) % 13", "x[y.flatten() % 8]"),
    *("Tensor.arange(s).int()", "Tensor.arange(p, p + s).int()", "Tensor.full((s, t), 3)"),
    *("x.tril()", "Tensor.eye(s).int()", "x.float().mean(a)", "x.float().softmax(a)"),
    *("x.float().var(a)", "x.float().logsumexp(a)"),
    *("x[::2]", "x[..., ::3]", "x[::-2]", "x[:s][::2]", "x[..., ::2]"),
    *("x.max_pool2d((2,), ceil_mode=True)", "x.pad((2, 1)).max_pool2d((3,), 2)"),
    *("x.pad((1, 1)).unfold(-1, 2, 1).sum(-1)", "x.max_pool2d((3,), 2, 1, 1)"),
    *("x.float().avg_pool2d((3,), 2, 1, 1, True)", "x.pad((2, 2)).unfold(-1, 3, 2)"),
    *("x.float().interpolate((5,))", "x.interpolate((s + 1,), 'nearest')"),
    *("x.float().adaptive_avg_pool2d((2,))", "x.adaptive_max_pool2d((3,))"),
    "x.reshape(1, 1, -1).pad((2, 1)).conv2d(Tensor.ones(2, 1, 3).int(), stride=2) % 11",
)
WRITES: Final = (
    *("x[:s] = 3", "x[p] = 5", "x[p:p + 1] = x[p:p + 1] * 2", "x[:n] = x[:n] + 1", "x += 1"),
    *("x[..., :s] = 2", "x[:, p] = 4", "x[s:] = x[s:] * 2", "x[:n] = y[:n]"),
    "x[1:] = x[:-1] + 0",
)


class Generator:
    """One random program: lines that are legal for every value of the variables."""

    def __init__(self, seed: int, count: int = 8) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.made = 3
        # One scope for each choice of values: what is legal depends on them.
        self.scopes: list[dict[str, Any]] = [bound(values) for values in VALUES]
        for number, shape in enumerate(((8,), (8, 4), (4, 8), (3, 8, 4))):
            if number < 2 or self.random.random() < 0.5:
                self._try(f"x{number} = base({number}, {shape})")
        while len(self.lines) < count:
            self._try(self._line())

    def _line(self) -> str:
        tensors = [name for name in self.names if name[0] == "x"]
        if self.random.random() < 0.2:
            return self._filled(self.random.choice(WRITES), tensors)
        if self.random.random() < 0.1:
            return f"{self.random.choice(tensors)}.realize()"
        made = self._filled(self.random.choice(EXPRESSIONS), tensors)
        self.made += 1
        return f"x{self.made} = {made}"

    def _filled(self, text: str, tensors: list[str]) -> str:
        x, y = self.random.choice(tensors), self.random.choice(tensors)
        rank = max(self.names[x].ndim, 1)
        addresses = {"x": x, "y": y, "a": str(self.random.randrange(rank))}
        addresses |= {"s": f"({self.random.choice(SIZES)})", "t": f"({self.random.choice(SIZES)})"}
        words = []
        word = ""
        for character in text + " ":
            if character.isalnum() or character == "_":
                word += character
                continue
            is_name = not (words and words[-1] == ".")
            words += [addresses.get(word, word) if is_name else word, character]
            word = ""
        return "".join(words).strip()

    def _try(self, line: str) -> None:
        """Keep a line if it can be run with all values; nothing is computed."""
        scopes = [dict(names) for names in self.scopes]
        try:
            with Context(DEVICE="PYTHON"):
                for names in scopes if ".realize()" not in line else ():
                    exec(line, {"Tensor": Tensor, "base": base}, names)
        except (UsageError, TypeError, IndexError):
            return
        if all(fits(value) for name, value in scopes[0].items() if name[0] == "x"):
            self.scopes = scopes
            self.lines.append(line)

    @property
    def names(self) -> dict[str, Any]:
        return self.scopes[0]


def fits(tensor: Tensor) -> bool:
    count = 1
    for size in tensor.shape:
        count *= most(size)
    return count <= MOST_ELEMENTS and tensor.ndim <= 5


def base(number: int, shape: tuple[int, ...]) -> Tensor:
    """Tensor number so-and-so of a program: small ints."""
    values = np.random.default_rng(number).integers(-4, 5, shape)
    return Tensor(values.astype(np.int32)).realize()


def bound(values: Sequence[int]) -> dict[str, UOp]:
    return {
        name: Variable(name, *VARIABLES[name]).bind(value)
        for name, value in zip(VARIABLES, values, strict=True)
    }


def run(lines: Sequence[str], sizes: Mapping[str, Any], is_eager: bool) -> dict[str, Any]:
    """The arrays that a program leaves, by name."""
    names = dict(sizes)
    for line in lines:
        exec(line, {"Tensor": Tensor, "base": base}, names)
        for name in [name for name in names if name[0] == "x" and is_eager]:
            names[name].realize()
    return {name: value.numpy() for name, value in names.items() if name[0] == "x"}


def jitted(lines: Sequence[str]) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """A program as one jitted function of its sizes; calls give the arrays that it leaves."""

    @jit
    def program(n: Any, m: Any, p: Any) -> dict[str, Any]:
        names = {"n": n, "m": m, "p": p}
        for line in lines:
            exec(line, {"Tensor": Tensor, "base": base}, names)
        return {name: value for name, value in names.items() if name[0] == "x"}

    def call(sizes: Mapping[str, Any]) -> dict[str, Any]:
        found = {name: value.numpy() for name, value in program(**sizes).items()}
        if program.traces != 1:
            raise RuntimeError(f"traced {program.traces} times")
        return found

    return call


def try_difference(lines: Sequence[str], mode: str, device: str) -> str | None:
    """How a program with symbolic sizes differs from the one with ints, or None."""
    with Context(**{"DEVICE": device, "CACHE": False, "CHECK": "memory", **MODES[mode]}):
        # What falls out of a full cache is made again, in a long run: each program has empty ones.
        clear_bounded_caches()
        function = jitted(lines)
        for number, values in enumerate(VALUES):
            try:
                wanted = run(lines, dict(zip(VARIABLES, values, strict=True)), mode == "eager")
                before = set(work._PREPARED)
                generated = CompileStatistics.generated
                is_jitted = mode == "jit"
                sizes = bound(values)
                found = function(sizes) if is_jitted else run(lines, sizes, mode == "eager")
            except ShapeError as error:
                if mode == "jit" and "is not always inside" in str(error):
                    return None  # a slice that holds for the values of now is refused here
                return f"{values}: {type(error).__name__}: {str(error).splitlines()[0]}"
            except Exception as error:
                return f"{values}: {type(error).__name__}: {str(error).splitlines()[0]}"
            fresh = [body for body, *rest in work._PREPARED if (body, *rest) not in before]
            generated = CompileStatistics.generated - generated
            for name, array in wanted.items():
                if found[name].shape != array.shape or not is_same(found[name], array):
                    return f"{values}: {name} is {found[name].tolist()}, not {array.tolist()}"
            if number and fresh:
                return f"{values}: scheduled again:\n{dump(fresh[0])}"
            if number and generated:
                return f"{values}: {generated} kernels compiled again"
    return None


def is_same(got: Any, wanted: Any) -> bool:
    if wanted.dtype.kind in "biu":
        return bool(np.array_equal(got, wanted))
    return bool(np.allclose(got, wanted, rtol=1e-5, atol=1e-5, equal_nan=True))


def shrink(lines: Sequence[str], mode: str, device: str) -> list[str]:
    """The program without the lines that the failure does not need."""
    kept = list(lines)
    position = len(kept) - 1
    while position >= 0:
        fewer = kept[:position] + kept[position + 1 :]
        problem = try_difference(fewer, mode, device)
        if problem is not None and "NameError" not in problem:
            kept = fewer
        position -= 1
    return kept


def problems(seed: int, count: int, modes: Sequence[str], device: str) -> Iterator[str]:
    """What went wrong in some programs, each shrunk, as text."""
    for number in range(count):
        lines = Generator(seed * 1_000_003 + number).lines
        for mode in modes:
            problem = try_difference(lines, mode, device)
            if problem is not None:
                small = shrink(lines, mode, device)
                text = "\n".join("    " + line for line in small)
                again = try_difference(small, mode, device)
                yield f"program {number}, {mode}: {problem}\nshrunk: {again}\n{text}"
                break
        if number % 100 == 99:
            sweep()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    parser.add_argument("--device", default="CPU")
    parser.add_argument("--modes", default=",".join(MODES), help="some of " + ", ".join(MODES))
    options = parser.parse_args(arguments)
    print(f"seed {options.seed}", flush=True)
    wrong = 0
    for problem in problems(options.seed, options.count, options.modes.split(","), options.device):
        wrong += 1
        print(problem, flush=True)
    print(f"{options.count} programs, {wrong} differences, seed {options.seed}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
