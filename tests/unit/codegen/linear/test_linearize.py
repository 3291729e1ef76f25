"""Instructions in an order in which they can run, each at the depth it belongs to."""

from tests.unit.codegen.kernel_parts import F32, Case, at, exp, kernel, put, read, stage, total
from tests.unit.codegen.oracle import check
from tests.unit.machines import machine
from weft.codegen.context import CodegenContext
from weft.codegen.linear.linearize import linearize
from weft.codegen.opts.table import Bind
from weft.ir.build import index, param, range_, store, true
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op, name
from weft.ir.spec.program import PROGRAM_SPEC
from weft.ir.spec.spec import verify
from weft.ir.uop import UOp, const, make

MACHINE = machine()
GROUPS = machine(group_threads=64)


def words(root: UOp, opts=(), used=MACHINE) -> str:
    """The program of a kernel, as a line of the ops that read, write and loop."""
    program = check(Case(root), used, opts)
    shown = (Op.RANGE, Op.END, Op.LOAD, Op.STORE, Op.BARRIER, Op.EXP)
    return " ".join(name(n.op) for n in program.instructions.src if n.op in shown)


def test_a_value_stands_before_the_loops_it_does_not_depend_on():
    out, x, y = param(0, F32, (4, 8)), param(1, F32, (4,)), param(2, F32, (8,))
    i, j = range_(0, 4), range_(1, 8)
    root = kernel("outer", put(out, [i, j], exp(at(x, i)) * at(y, j), [i, j]))
    assert words(root) == "RANGE LOAD EXP RANGE LOAD STORE END END"


def test_a_loop_runs_where_its_result_is_used():
    out, x = param(0, F32, (4,)), param(1, F32, (4, 8))
    i, k = range_(0, 4), range_(1, 8)
    root = kernel("sum", put(out, [i], exp(total(at(x, i, k), k)), [i]))
    first = "RANGE STORE RANGE LOAD LOAD STORE END LOAD EXP STORE END"
    assert words(root) == first  # a first value, the loop that updates it, and its result


def test_what_depends_on_no_loop_is_computed_once():
    out, x = param(0, F32, (4,)), param(1, F32, (8,))
    i, k = range_(0, 4), range_(1, 8)
    root = kernel("once", put(out, [i], total(at(x, k), k) * i.cast(F32), [i]))
    assert words(root) == "STORE RANGE LOAD LOAD STORE END LOAD RANGE STORE END"


def test_all_loads_of_a_body_come_before_its_stores():
    a, b = param(0, F32, (8,)), param(1, F32, (8,))
    i = range_(0, 8)
    swap = kernel("swap", put(a, [i], at(b, i), [i]), put(b, [i], at(a, i), [i]))
    assert words(swap) == "RANGE LOAD LOAD STORE STORE END"


def test_a_load_of_what_is_written_stays_in_its_loop():
    """Before the loop it would see the first of many contents."""
    out, x = param(0, F32, (1,)), param(1, F32, (8,))
    k = range_(0, 8)
    address = [index(0)]
    added = put(out, address, at(out, *address) + at(x, k), [k])
    root = make(Op.KERNEL, dtypes.void, (added,), ("add", ((0, "ordered"),)))
    assert words(root) == "RANGE LOAD LOAD STORE END"


def staged() -> UOp:
    out, x = param(0, F32, (3, 8)), param(1, F32, (3, 8))
    i, j, k = range_(0, 3), range_(1, 8), range_(2, 8)
    kept = stage(exp(at(x, i, k)), (8,), [k], [k])
    return kernel("rows", put(out, [i, j], read(kept, 7 - j), [i, j]))


def test_a_stage_is_filled_before_it_is_read():
    assert words(staged()) == "RANGE RANGE LOAD EXP STORE END RANGE LOAD STORE END END"


def test_threads_wait_before_they_read_and_before_they_fill_again():
    opts = [Bind(1, "thread"), Bind(2, "thread")]
    assert words(staged(), opts, GROUPS) == "RANGE BARRIER LOAD EXP STORE BARRIER LOAD STORE END"


def test_one_thread_needs_no_barrier():
    assert "BARRIER" not in words(staged(), [Bind(0, "grid")], GROUPS)


def test_a_loop_that_runs_twice_has_two_numbers():
    out, x = param(0, F32, (3, 8)), param(1, F32, (3, 8))
    i, j = range_(0, 3), range_(1, 8)
    kept = stage(at(x, i, j), (8,), [j], [j])
    root = kernel("twice", put(out, [i, j], read(kept, 7 - j), [i, j]))
    program = check(Case(root), MACHINE, ()).instructions
    numbers = [node.arg for node in program.src if node.op == Op.RANGE]
    assert len(numbers) == len(set(numbers)) == 3


def i32(value: int) -> UOp:
    return const(dtypes.int32, value)


def test_the_result_is_a_program():
    memory = param(0, F32, (8,))
    loop = make(Op.RANGE, dtypes.int32, (i32(8),), 0)
    address = make(Op.INDEX, F32, (memory, true(), loop))
    root = make(
        Op.KERNEL, dtypes.void, (store(address, const(F32, 1.0), [loop]),), ("k", ((0, "loop"),))
    )
    program = linearize(root, CodegenContext(MACHINE))
    verify(program, PROGRAM_SPEC)
    assert [name(node.op) for node in program.src] == ["RANGE", "INDEX", "STORE", "END"]
