"""Two runs of a program are compared tensor by tensor, and the first line that parts is named."""

import numpy as np
import pytest

from weft.cli.main import main
from weft.viz.diff import Seen, compare

PROGRAM = """
import numpy as np
from weft import Tensor, jit
from weft.support.settings import settings

x = Tensor(np.linspace(0, 1, 64, dtype=np.float32).reshape(8, 8))
hidden = x @ x
scaled = hidden * (3.0 if settings.NOOPT else 3.01)  # the planted line
result = jit(lambda x: x.softmax(-1).sum(0))(scaled)
assert result.shape == (8,)
result.tolist()
Tensor.rand(3).tolist()
"""


STEPS = """
import numpy as np
from weft import Tensor, jit
from weft.support.settings import settings

x = Tensor(np.linspace(0, 1, 64, dtype=np.float32).reshape(8, 8))
weight = Tensor.ones(8, 8).contiguous().realize()
amount = Tensor(0.0).contiguous().realize()

@jit
def step(x):
    hidden = x @ weight
    wrong = amount * (1.1 if settings.NOOPT else 0.9)  # the planted line
    weight.assign(weight - 0.01 * (hidden + wrong))
    amount.assign(amount + 1)
    return hidden.mean()

for _ in range(3):
    loss = step(x)
"""


def row_of(program, word="planted"):
    return 1 + next(i for i, text in enumerate(program.splitlines()) if word in text)


def written(tmp_path, text):
    path = tmp_path / "train.py"
    path.write_text(text)
    return path


@pytest.fixture
def program(tmp_path):
    return written(tmp_path, PROGRAM)


def test_the_line_that_parts_is_named(program, capsys):
    assert main(["diff", "--set", "NOOPT=0,1", str(program)]) == 1
    text = capsys.readouterr().out
    assert f"it begins at {program}:{row_of(PROGRAM)}" in text
    assert "NOOPT=0" in text and "NOOPT=1" in text and "the bound is 0.001" in text


def test_a_jitted_call_is_compared_and_the_first_that_differs_is_taken_apart(tmp_path, capsys):
    """The amount is 0 in the first call, so that the second is the first whose line tells."""
    program = written(tmp_path, STEPS)
    assert main(["diff", "--set", "NOOPT=0,1", str(program)]) == 1
    text = capsys.readouterr().out
    assert text.startswith("what call 2 of step wrote differs: float32 [8, 8]")
    assert f"it begins at {program}:{row_of(STEPS)}" in text


def test_jitted_and_not_is_a_pair_too(tmp_path, capsys):
    assert main(["diff", "--set", "JIT=0,1", str(written(tmp_path, STEPS))]) == 0
    assert "agree within 0.001: JIT=0 and JIT=1" in capsys.readouterr().out


def test_runs_that_agree_say_how_many_tensors(program, capsys):
    assert main(["diff", "--devices", "CPU,PYTHON", str(program)]) == 0
    assert "2 tensors agree within 0.001" in capsys.readouterr().out


@pytest.mark.parametrize("given", [[], ["--set", "NOOPT=1"], ["--set", "NOOP=0,1"]])
def test_what_is_no_pair_is_refused(given, program, capsys):
    assert main(["diff", *given, str(program)]) == 1
    assert capsys.readouterr().err.startswith("diff: ")


def seen(*values, dtype=np.float32, line="a.py:1"):
    return Seen("a tensor", line, "", "float32", np.array(values, dtype))


def test_the_bound_is_relative_to_the_greatest_magnitude():
    assert compare(0, seen(1000, 0), seen(1000, 0.5), 1e-3) is None
    found = compare(3, seen(100, 0), seen(100, 0.5), 1e-3)
    assert found.event == 3 and found.at == (1,) and found.values == (0.0, 0.5)


def test_values_that_are_no_numbers_agree_with_each_other_alone():
    inf, nan = float("inf"), float("nan")
    assert compare(0, seen(inf, nan, 1), seen(inf, nan, 1), 0.0) is None
    assert compare(0, seen(inf, 1), seen(-inf, 1), 1e9).at == (0,)
    assert compare(0, seen(1, nan), seen(1, 1), 1e9).at == (1,)


def test_integers_are_equal():
    assert compare(0, seen(7, dtype=int), seen(7, dtype=int), 1.0) is None
    assert compare(0, seen(7, dtype=int), seen(8, dtype=int), 1.0) is not None


def test_programs_that_part_say_so():
    found = compare(0, seen(1), seen(1, 2), 1.0)
    assert "[1]" in found.reason
    assert "a.py:1" in compare(0, seen(1), seen(1, line="b.py:2"), 1.0).reason
