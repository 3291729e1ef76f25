"""An error planted in a single pass: `CHECK=levels` names that pass, and so does its spec."""

import numpy as np
import pytest

import weft
from weft.codegen import generate as codegen
from weft.codegen.phases import CODEGEN
from weft.engine.checks import levels as check
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.uop import UOp, const, make
from weft.ir.walk import map_graph, rebuild, substitute
from weft.reference.schedule import is_schedule
from weft.rewrite.phase import Pass, Phase
from weft.schedule import phases, schedule
from weft.schedule.phases import SCHEDULE, SHARD
from weft.support.settings import Context
from weft.tensor.tensor import Tensor

SCHEDULE_PASSES = [step.name for step in SCHEDULE.passes]
CODEGEN_PASSES = [step.name for step in CODEGEN.passes]


def random(*shape: int) -> Tensor:
    return Tensor(np.random.default_rng(1).standard_normal(shape).astype(np.float32)).realize()


@weft.function
def scaled(x: Tensor) -> Tensor:
    return x * 3.0


def scattered() -> Tensor:
    return random(5).scatter_add(0, Tensor([0, 3, 3, 1]), random(4))


# A program on which each pass has something to do; softmax for those that are not listed.
PROGRAMS = {
    "lower-complex": lambda: (random(5) * 2j).conj() * (1 + 1j),
    "trim-calls": lambda: scaled(random(5)) + 1.0,
    "block-scans": lambda: random(6).cumsum(0) * 2.0,
    "store-scatters": scattered,
    "emulate-small-floats": lambda: random(6).cast(dtypes.float16) * 2.0,
}


def program(name: str) -> Tensor:
    return PROGRAMS.get(name, lambda: random(3, 8).softmax() @ random(8, 2))()


def more(value: UOp) -> UOp:
    if value.dtype.scalar is dtypes.uint16:  # the bits of a float16: another exponent
        return make(Op.ADD, value.dtype, (value, const(value.dtype, 1 << 11)))
    return make(Op.ADD, value.dtype, (value, const(value.dtype, 1)))


def nowhere(value: UOp) -> UOp:
    """The value behind an op that is legal neither in a kernel nor in a program."""
    return make(Op.READ, value.dtype, (value, const(dtypes.bool, True)))


def with_value(root: UOp, change) -> UOp:
    """A graph of any level that stores another value."""
    if is_schedule(root):
        *calls, last = root.src
        wrong = make(Op.CALL, last.dtype, last.src, with_value(last.arg, change))
        return make(Op.LINEAR, root.dtype, (*calls, wrong), root.arg)
    if root.op == Op.LINEAR:
        return with_instruction(root, change)
    stores: list[UOp] = []

    def changed(node: UOp, made) -> UOp:
        src = [made[source] for source in node.src]
        if node.op == Op.STORE and not stores and src[1].op != Op.SCATTER:
            stores.append(node)
            src[1] = change(src[1])
        return rebuild(node, tuple(src))

    result = map_graph(root, changed)
    assert stores
    return result


def with_instruction(program: UOp, change) -> UOp:
    """A program whose last store writes another value."""
    lines = list(program.src)
    last = max(i for i, line in enumerate(lines) if line.op == Op.STORE)
    address, value = lines[last].src
    new = change(value)
    written = make(Op.STORE, dtypes.void, (address, new))
    replaced = {lines[last]: written}
    tail = [substitute(line, replaced) for line in lines[last + 1 :]]
    return make(Op.LINEAR, dtypes.void, (*lines[:last], new, written, *tail))


def planted(phase: Phase, name: str, change) -> Phase:
    """The phase with one pass that gives something else."""

    def wrong(step: Pass) -> Pass:
        if step.name != name:
            return step

        def run(root: UOp, context: object) -> UOp:
            return with_value(step.run(root, context), change)

        return step._replace(run=run, needs=frozenset())

    return phase._replace(passes=tuple(map(wrong, phase.passes)))


def plant(monkeypatch, module, attribute: str, function: str, name: str, change) -> None:
    """Plant an error in what the check runs; the device's own programs stay right."""
    real = getattr(check, function)
    phase = planted(getattr(module, attribute), name, change)

    def wrong(*args, **details):
        with monkeypatch.context() as patch:
            patch.setattr(module, attribute, phase)
            return real(*args, **details)

    monkeypatch.setattr(check, function, wrong)


@pytest.mark.parametrize("name", SCHEDULE_PASSES)
def test_the_check_names_a_wrong_schedule_pass(name: str, monkeypatch):
    plant(monkeypatch, schedule, "SCHEDULE", "make_schedule", name, more)
    with Context(CHECK="levels"), pytest.raises(weft.InternalError, match=f"in pass {name}\n"):
        program(name).realize()


