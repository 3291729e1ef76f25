"""A profile adds up, and its questions are answered by the trace."""

import hashlib
import json
from pathlib import Path

import pytest

import weft
from weft import Tensor
from weft.support.errors import FileFormatError
from weft.viz.find import Found
from weft.viz.page import PAGE, read_records, render_page
from weft.viz.perfetto import to_perfetto


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    path = tmp_path_factory.mktemp("trace") / "t.jsonl"
    with weft.profile(path) as found:
        x = Tensor.ones(61, 61).contiguous().realize()
        for _ in range(3):
            y = (x @ x).softmax(-1)  # this line
            y.realize()
    return path, found


def test_times_add_up(trace):
    _, found = trace
    parts = found.device_time + found.compile_time + found.python_time + found.recording_time
    assert parts == pytest.approx(found.wall, rel=0.01)
    assert 0 < found.device_time < found.wall and found.compile_time > 0
    assert sum(row.total for row in found.kernels) == pytest.approx(found.device_time, rel=0.01)


def test_the_table_names_kernels_and_lines(trace):
    _, found = trace
    text = str(found)
    assert "GFLOP/s" in text and "test_profile.py" in text
    # Memory of other devices may be alive when the profile begins.
    assert "peak memory: " in text and f"CPU {found.peak_memory['CPU'] / 1e6:.1f} MB" in text
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


def test_the_page_holds_the_trace_and_asks_nobody(trace):
    path, _ = trace
    page = render_page(path)
    assert 'id="trace"' in page and "<!--TRACE-->" not in page
    inside = page.replace('xmlns="http', "")
    for word in ('src="http', 'href="http', "import(", "//cdn"):
        assert word not in inside.split('id="trace"')[0]


def test_other_files_are_refused(tmp_path):
    for text in ("{}\n", "[1]\n", '{"kind": "trace", "version": 1}\n', "no json\n"):
        path = tmp_path / "t.jsonl"
        path.write_text(text)
        with pytest.raises(FileFormatError, match="line 1"):
            list(read_records(path))


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
