"""`CHECK=levels` finds the phase that changes a result."""

import json

import numpy as np
import pytest

import weft
from weft.codegen import generate as codegen
from weft.engine import run
from weft.engine.checks import levels as check
from weft.engine.checks.rules import first_wrong
from weft.ir.build import range_
from weft.ir.dtypes import FLOAT
from weft.ir.ops import Op
from weft.ir.uop import make
from weft.ir.walk import substitute
from weft.rewrite.driver import rewrite
from weft.rewrite.pattern import any_, const_
from weft.rewrite.rule import rule
from weft.rewrite.ruleset import rules
from weft.rewrite.trace import tracing
from weft.rewrite.trace_file import recording
from weft.rules.simplify import simplify
from weft.schedule import schedule
from weft.support.settings import Context
from weft.tensor.tensor import Tensor


def random(*shape):
    return Tensor(np.random.default_rng(1).standard_normal(shape).astype(np.float32)).realize()


def test_right_programs_pass():
    x = random(5, 7)
    with Context(CHECK="levels"):
        y = (x.softmax() @ x.T).relu().realize()
        x[1:3] = 2.0
        x.realize()
    assert y.shape == (5, 5)


def test_a_wrong_device_is_named(monkeypatch):
    monkeypatch.setattr(run.Prepared, "_launch", lambda *_: None)
    x = random(6)
    with Context(CHECK="levels"), pytest.raises(weft.InternalError, match="in pass device"):
        (x + 1).realize()


def test_memory_that_nobody_wrote_is_compared_without_a_warning():
    signaling = np.full(6, 0x7F800001, np.uint32).view(np.float32)
    assert not check._are_close(weft.dtypes.float32, np.ones(6, np.float32), signaling)


def test_a_wrong_codegen_is_named(monkeypatch):
    real = check.generate

    def wrong(kernel, target, watch):
        return real(weft.ir.walk.substitute(kernel, _plus_one(kernel)), target, watch=watch)

    monkeypatch.setattr(check, "generate", wrong)
    x = random(6)
    with (
        Context(CHECK="levels"),
        pytest.raises(weft.InternalError, match="in pass normalize-kernel"),
    ):
        (x * 2).realize()


def _plus_one(kernel):
    value = kernel.src[0].src[1]
    return {value: value + 1.0}


def test_large_graphs_are_refused():
    x = Tensor(np.zeros(300_000, np.float32)).realize()
    with Context(CHECK="levels"), pytest.raises(weft.NotSupported, match="too large"):
        (x + 1).realize()


@weft.function
def layer(x, w):
    return (x @ w).relu().sum(1)


@weft.function
def pair(x):
    return x * 2, layer(x, x.T)


@pytest.mark.parametrize("call", [lambda x: layer(x, x.T), lambda x: pair(x)[1] + 1])
def test_called_functions_pass(call):
    with Context(CHECK="levels"):
        assert call(random(4, 6)).realize().shape == (4,)


@pytest.mark.parametrize("name", [step.name for step in schedule._BODY.passes])
def test_a_wrong_pass_over_a_called_function_is_named(monkeypatch, name):
    """The graph itself has nothing that the pass could get wrong."""
    passes = schedule._BODY.passes
    at = next(i for i, step in enumerate(passes) if step.name == name)

    def wrong(root, context):
        made = passes[at].run(root, context)
        found = [n for n in weft.ir.walk.topological(made) if n.op == Op.CONST and n.arg == 3.0]
        if made.op == Op.LINEAR:
            kernel = made.src[0].arg
            changed = weft.ir.walk.substitute(kernel, _fours(kernel))
            return weft.ir.walk.substitute(
                made, {made.src[0]: make(Op.CALL, made.dtype, made.src[0].src, changed)}
            )
        assert found
        return weft.ir.walk.substitute(made, _fours(made))

    planted = passes[at]._replace(run=wrong, needs=frozenset())
    monkeypatch.setattr(
        schedule,
        "_BODY",
        schedule._BODY._replace(passes=(*passes[:at], planted, *passes[at + 1 :])),
    )
    monkeypatch.setattr(schedule, "_BODIES", {})

    @weft.function
    def thrice(x):
        return x * 3.0

    with (
        Context(CHECK="levels"),
        pytest.raises(weft.InternalError, match=f"changes in pass {name}"),
    ):
        (thrice(random(5)) + 0.5).realize()


def _fours(root):
    nodes = weft.ir.walk.topological(root)
    return {n: n.const_like(4.0) for n in nodes if n.op == Op.CONST and n.arg == 3.0}


def test_a_wrong_pass_is_shown_in_the_trace(tmp_path, monkeypatch):
    """What `CHECK=levels` finds is a record of the trace, with the graph that the pass gives."""
    real = check.generate

    def wrong(kernel, target, watch):
        value = kernel.src[0].src[1]
        return real(substitute(kernel, {value: value + 1.0}), target, watch=watch)

    monkeypatch.setattr(check, "generate", wrong)
    path = tmp_path / "t.jsonl"
    x = Tensor([1.0, 2.0, 3.0]).realize()
    with recording(path), Context(CHECK="levels"), pytest.raises(weft.InternalError):
        (x * 5).realize()
    records = [json.loads(line) for line in path.read_text().splitlines()]
    (found,) = [record for record in records if record["kind"] == "check"]
    assert found["check"] == "levels" and found["pass"] == "normalize-kernel"
    assert any(record["kind"] == "node" and record["id"] == found["root"] for record in records)


x, y, c0 = any_("x"), any_("y"), const_("c0")
WRONG_RULES = rules(
    "planted",
    rule("add-commutes-with-zero", x + 0.0, x, over=FLOAT),
    rule("mul-forgets", (x * y) + c0, x * y, over=FLOAT),
)


def test_a_wrong_rule_is_named(monkeypatch, tmp_path):
    """Among the rules of a pass, the one whose sides differ; and the page shows it."""
    real = check.generate

    def wrong(kernel, target, watch):
        def run(root, context):
            return rewrite(step.run(root, context), WRONG_RULES)

        step, *rest = codegen.CODEGEN.passes
        phase = codegen.CODEGEN._replace(passes=(step._replace(run=run), *rest))
        with monkeypatch.context() as patch:
            patch.setattr(codegen, "CODEGEN", phase)
            return real(kernel, target, watch=watch)

    monkeypatch.setattr(check, "generate", wrong)
    given, path = random(5), tmp_path / "t.jsonl"
    with Context(CHECK="levels"), pytest.raises(weft.InternalError) as caught:
        (given * 2.5 + 1.5).realize()
    assert "the result changes in pass normalize-kernel" in str(caught.value)
    assert "mul-forgets" in str(caught.value) and "+ 1.5" in str(caught.value)
    with recording(path), Context(CHECK="levels"), pytest.raises(weft.InternalError):
        (given * 3.5 + 1.5).realize()
    assert "by the rule mul-forgets" in path.read_text()


def test_rewrites_that_cannot_be_judged_blame_nobody():
    i, j = range_(0, 16), range_(1, 4)
    with tracing() as trace:
        simplify((i * 4 + j) // 8 + (i * 8) // 4)
    (steps,) = [part.steps for part in trace.passes]
    assert steps and first_wrong(steps) is None
    assert first_wrong([steps[0]._replace(after=steps[0].before + 1)]) is not None
