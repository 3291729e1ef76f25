"""A sample of `fuzz.programs` on each device, and proof that it can fail."""

import pytest

from fuzz.program_lines import Generator
from fuzz.program_oracle import InvalidLineError, Line, Oracle
from fuzz.programs import MODES, check, main, script, try_difference
from fuzz.subject import shrink
from tests.opencl import needs_opencl
from weft.tensor import Tensor

# Programs that went wrong once, with what was wrong.
FOUND = {
    "a value was read back from where index tensors had sent it": (
        ("t1 = Tensor.arange(6).reshape(2, 3)", "t1 = new([[0, 1, 2], [3, 4, 5]], 'int32')"),
        ("t2 = t1.min(0)", "t2 = new(t1.min(0), 'int32')"),
        ("t1[Tensor([0, 0])] = t1", "t1[[0, 0]] = t1.copy()"),
        ("t1.realize(t2)", "t1, t2"),
    ),
    "a value was left to a kernel that is empty and does not run": (
        ("t1 = Tensor.arange(5).reshape(1, 5)", "t1 = new([[0, 1, 2, 3, 4]], 'int32')"),
        ("t2 = t1.clamp(-3, 3)", "t2 = new(np.clip(t1, -3, 3), 'int32')"),
        ("t3 = t2[:0]", "t3 = t2[:0]"),
        ("t4 = t3 + 1", "t4 = new(t3 + 1, 'int32')"),
        ("t3.realize(t4)", "t3, t4"),
    ),
    "an accumulator that an index waits for was started twice": (
        ("t1 = Tensor([[3], [0], [3], [0], [-2], [1]])", "t1 = new([[5]] * 6, 'int32')"),
        ("t1[...] = t1.sum().cast('int32')", "pass"),
        ("t2 = (t1 + t1)[[2, -2], [0, 0]]", "t2 = new([10, 10], 'int32')"),
        ("t3 = t1.sum(None, keepdim=True).cast('int32')", "t3 = new([[30]], 'int32')"),
        ("t4 = t2[t3 % 2] | Tensor.stack(t2, t2)", "t4 = new([[10, 10]] * 2, 'int32')"),
        ("t3.realize(t4)", "t3, t4"),
    ),
}


@pytest.mark.parametrize("what", FOUND)
def test_programs_that_went_wrong_once(what: str):
    assert check([Line(*pair) for pair in FOUND[what]], list(MODES), "CPU") is None


@needs_opencl
def test_rows_that_begin_at_no_alignment_of_the_device_are_read():
    assert Tensor([[1], [2], [3]], device="OPENCL")[1:].tolist() == [[2], [3]]


def test_random_programs_agree_with_numpy(seed: int, capsys: pytest.CaptureFixture[str]):
    assert main(["--count", "60", "--seed", str(seed)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"seed {seed}\n")
    assert "60 programs, 0 differences" in printed


@needs_opencl
def test_random_programs_on_opencl(seed: int):
    # One mode: OpenCL takes half a second to compile a kernel.
    arguments = ["--count", "20", "--seed", str(seed), "--device", "OPENCL", "--modes", "lazy"]
    assert main(arguments) == 0


def test_a_broken_op_is_found_and_the_program_shrunk(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(Tensor, "__add__", lambda self, other: self - other)
    assert main(["--count", "40", "--seed", "1", "--modes", "python"]) == 1
    printed = capsys.readouterr().out
    assert "shrunk to 2 of" in printed or "shrunk to 3 of" in printed
    assert " 0 differences" not in printed


def test_a_write_that_is_lost_is_found(monkeypatch: pytest.MonkeyPatch):
    lines = [
        Line("t1 = Tensor([1, 2, 3])", "t1 = new([1, 2, 3], 'int32')"),
        Line("t2 = t1[1:]", "t2 = t1[1:]"),
        Line("t2.assign(7)", "t2[...] = 7"),
    ]
    assert check(lines, list(MODES), "CPU") is None
    monkeypatch.setattr(Tensor, "assign", lambda self, value: self)
    assert check(lines, list(MODES), "CPU") == ("lazy", "t1 is [1, 2, 3], not [1, 7, 7]")


def test_an_error_is_a_difference():
    lines = [Line("t1 = Tensor([1]).nothing()", "t1 = new([1], 'int32')")]
    problem = try_difference(lines, MODES["python"], "CPU")
    assert problem is not None and problem.startswith("UnknownAttribute")


def test_shrinking_keeps_what_the_failure_needs():
    lines = [Line(f"t{n} = Tensor([{n}])", f"t{n} = new([{n}], 'int32')") for n in range(4)]
    lines.append(Line("t1.realize(t2, t3)", "t1, t2, t3"))
    small = shrink(lines, lambda fewer: "t2" in Oracle(fewer).names)
    assert small == lines[2:3]
    small = shrink(lines, lambda fewer: ".realize" in fewer[-1].ours and bool(Oracle(fewer)))
    assert [line.ours for line in small] == ["t3 = Tensor([3])", "t3.realize()"]


def test_the_script_runs(capsys: pytest.CaptureFixture[str]):
    lines = Generator(3).lines
    exec(script(lines, MODES["eager"], "PYTHON"), {})
    for line in capsys.readouterr().out.splitlines():
        name, _, rest = line.partition(" ")
        got, _, wanted = rest.partition(" not ")
        assert name[0] == "r" or eval(got) == eval(wanted)


def test_floats_that_round_are_refused():
    with pytest.raises(InvalidLineError):
        Oracle([Line("t1 = Tensor([1.0]) / 3", "t1 = new(np.array([1.0]) / 3, 'float32')")])
