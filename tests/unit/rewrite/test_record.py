"""The trace file of VIZ is a new file, whatever lies in the folder."""

import os

from weft.rewrite import record


def test_the_trace_file_is_new_and_follows_no_link(tmp_path, monkeypatch):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    work = tmp_path / "work"
    work.mkdir()
    (work / f"weft-trace-{os.getpid()}.jsonl").symlink_to(victim)
    monkeypatch.chdir(work)
    monkeypatch.setattr(record, "_started", [])
    monkeypatch.setattr(record.atexit, "register", lambda *_: None)
    path = record.trace_file()
    assert os.path.dirname(path) == str(work)
    assert os.path.isfile(path) and not os.path.islink(path)
    assert record.trace_file() == path
    monkeypatch.setattr(record, "_started", [])
    assert record.trace_file() != path
    assert victim.read_text() == "precious"
