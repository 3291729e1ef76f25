"""Loads stand in front of what threads exchange, as far as registers and memory allow."""

from tests.unit.codegen.choose.simt.test_choose_for_threads import (
    F32,
    H200,
    at,
    gated_rows,
    kernel,
    put,
)
from tests.unit.codegen.kernel_parts import Case
from weft.codegen.generate import generate
from weft.ir.build import param, range_, reduce_ranges
from weft.ir.ops import Op
from weft.ir.views import behind


def scaled_row(columns: int, is_in_place: bool = False) -> Case:
    """A row times numbers, through its sum."""
    out, x, scale = param(0, F32, (columns,)), param(1, F32, (columns,)), param(2, F32, (columns,))
    j, k = range_(0, columns), range_(1, columns)
    total = reduce_ranges(at(x, k), Op.ADD, [k])
    factor = out if is_in_place else scale
    return Case(kernel("scaled", put(out, [j], at(x, j) * at(factor, j) / total)))


def positions(case: Case, op: int) -> list[int]:
    """The numbers of lines with an op; of loads, those of arguments."""
    lines = generate(case.kernel, H200).instructions.src
    found = [number for number, line in enumerate(lines) if line.op == op]
    if op != Op.LOAD:
        return found
    return [n for n in found if behind(lines[n].src[0].src[0]).op == Op.PARAM]


def test_few_threads_load_all_first():
    case = scaled_row(2048)
    assert len(positions(case, Op.LOAD)) == 2 * 2
    assert max(positions(case, Op.LOAD)) < min(positions(case, Op.SHUFFLE))


def test_many_groups_load_what_they_exchange_first():
    case = gated_rows(65536, 1024)
    assert max(positions(case, Op.LOAD)) < min(positions(case, Op.SHUFFLE))


def test_long_rows_are_not_loaded_at_once():
    case = scaled_row(65536)
    assert max(positions(case, Op.LOAD)) > min(positions(case, Op.SHUFFLE))


def test_what_the_kernel_writes_is_loaded_where_it_is_used():
    case = scaled_row(2048, is_in_place=True)
    assert max(positions(case, Op.LOAD)) > min(positions(case, Op.SHUFFLE))


def test_a_few_words_for_later_are_loaded_too():
    out, x, y = (param(0, F32, (65536,)), param(1, F32, (65536, 1024)), param(2, F32, (65536,)))
    i, k = range_(0, 65536), range_(1, 1024)
    total = reduce_ranges(at(x, i, k), Op.ADD, [k])
    case = Case(kernel("rest", put(out, [i], total + at(y, i))))
    assert max(positions(case, Op.LOAD)) < min(positions(case, Op.SHUFFLE))
