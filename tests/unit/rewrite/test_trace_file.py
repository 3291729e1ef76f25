"""The trace: what is written, in which order, and that nothing is where it is off."""

import json
import os
import threading
from contextvars import copy_context

import pytest

from weft import Context, Tensor, jit
from weft.rewrite import trace_file
from weft.rewrite.trace_file import STATE, TraceFile, current, recording


def records(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_trace_of_a_process_is_new_and_follows_no_link(tmp_path, monkeypatch):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    work = tmp_path / "work"
    work.mkdir()
    (work / f"weft-trace-{os.getpid()}.jsonl").symlink_to(victim)
    monkeypatch.chdir(work)
    monkeypatch.setattr(STATE, "trace", None)
    monkeypatch.setattr(trace_file.atexit, "register", lambda *_: None)
    with Context(VIZ=1):
        trace = current()
        assert current() is trace
    assert os.path.dirname(trace.path) == str(work)
    assert os.path.isfile(trace.path) and not os.path.islink(trace.path)
    assert victim.read_text() == "precious"
    trace.close()


def test_off_nothing_is_written():
    assert current() is None
    Tensor([1.0, 2.0]).sum().item()
    assert STATE.trace is None


def test_a_node_is_written_once_and_after_its_sources(tmp_path):
    path = tmp_path / "t.jsonl"
    with recording(path):
        x = Tensor.ones(8, 8).contiguous()
        (x @ x).softmax(-1).realize()
    seen = set()
    for record in records(path):
        if record["kind"] == "node":
            assert record["id"] not in seen
            assert set(record.get("src", ())) <= seen
            seen.add(record["id"])
    assert len(seen) > 50


def test_phases_hold_their_passes_and_rewrites(tmp_path):
    path = tmp_path / "t.jsonl"
    with recording(path), Context(NOOPT=1):
        ((Tensor.ones(12, 3).contiguous() * 3) * 5).sum(0).realize()
    found = records(path)
    nodes = {r["id"] for r in found if r["kind"] == "node"}
    rules = {r["id"] for r in found if r["kind"] == "rule"}
    phases = [r for r in found if r["kind"] == "phase"]
    assert {p["phase"] for p in phases} == {"schedule", "codegen"}
    rewrites = [w for p in phases for step in p["passes"] for w in step.get("rewrites", ())]
    assert rewrites
    for rule, before, after, *_ in rewrites:
        assert rule in rules and {before, after} <= nodes
    for phase in phases:
        assert all(step["root"] in nodes for step in phase["passes"] if "root" in step)


def test_kernels_and_launches_name_the_line_of_the_program(tmp_path):
    path = tmp_path / "t.jsonl"
    with recording(path):
        x = Tensor.ones(32, 16).contiguous().realize()
        y = x.exp() + 1  # the line
        y.realize()
    found = records(path)
    lines = {r["id"]: r for r in found if r["kind"] == "line"}
    kernels = {r["id"]: r for r in found if r["kind"] == "kernel"}
    launch = [r for r in found if r["kind"] == "launch"][-1]
    assert "x.exp() + 1" in lines[launch["line"]]["text"]
    kernel = kernels[launch["kernel"]]
    assert "define" in kernel["source"] and "exp(" in kernel["text"] and kernel["operations"] > 0
    assert launch["start"] <= launch["end"]
    made = [r for r in found if r["kind"] == "compiled"]
    assert launch["kernel"] in {r["kernel"] for r in made}


def test_a_jitted_function_has_a_launch_for_each_kernel(tmp_path):
    from weft import jit

    @jit
    def step(x):
        return (x @ x).softmax(-1).sum()

    x = Tensor.ones(8, 8).contiguous().realize()
    for _ in range(3):
        step(x)
    path = tmp_path / "t.jsonl"
    with recording(path):
        step(x).realize()
    found = records(path)
    assert sum(r["kind"] == "launch" for r in found) >= 2


def test_fusion_puts_each_value_into_a_group(tmp_path):
    path = tmp_path / "t.jsonl"
    with recording(path):
        x = Tensor.ones(64, 64).contiguous().realize()
        (x @ x).softmax(-1).realize()
    found = records(path)
    nodes = {r["id"]: r for r in found if r["kind"] == "node"}
    fusion = [r for r in found if r["kind"] == "fusion"][-1]
    assert len(fusion["groups"]) == 2
    ops = [{nodes[n]["op"] for n in group["nodes"]} for group in fusion["groups"]]
    assert {"EXP", "DIV"} <= ops[0] and {"MUL", "REDUCE"} <= ops[1]


def test_a_trace_has_a_limit_and_says_what_is_left_out(tmp_path):
    path = tmp_path / "t.jsonl"
    trace = TraceFile(str(path), 4000)
    for number in range(1000):
        trace.write("launch", kernel=number, start=0.0, end=1.0)
    assert trace.graph(Tensor([1.0]).uop) is None
    trace.close()
    found = records(path)
    assert path.stat().st_size < 4200
    assert found[-1]["kind"] == "end"
    assert found[-1]["left_out"]["launch"] + len(found) - 2 == 1000


def test_memory_is_followed(tmp_path):
    path = tmp_path / "t.jsonl"
    with recording(path):
        x = Tensor.ones(1000, 100).contiguous().realize()
        before = [r for r in records_so_far(path) if r["kind"] == "memory"]
        del x
    found = [r for r in records(path) if r["kind"] == "memory"]
    assert len(found) >= len(before)
    assert max(r["used"] for r in found) - min(r["used"] for r in found) >= 400_000


def records_so_far(path):
    STATE.trace._file.flush()
    return records(path)


def test_a_file_that_is_closed_takes_nothing_more(tmp_path):
    trace = TraceFile(str(tmp_path / "t"), 1 << 20)
    trace.close()
    trace.write("launch")
    trace.close()
    assert len(records(tmp_path / "t")) == 1


@pytest.mark.parametrize("op", ["sum", "max"])
def test_args_are_words(tmp_path, op):
    path = tmp_path / "t.jsonl"
    with recording(path):
        getattr(Tensor.ones(8, 9).contiguous().realize(), op)(1).realize()
    args = [r.get("arg", "") for r in records(path) if r["kind"] == "node" and r["op"] == "REDUCE"]
    assert any(arg.startswith({"sum": "ADD", "max": "MAX"}[op]) for arg in args)


def test_decisions_have_their_numbers_or_the_refusal(tmp_path):
    path, x = tmp_path / "t.jsonl", Tensor.ones(33, 33).contiguous().realize()
    with recording(path):
        (((x @ x) @ x).softmax(-1)).realize()
    (schedule,) = [r for r in records(path) if r["kind"] == "schedule"]
    decisions = schedule["decisions"]
    priced = [each for each in decisions if "recompute" in each]
    refused = [each for each in decisions if "refused" in each]
    assert priced and refused and len(priced) + len(refused) == len(decisions)
    for each in priced:
        assert (each["to"] == "memory") >= (each["memory"] < each["recompute"])
        assert each["uses"] and each["size"] and each["line"]
    nodes = {r["id"] for r in records(path) if r["kind"] == "node"}
    assert {each["node"] for each in decisions} <= nodes


def test_calls_and_streams_are_told_apart(tmp_path):
    path, x = tmp_path / "t.jsonl", Tensor.ones(31).contiguous().realize()
    step = jit(lambda x: x * 2 + 1)
    step(x)
    with recording(path):
        step(x)
        thread = threading.Thread(target=copy_context().run, args=(step, x))
        thread.start()
        thread.join()
    found = records(path)
    launches = [r for r in found if r["kind"] == "launch"]
    assert [launch["stream"] for launch in launches] == [0, 1]
    calls = [r for r in found if r["kind"] == "call"]
    assert len(calls) == 2
    for call, launch in zip(calls, launches, strict=True):
        assert call["start"] <= launch["start"] <= launch["end"] <= call["end"]
        assert call["own"] >= 0


def test_collectives_and_copies_are_said(tmp_path):
    path, devices = tmp_path / "t.jsonl", ("CPU", "CPU:1")
    x = Tensor.ones(8, 6).contiguous().shard(devices, axis=0).realize()
    with recording(path):
        x.sum(0).realize()
    found = records(path)
    (collective,) = [r for r in found if r["kind"] == "collective"]
    assert collective["name"] == "all-reduce" and collective["devices"] == list(devices)
    assert collective["bytes"] == [24, 24] and collective["line"]
    copies = [r for r in found if r["kind"] == "copy"]
    assert copies and all(copy["start"] <= copy["end"] for copy in copies)


def test_many_launches_wait_for_little(tmp_path, monkeypatch):
    """Launches become text late, and never more of them wait than the limit."""
    monkeypatch.setattr(trace_file, "_MOST_WAITING", 4)
    path, x = tmp_path / "t.jsonl", Tensor.ones(29).contiguous().realize()
    step = jit(lambda x: x * 3 + 1)
    step(x)
    with recording(path) as writer:
        for _ in range(20):
            step(x)
            assert writer._waiting_rows <= 5
    assert sum(r["kind"] == "launch" for r in records(path)) == 20
