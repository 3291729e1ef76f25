"""A sample of `fuzz.symbolic`, and proof that it can fail."""

import pytest

from fuzz import symbolic
from fuzz.symbolic import MODES, Generator, main, shrink, try_difference
from tests.opencl import needs_opencl
from tests.unit.render.c_family_cases import needs_compiler

# Programs that went wrong once, with what was wrong.
FOUND = {
    "a remainder by a symbolic size was taken for one by a constant": (
        "x0 = base(3, (3, 8, 4))",
        "x1 = x0[:, :m].reshape(-1)",
        "x1 += 1",
    ),
    "a mask solved for a variable changed the extent of a range": (
        "x0 = (base(1, (8, 4)).sum(0, keepdim=True) % 7).realize()",
        "x1 = x0.flip(1).pad(((n + m, 8 - p), (0, 0)))",
    ),
    "the extent of a range was simplified in one source and not in another": (
        "x0 = base(2, (4, 8))",
        "x1 = x0[Tensor.full((m, p + 1), 3).flatten() % 8]",
        "x2 = Tensor.arange((n * 8 + m + 3) // 4).int() + 1",
    ),
    "a range of n iterations was taken to cover an axis of the greatest n": (
        "x0 = base(1, (8, 4))",
        "x0 += 1",
        "x0[:n] = x0[:n] + 1",
    ),
}


@pytest.mark.parametrize("lines", FOUND.values(), ids=FOUND.keys())
def test_what_went_wrong_once(lines):
    for mode in MODES:
        assert try_difference(lines, mode, "CPU") is None


@pytest.mark.parametrize("mode", MODES)
def test_sample(mode, seed):
    for number in range(6):
        lines = Generator(seed + number).lines
        assert try_difference(lines, mode, "CPU") is None, "\n".join(lines)


@pytest.mark.parametrize(
    "device",
    [
        pytest.param("C", marks=needs_compiler),
        pytest.param("OPENCL", marks=needs_opencl),
    ],
)
def test_other_devices(device, monkeypatch):
    monkeypatch.setattr(symbolic, "VALUES", symbolic.VALUES[:2])
    lines = (
        "x0 = base(1, (8, 4))",
        "x0[:n] = x0[:n] * 2",
        "x1 = x0[:n] @ x0[:m].transpose(0, 1) % 13",
        "x2 = x1.flatten().pad((p, 1)).sum(0)",
    )
    assert try_difference(lines, "lazy", device) is None


def test_the_same_seed_is_the_same_program():
    assert Generator(7).lines == Generator(7).lines
    assert Generator(7).lines != Generator(8).lines


def test_a_difference_is_found_and_shrunk(monkeypatch):
    lines = ["x0 = base(0, (8,))", "x1 = x0 + 1", "x2 = x0[:n] * 2"]
    assert try_difference(lines, "python", "CPU") is None
    same = symbolic.is_same
    monkeypatch.setattr(symbolic, "is_same", lambda got, want: want.size == 8 and same(got, want))
    assert "x2" in str(try_difference(lines, "python", "CPU"))
    assert shrink(lines, "python", "CPU") == [lines[0], lines[2]]


def test_what_depends_on_the_value_is_found():
    lines = ["x0 = base(0, (8,))", "x1 = x0[:n] * int(n)"]
    assert "again" in str(try_difference(lines, "lazy", "CPU"))


def test_main_reports(capsys):
    assert main(["--count", "1", "--seed", "5", "--modes", "python"]) == 0
    assert capsys.readouterr().out.startswith("seed 5\n")
