"""`weft diff`: the first tensor that two runs of a program disagree on, by the user's line.

The program runs twice, each time in a process of its own, with other settings: another device,
dtype or set of opts. The first run writes every tensor that is realized to a folder, and what each
call of a jitted function returns and writes; the second one compares, and stops at the first that
is beyond the bound. Both then go there once more and materialize what each line on the way to it
computes, of a jitted function too, so that the line that parts is named and not only the one that
asked.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from weft.ir.ops import Op, mask_of
from weft.ir.shapes import shape_of
from weft.ir.uop import UOp
from weft.ir.walk import topological, try_line
from weft.support.settings import Context
from weft.support.source_line import SourceLine, user_line
from weft.tensor.jit.watched import WATCHES as CALL_WATCHES
from weft.tensor.jit.watched import tensors_of
from weft.tensor.realize import WATCHES as REALIZE_WATCHES
from weft.tensor.storage import Storage, waiting_storages
from weft.tensor.tensor import Tensor

if TYPE_CHECKING:
    from weft.tensor.jit.jit import Jit

Array = np.ndarray[Any, Any]
_WRITES: Final = mask_of(Op.AFTER, Op.STORE, Op.PARAM, Op.CALL)
_LINES: Final = "lines"
_FOUND: Final = 3  # the status of a run that stopped at a difference


class Seen(NamedTuple):
    """A tensor of a run: what it is, where it comes from, and its value."""

    what: str
    line: str
    text: str
    dtype: str
    array: Array


@dataclass
class Difference:
    """A tensor that two runs disagree on; `event` is the realize or the call that it is of."""

    event: int
    what: str
    line: str
    text: str
    dtype: str
    shape: tuple[int, ...]
    at: tuple[int, ...] = ()
    values: tuple[float, float] = (0.0, 0.0)
    error: float = 0.0  # the greatest difference, over the greatest magnitude
    reason: str = ""

    @property
    def is_of_a_call(self) -> bool:
        return " call " in self.what


def compare(event: int, left: Seen, right: Seen, bound: float) -> Difference | None:
    """How two tensors differ, if by more than the bound.

    The bound is of the greatest difference over the greatest magnitude; integers are equal.
    """
    found = Difference(event, *right[:4], right.array.shape)
    if (left.line, left.array.shape) != (right.line, right.array.shape):
        where = f" of {left.line}" if left.line else ""
        found.reason = f"the first run has {list(left.array.shape)}{where} here"
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
    """In a run: writes what it computes to a folder, or compares it with what is there.

    An event is a realize, or a call of a jitted function. With `stop_at`, the run ends at that
    event, and the lines of its graph are written or compared instead.
    """

    def __init__(self, folder: Path, compares: bool, bound: float, stop_at: int | None) -> None:
        self._folder, self._compares, self._bound = folder, compares, bound
        self._stop_at = stop_at
        self._count = self._event = 0
        self._calls: dict[str, int] = {}
        self._is_busy = self._is_taken_apart = False
        self._keys: list[tuple[str, str]] = []

    # Values that are realized.

    def before(self, storages: Sequence[Storage]) -> None:
        if self._is_taken_apart and not self._is_busy:
            self._see_lines([each.uop for each in storages])
        if self._is_busy or self._is_taken_apart:
            return
        self._event += 1
        self._keys = [_memory_of(each.uop) for each in storages]
        if self._stop_at == self._event:
            self._see_lines([each.uop for each in storages])
            raise SystemExit(0)

    def after(self, storages: Sequence[Storage]) -> None:
        if self._is_busy or self._is_taken_apart:
            return
        for number, (key, storage) in enumerate(zip(self._keys, storages, strict=True)):
            self._see_value(f"{self._event}.{number}", "a tensor", key, storage.uop)

    # Calls of jitted functions.

    def before_call(self, jitted: Jit, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self._is_taken_apart:
            return
        self._event += 1
        if self._stop_at == self._event:
            self._take_apart(jitted, args, kwargs)
            raise SystemExit(0)
        self._is_busy = True  # devices differ in what they realize on the way

    def after_call(
        self, jitted: Jit, results: Sequence[Tensor], written: Sequence[Storage]
    ) -> None:
        if self._is_taken_apart:
            return
        name = getattr(jitted.function, "__name__", "a function")
        number = self._calls[name] = self._calls.get(name, 0) + 1
        here = _words(user_line())
        for position, tensor in enumerate(results):
            which = "the result" if len(results) == 1 else f"result {position + 1}"
            what = f"{which} of call {number} of {name}"
            self._see_value(f"{self._event}.r{position}", what, here, tensor.uop)
        for position, storage in enumerate(written):
            what = f"what call {number} of {name} wrote"
            self._see_value(f"{self._event}.w{position}", what, here, storage.uop)
        self._is_busy = False

    def _take_apart(self, jitted: Jit, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Run a jitted function line by line, and see what each of its lines computes."""
        self._is_taken_apart = True
        with Context(JIT=0):
            results = tensors_of(jitted.function(*args, **kwargs))
            waiting = [storage.uop for storage in waiting_storages()]
            self._see_lines([*(tensor.uop for tensor in results), *waiting])

    # What is seen.

    def _see_value(self, name: str, what: str, key: tuple[str, str], node: UOp) -> None:
        was_busy, self._is_busy = self._is_busy, True
        try:
            if self._stop_at is None:
                array = np.array(Tensor(node).numpy())
                self._see(name, Seen(what, *key, node.dtype.name, array))
            self._count += 1
        finally:
            self._is_busy = was_busy

    def _see_lines(self, roots: Sequence[UOp]) -> None:
        """What each line on the way to some values computes, in order."""
        self._is_busy = True
        last: dict[str, UOp] = {}
        for node in topological(*roots):
            if node.line is not None and not node.ops & _WRITES and node.dtype.name != "void":
                key = f"{_memory_of(node)[0]} {shape_of(node)}"
                last.pop(key, None)  # by the last node of the line
                last[key] = node
        nodes = {key: node for key, node in last.items() if node.op != Op.BUFFER}
        tensors = [Tensor(node).contiguous() for node in nodes.values()]
        if tensors:
            Tensor.realize(*tensors)
        for (key, node), tensor in zip(nodes.items(), tensors, strict=True):
            seen = Seen("a line", *_memory_of(node), node.dtype.name, np.array(tensor.numpy()))
            self._see(f"{_LINES}{blake2b(key.encode(), digest_size=12).hexdigest()}", seen)
        self._is_busy = False

    def _see(self, name: str, seen: Seen) -> None:
        values, facts = self._folder / f"{name}.npy", self._folder / f"{name}.json"
        if not self._compares:
            np.save(values, seen.array)
            facts.write_text(json.dumps(seen[:4]))
            return
        if not values.exists():  # the first run has fewer
            # A call that is not jitted does not say what it wrote, and a line may be in one alone.
            if ".w" in name or name.startswith(_LINES):
                return
            found = Difference(self._event, *seen[:4], seen.array.shape)
            found.reason = "the first run computes nothing here"
            self._stop(found)
            return
        what, line, text, dtype = json.loads(facts.read_text())
        left = Seen(what, line, text, dtype, np.load(values))
        found_here = compare(self._event, left, seen, self._bound)
        if found_here is not None:
            self._stop(found_here)

    def _stop(self, found: Difference) -> None:
        (self._folder / "found.json").write_text(json.dumps(asdict(found)))
        raise SystemExit(_FOUND)

    def count(self) -> int:
        """How many tensors were seen."""
        return self._count


def _memory_of(node: UOp) -> tuple[str, str]:
    """The line that made a value, and its text."""
    return _words(try_line(node))


def _words(line: SourceLine | None) -> tuple[str, str]:
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
            _run(program, left, folder, compares=False, bound=bound, stop_at=found.event)
            inside = _run(program, right, folder, True, bound, stop_at=found.event)
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
    REALIZE_WATCHES.append(recorder)
    CALL_WATCHES.append(recorder)
    status = run_program(program[0], program[1:])
    (task["folder"] / "count").write_text(str(recorder.count()))
    return status


if __name__ == "__main__":
    raise SystemExit(_child(json.loads(sys.argv[1]), sys.argv[2:]))
