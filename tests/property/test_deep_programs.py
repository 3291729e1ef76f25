"""A sample of `fuzz.deep_programs`, and proof that it can fail."""

import pytest

from fuzz.deep_libraries import HAS_TORCH, WeftLibrary
from fuzz.deep_programs import MODES, Program, main, oracle, script, shrink, try_difference
from fuzz.deep_trees import SMALL, Tree

SOFTMAX = Program(
    (
        "t0 = lib.leaf((2, 3), 1)",
        "t1 = t0.sum(0)",
        "t2 = lib.power(t0)",
        "t3 = t2.softmax(1)",
        "t4 = lib.loss(t3, 2)",
        "t5 = lib.gradient(t4, t0)",
    ),
    ("t1", "t5"),
    "float32",
)


def test_a_sample_agrees(capsys: pytest.CaptureFixture[str]):
    # The seed is fixed: what rounding may do to a random program has no bound.
    assert main(["--count", "12", "--seed", "11", "--size", "small", "--modes", "lazy,noopt"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("seed 11\n")
    assert " 0 differences" in printed


@pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not installed")
def test_both_oracles_agree(monkeypatch: pytest.MonkeyPatch):
    wanted = oracle(SOFTMAX)
    monkeypatch.setattr("fuzz.deep_programs.HAS_TORCH", False)
    ours = oracle(SOFTMAX)
    for name in SOFTMAX.outputs:
        assert abs(wanted.arrays[name] - ours.arrays[name]).max() < 1e-12


def test_a_wrong_function_is_found_and_the_program_shrunk(monkeypatch: pytest.MonkeyPatch):
    wanted = oracle(SOFTMAX)
    right = WeftLibrary.power
    assert try_difference(SOFTMAX, wanted, MODES["python"], "CPU") is None
    if not HAS_TORCH:
        pytest.skip("the other oracle would be wrong in the same way")
    monkeypatch.setattr(WeftLibrary, "power", lambda self, x: right(self, x) * 1.01)
    problem = try_difference(SOFTMAX, wanted, MODES["python"], "CPU")
    assert problem is not None and problem.startswith("t5 is off by ")
    small = shrink(SOFTMAX, MODES["python"], "CPU")
    assert small.outputs == ("t5",)
    assert "t1 = t0.sum(0)" not in small.lines
    assert "t2 = lib.power(t0)" in small.lines


def test_an_error_is_a_difference():
    program = Program(("t0 = lib.leaf((2,), 1)",), ("t0",), "float32")
    wrong = program._replace(lines=("t0 = lib.leaf((2,), 1).nothing()",))
    problem = try_difference(wrong, oracle(program), MODES["python"], "CPU")
    assert problem is not None and problem.startswith("UnknownAttribute")


def test_the_script_runs(capsys: pytest.CaptureFixture[str]):
    exec(script(SOFTMAX, MODES["python"], "CPU"), {})
    assert capsys.readouterr().out == "None\n"


def test_the_shapes_of_a_tree_are_those_of_its_values():
    for seed in range(20):
        tree = Tree(seed, SMALL)
        names: dict[str, object] = {}
        exec("\n".join(tree.lines), {"lib": WeftLibrary("float32")}, names)
        assert {name: value.shape for name, value in names.items()} == tree.shapes  # type: ignore[attr-defined]
