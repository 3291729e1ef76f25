"""Patterns, generated decision functions, drivers, loops, traces."""

import pytest

import weft
from weft.ir.build import call, param, range_, variable
from weft.ir.dtypes import FLOAT, INDEX, dtypes
from weft.ir.ops import Op
from weft.ir.uop import const, make
from weft.rewrite.driver import rewrite
from weft.rewrite.pattern import any_, const_, fold, node_, op_, where_
from weft.rewrite.rule import rule, structural
from weft.rewrite.ruleset import rules
from weft.rewrite.trace import tracing
from weft.rules.simplify import SIMPLIFY, simplify

i, j, k = range_(0, 16), range_(1, 8), range_(2, 4)
x, y, z = any_("x"), any_("y"), any_("z")
c0, c1 = const_("c0"), const_("c1")


def number(value):
    return const(dtypes.index, value)


def test_an_identity_fires_where_it_matches():
    some = rules("some", rule("add-zero", x + 0, x))
    assert rewrite(i + 0, some) is i
    assert rewrite((i + 0) * (j + 0), some) is i * j
    assert rewrite(i + 1, some) is i + 1


def test_commutative_ops_match_both_ways_round():
    some = rules("some", rule("take-out", (x * y) + x, x * (y + 1)))
    assert rewrite(i * j + i, some) is i * (j + 1)
    assert rewrite(i + i * j, some) is i * (j + 1)
    assert rewrite(j * i + i, some) is i * (j + 1)
    assert rewrite(i * j + k, some) is i * j + k


def test_sets_that_order_constants_need_one_way_only():
    both = rules("both", rule("r", x + c0, x)).source()
    right = rules("right", rule("r", x + c0, x), constants_right=True).source()
    assert len(right.splitlines()) < len(both.splitlines())


