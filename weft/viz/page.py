"""A trace as one page that needs nothing else.

`page.html` is built from `web/` when a version is released; here a trace is put inside of it. The
page reads trace files only, so it works where the program that wrote them does not.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from weft.rewrite.trace_file import VERSION
from weft.support.errors import FileFormatError
from weft.target.cpu import parse_cpu
from weft.target.cuda import parse_cuda
from weft.target.target import Target

PAGE: Final = Path(__file__).with_name("page.html")
_PLACE: Final = "<!--TRACE-->"


def read_records(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a trace file, one by one."""
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                record = json.loads(line)
                kind = record["kind"]
                if number == 1 and (kind != "trace" or not isinstance(record["version"], int)):
                    raise ValueError("the first line says that it is a trace, and its version")
            except (ValueError, KeyError, TypeError) as error:
                raise FileFormatError(
                    f"{path.name}: expected a record of a trace in line {number}",
                    facts=[("because", str(error))],
                    rule="a trace is what a program writes when it runs with VIZ=1",
                ) from error
            if number == 1 and record["version"] != VERSION:
                raise _other_version(path, record["version"])
            yield record


def _other_version(path: Path, version: int) -> FileFormatError:
    is_newer = version > VERSION
    return FileFormatError(
        f"{path.name}: the trace has version {version}, and this Weft reads version {VERSION}",
        fix="read it with the Weft that wrote it, or a newer one"
        if is_newer
        else "write it again: VIZ=1 python program.py",
    )


def render_page(trace: Path) -> str:
    """The page with a trace inside."""
    lines = []
    for record in read_records(trace):
        if record["kind"] == "kernel" and record.get("source"):
            record["assembly"] = assembly_of(record)
        lines.append(json.dumps(record, separators=(",", ":")))
    packed = base64.b64encode(gzip.compress("\n".join(lines).encode(), 6)).decode()
    inside = f'<script type="application/octet-stream" id="trace">{packed}</script>'
    return PAGE.read_text(encoding="utf-8").replace(_PLACE, inside, 1)


def assembly_of(kernel: dict[str, Any]) -> str:
    """The machine code of a kernel as text; empty where LLVM did not make it."""
    from weft.runtime.llvm.compiler import compile_assembly

    target = _target(str(kernel["target"]))
    if target is None or "define " not in kernel["source"]:
        return ""
    # Its comments name the loop that a block is in, by which the page marks it.
    return compile_assembly(kernel["source"], target, is_commented=True)


def _target(name: str) -> Target | None:
    if name.startswith("CPU:LLVM:"):
        return parse_cpu(name)
    return parse_cuda(name) if name.startswith("CUDA:PTX:") else None
