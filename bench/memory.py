"""What a process keeps after many shapes: each is scheduled, compiled, loaded, run and let go.

    python -m bench.memory [--count 50000] [--every 2500]

Each line has the resident memory, the kernels that are loaded and the nodes that are alive. Caches
fill first: kernels for some 2,000 shapes, nodes for some 5,000, until there are 200,000 of them.
After that the lines must stay the same. The last lines are the growth over the second half, for
each shape, and what is left when the caches are empty. These are figures of the operating system,
so no test; `tests/golden/test_many_shapes.py` counts what is kept.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import os
import sys
import time
from collections.abc import Sequence

from weft import Tensor, clear_caches
from weft.ir.uop import live_nodes
from weft.runtime.llvm.elf_link import LoadedObject


def resident_bytes() -> int:
    """The memory of this process that is really there; Linux only."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def settled_bytes() -> int:
    """The same, after all that is free has gone back to the system."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
    return resident_bytes()


def run_shape(number: int) -> None:
    """A program of a shape that no other number has."""
    rows, columns = divmod(number, 250)
    # The result is a number, so that memory which waits to be used again is none of the figure.
    (Tensor.arange(rows + 1).reshape(-1, 1) * 3 + Tensor.arange(columns + 1)).sum().realize()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=50_000)
    parser.add_argument("--every", type=int, default=2500)
    options = parser.parse_args(arguments)
    start, half = time.perf_counter(), 0
    for number in range(1, options.count + 1):
        run_shape(number)
        if number % options.every == 0:
            seconds = time.perf_counter() - start
            print(
                f"{number} shapes, {settled_bytes() / 1e6:.0f} MB, {LoadedObject.count} kernels"
                f" of {LoadedObject.size / 1e6:.1f} MB, {live_nodes()} nodes, {seconds:.0f} s",
                flush=True,
            )
        if number == options.count // 2:
            half = settled_bytes()
    growth = (settled_bytes() - half) / (options.count - options.count // 2)
    print(f"{growth:.0f} bytes for each shape of the second half")
    clear_caches()
    print(f"{settled_bytes() / 1e6:.0f} MB with empty caches")
    return 0


if __name__ == "__main__":
    sys.exit(main())
