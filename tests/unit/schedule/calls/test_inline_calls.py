"""Calls of bodies under INLINE are fused, and outlined like anything else."""

from weft.engine.counters import GlobalCounters
from weft.ir.build import call, param, sink, store
from weft.ir.dtypes import dtypes
from weft.ir.inline import inline_body
from weft.schedule.schedule import make_schedule
from weft.target.cpu import cpu_target
from weft.tensor import Tensor

F32 = dtypes.float32
TARGET = cpu_target("x86_64", ("avx2",))


def test_a_call_that_is_written_out_is_fused():
    x, out, y = (param(slot, F32, (64,)) for slot in range(3))
    body = inline_body(param(0, F32, (64,)) * 2.0)
    made = make_schedule(sink(store(out, call(body, x) + y)), TARGET)
    plain = make_schedule(sink(store(out, x * 2.0 + y)), TARGET)
    assert made.kernels is plain.kernels and len(made.kernels.src) == 1


def test_equal_draws_are_one_kernel():
    memory = [param(slot, F32, (64,)) for slot in range(8)]
    body = inline_body(param(0, F32, (64,)).maximum(param(0, F32, (64,)) * 3.0))
    stores = [store(memory[2 * n + 1], call(body, memory[2 * n]) * 2.0) for n in range(4)]
    kernels = [each.arg for each in make_schedule(sink(*stores), TARGET).kernels.src]
    assert len(kernels) == 4 and len(set(kernels)) == 1


def test_random_numbers_are_fused_with_what_reads_them():
    Tensor.manual_seed(0)  # a jitted function leaves its state in memory, which is a kernel more
    x = Tensor.ones(64).contiguous().realize()
    before = GlobalCounters.kernel_count
    (Tensor.rand(64) * x + 1).realize()
    assert GlobalCounters.kernel_count == before + 1
