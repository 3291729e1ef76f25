"""A kernel has a budget of code; what is below a value that is cut starts another kernel."""

import pytest

from weft.ir.build import param, sink, store
from weft.ir.dtypes import dtypes
from weft.ir.ops import ELEMENTWISE, Op
from weft.ir.uop import UOp, make
from weft.ir.walk import topological
from weft.schedule.fuse.code_size import LEAST_CUT, MOST_CODE, CodeSize, is_full
from weft.schedule.fuse.kernel import Kernel
from weft.schedule.schedule import make_schedule
from weft.target.cpu import cpu_target

TARGET = cpu_target("x86_64", ("avx2",))
F32 = dtypes.float32
SIZE = 64


def p(slot: int, *shape: int) -> UOp:
    return param(slot, F32, shape or (SIZE,))


def sine(x: UOp) -> UOp:
    return make(Op.SIN, F32, (x,))


def chain(x: UOp, count: int) -> UOp:
    for number in range(count):
        x = x * x + (number + 0.5)
    return x


def kernels(*values: UOp) -> list[UOp]:
    stores = [store(p(900 + number), value) for number, value in enumerate(values)]
    return [call.arg for call in make_schedule(sink(*stores), TARGET).kernels.src]


def ops_of(kernel: UOp) -> int:
    return sum(node.op in ELEMENTWISE for node in topological(kernel))


def test_a_chain_is_cut_where_its_kernel_is_full():
    parts = kernels(chain(p(0), 2 * MOST_CODE))
    assert len(parts) == -(-4 * MOST_CODE // MOST_CODE)
    assert max(map(ops_of, parts)) <= MOST_CODE + LEAST_CUT


def test_a_chain_that_fits_is_one_kernel():
    assert len(kernels(chain(p(0), MOST_CODE // 2 - 8))) == 1


def test_long_ops_count_as_what_they_become():
    x = p(0)
    for _ in range(60):
        x = sine(x)
    parts = kernels(x)
    assert len(parts) == 10
    assert all(sum(node.op == Op.SIN for node in topological(part)) == 6 for part in parts)


def test_values_without_memory_below_are_cut_too():
    x = make(Op.IOTA, dtypes.int32, (), (SIZE,)).cast(F32)
    assert len(kernels(chain(x, MOST_CODE))) == 2


def test_small_values_are_not_cut():
    """Each element of the chain reads another input; only the chain itself is cut."""
    x = p(0)
    for slot in range(1, MOST_CODE // 2):
        x = (p(slot) * 2.0 + 1.0) + x  # the inputs are visited after the whole chain
    parts = kernels(x)
    assert max(map(ops_of, parts)) <= MOST_CODE + LEAST_CUT
    assert len(parts) <= 3


def test_a_value_that_two_kernels_read_is_cut_once():
    low = chain(p(0), MOST_CODE)
    parts = kernels(chain(low, MOST_CODE), chain(low + 1.0, MOST_CODE))
    assert max(map(ops_of, parts)) <= MOST_CODE + LEAST_CUT
    assert sum(map(ops_of, parts)) <= 6 * MOST_CODE + 8 * LEAST_CUT  # nothing is computed twice


def test_results_of_a_chain_do_not_grow_its_kernel():
    values = [p(0)]
    for _ in range(40):
        values.append(sine(values[-1]))
    parts = kernels(*values[1:])
    assert max(sum(node.op == Op.SIN for node in topological(part)) for part in parts) <= 6
    assert sum(sum(node.op == Op.SIN for node in topological(part)) for part in parts) == 40


@pytest.mark.parametrize(("count", "expected"), [(MOST_CODE - 1, False), (MOST_CODE, True)])
def test_the_budget(count: int, expected: bool):
    kernel = Kernel(0, (SIZE,))
    kernel.code = count
    assert is_full(kernel) == expected


def test_shared_values_count_as_a_tree_up_to_the_budget():
    x = p(0)
    for _ in range(1000):
        x = x + x
    code = CodeSize(topological(x))
    kernel = Kernel(0, (SIZE,))
    code.add(x, kernel)
    assert not code.is_small(x)
    assert kernel.code == 1
