"""Twice the program takes about twice the work to compile, and kernels stay as large as they are.

The chains are those of `python -m bench.chains`, which shows seconds and exponents. Here the calls
of functions are counted, Python's and built-in ones, from tensors to the source of the kernels.
"""

import cProfile

import pytest

from bench.chains import CHAINS, Compiled, compile_chain

SHORT, LONG = 50, 100
MOST_GROWTH = 2.5
SLOW = ("sorts", "convolutions", "attentions")
# Unrolled copies make some instructions of each op.
MOST_INSTRUCTIONS = 6000


def calls_of(name: str, count: int) -> tuple[int, Compiled]:
    profile = cProfile.Profile()  # it counts in C
    compiled = profile.runcall(compile_chain, name, count)
    return sum(entry.callcount for entry in profile.getstats()), compiled


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.long] * (name in SLOW)) for name in sorted(CHAINS)],
)
def test_work_is_near_linear(name: str):
    shorter = 2 if name == "gathers" else 1
    compile_chain(name, SHORT // shorter)  # compiled rules and imports
    short, _ = calls_of(name, SHORT // shorter)
    long, compiled = calls_of(name, LONG // shorter)
    assert long < MOST_GROWTH * short
    assert max(compiled.instructions) < MOST_INSTRUCTIONS
