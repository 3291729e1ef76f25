"""The invariants of a schedule refuse calls that do not fit their kernels."""

from weft.ir.build import index_of, load, param, range_, store
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.spec.schedule import SCHEDULE_SPEC
from weft.ir.uop import UOp, make


def call(*arguments: UOp) -> UOp:
    out, x = (param(slot, dtypes.float32, (4,)) for slot in range(2))
    i = range_(0, 4)
    written = store(index_of(out, [i]), load(index_of(x, [i])), [i])
    body = make(Op.KERNEL, dtypes.void, (written,), ("copy", ((0, "loop"),)))
    return make(Op.CALL, dtypes.void, arguments, body)


def test_a_kernel_has_a_parameter_for_each_argument():
    memory = [param(slot, dtypes.float32, (4,)) for slot in range(3)]
    assert SCHEDULE_SPEC.fault_of(call(*memory[:2])) is None
    for count in (1, 3):
        fault = SCHEDULE_SPEC.fault_of(call(*memory[:count]))
        assert fault is not None
        assert fault.invariant == "a kernel has a parameter for each argument"
        assert fault.detail == "the kernel has the slots [0, 1]"
