"""A profile adds up, and its questions are answered by the trace."""

import hashlib
import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

import weft
from weft import Context, Tensor
from weft.cli.main import main
from weft.rewrite.trace_file import VERSION
from weft.support.errors import FileFormatError
from weft.support.message import bytes_text
from weft.viz.find import Found
from weft.viz.page import PAGE, read_records, render_page
from weft.viz.perfetto import to_perfetto
from weft.viz.profile import KernelRow


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    path = tmp_path_factory.mktemp("trace") / "t.jsonl"
    with weft.profile(path) as found:
        x = Tensor.ones(61, 61).contiguous().realize()
        for _ in range(3):
            y = (x @ x).softmax(-1)  # this line
            y.realize()
    return path, found


def parts_of(found):
    return [us for _, us, _ in found.parts()]


def test_times_add_up(trace):
    _, found = trace
    assert sum(parts_of(found)) == pytest.approx(found.wall, rel=0.01)
    assert 0 < found.device_time < found.wall and found.compile_time > 0
    assert sum(row.total for row in found.kernels) == pytest.approx(found.device_time, rel=0.01)
    assert {"schedule", "codegen", "render", "compile", "load"} <= set(found.making)


def test_a_jitted_training_step_adds_up_to_its_wall_time():
    """Kernels, and the host's time around them, are what a call takes by another clock."""
    weight = Tensor.ones(96, 96, requires_grad=True).contiguous().realize()
    optimizer = weft.nn.optim.SGD([weight], lr=1e-3)

    @weft.jit
    def step(x):
        optimizer.zero_grad()
        (x @ weight).relu().sum().backward()
        optimizer.step()

    x = Tensor.ones(96, 96).contiguous().realize()
    step(x)
    with weft.profile() as found:
        step(x)  # what a trace says once is said here
        start = time.perf_counter()
        for _ in range(20):
            step(x)
        wall = (time.perf_counter() - start) * 1e6
    (row,) = found.calls
    assert row.name.endswith("step") and len(row.calls) == 21 and found.kernels
    assert sum(len(kernel.us) for kernel in found.kernels) == 21 * len(found.kernels)
    within = sum(call.us for call in row.calls[1:])
    kernels = sum(call.kernels for call in row.calls[1:])
    # The check of the arguments and the profile itself are outside of the calls.
    assert 0.5 * kernels < kernels <= within <= wall
    assert sum(parts_of(found)) == pytest.approx(found.wall, rel=0.01)
    assert f"{row.name}" in str(found) and "calling jitted functions" in str(found)


def test_a_slow_kernel_stands_first_with_its_line():
    x = Tensor.ones(64, 64).contiguous().realize()
    with weft.profile() as found:
        (x + 1).realize()
        slow = x
        for _ in range(40):
            slow = (slow @ x).sin()  # the slow line
        slow.realize()
    rows = Path(__file__).read_text().splitlines()
    row = 1 + next(i for i, text in enumerate(rows) if text.endswith("# the slow line"))
    assert found.kernels[0].line.endswith(f"test_profile.py:{row}")
    table = str(found).split("computes", 1)[1].splitlines()
    assert f"test_profile.py:{row}" in table[1]


def test_a_dry_run_counts_memory_and_shows_no_rates(tmp_path, capfd, monkeypatch):
    program = tmp_path / "train.py"
    program.write_text(
        "from weft import Tensor\n"
        "x = Tensor.ones(50, 1000).contiguous().realize()\n"
        "print((x + 1).sum().item())\n"
    )
    with Context(DEVICE="NULL"):
        assert main(["profile", str(program)]) == 0
    text = capfd.readouterr().err
    assert f"a dry run up to {program}:3" in text
    (peak,) = [line for line in text.splitlines() if line.startswith("peak memory: ")]
    assert "NULL" in peak and "float32 [50, 1000]" in text  # of other devices there may be more
    rows = [line for line in text.splitlines() if line.endswith(f"{program}:2")]
    assert rows and not any("%" in line for line in rows)


def test_a_program_that_raises_is_profiled_to_there(tmp_path, capfd):
    program = tmp_path / "train.py"
    program.write_text("from weft import Tensor\nTensor.ones(7).contiguous().realize()\n1 / 0\n")
    with pytest.raises(ZeroDivisionError):
        main(["profile", str(program)])
    text = capfd.readouterr().err
    assert "the program raised ZeroDivisionError" in text and "map_7" in text


def test_an_error_of_a_device_is_no_dry_run(tmp_path, capfd):
    program = tmp_path / "train.py"
    program.write_text("from weft import Tensor\nTensor.ones(7, device='NOWHERE').realize()\n")
    assert main(["profile", str(program)]) == 1
    assert "unknown device 'NOWHERE'" in capfd.readouterr().err


