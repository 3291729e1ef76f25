"""`weft diff`: the first tensor that two runs of a program disagree on, by the user's line.

The program runs twice, each time in a process of its own, with other settings: another device,
dtype or set of opts. The first run writes every tensor that is realized to a folder, the second
one compares, and stops at the first that is beyond the bound. Both then go to that tensor once
more and materialize what each line on the way to it computes, so that the line that parts is named
and not only the one that asked.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import numpy as np

from weft.ir.ops import Op, mask_of
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp
from weft.ir.walk import topological
from weft.tensor.realize import WATCHES
from weft.tensor.storage import Storage
from weft.tensor.tensor import Tensor

Array = np.ndarray[Any, Any]
_WRITES: Final = mask_of(Op.AFTER, Op.STORE, Op.PARAM, Op.CALL)
_LINES: Final = "lines"
_FOUND: Final = 3  # the status of a run that stopped at a difference


class Seen(NamedTuple):
    """A tensor of a run: where it comes from, and its value."""

    line: str
    text: str
    dtype: str
    array: Array


@dataclass
class Difference:
    """A tensor that two runs disagree on; `number` counts those that were realized."""

    number: int
    line: str
    text: str
    dtype: str
    shape: tuple[int, ...]
    at: tuple[int, ...] = ()
    values: tuple[float, float] = (0.0, 0.0)
    error: float = 0.0  # the greatest difference, over the greatest magnitude
    reason: str = ""


def compare(number: int, left: Seen, right: Seen, bound: float) -> Difference | None:
    """How two tensors differ, if by more than the bound.

    The bound is of the greatest difference over the greatest magnitude; integers are equal.
    """
    found = Difference(number, right.line, right.text, right.dtype, right.array.shape)
    if (left.line, left.array.shape) != (right.line, right.array.shape):
        found.reason = f"the first run realizes {left.array.shape} of {left.line} here"
        return found
    if not left.array.size:
        return None
    exact = left.array.dtype.kind not in "fc" and right.array.dtype.kind not in "fc"
    x, y = left.array.astype(np.float64), right.array.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.asarray(np.abs(x - y))
    apart[(x == y) | (np.isnan(x) & np.isnan(y))] = 0.0
    apart[np.isnan(apart)] = np.inf  # a number here, and none there
    finite = np.abs(x[np.isfinite(x)])
    scale = float(finite.max()) if finite.size else 0.0
    found.error = float(apart.max()) / (scale or 1.0)
    if found.error <= (0.0 if exact else bound):
        return None
    found.at = tuple(int(i) for i in np.unravel_index(int(apart.argmax()), apart.shape))
    found.values = float(x[found.at]), float(y[found.at])
    return found


class Recorder:
    """In a run: writes what is realized to a folder, or compares it with what is there.

    With `stop_at`, the run ends before that tensor, and the lines of its graph are written or
    compared instead.
    """

    def __init__(self, folder: Path, compares: bool, bound: float, stop_at: int | None) -> None:
        self._folder, self._compares, self._bound = folder, compares, bound
        self._stop_at = stop_at
        self._count = 0
        self._is_busy = False
        self._places: list[tuple[str, str]] = []

    def before(self, storages: Sequence[Storage]) -> None:
        if self._is_busy:
            return
        self._places = [_place(each.uop) for each in storages]
        if self._stop_at is not None and self._count + len(storages) > self._stop_at:
            self._is_busy = True
            self._see_lines([each.uop for each in storages])
            raise SystemExit(0)

    def after(self, storages: Sequence[Storage]) -> None:
        if self._is_busy:
            return
        self._is_busy = True
        try:
            for (line, text), storage in zip(self._places, storages, strict=True):
                node = storage.uop
                seen = Seen(line, text, node.dtype.name, np.array(Tensor(node).numpy()))
                if self._stop_at is None:
                    self._see(str(self._count), self._count, seen)
                self._count += 1
        finally:
            self._is_busy = False

    def _see_lines(self, roots: Sequence[UOp]) -> None:
        """What each line on the way to some values computes, in order."""
        last: dict[str, UOp] = {}
        for node in topological(*roots):
            if node.line is not None and not node.ops & _WRITES and node.dtype.name != "void":
                place = f"{_place(node)[0]} {shape_of(node)}"
                last.pop(place, None)  # by the last node of the line
                last[place] = node
        tensors = [Tensor(node).contiguous() for node in last.values() if node.op != Op.BUFFER]
        nodes = [node for node in last.values() if node.op != Op.BUFFER]
        if tensors:
            Tensor.realize(*tensors)
        for number, (node, tensor) in enumerate(zip(nodes, tensors, strict=True)):
            seen = Seen(*_place(node), node.dtype.name, np.array(tensor.numpy()))
            self._see(f"{_LINES}{number}", number, seen)

    def _see(self, name: str, number: int, seen: Seen) -> None:
        values, facts = self._folder / f"{name}.npy", self._folder / f"{name}.json"
        if not self._compares:
            np.save(values, seen.array)
            facts.write_text(json.dumps(seen[:3]))
            return
        if not values.exists():  # the first run realized fewer
            found = Difference(number, *seen[:3], seen.array.shape)
            found.reason = "the first run realizes nothing here"
            self._stop(found)
            return
        line, text, dtype = json.loads(facts.read_text())
        left = Seen(line, text, dtype, np.load(values))
        found_here = compare(number, left, seen, self._bound)
        if found_here is not None:
            self._stop(found_here)

    def _stop(self, found: Difference) -> None:
        (self._folder / "found.json").write_text(json.dumps(asdict(found)))
        raise SystemExit(_FOUND)

    def count(self) -> int:
        """How many tensors were seen."""
        return self._count


def _place(node: UOp) -> tuple[str, str]:
    """The line that made a value, and its text."""
    while node.line is None and node.src:
        node = node.src[0]
    line = node.line
    return ("", "") if line is None else (f"{line.file}:{line.line}", line.text)


class Outcome(NamedTuple):
    """What came of a comparison: how many tensors, the first beyond the bound, its first line."""

    tensors: int
    found: Difference | None
    inside: Difference | None


def diff_program(
    program: Sequence[str], left: dict[str, str], right: dict[str, str], bound: float
) -> Outcome:
    """Run a program with two sets of environment variables, and compare their tensors."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        _run(program, left, folder, compares=False, bound=bound)
        found = _run(program, right, folder, compares=True, bound=bound)
        count = int((folder / "count").read_text())
        inside = None
        if found is not None and not found.reason:
            _run(program, left, folder, compares=False, bound=bound, stop_at=found.number)
            inside = _run(program, right, folder, True, bound, stop_at=found.number)
        return Outcome(count, found, inside)


