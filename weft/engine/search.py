"""Search: candidates of a kernel are measured, and the best one is remembered.

`compile.py` asks for the opts of a kernel where BEAM is set. The search starts from what the
heuristic chooses and walks to better neighbors, BEAM of them at a time. Candidates are compiled
side by side here and run in another process, which may hang or crash without harm; each must give
the results of the default. A candidate wins only if it is faster in each round of a second,
alternating measurement, so the result is never worse than the default beyond noise. Results are
kept on disk by the content of the kernel, the target and the version of the compiler.
"""

from __future__ import annotations

import time
from typing import Final, NamedTuple

from weft.codegen.choose.candidates import Opts, neighbors
from weft.codegen.choose.heuristic import choose_opts
from weft.codegen.generate import before_opts, generate
from weft.codegen.opts.text import from_json, to_json
from weft.engine.search_process import Runner
from weft.engine.stored.program import pack
from weft.ir.program import Program
from weft.ir.text import dump
from weft.ir.uop import UOp
from weft.runtime.device import Device
from weft.support.cache import DiskCache
from weft.support.code_version import COMPILER, code_version
from weft.support.errors import InternalError, UsageError
from weft.support.progress import Progress
from weft.support.settings import Context as Settings
from weft.support.settings import cache_key, settings
from weft.support.workers import Workers

_CACHE: Final = DiskCache("opts", 2)
# A candidate has to be this much faster than the default to replace it.
GAIN: Final = 0.97
# How often it has to be, one after the other: on a busy machine a single win is luck.
ROUNDS: Final = 3


class Found(NamedTuple):
    """The best opts, their seconds and those of the default, and how many were measured."""

    opts: Opts
    seconds: float
    default: float
    measured: int
    refused: int  # wrong results, crashes and time-outs

    @property
    def keeps_default(self) -> bool:
        """Whether nothing was found that is faster."""
        return self.seconds == self.default


# What this process has searched for, by the name of the kernel.
FINDINGS: Final[list[tuple[str, Found]]] = []


def best_opts(kernel: UOp, device: Device, width: int) -> Opts:
    """The opts of a kernel, from the disk or by a search of this width."""
    key = _disk_key(kernel, device, width)
    stored = _CACHE.get(key)
    if stored is not None:
        return from_json(stored.decode())
    found = search(kernel, device, width, settings.BEAM_SECONDS)
    FINDINGS.append((kernel.arg[0], found))
    _CACHE.put(key, to_json(found.opts).encode())
    return found.opts


def _disk_key(kernel: UOp, device: Device, width: int) -> str:
    """All that the result of a search depends on, but for what else the machine did."""
    target, versions = device.target, (device.compiler, code_version((*COMPILER, "engine")))
    asked = (width, settings.BEAM_SECONDS, cache_key())
    return repr((dump(kernel), target.name, target.key, versions, asked))


def search(kernel: UOp, device: Device, width: int, seconds: float) -> Found:
    """Walk from the default to better candidates until none is found or the time is over."""
    return Search(kernel, device, width, time.monotonic() + seconds).run()


class Search:
    """One search: what was measured so far, and the program of each candidate."""

    def __init__(self, kernel: UOp, device: Device, width: int, end: float) -> None:
        self.kernel, self.device, self.width, self.end = kernel, device, width, end
        self.shaped = before_opts(kernel, device.target)
        self.default = choose_opts(self.shaped, device.target)[0]
        self.measured: dict[Opts, float] = {}
        self.programs: dict[Opts, bytes] = {}
        self.refused = 0
        self.bar = Progress(f"searching {kernel.arg[0]}", unit="candidates")

    def run(self) -> Found:
        with self.bar, Runner(self.device.name, self.kernel) as runner:
            self.measure([self.default], runner)
            if self.default not in self.measured:  # not even that runs there: leave it alone
                return Found(self.default, 0.0, 0.0, 0, self.refused)
            beam = [self.default]
            while time.monotonic() < self.end:
                near = [n for r in beam for n in neighbors(self.shaped, r, self.device.target)]
                fresh = [r for r in dict.fromkeys(near) if r not in self.programs]
                best = min(self.measured.values())
                self.measure(fresh, runner)
                if min(self.measured.values()) >= best:
                    break
                beam = sorted(self.measured, key=self.measured.__getitem__)[: self.width]
            return self.verdict(runner)

    def measure(self, candidates: list[Opts], runner: Runner) -> None:
        """Compile candidates side by side and run them one by one while time is left."""
        count = self.device.compile_threads
        with Workers(count) as workers:
            for start in range(0, len(candidates), 2 * count):
                if time.monotonic() > self.end and self.measured:
                    return
                some = candidates[start : start + 2 * count]
                waiting = [(r, workers.submit(self.compiled, self.generated(r))) for r in some]
                for opts, program in waiting:
                    self.programs[opts] = program.result()
                    found = runner.measure(self.programs[opts])
                    if found is None:
                        self.refused += 1
                    else:
                        self.measured[opts] = found
                        best = min(self.measured.values())
                        self.bar.set_postfix(best=f"{best * 1e6:.1f} us")
                    self.bar.advance()

    def generated(self, opts: Opts) -> Program | None:
        with Settings(BEAM=0):
            try:
                program = generate(self.kernel, self.device.target, opts)
                return program.with_source(self.device.render(program))
            except (UsageError, InternalError):
                return None

    def compiled(self, program: Program | None) -> bytes:
        return b"" if program is None else pack(program.with_binary(self.device.compile(program)))

    def verdict(self, runner: Runner) -> Found:
        """The best candidate if it beats the default in every round of a duel."""
        default, best = self.default, min(self.measured, key=self.measured.__getitem__)
        count = len(self.measured)
        times = {default: self.measured[default], best: self.measured[best]}
        if best != default:
            rounds = [self.duel(best, runner) for _ in range(ROUNDS)]
            times = {default: min(d for d, _ in rounds), best: min(b for _, b in rounds)}
            if not all(theirs < GAIN * ours for ours, theirs in rounds):
                best = default
        return Found(best, times[best], times[default], count, self.refused)

    def duel(self, candidate: Opts, runner: Runner) -> tuple[float, float]:
        """The seconds of the default and of a candidate, one after the other."""
        found = [runner.measure(self.programs[each]) for each in (self.default, candidate)]
        ours, theirs = (float("inf") if seconds is None else seconds for seconds in found)
        return ours, theirs
