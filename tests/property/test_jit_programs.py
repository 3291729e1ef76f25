"""A sample of `fuzz.jit`, and proof that it can fail."""

import re
from typing import Any

import numpy as np
import pytest

from fuzz.jit import MODES, check, main, script, try_difference
from fuzz.jit_lines import JitGenerator
from fuzz.jit_oracle import Descent, Draws, JitOracle
from fuzz.program_oracle import Line
from fuzz.subject import shrink
from weft.codegen import generate as generating
from weft.codegen.generate import generate
from weft.engine import compile, work
from weft.ir.ops import Op
from weft.ir.program import Program
from weft.ir.uop import UOp, make
from weft.ir.walk import substitute, topological
from weft.nn.optim import SGD
from weft.support.cache import DiskCache
from weft.support.settings import Context
from weft.target.target import Target
from weft.tensor import Tensor
from weft.tensor.jit import make as jit_make


def test_random_programs_agree_with_numpy(seed: int, capsys: pytest.CaptureFixture[str]):
    assert main(["--count", "30", "--seed", str(seed), "--modes", "jit,python"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"seed {seed}\n")
    assert "30 programs, 0 differences" in printed


def test_all_modes(seed: int):
    assert main(["--count", "6", "--seed", str(seed)]) == 0


def test_the_oracle_draws_what_weft_draws():
    draws = Draws()
    for start in (0, 7, 1 << 40):
        Tensor.manual_seed(start)
        draws.seed(start)
        for shape in ((3,), (2, 5)):
            got = Tensor.randint(shape, low=-5, high=1000)
            assert got.tolist() == draws.integers(shape, -5, 1000).tolist()
            assert Tensor.rand(*shape).tolist() == draws.unit(shape).tolist()
        assert Tensor.randperm(9).tolist() == draws.permutation(9).tolist()


def test_the_oracle_descends_as_an_optimizer_does():
    start, slope = np.array([1.0, -2.0]), np.array([0.5, 1.0])
    for momentum in (0.0, 1.0):
        weight, wanted = Tensor(start, dtype="float32"), start.copy()
        ours = SGD([weight], lr=0.5, momentum=momentum)
        theirs = Descent(wanted, lr=0.5, momentum=momentum)
        for _ in range(3):
            ours.zero_grad()
            (weight * Tensor(slope, dtype="float32")).sum().backward()
            ours.step()
            theirs.step(slope)
        assert weight.tolist() == wanted.tolist()


def test_a_store_past_the_end_is_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """The loop of a kernel has an iteration too many."""

    def careless(kernel: UOp, target: Target, *rest: Any, **options: Any) -> Program:
        loops = [node for node in topological(kernel) if node.op == Op.RANGE]
        if len(loops) == 1 and loops[0].src[0].op == Op.CONST:
            (loop,) = loops
            longer = make(Op.RANGE, loop.dtype, (loop.src[0] + 1,), loop.arg)
            kernel = substitute(kernel, {loop: longer})
        return generate(kernel, target, *rest, **options)

    monkeypatch.setattr(generating, "generate", careless)
    monkeypatch.setattr(compile, "_CACHE", DiskCache("careless", 1))  # others keep theirs
    monkeypatch.setattr(compile, "_LOADED", {})
    monkeypatch.setattr(work, "_PREPARED", {})
    monkeypatch.setattr(work, "_WORK", {})
    with Context(SPEC=False):  # the spec would see that the kernel is wrong before it runs
        assert main(["--count", "4", "--seed", "3", "--modes", "jit"]) == 1
    assert "stores outside of its memory, at byte" in capsys.readouterr().out


def test_a_write_that_is_not_replayed_is_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    make = jit_make.make_graph

    def forgetful(recording, wanted):
        recording.written.clear()
        return make(recording, wanted)

    monkeypatch.setattr(jit_make, "make_graph", forgetful)
    assert main(["--count", "1", "--seed", "16", "--modes", "python"]) == 1
    assert "shrunk to" in capsys.readouterr().out


def test_aliases_that_are_not_seen_are_found(monkeypatch: pytest.MonkeyPatch):
    lines = [
        Line("t1 = Tensor([1, 2])", "t1 = new([1, 2], 'int32')"),
        Line(
            "@jit\ndef f1(t2):\n    t2 += 1\n    return t1 * 10,",
            "@jit\ndef f1(t2):\n    t2 += 1\n    return t1 * 10,",
        ),
        Line("t3, = f1(t1)", "t3, = f1(t1)"),
    ]
    assert check(lines, list(MODES), "CPU") is None
    monkeypatch.setattr(jit_make, "_watched", lambda *_: set())
    assert try_difference(lines, MODES["python"], "CPU") == "t3 is [10, 20], not [20, 30]"


def test_bodies_are_shrunk_too():
    body = "@jit\ndef f1(t2):\n    t3 = t2 + 1\n    t4 = t2 * 2\n    return t3,"
    lines = [
        Line("t1 = Tensor([1, 2])", "t1 = new([1, 2], 'int32')"),
        Line(body, body),
        Line("t5, = f1(t1)", "t5, = f1(t1)"),
    ]
    small = shrink(lines, lambda fewer: "t5" in JitOracle(list(fewer)).names)
    assert small[1].ours == body.replace("    t4 = t2 * 2\n", "")
    assert len(small) == 3


def test_programs_have_all_that_functions_can_take():
    text = "\n".join(line.ours for seed in range(80) for line in JitGenerator(seed).lines)
    parts = [
        *("@jit(donate=(0,))", "@jit\n@function", "size.bind(", ", k", "= f1(", "manual_seed"),
        *(".randint(", ".rand(", ".randperm(", ".dropout(", ".gradient(", ".step()"),
        *("Pair(", "{'a0': ", "raise Stop", "except Stop", ".to(away)", ".numpy()", "Box("),
    ]
    for part in parts:
        assert part in text
    assert re.search(r"\n    .*= f\d\(", text)  # a jitted function that calls another
    assert re.search(r"\nb\d+\.[tk] = ", text)  # an object that changes between calls


def test_the_script_runs(capsys: pytest.CaptureFixture[str]):
    exec(script(JitGenerator(3).lines, MODES["jit"], "CPU"), {})
    for line in capsys.readouterr().out.splitlines():
        _, _, rest = line.partition(" ")
        got, _, wanted = rest.partition(" not ")
        assert eval(got) == eval(wanted)
