"""A trace in the format that the viewers of Chrome and Perfetto read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from weft.viz.page import read_records


def to_perfetto(path: Path) -> dict[str, Any]:
    """The spans of a trace as events, a row for each device and one for each kind of work."""
    events: list[dict[str, Any]] = []
    names: dict[int, str] = {}
    lines: dict[int, str] = {}
    for record in read_records(path):
        kind = record["kind"]
        if kind == "kernel":
            names[record["id"]] = record["name"]
        elif kind == "line":
            lines[record["id"]] = f"{record['file']}:{record['row']}"
        elif kind == "launch":
            name = names.get(record["kernel"], "kernel")
            where = {"line": lines.get(record.get("line", -1), "")}
            events.append(_span(name, _row(record, "device"), *_times(record), where))
        elif kind == "copy":
            name = f"copy from {record['source']}"
            sizes = {"bytes": record["bytes"]}
            events.append(_span(name, _row(record, "target"), *_times(record), sizes))
        elif kind in ("call", "traced"):
            where = {"line": lines.get(record.get("line", -1), "")}
            row = "calls" if kind == "call" else "tracing"
            events.append(_span(record["name"], row, *_times(record), where))
        elif kind == "collective":
            facts = {"devices": record["devices"], "bytes": record["bytes"]}
            events.append(_span(record["name"], "collectives", record["at"], record["at"], facts))
        elif kind == "phase":
            events.append(_span(f"{record['phase']} {record['title']}", "passes", *_times(record)))
            for step in record["passes"]:
                if "us" in step:
                    start = step["start"]
                    events.append(_span(step["name"], "passes", start, start + step["us"]))
        elif kind == "compiled":
            end = record["start"] + record["us"]
            name = f"{record['step']} {names.get(record['kernel'], 'kernel')}"
            events.append(_span(name, "compiler", record["start"], end))
        elif kind == "realize":
            where = {"line": lines.get(record.get("line", -1), "")}
            events.append(_span("realize", "realize", record["at"], record["at"], where))
        elif kind == "memory":
            counter = {"ph": "C", "pid": 1, "name": f"memory {record['device']}"}
            events.append({**counter, "ts": record["at"], "args": {"bytes": record["used"]}})
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def _row(record: dict[str, Any], key: str) -> str:
    """The row of a device, and of a stream of it but the first."""
    name = str(record[key])
    return f"{name} stream {record['stream']}" if record["stream"] else name


def _times(record: dict[str, Any]) -> tuple[float, float]:
    return record["start"], record["end"]


def _span(
    name: str, row: str, start: float, end: float, facts: dict[str, Any] | None = None
) -> dict[str, Any]:
    event = {"ph": "X", "pid": 1, "tid": row, "name": name, "ts": start, "dur": end - start}
    return {**event, "args": facts} if facts else event
