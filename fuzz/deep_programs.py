"""Random trees of reductions and contractions with their gradients, compared with float64.

    python -m fuzz.deep_programs --count 1000 --seed 1 --device CPU --size middle

Each program (`fuzz.deep_trees`) runs in several ways; PyTorch says what it means, or the
interpreter where PyTorch is not installed. One that fails is shrunk and printed.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from fuzz import programs
from fuzz.deep_libraries import HAS_TORCH, TorchLibrary, WeftLibrary
from fuzz.deep_trees import LARGE, MIDDLE, SMALL, Tree
from fuzz.programs import Mode
from weft.ir.uop import sweep
from weft.support.settings import Context
from weft.tensor import Tensor

MODES: Final = {**programs.MODES, "one": Mode(threads=1), "two": Mode(threads=2)}
SIZES: Final = {"small": SMALL, "middle": MIDDLE, "large": LARGE}
# What may be lost, of the greatest element of the program: a wrong value is off by more.
TOLERANCE: Final = {"float32": 2e-4, "float64": 1e-9, "rounded": 0.06}
LARGEST: Final = 1e4
_NAME: Final = re.compile(r"\bt\d+\b")

Arrays = dict[str, Any]


class Program(NamedTuple):
    """Lines, the names to compare, and the dtype of the leaves."""

    lines: tuple[str, ...]
    outputs: tuple[str, ...]
    dtype: str

    @property
    def tolerance(self) -> float:
        is_rounded = any("lib.rounded" in line for line in self.lines)
        return TOLERANCE["rounded" if is_rounded else self.dtype]


def draw(seed: int, size: str) -> Program:
    tree = Tree(seed, SIZES[size])
    # In float64 an error shows in the ninth digit; float32 has the widest vectors.
    dtype = "float64" if seed % 4 == 0 and not tree.is_rounded else "float32"
    return Program(tuple(tree.lines), tuple(tree.outputs), dtype)


class Wanted(NamedTuple):
    """What the outputs are, in float64, and how far float32 is from that at best."""

    arrays: Arrays
    lost: dict[str, float]

    def slack(self, program: Program, name: str) -> float:
        lost = 16 * self.lost[name] if program.dtype == "float32" else 0.0
        return program.tolerance * self.scale(name) + lost

    def scale(self, name: str) -> float:
        return max(1.0, float(np.max(np.abs(self.arrays[name]), initial=0.0)))

    def is_tame(self) -> bool:
        """Whether all values are finite, and float32 has digits left."""
        is_finite = all(np.all(np.abs(array) < LARGEST) for array in self.arrays.values())
        return is_finite and all(self.lost[name] < 1e-3 * self.scale(name) for name in self.lost)


def oracle(program: Program) -> Wanted:
    """What a program means, by PyTorch or by the interpreter."""
    if HAS_TORCH:
        exact, near = (_by_torch(program, dtype) for dtype in ("float64", "float32"))
        is_rounded = program.tolerance == TOLERANCE["rounded"]
        lost = {
            name: 0.0 if is_rounded else float(np.max(np.abs(near[name] - exact[name]), initial=0))
            for name in program.outputs
        }
        return Wanted(exact, lost)
    with Context(DEVICE="PYTHON", CACHE=False):
        arrays = run(program._replace(dtype="float64"), is_eager=False)
    return Wanted(arrays, dict.fromkeys(arrays, 0.0))


def _by_torch(program: Program, dtype: str) -> Arrays:
    names: Arrays = {}
    exec("\n".join(program.lines), {"lib": TorchLibrary(dtype)}, names)
    return {name: names[name].detach().numpy().astype("float64") for name in program.outputs}


def run(program: Program, is_eager: bool) -> Arrays:
    """What Weft computes for the outputs, on the device that is set."""
    names: Arrays = {}
    scope = {"lib": WeftLibrary(program.dtype)}
    for line in program.lines:
        exec(line, scope, names)
        if is_eager:
            names[line.split(" = ")[0]].realize()
    results = [names[name] for name in program.outputs]
    Tensor.realize(*results)
    return {name: names[name].numpy().astype("float64") for name in program.outputs}


def try_difference(program: Program, wanted: Wanted, mode: Mode, device: str) -> str | None:
    """What a program does that it should not, or None."""
    scope: dict[str, Any] = {"THREADS": mode.threads} if mode.threads else {}
    scope |= {"DEVICE": mode.device or device, "NOOPT": not mode.has_opts}
    scope |= {"JOIN": mode.join, "FUSE_PRODUCTS": mode.fuse}
    with Context(**scope, CACHE=False, CHECK="memory"):
        try:
            found = run(program, mode.is_eager)
        except Exception as error:
            return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    for name in program.outputs:
        got, right = found[name], wanted.arrays[name]
        if got.shape != right.shape:
            return f"{name} has shape {got.shape}, not {right.shape}"
        apart = np.abs(got - right)
        if not np.all(apart <= wanted.slack(program, name)):
            scale = wanted.scale(name)
            return f"{name} is off by {np.max(apart):.3g}, and its greatest element is {scale:.3g}"
    return None


def is_bad(program: Program, mode: Mode, device: str) -> bool:
    """Whether a program goes wrong; one whose lines do not fit any more does not."""
    try:
        wanted = oracle(program)
    except Exception:
        return False
    return wanted.is_tame() and try_difference(program, wanted, mode, device) is not None


def shrink(program: Program, mode: Mode, device: str) -> Program:
    """The program with leaves instead of what the failure does not need."""
    shapes = shapes_of(program)
    found = True
    while found:
        found = False
        for smaller in _smaller(program, shapes):
            if is_bad(smaller, mode, device):
                program, found = smaller, True
                break
    return program


def shapes_of(program: Program) -> dict[str, tuple[int, ...]]:
    names: Arrays = {}
    exec("\n".join(program.lines), {"lib": WeftLibrary(program.dtype)}, names)
    return {name: tensor.shape for name, tensor in names.items()}


def _smaller(program: Program, shapes: dict[str, tuple[int, ...]]) -> Iterator[Program]:
    """Programs with an output less, or with a line replaced by a leaf or by an operand."""
    outputs = program.outputs
    for position in range(len(outputs)) if len(outputs) > 1 else ():
        yield _without_dead(program, (*outputs[:position], *outputs[position + 1 :]))
    for position, line in enumerate(program.lines):
        name, text = line.split(" = ", 1)
        operands = [other for other in _NAME.findall(text) if shapes[other] == shapes[name]]
        new = [f"{operand} * 1.0" for operand in operands]
        if not text.startswith("lib.leaf"):
            new.insert(0, f"lib.leaf({shapes[name]}, {position})")
        for each in new:
            if each != text:
                replaced = f"{name} = {each}"
                lines = (*program.lines[:position], replaced, *program.lines[position + 1 :])
                yield _without_dead(program._replace(lines=lines), outputs)


def _without_dead(program: Program, outputs: Sequence[str]) -> Program:
    """The lines that the outputs need."""
    needed, kept = set(outputs), []
    for line in reversed(program.lines):
        name, text = line.split(" = ", 1)
        if name in needed:
            needed.update(_NAME.findall(text))
            kept.append(line)
    return program._replace(lines=tuple(reversed(kept)), outputs=tuple(outputs))


def script(program: Program, mode: Mode, device: str) -> str:
    """The program as text that runs and prints by how much it is off."""
    return "\n".join(
        [
            "from fuzz.deep_programs import Program, oracle, try_difference",
            "from fuzz.programs import Mode",
            "",
            f"program = Program({program.lines!r}, {program.outputs!r}, {program.dtype!r})",
            f"print(try_difference(program, oracle(program), {mode!r}, {device!r}))",
        ]
    )


def report(number: int, program: Program, name: str, problem: str, device: str) -> None:
    """Print a failing program, as small as it gets."""
    mode = MODES[name]
    print(f"program {number}, {name}: {problem}", flush=True)
    small = shrink(program, mode, device)
    print(f"shrunk to {len(small.lines)} of {len(program.lines)} lines:")
    print("\n".join(small.lines))
    print(script(small, mode, device), flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    parser.add_argument("--device", default="CPU")
    parser.add_argument("--size", default="middle", choices=SIZES)
    parser.add_argument("--modes", default="lazy,eager,noopt,one,two")
    options = parser.parse_args(arguments)
    print(f"seed {options.seed}", flush=True)
    wrong = wild = 0
    for number in range(options.count):
        program = draw(options.seed * 1_000_003 + number, options.size)
        wanted = oracle(program)
        if not wanted.is_tame():
            wild += 1
            continue
        for name in options.modes.split(","):
            problem = try_difference(program, wanted, MODES[name], options.device)
            if problem is not None:
                wrong += 1
                report(number, program, name, problem, options.device)
                break
        if number % 20 == 19:
            sweep()
    compared = options.count - wild
    print(f"{compared} programs, {wrong} differences, {wild} too large, seed {options.seed}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
