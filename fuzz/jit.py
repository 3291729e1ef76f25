"""Random programs with jitted functions, which must do what NumPy does line by line.

    python -m fuzz.jit --count 5000 --seed 1 --device CPU

Each program (`fuzz.jit_lines`) runs with its functions jitted, with every line realized and no
JIT, and with `CHECK=jit`. One that fails is shrunk and printed as a script that runs.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from fuzz.jit_lines import JitGenerator, JitOracle
from fuzz.program_oracle import Line
from fuzz.programs import shrink
from weft.ir.uop import sweep
from weft.support.settings import Context
from weft.tensor import Tensor
from weft.tensor.jit import jit


class Mode(NamedTuple):
    """A way to run a program; a device of None is the one that is tested."""

    device: str | None = None
    is_jitted: bool = True
    is_eager: bool = False
    check: str = ""


MODES: Final = {
    "jit": Mode(),
    "eager": Mode(is_jitted=False, is_eager=True),
    "python": Mode(device="PYTHON"),
    "check": Mode(check="jit"),
}


def try_difference(lines: Sequence[Line], mode: Mode, device: str) -> str | None:
    """What a program does that NumPy does not, or None."""
    wanted = JitOracle(list(lines)).names
    scope: dict[str, Any] = {"Tensor": Tensor, "jit": jit}
    settings = {"DEVICE": mode.device or device, "JIT": mode.is_jitted, "CHECK": mode.check}
    with Context(**settings, CACHE=False), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            for line in lines:
                exec(line.ours, scope)
                if mode.is_eager:
                    for name, value in list(scope.items()):
                        if name[0] == "t":
                            value.realize()
            found = {name: scope[name].numpy() for name in wanted}
        except Exception as error:
            return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    for name, array in wanted.items():
        got = found[name]
        if got.shape != array.shape or not np.array_equal(got, array):
            return f"{name} is {got.tolist()}, not {array.tolist()}"
    return None


def script(lines: Sequence[Line], mode: Mode, device: str) -> str:
    """The program as text that runs and compares."""
    body = "\n".join(line.ours for line in lines)
    names = JitOracle(list(lines)).names
    shown = "\n".join(
        f"print({name!r}, {name}.tolist(), 'not', {array.tolist()})"
        for name, array in names.items()
    )
    used = f"DEVICE={mode.device or device} JIT={mode.is_jitted:d} CHECK={mode.check}"
    return f"# {used}\nfrom weft import Tensor, jit\n{body}\n{shown}"


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
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    parser.add_argument("--device", default="CPU")
    parser.add_argument("--modes", default=",".join(MODES), help="some of " + ", ".join(MODES))
    options = parser.parse_args(arguments)
    print(f"seed {options.seed}", flush=True)
    wrong = 0
    for number in range(options.count):
        lines = JitGenerator(options.seed * 1_000_003 + number).lines
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
