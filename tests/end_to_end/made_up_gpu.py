"""A GPU that nobody makes: its numbers are unlike those of any other, and all of it is here.

LLVM writes PTX of an old architecture for it. Nothing else in the project knows of it.
"""

from weft.ir.dtypes import dtypes
from weft.target.compute import Simt
from weft.target.cpu import LLVM_OPS, NATIVE_DTYPES, STORED_DTYPES
from weft.target.matrix import Fragment, MatrixUnit
from weft.target.memory import AsyncCopy, Grid, Memory
from weft.target.target import Costs, Peaks, Target

LOOM = Target(
    device="LOOM",
    renderer="PTX",
    arch="sm_75",
    native_ops=LLVM_OPS,
    native_dtypes=NATIVE_DTYPES,
    stored_dtypes=STORED_DTYPES,
    compute=Simt(
        units=7,
        warp=16,
        registers_per_thread=48,
        registers_per_unit=48 * 384,
        threads_per_unit=384,
        group_threads=96,
        scan_threads=16,
        copies=2,
        unrolled_rows=3,
        streams=2,
    ),
    memories=(
        Memory("register", 4 * 48, "thread", 64),
        Memory("level1", 8 << 10, "unit", 64, cost=0.02, ways=4),
        Memory("local", 12 << 10, "group", 64, cost=0.02),
        Memory("level2", 384 << 10, "machine", 64, cost=0.1),
        Memory("global", 3 << 30, "machine", 64, cost=0.4, alignment=8),
    ),
    grid=Grid(group_threads=192, group_limits=(1 << 20, 4095, 63), thread_limits=(192, 48, 16)),
    matrix_units=(
        MatrixUnit(
            name="weave.m4n4k4",
            inputs=((dtypes.float16, dtypes.float16),),
            accumulator=dtypes.float32,
            rows=4,
            columns=(4,),
            depth=4,
            threads=16,
            rate=1e12,
            left=Fragment(((0, 1), (0, 2), (1, 0), (2, 0)), ()),
            right=Fragment(((1, 0), (2, 0), (0, 1), (0, 2)), ()),
            result=Fragment(((0, 1), (0, 2), (1, 0), (2, 0)), ()),
        ),
    ),
    copies=(AsyncCopy("shuttle", "global", "local", waits="group", widths=(8,)),),
    costs=Costs(op=0.05, transcendental=0.6, multiply_add=0.05, launch=9000.0),
    peaks=Peaks(operations=3e11, bytes_moved=2e10, source="made up"),
)
