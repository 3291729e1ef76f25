"""The table of rules: complete, in the order of the op table, each rule with its formula."""

from weft.gradient.reduce import REDUCTION_RULES
from weft.gradient.table import RULES, WITHOUT_RULE
from weft.ir.dtypes import FLOAT
from weft.ir.ops import name
from weft.ir.scalar import KINDS
from weft.ir.spec.common import REDUCTIONS
from weft.ir.spec.tensor import TENSOR_SPEC


def test_every_op_of_the_tensor_graph_has_a_rule_or_a_reason():
    assert not RULES.keys() & WITHOUT_RULE.keys()
    known = RULES.keys() | WITHOUT_RULE.keys()
    assert {name(op) for op in known} == {name(op) for op in TENSOR_SPEC.ops}


def test_the_rules_are_in_the_order_of_the_ops():
    assert list(RULES) == sorted(RULES)


def test_every_rule_states_its_formula():
    for rule in (*RULES.values(), *REDUCTION_RULES.values()):
        assert rule.__doc__ and ":" in rule.__doc__.splitlines()[0]


def test_every_reduction_of_floats_has_a_rule():
    assert {op for op in REDUCTIONS if KINDS[op] & FLOAT} == REDUCTION_RULES.keys()