def test_guards_receive_values_of_constants_and_nodes():
    some = rules(
        "some",
        rule("cancel", (x * c0) // c1, x * fold(c0 // c1), when=lambda c0, c1: c0 % c1 == 0),
        rule("first", x % y, x, when=lambda x, y, node: x.op == Op.RANGE and node.src[1] is y),
    )
    assert rewrite((i * 8) // 4, some) is i * 2
    assert rewrite((i * 8) // 3, some) is (i * 8) // 3
    assert rewrite(i % j, some) is i


def test_specific_rules_come_before_general_ones():
    some = rules(
        "some",
        rule("general", x * y, 1),
        rule("specific", (x + y) * z, 2),
        rule("in-order", (x + 0) * z, 3),
    )
    assert rewrite(i * j, some) is number(1)
    assert rewrite((i + k) * j, some) is number(2)
    assert rewrite((i + 0) * j, some) is number(3)


def test_kinds_select_rules():
    some = rules("some", rule("only-index", x + x, x * 2, over=INDEX))
    value = make(Op.PARAM, dtypes.float32, (), (0, ()))
    assert rewrite(i + i, some) is i * 2
    assert rewrite(value + value, some) is value + value


def test_literals_tell_zeros_apart():
    some = rules("some", rule("neutral", x + -0.0, x, over=FLOAT))
    value = make(Op.PARAM, dtypes.float32, (), (0, ()))
    assert rewrite(value + -0.0, some) is value
    assert rewrite(value + 0.0, some) is value + 0.0


def test_variadic_ops_match_by_length():
    pair = node_(Op.TUPLE, x, y)
    some = rules("some", rule("first", pair, x), rule("swap", node_(Op.TUPLE, x, y, z), z))
    assert rewrite(make(Op.TUPLE, dtypes.void, (i, j)), some) is i
    assert rewrite(make(Op.TUPLE, dtypes.void, (i, j, k)), some) is k
    one = make(Op.TUPLE, dtypes.void, (i,))
    assert rewrite(one, some) is one


def test_the_root_variable_and_untested_sources():
    some = rules("some", rule("drop", where_(op_(Op.LESS, "c"), x, y), x))
    assert rewrite((i < 4).where(i, j), some) is i


def test_functions_may_decline():
    @structural(x + c0)
    def only_even(x, c0):
        return x if c0 % 2 == 0 else None

    some = rules("some", only_even)
    assert some.rules[0].name == "only-even"
    assert rewrite(i + 2, some) is i
    assert rewrite(i + 3, some) is i + 3


def test_unbound_names_are_refused():
    with pytest.raises(weft.InternalError, match="y is not bound"):
        rules("some", rule("wrong", x + 0, y))


def test_two_identities_of_one_name_are_refused():
    with pytest.raises(weft.InternalError, match="two rules are called same"):
        rules("some", rule("same", x + 0, x), rule("same", x * 1, x))


def test_assumptions_are_off_until_allowed():
    some = rules("some", rule("div-self", x / x, 1.0, assumes=("nonzero",)))
    value = make(Op.PARAM, dtypes.float32, (), (0, ()))
    assert rewrite(value / value, some) is value / value
    assert rewrite(value / value, some.allowing("nonzero")).arg == 1.0


def test_rules_that_undo_each_other_are_named():
    some = rules(
        "loop",
        rule("factor", x * z + y * z, (x + y) * z),
        rule("distribute", (x + y) * z, x * z + y * z),
    )
    with pytest.raises(weft.InternalError) as caught:
        rewrite((i + j) * k, some)
    assert "factor" in caught.value.what
    assert "distribute" in caught.value.what
    assert "undo each other" in caught.value.what


def test_a_growing_graph_is_reported():
    some = rules("grow", rule("wrap", x + y, (x + y) * 1))
    with pytest.raises(weft.InternalError, match="wrap"):
        rewrite(i + j, some)


def test_many_hits_on_a_large_graph_are_no_loop():
    some = rules("some", rule("add-zero", x + 0, x))
    node = i
    for step in range(5_000):
        node = (node + 0) * (step + 2)
    assert not rewrite(node, some).ops >> Op.ADD & 1


def test_results_are_remembered_for_context_free_sets():
    calls = []

    @structural(x * c0)
    def watched(x, c0):
        calls.append(c0)

    some = rules("some", watched)
    node = i * 3 + i * 5
    rewrite(node, some)
    rewrite(node, some)
    rewrite(node * node, some)
    assert sorted(calls) == [3, 5]


def test_contextual_sets_see_their_context_and_remember_nothing():
    @structural(op_(Op.VARIABLE))
    def bound(node, context):
        return node.const_like(context[node.arg[0]])

    some = rules("bind", bound)
    n = variable("n", 1, 100)
    assert some.is_contextual
    assert rewrite(n // 3, some, {"n": 4}) is number(4) // number(3)
    assert rewrite(n // 3, some, {"n": 5}) is number(5) // number(3)


@pytest.mark.parametrize("depth", [10, 1_000, 100_000])
def test_deep_graphs_are_rewritten(depth):
    some = rules("some", rule("twice", x * 2, x + x))
    node = i
    for _ in range(depth):
        node = (node + j) * 2
    assert not rewrite(node, some).ops >> Op.MUL & 1


def test_deep_graphs_are_simplified():
    node = i
    for step in range(100_000):
        node = (node + j) % (13 + step % 2)
    assert simplify(node).dtype is dtypes.index


def test_rewriting_does_not_enter_bodies():
    body = param(0, dtypes.index, ()) + 0
    root = call(body, i + 0)
    assert rewrite(root, SIMPLIFY) is call(body, i)


def test_a_trace_shows_rule_before_after_and_why():
    some = rules(
        "simplify-index",
        rule("add-zero", x + 0, x),
        rule(
            "div-cancels-mul",
            (x * c0) // c1,
            x * fold(c0 // c1),
            when=lambda c0, c1: c0 % c1 == 0,
            why="{c1} divides {c0}",
        ),
    )
    node = (i * 8 + 0) // 4
    rewrite(node, some)
    with tracing() as trace:
        assert rewrite(node, some) is i * 2
    assert [step.rule.name for step in trace.passes[0].steps] == ["add-zero", "div-cancels-mul"]
    assert trace.passes[0].steps[1].why == "4 divides 8"
    assert trace.passes[0].counts["add-zero"] == 1
    assert "div-cancels-mul" in str(trace)
    assert "# 4 divides 8" in str(trace)


def test_the_generated_code_is_cached(monkeypatch):
    from weft.rewrite import matcher

    made = rules("cached", rule("some-rule", (x + c0) * c1, x * fold(c0 * c1 * 77)))
    made.compile(None)
    monkeypatch.setattr(matcher, "generate", lambda *_: pytest.fail("generated again"))
    rules("another name", rule("same-rule", (x + c0) * c1, x * fold(c0 * c1 * 77))).compile(None)
