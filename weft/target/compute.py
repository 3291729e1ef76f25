"""What computes in a machine: cores with vector registers (SIMD), or multiprocessors (SIMT).

A field has one meaning on every machine. The numbers of `LoopNumbers` were measured; the targets
that use them say where.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from weft.target.matrix import Tile


@dataclass(frozen=True)
class LoopNumbers:
    """What loops cost on a core with vectors, and where one form of a loop overtakes another.

    The heuristic of codegen reads these. Costs are in cycles, or in multiply-adds of whole vectors
    where that is said. The defaults were measured on an Ice Lake server with AVX-512 (48 KB, 1.25
    MB and 48 MB of cache) and hold within noise for AVX2 on the same machine.
    """

    # A load that fills a vector with one element, in loads of vectors.
    broadcast: float = 1.5
    # Cycles until the second cache has brought a lane of a vector.
    second_cache_lane: float = 0.09
    # Cycles of an iteration that counting and the first loads take.
    iteration: float = 0.5
    # Multiply-adds in the time that copying a vector to a panel takes.
    copied_vector: float = 6
    # What masks of the last vectors make of the products.
    masked: float = 1.15
    # Multiply-adds in the time that an element of the rows takes once more.
    row_again: float = 0.8
    # Rows from which a panel is worth the copy: of a factor that can be read as vectors, and of
    # one that cannot; and from which the alignment of its vectors alone is worth it.
    panel_rows: int = 16
    computed_panel_rows: int = 4
    aligned_panel_rows: int = 64
    # Iterations of the reduction in a block of a contraction.
    reduction_block: int = 512
    # The share of the second cache that a panel may take: all of it lost 12 to 16 %.
    panel_share: float = 0.4
    # Bytes from iteration to iteration at which rows are read where they are: a quarter of a line.
    short_step: int = 16
    # Bytes from row to row that make it slow to walk down a column: half a page, at which
    # prefetching ends.
    long_step: int = 2048
    # Rows that a reduction down the columns takes at once.
    rows_at_once: int = 8
    # Bits of the vectors that memory is read in if it is only read: a line that comes in two
    # vectors is asked for sooner than one that comes in one.
    streamed_bits: int = 256
    # What a block of keys costs beside its products, in passes over all keys: reductions that are
    # joined with those of the block before, divided by its keys; its distance from the core, its
    # keys divided by that many; and how much longer products take that are guarded at the end.
    joined_block: float = 5.0
    near_block: float = 6000.0
    guarded_block: float = 1.05


@dataclass(frozen=True)
class UpdateNumbers:
    """Nanoseconds of threads that update memory one after the other, each waiting for the last.

    On an H200 a load that misses its caches takes 600 to 800 cycles, and one from the first cache
    some 35. The defaults are estimated from those, not measured.
    """

    update: float = 500.0  # one that waits for the one before it
    find: float = 1000.0  # looking for one in a word of flags that has some
    skip: float = 30.0  # a word without any
    threads: int = 1024  # of a multiprocessor that wait at the same time


@dataclass(frozen=True)
class Compute:
    """What all machines have: `units` that run independent work, and loops that fill one.

    `multiply_adds` of a thread start in a cycle, and each takes `latency` cycles. `copies` of a
    loop of loads and stores are unrolled, and `unrolled_rows` of a contraction that has no tile of
    its own; `streams` of memory are read at once.
    """

    units: int = 1  # cores that the process uses, or multiprocessors
    multiply_adds: int = 2
    latency: int = 4
    copies: int = 4
    unrolled_rows: int = 6
    streams: int = 4

    @property
    def accumulators(self) -> int:
        """Independent sums that keep a thread's units for multiply-adds busy."""
        return self.multiply_adds * self.latency

    def vectors_in_registers(self, bits: int) -> int:
        """Vectors of so many bits that a thread keeps in registers."""
        raise NotImplementedError


@dataclass(frozen=True)
class Simd(Compute):
    """Cores that compute on vectors in registers; each runs one thread."""

    vector_bits: int = 0  # of a register; 0: no explicit vectors
    vector_registers: int = 16
    loops: LoopNumbers = field(default_factory=LoopNumbers)

    def vectors_in_registers(self, bits: int) -> int:
        return self.vector_registers


@dataclass(frozen=True)
class Simt(Compute):
    """Multiprocessors that run groups of threads in warps; a thread computes on scalars.

    `has_vectors` says that the language of the target computes on vectors nevertheless, as
    OpenCL C does. Otherwise lanes are for memory alone.
    """

    warp: int = 32  # threads that run in step
    registers_per_thread: int = 64  # of 32 bits
    registers_per_unit: int = 1 << 16
    threads_per_unit: int = 2048  # that are resident
    # Threads of a group that hide latency and still share the registers. On an H200 groups of 128
    # to 512 reach the speed of a copy, and groups of 1024 three quarters of it.
    group_threads: int = 256
    # Threads of a group that scan side by side; more are more totals to reduce.
    scan_threads: int = 64
    has_vectors: bool = False
    # Bytes of memory that come together: neighbors should use all of them. Caches hold parts of
    # lines, so these bytes come at the least.
    line_bytes: int = 128
    sector_bytes: int = 32
    # Products that are computed without matrix units, as `choose/simt/tiles.py` has them: measured
    # on an H200.
    tiles: tuple[Tile, ...] = (
        Tile(128, 128, 0.88, overhead=512),
        Tile(64, 64, 0.77, overhead=512),
        Tile(32, 32, 0.51, overhead=512),
    )
    updates: UpdateNumbers = field(default_factory=UpdateNumbers)
    # Threads of a warp read each other's registers.
    has_shuffles: bool = False
    # A kernel can start while the one before it is running, and wait for its end by itself.
    starts_early: bool = False

    @property
    def resident_groups(self) -> int:
        """Groups of the usual size that run on all multiprocessors at once."""
        return self.units * max(self.threads_per_unit // self.group_threads, 1)

    def vectors_in_registers(self, bits: int) -> int:
        return max(self.registers_per_thread * 32 // max(bits, 1), 1)
