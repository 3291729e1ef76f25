"""Where something happened: the rewrites of a rule, a kernel, a line of the program."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from weft.viz.page import read_records

_SIGNS: Final = {"ADD": "+", "MUL": "*", "DIV": "/", "LESS": "<", "LESS_EQUAL": "<=", "AND": "&"}
_DEPTH: Final = 4


class Found:
    """The tables of a trace that questions are asked of."""

    def __init__(self, path: Path) -> None:
        self.nodes: dict[int, dict[str, Any]] = {}
        self.lines: dict[int, dict[str, Any]] = {}
        self.rules: dict[int, str] = {}
        self.phases: list[dict[str, Any]] = []
        self.kernels: list[dict[str, Any]] = []
        self.schedules: list[dict[str, Any]] = []
        self.spent: dict[int, list[float]] = {}
        for record in read_records(path):
            kind = record["kind"]
            if kind in ("node", "line"):
                getattr(self, f"{kind}s")[record["id"]] = record
            elif kind == "rule":
                self.rules[record["id"]] = record["name"]
            elif kind in ("phase", "kernel", "schedule"):
                getattr(self, f"{kind}s").append(record)
            elif kind == "launch":
                spent = record["end"] - record["start"]
                self.spent.setdefault(record["kernel"], []).append(spent)

    def rule(self, name: str) -> Iterator[str]:
        """Each rewrite of the rules whose names hold these words."""
        wanted = {number for number, rule in self.rules.items() if name in rule}
        for phase in self.phases:
            for step in phase["passes"]:
                for number, before, after, *why in step.get("rewrites", ()):
                    if number in wanted:
                        reason = f"  # {why[0]}" if why and why[0] else ""
                        yield (
                            f"{phase['phase']} {phase['title']}, {step['name']}:"
                            f" {self.rules[number]}: {self.show(before)} -> {self.show(after)}"
                            f"{reason}"
                        )

    def kernel(self, name: str) -> Iterator[str]:
        """The kernels whose names hold these words: lines, opts, times, and the source."""
        for kernel in self.kernels:
            if name not in kernel["name"]:
                continue
            runs = self.spent.get(kernel["id"], [])
            yield f"{kernel['name']} on {kernel['device']}: {len(runs)} runs, {sum(runs):.1f} us"
            for schedule in self.schedules:
                for part in schedule["kernels"]:
                    if part["body"] == kernel.get("body") and "line" in part:
                        yield f"  {self.line_text(part['line'])}"
            for opt in kernel.get("opts", ()):
                yield f"  opt {opt}"
            for refusal in dict.fromkeys(kernel.get("refused", ())):
                yield f"  {refusal}"
            yield kernel.get("text") or kernel["source"]

    def line(self, location: str) -> Iterator[str]:
        """The kernels that a line of the program became, FILE:NUMBER."""
        for schedule in self.schedules:
            for part in schedule["kernels"]:
                line = self.lines.get(part.get("line", -1))
                if line and f"{line['file']}:{line['row']}".endswith(location):
                    number = next(
                        (k["id"] for k in self.kernels if k.get("body") == part["body"]), None
                    )
                    runs = self.spent.get(number, []) if number is not None else []
                    yield (
                        f"{part['name']} on {schedule['device']}: {len(runs)} runs,"
                        f" {sum(runs):.1f} us  {self.line_text(part['line'])}"
                    )

    def line_text(self, number: int) -> str:
        line = self.lines[number]
        return f"{line['file']}:{line['row']}  {line['text'].splitlines()[0]}"

    def show(self, number: int, depth: int = _DEPTH) -> str:
        """A node as one short line."""
        node = self.nodes.get(number)
        if node is None:
            return "?"
        if node["op"] == "CONST":
            return str(node.get("arg", ""))
        if node["op"] == "RANGE":
            return f"r{node['arg']}"
        sources = node.get("src", [])
        if not sources or not depth:
            return f"{node['op']}(...)" if sources else str(node["op"])
        parts = [self.show(source, depth - 1) for source in sources]
        if node["op"] in _SIGNS and len(parts) == 2:
            return f"({parts[0]} {_SIGNS[node['op']]} {parts[1]})"
        return f"{node['op'].lower()}({', '.join(parts)})"
