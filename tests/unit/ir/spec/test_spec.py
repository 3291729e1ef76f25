"""A broken invariant is named, with node, sources and pass; the graph shows the node."""

import pytest

from weft.ir.build import buffer, call, index_of, load, param, range_, sink, store
from weft.ir.dtypes import ANY, COMPLEX, dtypes
from weft.ir.ops import ELEMENTWISE, Op, name
from weft.ir.scalar import KINDS
from weft.ir.spec.common import kinds_text
from weft.ir.spec.kernel import KERNEL_SPEC
from weft.ir.spec.spec import Spec, row, verify
from weft.ir.spec.tensor import TENSOR_SPEC
from weft.ir.text import parse
from weft.ir.uop import UOp, make
from weft.support.errors import InternalError

f32, i32, void = dtypes.float32, dtypes.int32, dtypes.void
x, i = buffer(0, f32, (4, 8), "CPU"), buffer(1, i32, (4, 8), "CPU")


def fault(root: UOp, spec: Spec, pass_name: str | None = None) -> InternalError:
    with pytest.raises(InternalError) as caught:
        verify(root, spec, pass_name)
    return caught.value


def test_the_message_names_invariant_node_and_pass():
    mixed = make(Op.ADD, f32, (x, i))
    error = fault(sink(x * 2.0, make(Op.EXP, f32, (mixed,))), TENSOR_SPEC, "normalize")
    assert error.what == "ADD breaks an invariant of the tensor graph: the sources have one dtype"
    assert error.facts == (
        ("pass", "normalize"),
        ("node", "(b0 + b1)", "float32"),
        ("source 0", "b0", "float32"),
        ("source 1", "b1", "int32"),
    )
    assert error.ir_lines == [
        "  sink:",
        '    b0 = buffer 0 "CPU": float32[4, 8]',
        "    b0 * 2.0",
        '    b1 = buffer 1 "CPU": int32[4, 8]',
        ">   v0 = b0 + b1",
        "    exp(v0)",
    ]
    assert ">   v0 = b0 + b1" in str(error)


def test_the_message_says_how_a_invariant_is_broken():
    error = fault(make(Op.SQRT, i32, (i,)), TENSOR_SPEC)
    assert error.what == (
        "SQRT breaks an invariant of the tensor graph: "
        "the op is defined for the dtype of its sources"
    )
    assert error.facts[0] == ("because", "it takes floats, and the source is int32")


def test_an_op_of_another_level_is_not_legal():
    stage = make(Op.STAGE, f32, (x,), ("global", ()))
    error = fault(make(Op.READ, f32, (stage, range_(0, 4) < 2)), TENSOR_SPEC)
    assert error.what == "RANGE is not legal in a tensor graph"
    label, legal = error.facts[-1]
    assert label == "legal here"
    assert legal.startswith("CONST, VARIABLE, ADD, ")
    assert "RANGE" not in legal


def test_a_invariant_of_the_whole_graph_marks_its_node():
    p, r = param(0, f32, (4,)), range_(0, 4)
    address = index_of(p, (r,))
    error = fault(sink(store(address, load(address))), KERNEL_SPEC, "rangeify")
    assert error.what == "RANGE breaks an invariant of the kernel: no range is free at the root"
    assert error.facts[:2] == (("pass", "rangeify"), ("because", "nothing closes range 0"))
    assert ">   r0 < 4" in error.ir_lines


def test_the_guilty_node_of_a_body_is_shown_in_its_body():
    wrong = make(Op.NEG, i32, (param(0, f32, (4, 8)),))
    error = fault(sink(call(wrong, x)), TENSOR_SPEC)
    assert error.ir_lines == ["  p0 = param 0: float32[4, 8]", "> return NEG[int32](p0)"]


def test_rows_are_tried_in_order_and_a_legal_graph_passes():
    spec = Spec(
        "test graph",
        [
            row("the invariant of all", (Op.SINK, Op.CONST), lambda node: True),
            row("the invariant of sinks", Op.SINK, lambda node: not node.src or "it has sources"),
        ],
    )
    verify(sink(), spec)
    assert spec.ops == {Op.SINK, Op.CONST}
    first = spec.fault_of(sink(parse("return 1")))
    assert first is not None
    assert (first.invariant, first.detail) == ("the invariant of sinks", "it has sources")


def test_every_elementwise_op_has_its_kinds():
    assert KINDS.keys() == ELEMENTWISE
    assert all(mask and not mask & ~(ANY | COMPLEX) for mask in KINDS.values())
    takes_complex = {name(op) for op, mask in KINDS.items() if mask & COMPLEX}
    assert takes_complex == {
        *("ADD", "MUL", "NEG", "DIV", "EQUAL", "WHERE", "REAL", "IMAG"),
    }
    takes_bool = {name(op) for op, mask in KINDS.items() if mask & dtypes.bool.kind}
    assert takes_bool == {
        *("ADD", "MUL", "LESS", "LESS_EQUAL", "EQUAL", "AND", "OR", "XOR", "NOT"),
        *("WHERE", "CAST", "MAX", "MIN"),
    }
    assert kinds_text(KINDS[Op.SHL]) == "signed integers, unsigned integers, index"
