"""Threads wait only between what one of them writes and another one reads."""

import pytest

from tests.unit.machines import machine
from weft.codegen.context import CodegenContext
from weft.codegen.linear.drop_barriers import drop_barriers
from weft.ir.build import load, param, store
from weft.ir.dtypes import dtypes
from weft.ir.ops import Op
from weft.ir.uop import UOp, const, make

CONTEXT = CodegenContext(machine(group_threads=8))
F32, I32 = dtypes.float32, dtypes.int32
out = param(0, F32, (64,))


class Lines:
    """A program, line by line; what follows a barrier has waited for it."""

    def __init__(self) -> None:
        self.lines: list[UOp] = []
        self.barrier: UOp | None = None

    def _address(self, name: str, index: int, space: str) -> UOp:
        memory = make(Op.MEMORY, F32, (), (name, space, 64))
        if self.barrier is not None:
            memory = make(Op.AFTER, F32, (memory, self.barrier))
        at = make(Op.INDEX, F32, (memory, const(dtypes.bool, True), const(I32, index)))
        self.lines.append(at)
        return at

    def store(self, name: str, index: int = 0, space: str = "local") -> None:
        at = self._address(name, index, space)
        self.lines.append(store(at, const(F32, float(len(self.lines)))))

    def load(self, name: str, index: int = 1, space: str = "local") -> None:
        self.lines.append(load(self._address(name, index, space)))

    def wait(self) -> None:
        waits_for = [line for line in self.lines if line.op in (Op.STORE, Op.BARRIER)][-1:]
        self.barrier = make(Op.BARRIER, dtypes.void, tuple(waits_for))
        self.lines.append(self.barrier)

    def loop(self, is_open: bool) -> None:
        if is_open:
            extent = const(I32, 4)
            self.lines.append(make(Op.RANGE, I32, (extent,), len(self.lines)))
        else:
            opened = next(line for line in reversed(self.lines) if line.op == Op.RANGE)
            self.lines.append(make(Op.END, dtypes.void, (opened,)))

    @property
    def program(self) -> UOp:
        return make(Op.LINEAR, dtypes.void, tuple(self.lines))


def written(text: str) -> UOp:
    """Words: `s` and `l` with a name are a store and a load, `|` is a barrier, `(` `)` a loop."""
    lines = Lines()
    for number, word in enumerate(text.split()):
        if word == "|":
            lines.wait()
        elif word in "()":
            lines.loop(word == "(")
        else:
            space = "register" if word[1:] == "own" else "local"
            (lines.store if word[0] == "s" else lines.load)(word[1:], number, space)
    return lines.program


def shown(program: UOp) -> str:
    marks = {Op.STORE: "s", Op.LOAD: "l", Op.BARRIER: "|", Op.RANGE: "(", Op.END: ")"}
    words = []
    for line in program.src:
        if line.op in (Op.STORE, Op.LOAD):
            memory = line.src[0].src[0]
            while memory.op == Op.AFTER:
                memory = memory.src[0]
            words.append(marks[line.op] + memory.arg[0])
        elif line.op in marks:
            words.append(marks[line.op])
    return " ".join(words)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("sa | sa | la", "sa sa | la"),  # several stores fill one tile
        ("sa | sa | sa | la", "sa sa sa | la"),
        ("sa | la", "sa | la"),  # what another thread wrote
        ("la | sa", "la | sa"),  # what another thread still reads
        ("sa | lb | la", "sa lb | la"),
        ("sa | sb | la", "sa sb | la"),
        ("sa | sb | la lb", "sa sb | la lb"),
        ("sown | lown", "sown lown"),  # nobody else sees it
        ("sa |", "sa"),  # nobody reads it any more
        ("sa | ( la )", "sa | ( la )"),  # a loop may come back to anything
        ("( sa | la )", "( sa | la )"),
        ("sa | sb | ( la )", "sa sb | ( la )"),
    ],
)
def test_a_barrier_that_separates_nothing_is_dropped(before: str, after: str):
    program = drop_barriers(written(before), CONTEXT)
    assert shown(program) == after


def test_a_program_in_which_all_are_needed_is_the_same_object():
    program = written("sa | la | sa")
    assert drop_barriers(program, CONTEXT) is program


def test_what_waited_for_a_dropped_barrier_waits_for_the_stores_before_it():
    program = drop_barriers(written("sa | sb | la"), CONTEXT)
    first, second = (line for line in program.src if line.op == Op.STORE)
    (barrier,) = (line for line in program.src if line.op == Op.BARRIER)
    assert second.src[0].src[0].op == Op.AFTER
    assert second.src[0].src[0].src[1] is first
    assert barrier.src == (second,)
