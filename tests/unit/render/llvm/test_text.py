"""What the text of a module says to LLVM: widths, wrapping, contraction; and what it refuses."""

import dataclasses

import pytest

from tests.unit.render.llvm_programs import (
    F32,
    I32,
    argument,
    at,
    counter,
    device,
    end,
    get,
    memory,
    number,
    numbers,
    program,
    put,
    run_native,
    special,
    targets,
    vector,
)
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.program import Program
from weft.ir.uop import UOp, const, make
from weft.reference.memory import ElementMemory
from weft.render.llvm.renderer import render
from weft.runtime.host import host_target
from weft.support.errors import InternalError
from weft.target.cpu import cpu_target

AVX2 = cpu_target("x86_64", ("avx2",))


def text(*steps: UOp, contract: bool = True) -> str:
    return render(program(*steps), AVX2, contract)


def copied(index: UOp) -> UOp:
    return put(at(argument(0), index), const(F32, 1.0))


def test_addresses_are_computed_in_64_bits_where_nothing_wraps():
    iteration = counter(0, 8)
    found = text(iteration, copied(iteration * 4 + 3), end(iteration))
    assert "mul nsw i64" in found and "add nsw i64" in found
    assert "i32" not in found


def test_what_may_wrap_keeps_its_width():
    x = get(at(argument(1, I32), 0))
    found = text(copied(x + 3))
    assert "add i32" in found and "nsw" not in found
    assert "sext i32" in found


def test_a_counter_that_is_also_a_value_has_both_widths():
    iteration = counter(0, 8)
    found = text(iteration, put(at(argument(0, I32), iteration * 2), iteration), end(iteration))
    assert "trunc i64" in found and "store i32" in found


def test_a_loop_that_is_known_to_run_is_tested_at_its_end_only():
    iteration = counter(0, 8)
    assert text(iteration, copied(iteration), end(iteration)).count("icmp") == 1


def product_and_sum() -> tuple[UOp, UOp, UOp]:
    a, b, c = (get(at(argument(slot), 0)) for slot in (1, 2, 3))
    return a * b, c, (a * b) + c


def test_a_product_in_a_sum_may_be_fused():
    _, _, total = product_and_sum()
    found = text(put(at(argument(0), 0), total))
    assert "fmul contract" in found and "fadd contract" in found
    assert "contract" not in text(put(at(argument(0), 0), total), contract=False)


def test_a_subtracted_product_may_be_fused():
    product, c, _ = product_and_sum()
    found = text(put(at(argument(0), 0), c - product))
    assert "fmul contract" in found and "fsub contract" in found


def test_a_product_with_two_uses_and_a_sum_of_two_products_are_not_fused():
    product, c, total = product_and_sum()
    stores = [put(at(argument(0), 0), total), put(at(argument(0), 1), product)]
    assert "contract" not in text(*stores)
    assert "contract" not in text(put(at(argument(0), 0), product - c * c))


def test_fusing_rounds_once():
    cpu = device(host_target(1), True)
    if "avx" not in cpu.target.arch:
        pytest.skip("this CPU has no fused multiply-add")
    _, _, total = product_and_sum()
    exact = 1.0 + 2.0**-23
    arguments = [ElementMemory(F32, 1, [x]) for x in (0.0, exact, exact, -(1.0 + 2.0**-22))]
    code = program(put(at(argument(0, size=1), 0), total))
    assert run_native(code, arguments, {}, cpu)[0].values == [2.0**-46]
    assert run_native(code, arguments, {}, device(host_target(1)))[0].values == [0.0]


def test_the_text_is_the_same_every_time():
    iteration = counter(0, 8)
    steps = [iteration, copied(iteration * 4), end(iteration)]
    assert text(*steps) == text(*steps)


def test_a_splat_is_one_shuffle():
    x = get(at(argument(1), 0))
    found = text(put(at(argument(0), 0, lanes=8), vector(*[x] * 8)))
    assert found.count("insertelement") == 1 and found.count("shufflevector") == 1


def test_a_vector_of_constants_is_a_literal():
    found = text(put(at(argument(0, I32), 0, lanes=2), vector(number(3), number(5))))
    assert "<i32 3, i32 5>" in found and "insertelement" not in found


def refusal(code: Program) -> str:
    with pytest.raises(InternalError) as caught:
        render(code, AVX2)
    return caught.value.what


def test_refuses_what_the_target_does_not_have():
    x = get(at(argument(1), 0))
    assert refusal(program(put(at(argument(0), 0), make(Op.EXP, F32, (x,))))) == (
        "LLVM has no EXP of float32"
    )
    for dtype in (dtypes.float16, dtypes.bfloat16):
        small = get(at(argument(1, dtype), 0))
        assert dtype.name in refusal(program(put(at(argument(0, dtype), 0), small)))


def test_refuses_what_no_cpu_program_has():
    threaded = program(copied(special("thread", 4)), threads=(4,))
    assert "no thread axis 0" in refusal(threaded)
    inside = memory("big", "local", 2 << 20)
    assert "inside" in refusal(program(put(at(inside, 0), const(F32, 0.0))))
    odd = dataclasses.replace(program(copied(number(0))), name="no name")
    assert "no name" in refusal(odd)
    assert "expected an instruction, got SINK" in refusal(program(make(Op.SINK, dtypes.void, ())))


def test_refuses_a_source_that_is_not_listed():
    x = get(at(argument(1), 0))
    code = program(put(at(argument(0), 0), x + 1.0))
    kept = tuple(node for node in code.instructions.src if node is not x)
    cut = dataclasses.replace(code, instructions=make(Op.LINEAR, dtypes.void, kept))
    assert "not listed before its use" in refusal(cut)


def test_accumulators_leave_the_stack():
    """A sum over a loop through register memory compiles to code without a stack frame."""
    from weft.runtime.llvm.compiler import compile_assembly

    wide = F32.vector(8)
    keeper = memory("acc", "register", 8)
    clear = put(at(keeper, 0, lanes=8), const(wide, 0.0))
    iteration = counter(0, 8)
    address = at(make(Op.AFTER, F32, (keeper, clear)), 0, lanes=8)
    more = put(address, get(address) + get(at(argument(1), iteration * 8, lanes=8)))
    final = get(at(make(Op.AFTER, F32, (keeper, more, end(iteration))), 0, lanes=8))
    code = program(clear, iteration, more, end(iteration), put(at(argument(0), 0, lanes=8), final))
    if targets()[0].arch.startswith("x86_64"):
        assert "rsp" not in compile_assembly(render(code, AVX2), AVX2)
    found = run_native(code, [ElementMemory(F32, 64), numbers(64)], {}, device(targets()[-1]))
    assert found[0].values[:8] == [sum(range(lane, 64, 8)) for lane in range(8)]
