"""What a device with memory of its own costs the host, and its kernels beside torch's.

    python -m bench device CUDA [--json FILE]

Times of kernels are taken by the device, times of calls by the host with nothing waiting; each is
the best of several. `device_kernels` has the kernels beside torch's.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.device_decode import decode_rows
from bench.device_kernels import Row, kernel_rows, step_rows
from bench.device_models import model_rows
from weft import Context, Tensor, jit
from weft.engine.buffers import buffer_of
from weft.engine.counters import GlobalCounters
from weft.engine.devices import device
from weft.runtime.device import seconds_of

KERNELS = 200
MEGABYTES = 256
STEPS = 10_000


def best(run: Callable[[], object], rounds: int = 20) -> float:
    """The least seconds of a call, on the host."""
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def host_rows(name: str) -> list[Row]:
    """What calls cost the host."""
    on: Any = device(name)
    x = Tensor.ones(1024).contiguous().realize()
    (x + 1).realize()

    def quiet(run: Callable[[], object], rounds: int = 200) -> float:
        found = []
        for _ in range(rounds):
            on.synchronize()
            start = time.perf_counter()
            run()
            found.append(time.perf_counter() - start)
        on.synchronize()
        return statistics.median(found) * 1e6

    rows = [("host", "(x + 1).realize()", quiet(lambda: (x + 1).realize()), "us", "")]

    @jit
    def chain(x: Tensor) -> Tensor:
        for number in range(KERNELS):
            x = (x * 1.0001 + number).contiguous()
        return x

    other = Tensor.ones(1024).contiguous().realize()
    kept = [chain(x), chain(other)]
    before = GlobalCounters.kernel_count
    chain(x)
    count = GlobalCounters.kernel_count - before
    rows.append(("host", f"a jitted call of {count} kernels", quiet(lambda: chain(x)), "us", ""))
    pair = [x, other]

    def turns() -> None:
        pair.reverse()
        kept[0] = chain(pair[0])

    rows.append(("host", "the same, inputs exchanged", quiet(turns), "us", ""))
    on.synchronize()
    rows.append(("device", f"{count} kernels", seconds_of(on, lambda: chain(x)) * 1e6, "us", ""))
    step = jit(lambda x: x + 1)
    step(x)
    rows.append(("host", "a jitted call of 1 kernel", quiet(lambda: step(x)), "us", ""))
    return rows


def copy_rows(name: str) -> list[Row]:
    """Bytes between host and device, in GB/s."""
    on: Any = device(name)
    size = MEGABYTES << 20
    data = np.ones(size // 4, np.float32)
    x = Tensor(data).realize()
    on.synchronize()

    def copied() -> None:
        Tensor(data).realize()
        on.synchronize()

    rows = [
        ("copy", "Tensor(array)", size / best(copied, 5) / 1e9, "GB/s", ""),
        ("copy", "x.numpy()", size / best(x.numpy, 5) / 1e9, "GB/s", ""),
        ("copy", "x.to('CPU')", size / best(lambda: x.to("CPU").realize(), 5) / 1e9, "GB/s", ""),
    ]
    if hasattr(on, "copies"):
        block = memoryview(on.copies.pinned(size)).cast("B")
        handle = buffer_of(x._storage.uop).handle
        seconds_in = best(lambda: on.copy_in(handle, block), 5)
        seconds_out = best(lambda: on.copy_out(block, handle), 5)
        rows.append(("copy", "pinned, in", size / seconds_in / 1e9, "GB/s", ""))
        rows.append(("copy", "pinned, out", size / seconds_out / 1e9, "GB/s", ""))
    return rows


MLP = """
import time; start = time.perf_counter()
import numpy as np
from weft import Tensor, jit, nn
from weft.nn import optim
from weft.engine.compile import CompileStatistics as S
model = [nn.Linear(784, 512), nn.Linear(512, 512), nn.Linear(512, 10)]
opt = optim.SGD([p for l in model for p in nn.state.get_parameters(l)], lr=0.01)
@jit
def step(x, y):
    opt.zero_grad()
    h = model[1](model[0](x).relu()).relu()
    loss = model[2](h).sparse_categorical_crossentropy(y)
    loss.backward(); opt.step()
    return loss
