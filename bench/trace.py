"""What traces and profiles cost: nothing where they are off, little where they are on."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.contest import Contest, Figures, Line, Subject, at_most

SUBJECT = Subject("trace", peer=None)
STEPS = 8  # in a row
ROOT = Path(__file__).resolve().parents[1]
# Those who ask whether a trace is on; without them nobody does.
ASKED = ("current", "wants_graphs")
PROGRAM = """
import sys
from time import process_time
sys.path.insert(0, "examples")
import char_gpt
from weft import Tensor
text = char_gpt.Text("to be or not to be, that is the question. " * 200)
model = char_gpt.GPT(len(text.symbols), 64, 128, 4, 4)
step = char_gpt.trainer(model, 0.003, 100)
batch = [Tensor(part) for part in next(char_gpt.batches(text.train, 16, 64, seed=0))]
start = process_time()
step(*batch).item()
print(process_time() - start)
"""


@contextmanager
def nobody_asks() -> Iterator[None]:
    """A scope in which no module can ask whether a trace is on."""
    found = []
    for module in list(sys.modules.values()):
        for name in ASKED:
            if getattr(module, "__name__", "").startswith("weft.") and name in vars(module):
                found.append((module, name, getattr(module, name)))
    try:
        for module, name, _ in found:
            setattr(module, name, lambda: None)
        yield
    finally:
        for module, name, function in found:
            setattr(module, name, function)


@SUBJECT.benchmark(
    "off",
    Line("a small realize", "us"),
    Line("the same where nobody asks", "us"),
    Line("cost", "x", at_most(1.02), of=("a small realize", "the same where nobody asks")),
)
class Off(Contest):
    """A trace that is off, beside code that cannot have one."""

    def __init__(self, has_peer: bool) -> None:
        super().__init__(has_peer)
        from weft import Tensor

        self._x = Tensor.ones(64).contiguous().realize()
        self._time()

    def _time(self) -> float:
        start = time.perf_counter()
        for _ in range(20):
            (self._x + 1).realize()
        return (time.perf_counter() - start) / 20 * 1e6

    def weft(self) -> Figures:
        off, without = [], []
        for _ in range(60):  # both in short spells, so that a slow one of the machine hits both
            off.append(self._time())
            with nobody_asks():
                without.append(self._time())
        return {"a small realize": min(off), "the same where nobody asks": min(without)}


@SUBJECT.benchmark(
    "on",
    Line("GPT, first step", "s"),
    Line("GPT, first step with VIZ=1", "s"),
    Line("cost", "x", at_most(2), of=("GPT, first step with VIZ=1", "GPT, first step")),
    rounds=2,
)
class On(Contest):
    """Compiling the step of the GPT example with a trace and without, in processor time."""

    def weft(self) -> Figures:
        return {"GPT, first step": _first(False), "GPT, first step with VIZ=1": _first(True)}


def _first(is_traced: bool) -> float:
    with TemporaryDirectory() as folder:
        os.symlink(ROOT / "examples", Path(folder) / "examples")
        variables = {"WEFT_CACHE": "0", "PYTHONPATH": str(ROOT), "VIZ": str(int(is_traced))}
        command = [sys.executable, "-c", PROGRAM]
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, **variables},
            check=True,
            capture_output=True,
            text=True,
        )
    return float(done.stdout)


@SUBJECT.benchmark(
    "profile",
    Line("a jitted step", "ms"),
    Line("the same profiled", "ms"),
    Line("cost", "x", at_most(1.1), of=("the same profiled", "a jitted step")),
    Line("not in its kernels", "%", at_most(10, "%")),
    Line("not in the parts of the profile", "%", at_most(1, "%")),
)
class Profiled(Contest):
    """A jitted training step that is profiled, and how much of its wall time no kernel has."""

    def __init__(self, has_peer: bool) -> None:
        super().__init__(has_peer)
        sys.path.insert(0, str(ROOT / "examples"))
        import char_gpt

        from weft import Tensor

        text = char_gpt.Text("to be or not to be, that is the question. " * 200)
        model = char_gpt.GPT(len(text.symbols), 64, 128, 2, 4)
        self._step = char_gpt.trainer(model, 0.003, 100)
        pieces = next(char_gpt.batches(text.train, 16, 64, seed=0))
        self._batch = [Tensor(part).realize() for part in pieces]
        for _ in range(3):
            self._step(*self._batch).item()

    def _steps(self) -> float:
        start = time.perf_counter()
        for _ in range(STEPS):
            self._step(*self._batch).item()
        return (time.perf_counter() - start) / STEPS

    def weft(self) -> Figures:
        from weft.viz.profile import profile

        plain = self._steps()
        with profile() as found:
            self._step(*self._batch).item()  # what a trace says once is said here
            profiled = self._steps()
        parts = sum(us for _, us, _ in found.parts())
        (row,) = found.calls
        usual = row.usual
        return {
            "a jitted step": plain * 1e3,
            "the same profiled": profiled * 1e3,
            "not in its kernels": 100 * (usual.us - usual.kernels) / usual.us,
            "not in the parts of the profile": 100 * abs(found.wall - parts) / found.wall,
        }
