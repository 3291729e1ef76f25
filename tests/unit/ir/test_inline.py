"""Calls that are written out where they stand."""

from weft.ir.build import call, param
from weft.ir.dtypes import dtypes
from weft.ir.inline import inline_body, is_inline, written_out
from weft.ir.ops import Op
from weft.ir.shapes import shape_of

F32 = dtypes.float32
P, Q = (param(slot, F32, (4,)) for slot in range(2))


def test_the_body_replaces_the_call():
    body = inline_body(P * Q + P)
    done = call(body, Q, P)
    assert is_inline(done) and shape_of(done) == (4,)
    assert written_out(done * 2.0) is (Q * P + Q) * 2.0


def test_bodies_call_bodies():
    inner = inline_body(P + 1.0)
    outer = inline_body(call(inner, P * 2.0) * 3.0)
    assert written_out(call(outer, Q)) is (Q * 2.0 + 1.0) * 3.0


def test_other_calls_stay():
    done = call(P * 2.0, call(inline_body(P + 1.0), Q))
    made = written_out(done)
    assert made.op == Op.CALL and not is_inline(made) and made.src == (Q + 1.0,)


def test_the_line_of_a_call_is_that_of_what_it_became():
    done = call(inline_body(P * 7.0), Q)
    other = call(inline_body(P * 9.0), Q)
    done.line = other.line = line = object()
    assert written_out(done).line is line
    known = Q * 9.0
    known.line = kept = object()
    assert written_out(other) is known and known.line is kept