x = Tensor(np.ones((512, 784), np.float32)); y = Tensor(np.zeros(512, np.int32))
begin = time.perf_counter()
loss = step(x, y).item()
first = time.perf_counter() - begin
for _ in range(20): step(x, y)
begin = time.perf_counter()
for _ in range(100): last = step(x, y)
last = last.item()
each = (time.perf_counter() - begin) / 100
print("RESULT", first, each, begin - start, S.generated, S.from_disk, S.seconds, loss, last)
"""


def start_rows(name: str) -> list[Row]:
    """The first step of a small network: cold, and in the next process."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for about in ("cold", "next process"):
            done = subprocess.run(
                [sys.executable, "-c", MLP],
                env={**os.environ, "DEVICE": name, "WEFT_CACHE_DIR": folder},
                capture_output=True,
                text=True,
                check=False,
            )
            line = next((x for x in done.stdout.splitlines() if x.startswith("RESULT")), "")
            if not line:
                rows.append(("MLP", about, 0.0, "failed", done.stderr[-600:]))
                continue
            first, each, _, made, stored, seconds, *losses = map(float, line.split()[1:])
            note = f"{made:.0f} made, {stored:.0f} from disk, {seconds:.2f} s, losses {losses}"
            rows.append(("MLP", f"first step, {about}", first, "s", note))
            rows.append(("MLP", f"a step, {about}", each * 1e6, "us", ""))
    return rows


def long_rows(name: str) -> list[Row]:
    """Many steps: memory that stays, and steps that take as long as others."""
    on: Any = device(name)
    w = Tensor.ones(256, 256).contiguous().realize()

    @jit
    def step(x: Tensor) -> Tensor:
        w.assign((w * 0.999 + (x @ w) * 1e-6).contiguous())
        return w.sum()

    x = Tensor.ones(256, 256).contiguous().realize()
    seconds = np.empty(STEPS)
    used = 0
    gc.disable()
    for number in range(STEPS):
        start = time.perf_counter()
        step(x).item()
        seconds[number] = time.perf_counter() - start
        if number == 100:
            used = _used(on)
    gc.enable()
    late = np.sort(seconds[100:])
    rest = _used(on) - used
    p50, p999 = late[len(late) // 2], late[int(len(late) * 0.999)]
    note = f"p50 {p50 * 1e6:.0f} us, p99.9 {p999 * 1e6:.0f} us, {rest} bytes more at the end"
    return [("steps", f"{STEPS} steps, p99.9 / p50", p999 / p50, "ratio", note)]


def _used(on: Any) -> int:
    """Bytes that are handed out, where the device counts them."""
    return int(on.pool.used) if on.reuses_memory else 0


SECTIONS = (
    host_rows,
    copy_rows,
    kernel_rows,
    start_rows,
    step_rows,
    model_rows,
    decode_rows,
    long_rows,
)


def _printed(section: Callable[..., Iterable[Row]], name: str, match: str) -> list[Row]:
    """The rows of a section, printed as they come."""
    rows: list[Row] = []

    def show(row: Row) -> None:
        subject, about, value, unit, note = row
        print(f"{subject:8} {about:36} {value:12.3f} {unit:6} {note}", flush=True)
        rows.append(row)

    try:
        for row in section(name, match) if section is kernel_rows else section(name):
            show(row)
    except Exception as error:  # other sections are still of use
        show((section.__name__, "failed", 0.0, "", f"{type(error).__name__}: {error}"))
    return rows


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench device", description=__doc__)
    parser.add_argument("name", help="the device, such as CUDA")
    parser.add_argument(
        "--only",
        metavar="SECTION",
        help="one of host, copy, kernel, start, step, model, decode, long",
    )
    parser.add_argument("--match", default="", metavar="TEXT", help="kernels whose names have it")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there too")
    options = parser.parse_args(arguments)
    on: Any = device(options.name)
    print(f"{on.name}: {on.target.name}", *on.facts, sep=", ")
    rows: list[Row] = []
    with Context(DEVICE=options.name):
        for section in SECTIONS:
            if options.only and section.__name__ != f"{options.only}_rows":
                continue
            rows += _printed(section, options.name, options.match)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    return 0
