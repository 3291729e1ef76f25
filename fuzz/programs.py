"""Random tensor programs, run in several ways that must agree with NumPy.

    python -m fuzz.programs --count 2000 --seed 1 --device CPU

Each program (`fuzz.program_lines`) runs lazily, with every line realized at once, without opts, on
the interpreter, and with reductions that need each other always or never joined; kernels are
between redzones (`CHECK=memory`). One that fails is shrunk and printed as a script that runs.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from fuzz.program_lines import Generator
from fuzz.program_oracle import Array, Line, Oracle
from fuzz.subject import Subject
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
    join: str = ""
    fuse: str = ""


MODES: Final = {
    "lazy": Mode(),
    "eager": Mode(is_eager=True),
    "noopt": Mode(has_opts=False),
    "python": Mode(device="PYTHON"),
    "joined": Mode(join="always"),
    "apart": Mode(join="never"),
    "tiled": Mode(fuse="always"),
    "untiled": Mode(fuse="never"),
}


def try_difference(lines: Sequence[Line], mode: Mode, device: str) -> str | None:
    """What a program does that NumPy does not, or None."""
    wanted = Oracle(lines).names
    settings = {"DEVICE": mode.device or device, "NOOPT": not mode.has_opts, "JOIN": mode.join}
    with Context(**settings, FUSE_PRODUCTS=mode.fuse, CACHE=False, CHECK="memory"):
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


def script(lines: Sequence[Line], mode: Mode, device: str) -> str:
    """The program as text that runs and compares."""
    settings = f"DEVICE={(mode.device or device)!r}, NOOPT={not mode.has_opts}"
    settings += f", JOIN={mode.join!r}" if mode.join else ""
    settings += f", FUSE_PRODUCTS={mode.fuse!r}" if mode.fuse else ""
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


PROGRAMS: Final = Subject(
    __doc__, 2000, MODES, lambda seed: Generator(seed).lines, try_difference, script
)
check, main = PROGRAMS.check, PROGRAMS.main

if __name__ == "__main__":
    sys.exit(main())
