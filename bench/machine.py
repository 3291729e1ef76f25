"""What this machine can do: arithmetic, caches, memory, launches.

    python -m bench machine

runs small kernels, written by hand in LLVM's language so that no choice of the compiler matters,
prints what it found, and keeps it in the disk cache. The CPU target picks it up there: the costs,
which decide what is fused, and the peaks, of which `DEBUG=2` prints the percentage. Run it again
when the machine changes, or on a machine that was busy; `--forget` goes back to the usual numbers.
"""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Callable, Sequence

import numpy as np

from weft.ir.dtypes import dtypes
from weft.ir.program import written_program
from weft.render.llvm.renderer import render
from weft.runtime.cpu.device import CpuDevice
from weft.runtime.host import forget_measured, host, host_target, keep_measured
from weft.target.cpu import Measured
from weft.target.target import Costs, Peaks

ROUNDS = 7
SECONDS = 0.02  # of one measurement
ACCUMULATORS = 12  # enough to hide the latency of an instruction, few enough for 16 registers
UNROLLED = 8
LARGE_BYTES = 256 << 20

HEAD = """
define void @probe(ptr %args, ptr %vars, i64 %begin, i64 %end) nounwind {{
entry:
  %out = load ptr, ptr %args
  %next = getelementptr ptr, ptr %args, i64 1
  %in = load ptr, ptr %next
  br label %loop
loop:
  %i = phi i64 [ %begin, %entry ], [ %after, %loop ]
{phis}
{body}
  %after = add i64 %i, 1
  %more = icmp slt i64 %after, %end
  br i1 %more, label %loop, label %done
done:
{finish}
  ret void
}}
"""


