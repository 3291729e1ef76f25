"""Runs of benchmarks are kept, found, compared and drawn."""

import json
import xml.etree.ElementTree as ET

import pytest

from bench import history
from bench.__main__ import main


def run(weft, peer=None, line="a"):
    row = {"subject": "s", "benchmark": "b", "line": line, "unit": "us", "weft": weft}
    return {"results": [{**row, "peer": peer, "ratio": peer / weft if peer else None}]}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "history.jsonl"
    for weft in (10.0, 12.0, 30.0):
        history.append(run(weft), path)
    return path


def test_runs_are_found_by_number_commit_and_file(path, tmp_path):
    assert [r["results"][0]["weft"] for r in history.read(path)] == [10.0, 12.0, 30.0]
    assert history.find("-3", path)["results"][0]["weft"] == 10.0
    commit = history.read(path)[-1]["commit"]
    if commit:
        assert history.find(commit[:7], path)["results"][0]["weft"] == 30.0
    file = tmp_path / "r.json"
    file.write_text(json.dumps(run(5.0)))
    assert history.find(str(file), path)["results"][0]["weft"] == 5.0
    with pytest.raises(SystemExit, match="no run is called"):
        history.find("-4", path)


def test_what_became_slower_is_said(path, capsys):
    assert main(["--history", str(path), "--compare", "-3", "-1"]) == 1
    assert "s/b: a   3.00x alone  (10 -> 30 us)" in capsys.readouterr().out
    assert main(["--history", str(path), "--compare", "-1", "-3"]) == 0
    assert "faster" in capsys.readouterr().out


def test_a_slow_hour_of_the_machine_is_no_slow_program():
    (change,) = history.compare(run(10.0, peer=20.0), run(30.0, peer=60.0))
    assert change.factor == pytest.approx(1.0) and change.is_beside_peer
    text, is_slower = history.report([change])
    assert not is_slower and text == "1 of 1 lines are the same within 10%"


def test_lines_that_only_one_run_has_are_left_out():
    assert history.compare(run(1.0, line="a"), run(1.0, line="b")) == []


def test_the_drawing_has_a_chart_for_each_line(path, tmp_path):
    out = tmp_path / "h.svg"
    assert main(["--history", str(path), "--draw", str(out)]) == 0
    charts = ET.fromstring(out.read_text()).findall("{http://www.w3.org/2000/svg}polyline")
    assert len(charts) == 1 and len(charts[0].get("points").split()) == 3
