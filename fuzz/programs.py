"""Random tensor programs, run in several ways that must agree with NumPy.

    python -m fuzz.programs --count 2000 --seed 1 --device CPU

Each program (`fuzz.program_lines`) runs lazily, with every line realized at once, without opts,
and on the interpreter. One that fails is shrunk and printed as a script that runs.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from fuzz.program_lines import Generator
from fuzz.program_oracle import Array, Line, Oracle, realizing
from weft.ir.uop import sweep
from weft.support.settings import Context
from weft.tensor import Tensor

# Rounded results are one function of exact values, or a quotient: few roundings of float32.
TOLERANCE: Final = 32 * 2.0**-24


class Mode(NamedTuple):
    """A way to run a program; a device of None is the one that is tested."""

    device: str | None = None
    is_eager: bool = False
    has_opts: bool = True
    threads: int = 0


MODES: Final = {
    "lazy": Mode(),
    "eager": Mode(is_eager=True),
    "noopt": Mode(has_opts=False),
    "python": Mode(device="PYTHON"),
}


def try_difference(lines: Sequence[Line], mode: Mode, device: str) -> str | None:
    """What a program does that NumPy does not, or None."""
    wanted = Oracle(lines).names
    with Context(DEVICE=mode.device or device, NOOPT=not mode.has_opts, CACHE=False):
        tensors: dict[str, Any] = {}
        try:
            for line in lines:
                exec(line.ours, {"Tensor": Tensor}, tensors)
                if mode.is_eager:
                    for tensor in tensors.values():
                        tensor.realize()
            found = {name: tensor.numpy() for name, tensor in tensors.items()}
        except Exception as error:
            return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    for name, array in wanted.items():
        got = found[name]
        if got.shape != array.shape:
            return f"{name} has shape {got.shape}, not {array.shape}"
        if not _is_same(name, got, array):
            return f"{name} is {got.tolist()}, not {array.tolist()}"
    return None


def _is_same(name: str, got: Array, wanted: Array) -> bool:
    if name[0] == "t":
        return bool(np.array_equal(got, wanted))
    scale = np.max(np.abs(wanted), initial=1.0)
    return bool(np.all(np.abs(got - wanted) <= TOLERANCE * scale))


def shrink(lines: Sequence[Line], is_bad: Callable[[Sequence[Line]], bool]) -> list[Line]:
    """The program without the lines, and names to realize, that the failure does not need."""
    kept = list(lines)
    found = True
    while found:
        found = False
        for fewer in _smaller(kept):
            try:
                found = is_bad(fewer)
            except Exception:  # the oracle cannot run it
                continue
            if found:
                kept = fewer
                break
    return kept


def _smaller(lines: list[Line]) -> Iterator[list[Line]]:
    """Programs with one line less, the last first, or with one name less to realize."""
    for position in reversed(range(len(lines))):
        yield lines[:position] + lines[position + 1 :]
    for position, line in enumerate(lines):
        names = line.numpy.split(", ") if ".realize(" in line.ours else []
        for name in names[1:] and names:
            rest = realizing([other for other in names if other != name])
            yield [*lines[:position], rest, *lines[position + 1 :]]


def script(lines: Sequence[Line], mode: Mode, device: str) -> str:
    """The program as text that runs and compares."""
    settings = f"DEVICE={(mode.device or device)!r}, NOOPT={not mode.has_opts}"
    body = []
    oracle = Oracle()
    for line in lines:
        oracle.run(line)
        body.append(line.ours)
        if mode.is_eager and oracle.names:
            body += [f"{name}.realize()" for name in oracle.names]
    for name, array in oracle.names.items():
        body.append(f"print({name!r}, {name}.tolist(), 'not', {array.tolist()})")
    header = ["from weft.support.settings import Context", "from weft.tensor import Tensor", ""]
    return "\n".join([*header, f"with Context({settings}):", *("    " + each for each in body)])


def check(lines: Sequence[Line], modes: Sequence[str], device: str) -> tuple[str, str] | None:
    """The first mode in which a program goes wrong, and how."""
    for name in modes:
        problem = try_difference(lines, MODES[name], device)
        if problem is not None:
            return name, problem
    return None


def report(number: int, lines: Sequence[Line], name: str, problem: str, device: str) -> None:
    """Print a failing program, as small as it gets."""
    mode = MODES[name]
    small = shrink(lines, lambda fewer: try_difference(fewer, mode, device) is not None)
    print(f"program {number}, {name}: {problem}")
    print(f"shrunk to {len(small)} of {len(lines)} lines: {try_difference(small, mode, device)}")
    print(script(small, mode, device), flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    parser.add_argument("--device", default="CPU")
    parser.add_argument("--modes", default=",".join(MODES), help="some of " + ", ".join(MODES))
    options = parser.parse_args(arguments)
    print(f"seed {options.seed}", flush=True)
    wrong = 0
    for number in range(options.count):
        lines = Generator(options.seed * 1_000_003 + number).lines
        found = check(lines, options.modes.split(","), options.device)
        if found is not None:
            wrong += 1
            report(number, lines, *found, options.device)
        if number % 100 == 99:
            sweep()
    print(f"{options.count} programs, {wrong} differences, seed {options.seed}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