def test_operands_in_a_cache_are_not_three_times_the_peak():
    row = KernelRow("k", "", "CPU", 10, 4000, {"operations": 1e9, "bytes": 1e9}, us=[1.0])
    assert row.is_cached and row.share == pytest.approx(0.01)
    assert not replace(row, moved=400).is_cached and replace(row, moved=400).share == 0.4


def test_the_table_names_kernels_and_lines(trace):
    _, found = trace
    text = str(found)
    assert "GFLOP/s" in text and "test_profile.py" in text
    # Memory of other devices may be alive when the profile begins.
    assert "peak memory: " in text and f"CPU {bytes_text(found.peak_memory['CPU'])}" in text
    assert [len(row.us) for row in found.kernels if "61_61_61" in row.name] == [3, 3]


def test_a_step_that_raises_is_profiled_to_there(tmp_path):
    with pytest.raises(ValueError), weft.profile() as found:
        (Tensor.ones(4).contiguous() + 1).realize()
        raise ValueError
    assert found.kernels


def test_a_rule_a_kernel_and_a_line_are_found(trace):
    path, _ = trace
    tables = Found(path)
    rule = next(iter(tables.rules.values()))
    assert all(rule in line for line in tables.rule(rule))
    ((kernel, *_),) = [list(tables.kernel("reduce_61_61_61_61"))]
    assert "3 runs" in kernel
    rows = Path(__file__).read_text().splitlines()
    row = 1 + next(i for i, text in enumerate(rows) if text.endswith("# this line"))
    found = list(tables.line(f"test_profile.py:{row}"))
    assert found and all("3 runs" in line for line in found)
    assert not list(tables.line("test_profile.py:1"))


def test_perfetto_has_a_span_for_each_launch(trace):
    path, _ = trace
    events = to_perfetto(path)["traceEvents"]
    assert sum(e.get("tid") == "CPU" and e["ph"] == "X" for e in events) == 7
    assert {"passes", "compiler", "realize"} <= {e.get("tid") for e in events}
    assert any(e["ph"] == "C" for e in events)
    json.dumps(events)


def test_perfetto_has_rows_for_calls_and_streams(tmp_path):
    path = tmp_path / "t.jsonl"
    span = {"start": 1.0, "end": 2.0}
    records = [
        {"kind": "trace", "version": VERSION},
        {"kind": "call", "name": "step", "own": 0.0, **span},
        {"kind": "copy", "source": "CPU", "target": "CUDA", "stream": 0, "bytes": 8, **span},
        {"kind": "copy", "source": "CPU", "target": "CUDA", "stream": 2, "bytes": 8, **span},
        {"kind": "collective", "name": "all-reduce", "at": 1.0, "devices": [], "bytes": []},
        {"kind": "a kind of the future"},
    ]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    rows = [event["tid"] for event in to_perfetto(path)["traceEvents"]]
    assert rows == ["calls", "CUDA", "CUDA stream 2", "collectives"]


def test_the_page_holds_the_trace_and_asks_nobody(trace):
    path, _ = trace
    page = render_page(path)
    assert 'id="trace"' in page and "<!--TRACE-->" not in page
    inside = page.replace('xmlns="http', "")
    for word in ('src="http', 'href="http', "import(", "//cdn"):
        assert word not in inside.split('id="trace"')[0]


def test_other_files_are_refused(tmp_path):
    for text in ("{}\n", "[1]\n", '{"kind": "node", "version": 1}\n', "no json\n"):
        path = tmp_path / "t.jsonl"
        path.write_text(text)
        with pytest.raises(FileFormatError, match="line 1"):
            list(read_records(path))


@pytest.mark.parametrize(("ahead", "fix"), [(1, "or a newer one"), (-1, "write it again")])
def test_a_trace_of_another_version_is_refused_with_the_way_out(ahead, fix, tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps({"kind": "trace", "version": VERSION + ahead}) + "\n")
    with pytest.raises(FileFormatError) as caught:
        list(read_records(path))
    assert f"has version {VERSION + ahead}" in str(caught.value) and fix in caught.value.fix


def test_the_built_page_is_of_these_sources():
    web = Path(__file__).parents[3] / "web"
    if not web.is_dir():
        pytest.skip("the sources of the page are not here")
    digest = hashlib.sha256()
    names = ["package.json", "build.js", *sorted(f"src/{p.name}" for p in (web / "src").iterdir())]
    for name in names:
        digest.update(name.encode())
        digest.update((web / name).read_bytes())
    assert f'content="{digest.hexdigest()}"' in PAGE.read_text(), "run `npm run build` in web/"


def test_a_profile_without_a_file_compiles_nothing_twice():
    from weft.engine.compile import CompileStatistics

    x = Tensor.ones(53, 47).contiguous().realize()
    (x.exp() * 3).sum(0).realize()
    made = CompileStatistics.generated
    with weft.profile() as found:
        (x.exp() * 3).sum(0).realize()
    assert CompileStatistics.generated == made and len(found.kernels) == 1