class Machine:
    """Probes for a number of threads."""

    def __init__(self, threads: int) -> None:
        self.device = CpuDevice(render, host_target(threads))
        self.threads = threads
        self.lanes = self.device.target.access_bits // 32
        self.vector = f"<{self.lanes} x float>"
        self.step = self.lanes * 4 * UNROLLED  # bytes of one iteration over memory

    def _seconds(self, text: str, groups: int, memory: Sequence[object]) -> float:
        """The best time of one run over a grid."""
        name = self.device.target.name
        program = written_program(
            "probe", name, text, [dtypes.float32], [dtypes.float32], groups=(groups,)
        )
        run = self.device.load(program.with_binary(self.device.compile(program)))
        return best(lambda: run(memory, [], (groups,)))

    def operations(self, instruction: str, per_element: int) -> float:
        """Elementwise operations per second, all operands in registers."""
        vector, count = self.vector, ACCUMULATORS
        names = range(count)
        phis = [f"  %a{n} = phi {vector} [ %x{n}, %entry ], [ %b{n}, %loop ]" for n in names]
        body = [f"  %b{n} = {instruction.format(v=vector, x=f'%a{n}')}" for n in names]
        sums = [f"  %s{n} = fadd {vector} %s{n - 1}, %b{n}" for n in names if n]
        finish = [
            f"  %s0 = fadd {vector} %b0, %b0",
            *sums,
            f"  store {vector} %s{count - 1}, ptr %out, align 4",
        ]
        starts = "\n".join(f"  %x{n} = load {vector}, ptr %in, align 4" for n in names)
        text = HEAD.format(phis="\n".join(phis), body="\n".join(body), finish="\n".join(finish))
        text = text.replace("  br label %loop\nloop:", f"{starts}\n  br label %loop\nloop:", 1)
        text += _declared(vector, self.lanes)
        memory = [self.device.allocate(4096), self._filled(4096)]
        iterations = 400_000 * self.threads
        return (
            iterations * count * self.lanes * per_element / self._seconds(text, iterations, memory)
        )

    def bytes_per_second(self, size: int, reads: bool, writes: bool) -> float:
        """Bytes read and written per second, over memory of a size."""
        size = max(size // self.step, 4) * self.step
        iterations = size // self.step
        rounds = max(1, int(2e9 * SECONDS) // size)
        vector, parts = self.vector, range(UNROLLED)
        body = [f"  %m = urem i64 %i, {iterations}", f"  %at = mul i64 %m, {self.step}"]
        for n in parts:
            offset = f"  %o{n} = add i64 %at, {n * self.lanes * 4}"
            body.append(offset)
            if reads:
                body.append(f"  %p{n} = getelementptr i8, ptr %in, i64 %o{n}")
                body.append(f"  %l{n} = load {vector}, ptr %p{n}, align 4")
            if writes:
                value = f"%l{n}" if reads else "zeroinitializer"
                body.append(f"  %q{n} = getelementptr i8, ptr %out, i64 %o{n}")
                body.append(f"  store {vector} {value}, ptr %q{n}, align 4")
        phis, finish = [], []
        if reads and not writes:
            phis = [
                f"  %a{n} = phi {vector} [ zeroinitializer, %entry ], [ %b{n}, %loop ]"
                for n in parts
            ]
            body += [f"  %b{n} = fadd {vector} %a{n}, %l{n}" for n in parts]
            finish = [f"  %s0 = fadd {vector} %b0, %b0"]
            finish += [f"  %s{n} = fadd {vector} %s{n - 1}, %b{n}" for n in parts if n]
            finish += [f"  store {vector} %s{UNROLLED - 1}, ptr %out, align 4"]
        text = HEAD.format(phis="\n".join(phis), body="\n".join(body), finish="\n".join(finish))
        memory = [self._filled(size), self._filled(size)]
        seconds = self._seconds(text, iterations * rounds, memory)
        for part in memory:
            self.device.free(part)  # type: ignore[arg-type]
        return iterations * rounds * self.step * (reads + writes) / seconds

    def _filled(self, size: int) -> object:
        memory = self.device.allocate(size)
        self.device.copy_in(memory, memoryview(np.ones(size, np.int8)))
        return memory

    def launch_nanoseconds(self) -> float:
        """A kernel of one group that does nothing, from Python and back."""
        text = HEAD.format(phis="", body="", finish="")
        memory = [self.device.allocate(64), self.device.allocate(64)]
        program = written_program(
            *("probe", self.device.target.name, text), [dtypes.float32], [dtypes.float32]
        )
        run = self.device.load(program.with_binary(self.device.compile(program)))

        def many() -> None:
            for _ in range(1000):
                run(memory, [], (1,))

        return best(many) * 1e6


def _declared(vector: str, lanes: int) -> str:
    return f"declare {vector} @llvm.fma.v{lanes}f32({vector}, {vector}, {vector})\n"


def best(action: Callable[[], object]) -> float:
    """The least seconds of a few runs, after one that warms up."""
    action()
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def exp_nanoseconds() -> float:
    """The exponential of an element, as codegen writes it, on one thread."""
    from weft import Context, Tensor
    from weft.engine.counters import GlobalCounters

    with Context(THREADS=1, DEVICE="CPU"):
        x = Tensor(np.linspace(-3, 3, 4096, dtype=np.float32)).realize()
        times = []
        for _ in range(30):
            GlobalCounters.reset()
            x.exp().realize()
            times.append(GlobalCounters.time_sum_s)
    return min(times) * 1e9 / 4096


@functools.cache
def peaks() -> Peaks:
    """What all threads reach together: operations and bytes of memory per second."""
    every = Machine(host_target().units)
    rates = [
        every.bytes_per_second(LARGE_BYTES, reads, writes)
        for reads, writes in ((True, False), (False, True), (True, True))
    ]
    operations = every.operations(multiply_add(every.lanes), 2)
    return Peaks(operations, max(rates), f"measured on {host().cpu}")


def multiply_add(lanes: int) -> str:
    return f"call {{v}} @llvm.fma.v{lanes}f32({{v}} {{x}}, {{v}} {{x}}, {{v}} {{x}})"


def measure() -> Measured:
    """Costs of one core, and peaks of all that this process may use."""
    one, most = Machine(1), peaks()
    add = "fadd {v} {x}, {x}"
    sizes = host().cache_bytes
    levels = [one.bytes_per_second(size // 2, reads=True, writes=False) for size in sizes]
    read = one.bytes_per_second(LARGE_BYTES, reads=True, writes=False)
    multiply_adds = one.operations(multiply_add(one.lanes), 1)
    adds = one.operations(add, 1)
    costs = Costs(
        op=1e9 / adds,
        transcendental=exp_nanoseconds(),
        multiply_add=1e9 / multiply_adds,
        launch=one.launch_nanoseconds(),
        source=f"measured on {host().cpu}",
    )
    print(f"{host().cpu}, {host_target().units} threads, vectors of {one.lanes} floats")
    gigaflops = 2 * multiply_adds / 1e9
    print(f"multiply-add  {gigaflops:8.1f} GFLOPS on a core, {most.operations / 1e9:.1f} on all")
    for name, size, rate in zip(("L1", "L2", "L3"), sizes, levels, strict=True):
        print(f"{name} {size >> 10:8} KB  {rate / 1e9:8.1f} GB/s read by a core")
    print(f"memory        {read / 1e9:8.1f} GB/s by a core, {most.bytes_moved / 1e9:.1f} by all")
    print(f"launch        {costs.launch:8.0f} ns")
    return Measured(costs, most, tuple(1e9 / rate for rate in (*levels, read)))


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench machine")
    parser.add_argument("--forget", action="store_true", help="go back to the usual numbers")
    options = parser.parse_args(arguments)
    threads = host_target().units
    if options.forget:
        forget_measured(threads)
        return 0
    keep_measured(threads, measure())
    return 0