def _run(
    program: Sequence[str],
    variables: dict[str, str],
    folder: Path,
    compares: bool,
    bound: float,
    stop_at: int | None = None,
) -> Difference | None:
    task = {"folder": str(folder), "compares": compares, "bound": bound, "stop_at": stop_at}
    found = folder / "found.json"
    found.unlink(missing_ok=True)
    packages = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    path = os.pathsep.join(filter(None, packages))
    environment = {**os.environ, **variables, "PYTHONPATH": path}
    command = [sys.executable, "-m", "weft.viz.diff", json.dumps(task), *program]
    # What the program prints goes to the errors (2), so that the finding stands alone.
    status = subprocess.run(command, env=environment, check=False, stdout=2).returncode
    if found.exists():
        fields = json.loads(found.read_text())
        made = Difference(**fields)
        made.shape, made.at = tuple(made.shape), tuple(made.at)
        return made
    if status:
        raise SystemExit(status)
    return None


def _child(task: dict[str, Any], program: Sequence[str]) -> int:
    """One run, in a process of its own."""
    from weft.support.run_program import run_program

    task["folder"] = Path(task["folder"])
    recorder = Recorder(**task)
    for seed in (random.seed, np.random.seed, Tensor.manual_seed):
        seed(0)
    WATCHES.append(recorder)
    status = run_program(program[0], program[1:])
    (task["folder"] / "count").write_text(str(recorder.count()))
    return status


if __name__ == "__main__":
    raise SystemExit(_child(json.loads(sys.argv[1]), sys.argv[2:]))
