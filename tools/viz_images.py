"""Pictures of every view of `weft viz` for the docs, taken in a headless Chromium.

    python tools/viz_images.py TRACE PREFIX FOLDER [--width 1440 --height 900] [--only VIEW]

Each view is taken in the light and in the dark; the docs show one of both. The extra `page` and
Chromium are needed.
"""

from __future__ import annotations

import argparse
import shutil
import threading
from pathlib import Path
from typing import Any

from weft.viz.page import read_records
from weft.viz.serve import make_server

# The innermost loop of a kernel: the one that is worth being marked.
INNER_LOOP = """() => {
  const loops = [...document.querySelectorAll(".nest [data-loop]")];
  const depth = (row) => (row.innerText.startsWith("for") ? parseInt(row.style.paddingLeft) : -1);
  loops.sort((a, b) => depth(b) - depth(a))[0].click();
}"""
_MANY = 10**6  # operations: a copy has nothing to show
_TELLING = 16  # nodes of a rewrite, leaves too
_FEW = 24  # nodes of a kernel that a picture shows well
READY = ".graph .hint:has-text('node'), table.kernels, .lanes canvas, .picture svg"


def addresses(trace: Path) -> dict[str, str]:
    """The address of each view, of what costs most in a trace."""
    spent: dict[int, float] = {}
    kernels: dict[int, dict[str, Any]] = {}
    largest: dict[str, Any] = {}
    groups: dict[int, list[dict[str, Any]]] = {}
    sources: dict[int, list[int]] = {}
    phases: dict[int, dict[str, Any]] = {}
    for record in read_records(trace):
        if record["kind"] == "launch":
            number = record["kernel"]
            spent[number] = spent.get(number, 0.0) + record["end"] - record["start"]
        elif record["kind"] == "kernel" and record.get("phase"):
            kernels[record["id"]] = record
        elif record["kind"] == "schedule":
            largest = max(record, largest, key=lambda s: len(s.get("kernels", ())))
        elif record["kind"] == "node":
            sources[record["id"]] = record.get("src", [])
        elif record["kind"] == "phase":
            phases[record["id"]] = record
        elif record["kind"] == "fusion":
            groups[record["phase"]] = record["groups"]
    computing = [kernel for kernel in kernels.values() if kernel["operations"] > _MANY]
    kernel = max(computing, key=lambda k: spent.get(k["id"], 0.0))
    sizes = [len(group["nodes"]) for group in groups[largest["phase"]]]
    middle = min(range(len(sizes)), key=lambda number: abs(sizes[number] - _FEW))
    return {
        "overview": "#/overview",
        "model": "#/model",
        "timeline": "#/timeline",
        "fusion": f"#/fusion/{largest['id']}",
        "fusion-kernel": f"#/fusion/{largest['id']}/{middle}",
        "passes": f"#/phase/{kernel['phase']}/{telling_rewrite(phases[kernel['phase']], sources)}",
        "kernel": f"#/kernel/{kernel['id']}",
        "access": f"#/access/{kernel['id']}/0",
    }


def telling_rewrite(phase: dict[str, Any], sources: dict[int, list[int]]) -> str:
    """The pass and the number of a rewrite that is neither a single node nor half a kernel."""

    def size(root: int) -> int:
        seen, stack = {root}, [root]
        while stack and len(seen) < 10 * _TELLING:
            new = [source for source in sources[stack.pop()] if source not in seen]
            seen.update(new)
            stack += new
        return len(seen)

    best = (float("inf"), "0/0")
    for number, step in enumerate(phase["passes"]):
        for position, (_, before, after, *_) in enumerate(step.get("rewrites", ())):
            apart = abs(size(before) - _TELLING) + abs(size(after) - _TELLING)
            best = min(best, (apart, f"{number}/{position}"))
    return best[1]


def main() -> None:
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trace", type=Path)
    parser.add_argument("prefix")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--width", type=int, default=1440)
    parser.add_argument("--height", type=int, default=900)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--themes", default="light,dark")
    options = parser.parse_args()
    size = {"width": options.width, "height": options.height}
    with make_server(options.trace) as server, sync_playwright() as play:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        path = shutil.which("chromium") or shutil.which("chrome")
        browser = play.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for theme in options.themes.split(","):
            page = browser.new_page(viewport=size)
            page.goto(f"http://127.0.0.1:{server.server_port}/?theme={theme}")
            for name, address in addresses(options.trace).items():
                if options.only and name not in options.only:
                    continue
                page.evaluate("address => { location.hash = address }", address)
                page.wait_for_timeout(300)
                page.wait_for_selector(READY, timeout=120_000)
                if name == "kernel":
                    page.wait_for_selector(".panes section:nth-child(4) .code")
                    page.evaluate(INNER_LOOP)
                page.wait_for_timeout(900)
                page.screenshot(path=options.folder / f"{options.prefix}-{name}-{theme}.png")
            page.close()
        browser.close()
        server.shutdown()


if __name__ == "__main__":
    main()
