"""Decision functions that come with Weft are what the rules say, and are the ones that run."""

import subprocess
import sys
from pathlib import Path

import pytest

from weft.ir.ops import COUNT
from weft.rewrite import matcher, ruleset
from weft.rewrite.pattern import any_
from weft.rewrite.rule import rule
from weft.rewrite.ruleset import SHIPPED, rules
from weft.rules.fold import FOLD_RULES
from weft.rules.memory import KERNEL_RULES
from weft.rules.simplify import SIMPLIFY
from weft.schedule.normalize import NORMALIZE

ROOT = Path(__file__).parents[3]
SETS = (FOLD_RULES, KERNEL_RULES, NORMALIZE, SIMPLIFY)
x, y = any_("x"), any_("y")


def test_files_are_what_the_rules_say():
    done = subprocess.run(
        [sys.executable, "tools/matchers.py", "--check"],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("made", SETS, ids=lambda made: made.name)
def test_nothing_is_generated(made, monkeypatch):
    def refuse(*args: object) -> str:
        raise AssertionError(f"{made.name} is generated")

    assert made.name in SHIPPED
    monkeypatch.setattr(matcher, "generate", refuse)
    monkeypatch.setattr(ruleset, "_CACHE", None)
    assert {op for op, each in enumerate(made.compile(None)) if each is not None} == {
        op for op in range(COUNT) if made.roots >> op & 1
    }


def test_a_set_of_another_content_is_generated():
    """A rule that is changed works before its file is written anew."""
    other = rules("fold", rule("add-zero", x + 0, x))
    assert [op for op, each in enumerate(other.compile(None)) if each is not None] == [
        op for op in range(COUNT) if other.roots >> op & 1
    ]


def test_a_set_takes_over_what_a_member_has():
    """Where another set is most of it, only roots with further rules are its own."""
    inner = rules("inner", rule("one", x + 0, x), rule("two", x * 1, x), rule("three", x - 0, x))
    outer = rules("outer", inner, rule("four", x * 2, x + x))
    shared = [a is b for a, b in zip(inner.table, outer.table, strict=True) if a is not None]
    assert shared.count(True) == len(shared) - 1
    assert rules("little of it", rule("a", x + y, x), rule("b", x * y, x), rules("c")).table
