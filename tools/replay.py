"""What a change does to kernels: a corpus of programs, compiled at two commits and compared.

    tools/replay main              main against the working tree
    tools/replay v1 v2 --diff      two commits, with the lines of each program that differ

Each commit is checked out into a folder of its own, and the corpus runs there in a process with a
fresh cache, on the device NULL unless another is named: everything is scheduled and generated, and
nothing is computed. A kernel is known by its program and its position in it. The report says what
was added and removed, whose text changed, and how many bytes, operations and seconds of compiling
that makes.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
CORPUS: Final = Path(__file__).resolve().parent / "replay_corpus.py"
RECORDER: Final = Path(__file__).resolve().parent / "replay_record.py"
WORKING_TREE: Final = "the working tree"
LINES_SHOWN: Final = 40

# A program's kernels in order, and the seconds that compiling them took.
Record = dict[str, dict[str, Any]]


class Change(NamedTuple):
    """One kernel that is not what it was; `before` or `after` is None where there is none."""

    program: str
    position: int
    before: dict[str, Any] | None
    after: dict[str, Any] | None

    @property
    def what(self) -> str:
        if self.before is None or self.after is None:
            return "added" if self.before is None else "removed"
        return "kernel" if self.before["kernel"] != self.after["kernel"] else "program"


def compare(before: Record, after: Record) -> list[Change]:
    """The kernels that differ, in the order of the corpus."""
    changes: list[Change] = []
    for program in dict.fromkeys([*before, *after]):
        old = before.get(program, {}).get("kernels", [])
        new = after.get(program, {}).get("kernels", [])
        matcher = difflib.SequenceMatcher(
            None, [each["kernel"] for each in old], [each["kernel"] for each in new], False
        )
        for _, i, stop, j, end in matcher.get_opcodes():
            for step in range(max(stop - i, end - j)):
                one = old[i + step] if i + step < stop else None
                other = new[j + step] if j + step < end else None
                if one != other:
                    position = (i if other is None else j) + step
                    changes.append(Change(program, position, one, other))
    return changes


def report(before: Record, after: Record, with_diff: bool = False) -> list[str]:
    """The lines of a report."""
    changes = compare(before, after)
    lines: list[str] = []
    for change in changes:
        lines += _lines_of(change, with_diff)
    for program in dict.fromkeys([*before, *after]):
        failed = [r[program]["error"] for r in (before, after) if r.get(program, {}).get("error")]
        lines += [f"{program}: {line}" for line in dict.fromkeys(failed)]
    counts = [f"{sum(c.what == word for c in changes)} {text}" for word, text in _WORDS.items()]
    total = len(_kernels(after))
    lines.append(f"{len(after)} programs, {total} kernels: " + ", ".join(counts))
    for title, key in (("bytes moved", "bytes"), ("operations", "operations")):
        old, new = (sum(kernel[key] for kernel in _kernels(each)) for each in (before, after))
        lines.append(_sum_line(title, old, new))
    seconds = [sum(each.get("seconds", 0.0) for each in r.values()) for r in (before, after)]
    lines.append(f"compiling: {seconds[0]:.2f} s -> {seconds[1]:.2f} s")
    return lines


_WORDS: Final = {
    "added": "added",
    "removed": "removed",
    "kernel": "changed as kernels",
    "program": "changed as programs alone",
}


def _kernels(record: Record) -> list[dict[str, Any]]:
    return [kernel for each in record.values() for kernel in each["kernels"]]


def _sum_line(title: str, old: int, new: int) -> str:
    share = f" ({(new - old) / old:+.2%})" if old and new != old else ""
    return f"{title}: {old} -> {new}{share}"


def _lines_of(change: Change, with_diff: bool) -> list[str]:
    named = change.after or change.before
    assert named is not None
    head = f"{change.program} {change.position} {named['name']}: "
    if change.before is None or change.after is None:
        cost = f"{named['bytes']} bytes, {named['operations']} operations"
        return [head + f"{change.what}, {cost}"]
    parts = [f"the {change.what} is another"]
    for title, key in (("bytes", "bytes"), ("operations", "operations")):
        old, new = change.before[key], change.after[key]
        parts += [] if old == new else [f"{title} {old} -> {new}"]
    lines = [head + ", ".join(parts)]
    if with_diff:
        texts = [each[change.what].splitlines() for each in (change.before, change.after)]
        found = list(difflib.unified_diff(*texts, lineterm="", n=1))[2:]
        lines += [f"    {line}" for line in found[:LINES_SHOWN]]
        if len(found) > LINES_SHOWN:
            lines.append(f"    … {len(found) - LINES_SHOWN} more lines")
    return lines


@contextlib.contextmanager
def checkout(commit: str) -> Iterator[Path]:
    """A folder with a commit, for as long as it is needed; the working tree is where it is."""
    if commit == WORKING_TREE:
        yield ROOT
        return
    with tempfile.TemporaryDirectory(prefix="weft-replay-") as folder:
        path = Path(folder) / "tree"
        _git("worktree", "add", "--detach", "--quiet", str(path), commit)
        try:
            yield path
        finally:
            _git("worktree", "remove", "--force", str(path))


def _git(*arguments: str) -> None:
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"git {' '.join(arguments)}: {done.stderr.strip()}")


def record(tree: Path, corpus: Path, device: str, only: str = "") -> Record:
    """Run the corpus with the Weft of a folder, in a process of its own with a fresh cache."""
    with tempfile.TemporaryDirectory(prefix="weft-replay-") as folder:
        out = Path(folder) / "record.json"
        environment = {
            **os.environ,
            "PYTHONPATH": str(tree),
            "WEFT_CACHE_DIR": str(Path(folder) / "cache"),
            "DEVICE": device,
        }
        command = [sys.executable, str(RECORDER), str(corpus), str(out), only]
        done = subprocess.run(command, cwd=tree, env=environment, check=False)
        if done.returncode:
            raise SystemExit(f"the corpus could not be run at {tree}")
        found: Record = json.loads(out.read_text())
        return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="tools/replay", description="compare the kernels of programs between two commits"
    )
    parser.add_argument("before", help="a commit")
    parser.add_argument("after", nargs="?", default=WORKING_TREE, help="a commit (working tree)")
    parser.add_argument("--corpus", type=Path, default=CORPUS, help="a file with PROGRAMS")
    parser.add_argument("--only", default="", help="programs with this in their name")
    parser.add_argument("--device", default="NULL", help="where to compile for (NULL)")
    parser.add_argument("--diff", action="store_true", help="print the lines that differ")
    parser.add_argument(
        "--same", action="store_true", help="fail if a kernel differs, or a program does not run"
    )
    options = parser.parse_args(arguments)
    records: list[Record] = []
    for commit in (options.before, options.after):
        with checkout(commit) as tree:
            records.append(record(tree, options.corpus.resolve(), options.device, options.only))
    print(*report(*records, with_diff=options.diff), sep="\n")
    has_failed = any("error" in program for each in records for program in each.values())
    return int(options.same and (has_failed or bool(compare(*records))))


if __name__ == "__main__":
    raise SystemExit(main())
