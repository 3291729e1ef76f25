"""The lines of `DEBUG=2` are aligned, and have colors on a terminal alone."""

import re
import subprocess
import sys
from pathlib import Path

import weft
from weft import Context, Tensor
from weft.engine.devices import device
from weft.engine.watch.show import describe_run
from weft.engine.work import prepare
from weft.ir.build import param, sink, store


def planned():
    x = Tensor(param(0, weft.dtypes.float32, (37, 41)))
    graph = sink(store(param(1, weft.dtypes.float32, (37, 41)), (x.exp() + 1).uop))
    return prepare(graph, "CPU").named_steps()[0]


def test_a_line_says_what_where_and_how_fast():
    line = describe_run(device("CPU"), planned(), 1e-3, 7)
    assert line.split()[:5] == ["7", "CPU", "exp", "37x41", "<-"]
    assert "1000.0 us" in line and "GFLOP/s" in line and "GB/s" in line and "bytes" in line
    assert "test_show.py:" in line
    assert "\x1b" not in line


def test_colors_change_nothing_but_colors():
    step = planned()
    plain = describe_run(device("CPU"), step, 1e-3, 7)
    colored = describe_run(device("CPU"), step, 1e-3, 7, is_colored=True)
    assert colored != plain and re.sub(r"\x1b\[\d+m", "", colored) == plain


def test_columns_stand_below_each_other(capsys):
    x = Tensor.ones(37, 43).contiguous().realize()
    step = weft.jit(lambda x: (x @ x.T).softmax().contiguous() + 1)
    for _ in range(2):
        step(x)
    capsys.readouterr()
    with Context(DEBUG=2):
        step(x)
        (x * 3).realize()
    lines = [line for line in capsys.readouterr().out.splitlines() if "GFLOP/s" in line]
    assert len(lines) >= 3
    assert len({line.index("GFLOP/s") for line in lines}) == 1
    numbers = [int(line.split()[0]) for line in lines]
    assert numbers == list(range(numbers[0], numbers[0] + len(lines)))


def test_a_program_ends_with_the_sums():
    code = "from weft import Tensor\n(Tensor.ones(8, 8).contiguous() + 1).realize()\n"
    root = str(Path(__file__).parents[4])
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": root, "PATH": "", "DEBUG": "2"},
        capture_output=True,
        text=True,
        check=True,
    )
    last = run.stdout.splitlines()[-1]
    assert re.match(r" *\d+ kernels .*GFLOP/s .*GB/s +peak memory CPU", last)
