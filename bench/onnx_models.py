"""ONNX models beside onnxruntime: time to the first result, and of the calls after it.

    python -m bench.onnx_models [NAME or FILE.onnx ...] [--size NAME=N ...] [--calls N] [--check]
    python -m bench.onnx_models --first detector

Names are those of `bench/onnx_zoo.py`, all of them if none is given. Both sides run in one process
on two threads, alternately. A row has the seconds to the first result (onnxruntime's session and
first run beside it), the best call of each, the ratio, above 1 where Weft is faster, and the
greatest difference relative to the greatest number. On a machine that does other work the clock
says little: `--threads 1` measures processor time on one thread each, without threads that wait.
`--first` starts processes with an empty cache and with a full one. `--check` fails if a ratio is
below what the project promises.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bench.onnx_zoo import NAMES, QUANTIZED, Unavailable, inputs_of, model_file

SIZES = {"batch": 1, "sequence": 128, "height": 320, "width": 320}
# What is promised: the geometric mean of floats, each of them, and each that is quantized.
MEAN, LEAST, LEAST_QUANTIZED = 1.0, 0.7, 0.8
FIRST_COLD, FIRST_WARM = 3.0, 0.5


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", metavar="NAME")
    parser.add_argument("--folder", default="", help="where models are kept")
    parser.add_argument("--size", action="append", default=[], metavar="NAME=N")
    parser.add_argument("--calls", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--first", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    sizes = {name: int(value) for name, _, value in (each.partition("=") for each in options.size)}
    os.environ["THREADS"] = str(options.threads)  # before Weft reads it
    folder = Path(options.folder or Path(tempfile.gettempdir()) / "weft-onnx-models")
    ratios: dict[str, float] = {}
    if not options.first:
        print(
            "model | first s | onnxruntime | call ms | onnxruntime | ratio | of cpu time | error"
        )
    for name in options.models or NAMES:
        try:
            path = model_file(name, folder) if name in NAMES else Path(name)
        except Unavailable as reason:
            print(f"{name} | skipped: {reason}")
            continue
        if options.first:
            ratios[name] = first_results(name, path, {**SIZES, **sizes})
        else:
            ratios[name] = compare(name, path, {**SIZES, **sizes}, options)
    return summary(ratios, options.check) if not options.first else int(any(ratios.values()))


def summary(ratios: dict[str, float], is_checked: bool) -> int:
    """Print the means; 1 if a check fails."""
    faults = []
    for kind, least, names in (
        ("floats", LEAST, [name for name in ratios if name not in QUANTIZED]),
        ("quantized", LEAST_QUANTIZED, [name for name in ratios if name in QUANTIZED]),
    ):
        if not names:
            continue
        mean = math.prod(ratios[name] for name in names) ** (1 / len(names))
        print(f"{kind}: geometric mean {mean:.2f}, least {min(ratios[n] for n in names):.2f}")
        faults += [f"{name} is below {least}" for name in names if ratios[name] < least]
        faults += ["the mean is below 1"] if kind == "floats" and mean < MEAN else []
    print(*faults, sep="\n")
    return int(is_checked and bool(faults))


def compare(name: str, path: Path, sizes: dict[str, int], options: argparse.Namespace) -> float:
    """Print the row of a model; the ratio of its calls."""
    start = time.perf_counter()
    session = _session(path, options.threads)
    feeds = inputs_of(session, sizes)
    wanted = session.run(None, feeds)
    theirs_first = time.perf_counter() - start
    from weft.onnx import load
    from weft.tensor.tensor import Tensor

    start = time.perf_counter()
    model = load(path)
    tensors = {key: Tensor(array) for key, array in feeds.items()}
    ours = [value.numpy() for value in model.run(tensors).values()]
    first = time.perf_counter() - start

    def call() -> None:
        for value in model.run(tensors).values():
            value.numpy()

    clock, processor = alternately((call, lambda: session.run(None, feeds)), options.calls)
    ratio, share = clock[1] / clock[0], processor[1] / processor[0]
    print(
        f"{name} | {first:.2f} | {theirs_first:.2f} | {clock[0] * 1e3:.2f} | {clock[1] * 1e3:.2f}"
        f" | {ratio:.2f} | {share:.2f} | {difference(ours, wanted):.1e}",
        flush=True,
    )
    return share if options.threads == 1 else ratio


def _session(path: Path, threads: int) -> Any:
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(str(path), settings, providers=["CPUExecutionProvider"])


def difference(ours: list[Any], wanted: list[Any]) -> float:
    """The greatest difference of outputs of floats, relative to the greatest number of each."""
    return max(
        float(np.abs(a.astype(np.float64) - b).max() / max(np.abs(b).max(), 1e-9))
        for a, b in zip(ours, wanted, strict=True)
        if b.dtype.kind == "f" and b.size
    )


def alternately(
    sides: tuple[Callable[[], Any], ...], calls: int
) -> tuple[list[float], list[float]]:
    """The best seconds of each side by the clock and of processor time, called alternately."""
    clock, processor = [math.inf] * len(sides), [math.inf] * len(sides)
    for _ in range(calls):
        for number, side in enumerate(sides):
            start, busy = time.perf_counter(), time.process_time()
            side()
            clock[number] = min(clock[number], time.perf_counter() - start)
            processor[number] = min(processor[number], time.process_time() - busy)
    return clock, processor


_FIRST = """
import sys, time
import numpy as np
path, side, feeds = sys.argv[1], sys.argv[2], dict(np.load(sys.argv[3]))
if side == "weft":
    from weft.onnx import load
else:
    import onnxruntime
start, busy = time.perf_counter(), time.process_time()
if side == "weft":
    [value.numpy() for value in load(path).run(feeds).values()]
else:
    onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, feeds)
print(time.perf_counter() - start, time.process_time() - busy)
"""


def first_results(name: str, path: Path, sizes: dict[str, int]) -> float:
    """Print how long new processes take from load to result; 1 if that is more than promised."""
    with tempfile.TemporaryDirectory() as folder:
        feeds = Path(folder) / "feeds.npz"
        np.savez(feeds, **inputs_of(_session(path, 1), sizes))  # type: ignore[arg-type]
        environment = {**os.environ, "WEFT_CACHE_DIR": str(Path(folder) / "warm-up")}
        # Bytecode is there, as it is after an installation.
        environment["PYTHONPYCACHEPREFIX"] = str(Path(folder) / "bytecode")
        environment.pop("PYTHONDONTWRITEBYTECODE", None)

        def process(side: str) -> tuple[float, float]:
            done = subprocess.run(
                [sys.executable, "-c", _FIRST, str(path), side, str(feeds)],
                env=environment,
                capture_output=True,
                text=True,
                check=True,
            )
            seconds, busy = map(float, done.stdout.split())
            return seconds, busy

        process("weft")
        environment["WEFT_CACHE_DIR"] = str(Path(folder) / "cache")
        cold = process("weft")
        warm = min(process("weft") for _ in range(3))
        theirs = min(process("onnxruntime") for _ in range(3))
    for what, (seconds, busy) in (("cold", cold), ("second", warm), ("onnxruntime", theirs)):
        print(f"{name} first result, {what}: {seconds:.2f} s, {busy:.2f} s of processor time")
    return float(cold[0] > FIRST_COLD or warm[0] > FIRST_WARM)


if __name__ == "__main__":
    raise SystemExit(main())