@pytest.mark.parametrize("name", CODEGEN_PASSES)
def test_the_check_names_a_wrong_codegen_pass(name: str, monkeypatch):
    plant(monkeypatch, codegen, "CODEGEN", "generate", name, more)
    with Context(CHECK="levels"), pytest.raises(weft.InternalError, match=f"in pass {name}\n"):
        program(name).realize()


def shifted(root: UOp, context: object) -> UOp:
    """The shards with each first value of a shard put elsewhere."""
    return make(Op.SINK, dtypes.void, tuple(rebuild(t, tuple(map(more, t.src))) for t in root.src))


def test_the_check_names_a_wrong_shard_pass(monkeypatch):
    (step,) = SHARD.passes
    wrong = step._replace(run=lambda root, context: shifted(step.run(root, context), context))
    x = random(6, 4).shard(("CPU:0", "CPU:1"), axis=0)
    with Context(CHECK="levels"):
        np.testing.assert_allclose((x * 2.0).numpy(), random(6, 4).numpy() * 2.0)
        monkeypatch.setattr(phases, "SHARD", SHARD._replace(passes=(wrong,)))
        with pytest.raises(weft.InternalError, match="in pass shard\n"):
            (x * 3.0).realize()


@pytest.mark.parametrize("name", CODEGEN_PASSES)
def test_an_index_out_of_bounds_is_blamed_on_the_pass(name: str, monkeypatch):
    """Not a wrong value but none at all: the interpreter stops, and the error names the pass."""
    if name in CODEGEN_PASSES[CODEGEN_PASSES.index("linearize") :]:
        pytest.skip("its addresses are instructions; the wrong value above is the test")

    def misplaced(root: UOp) -> UOp:
        done: list[UOp] = []

        def changed(node: UOp, made) -> UOp:
            src = [made[source] for source in node.src]
            if node.op == Op.LOAD and not done and src[0].src[0].op == Op.PARAM:
                done.append(node)
                memory, mask, first, *rest = src[0].src
                address = rebuild(src[0], (memory, mask, first + 100, *rest))
                src[0] = address
            return rebuild(node, tuple(src))

        return map_graph(root, changed)

    real, phase = check.generate, CODEGEN
    steps = {step.name: step for step in phase.passes}
    step = steps[name]
    wrong = step._replace(
        run=lambda root, context: misplaced(step.run(root, context)), needs=frozenset()
    )
    passes = tuple(wrong if each is step else each for each in phase.passes)

    def generate(*args, **details):
        with monkeypatch.context() as patch:
            patch.setattr(codegen, "CODEGEN", phase._replace(passes=passes))
            return real(*args, **details)

    monkeypatch.setattr(check, "generate", generate)
    with (
        Context(CHECK="levels"),
        pytest.raises(weft.InternalError, match=f"what pass {name} gives cannot be run"),
    ):
        program(name).realize()


@pytest.mark.parametrize("name", [*SCHEDULE_PASSES, *CODEGEN_PASSES])
def test_the_spec_names_a_pass_that_gives_an_illegal_node(name: str, monkeypatch):
    monkeypatch.setattr(codegen, "CODEGEN", planted(CODEGEN, name, nowhere))
    monkeypatch.setattr(schedule, "SCHEDULE", planted(SCHEDULE, name, nowhere))
    with (
        Context(CHECK="levels", SPEC=True, CACHE=False),
        pytest.raises(weft.InternalError) as error,
    ):
        program(name).realize()
    assert ("pass", name) in error.value.facts
    assert "READ" in str(error.value)


def two_temporaries() -> Tensor:
    """Two products that a third one reads, so that both live at once."""
    x = random(12, 12)
    return (x @ x).contiguous() @ (x @ x.T).contiguous()


@pytest.mark.parametrize(
    "offsets", [lambda slot, at: (slot, 0), lambda slot, at: (slot, at + 256)]
)
def test_the_check_names_a_plan_whose_temporaries_overlap(offsets, monkeypatch):
    step = SCHEDULE.passes[-1]
    assert step.name == "plan"

    def run(root: UOp, context: object) -> UOp:
        planned = step.run(root, context)
        size, pairs = planned.arg
        assert len(pairs) == 2
        return make(
            Op.LINEAR, planned.dtype, planned.src, (size, tuple(offsets(*p) for p in pairs))
        )

    phase = SCHEDULE._replace(passes=(*SCHEDULE.passes[:-1], step._replace(run=run)))
    real = check.make_schedule

    def wrong(*args, **details):
        with monkeypatch.context() as patch:
            patch.setattr(schedule, "SCHEDULE", phase)
            return real(*args, **details)

    monkeypatch.setattr(check, "make_schedule", wrong)
    with Context(CHECK="levels"), pytest.raises(weft.InternalError, match="what pass plan gives"):
        two_temporaries().realize()


def test_every_pass_has_a_spec():
    for step in (*SHARD.passes, *SCHEDULE.passes, *CODEGEN.passes):
        assert step.gives is not None, step.name
