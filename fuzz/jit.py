"""Random programs with jitted functions, which must do what NumPy does line by line.

    python -m fuzz.jit --count 5000 --seed 1 --device CPU

Each program (`fuzz.jit_lines`) runs with its functions jitted, with every line realized and no
JIT, with `CHECK=jit`, and with each function as one native call; where no other check is on,
kernels run between redzones (`CHECK=memory`). One that fails is shrunk and printed as a script
that runs. Functions write, draw, take gradients and steps of an optimizer, call each other, raise,
donate their arguments, and take numbers, symbolic sizes, trees and other shapes than before.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from fuzz.jit_lines import JitGenerator
from fuzz.jit_oracle import Box, JitOracle, Pair, Stop
from fuzz.jit_steps import MOST_SIZE
from fuzz.program_oracle import Line
from fuzz.subject import Subject
from weft.ir.build import variable
from weft.nn.optim import SGD
from weft.support.settings import Context
from weft.tensor import Tensor
from weft.tensor.jit.jit import jit
from weft.tensor.trace.function import function

SIZE: Final = variable("size", 1, MOST_SIZE)
_KNOWN: Final = (Tensor, SGD, Box, Pair, Stop)


class Mode(NamedTuple):
    """A way to run a program; a device of None is the one that is tested."""

    device: str | None = None
    is_jitted: bool = True
    is_eager: bool = False
    check: str = "memory"


MODES: Final = {
    "jit": Mode(),
    "eager": Mode(is_jitted=False, is_eager=True),
    "python": Mode(device="PYTHON"),
    "check": Mode(check="jit"),
    "native": Mode(check=""),
}


def try_difference(lines: Sequence[Line], mode: Mode, device: str) -> str | None:
    """What a program does that NumPy does not, or None."""
    wanted = JitOracle(list(lines)).names
    home, away = _addresses(mode, device)
    scope: dict[str, Any] = {each.__name__: each for each in _KNOWN}
    scope |= {"jit": jit, "function": function, "size": SIZE, "home": home, "away": away}
    settings = {"DEVICE": home, "JIT": mode.is_jitted, "CHECK": mode.check}
    with Context(**settings, CACHE=False), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Tensor.manual_seed(0)  # as the oracle starts, for a program that lost its own seed
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


def _addresses(mode: Mode, device: str) -> tuple[str, str]:
    """The device of a program, and another one."""
    home = mode.device or device
    return home, "CPU:1" if home == "CPU" else "CPU"


def script(lines: Sequence[Line], mode: Mode, device: str) -> str:
    """The program as text that runs and compares."""
    body = "\n".join(line.ours for line in lines)
    names = JitOracle(list(lines)).names
    shown = "\n".join(
        f"print({name!r}, {name}.tolist(), 'not', {array.tolist()})"
        for name, array in names.items()
    )
    home, away = _addresses(mode, device)
    used = f"DEVICE={home} JIT={mode.is_jitted:d} CHECK={mode.check}"
    imports = "from weft import Tensor, Variable, function, jit\nfrom weft.nn.optim import SGD"
    imports += "\nfrom fuzz.jit_oracle import Box, Pair, Stop"
    header = f"{imports}\nsize, home, away = Variable{SIZE.arg}, {home!r}, {away!r}"
    return f"# {used}\n{header}\n{body}\n{shown}"


JITTED: Final = Subject(
    __doc__, 1000, MODES, lambda seed: JitGenerator(seed).lines, try_difference, script
)
check, main = JITTED.check, JITTED.main

if __name__ == "__main__":
    sys.exit(main())
