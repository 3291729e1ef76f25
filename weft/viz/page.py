"""A trace file as one HTML page: each phase, pass by pass, with what changed.

The page holds all that it shows, and asks no network. It reads trace files only, so it works where
the program that wrote them does not.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator
from html import escape
from typing import Any, Final

from weft.support.errors import FileFormatError

_STYLE: Final = """
body { margin: 0; font: 14px/1.4 system-ui, sans-serif; display: flex; height: 100vh }
nav { width: 22em; overflow: auto; background: #f4f4f2; padding: 1em; flex: none }
main { flex: 1; overflow: auto; padding: 1em 2em }
nav a { display: block; padding: .15em .4em; color: #222; text-decoration: none }
nav a:target, nav a:hover { background: #dde }
section { display: none } section.shown { display: block }
pre { font: 12px/1.35 ui-monospace, monospace; white-space: pre-wrap }
ins { background: #dfd; text-decoration: none } del { background: #fdd; text-decoration: none }
.note { color: #666 } summary { cursor: pointer; padding: .3em 0 } td { padding-right: 1.5em }
"""
_SCRIPT: Final = """
function show() {
  const id = location.hash.slice(1) || 'run0';
  document.querySelectorAll('section').forEach(s => s.classList.toggle('shown', s.id === id));
}
addEventListener('hashchange', show); show();
"""


def read_trace(lines: Iterable[str], name: str) -> list[dict[str, Any]]:
    """The phases of a trace file."""
    runs: list[dict[str, Any]] = []
    for number, line in enumerate(lines, 1):
        try:
            run = json.loads(line)
            if not {"phase", "title", "given", "passes"} <= run.keys():
                raise ValueError("something is missing")
        except (ValueError, AttributeError) as error:
            raise FileFormatError(
                f"{name}: line {number} is no phase of a trace",
                facts=[("because", str(error))],
                law="a trace file is what a program writes when it runs with VIZ=1",
            ) from error
        runs.append(run)
    return runs


def render_page(runs: list[dict[str, Any]]) -> str:
    """The whole page."""
    links = [
        f'<a href="#run{number}">{escape(run["phase"])} <b>{escape(run["title"])}</b>'
        f' <span class="note">{_milliseconds(run["passes"])}</span></a>'
        for number, run in enumerate(runs)
    ]
    sections = [_section(number, run) for number, run in enumerate(runs)]
    return (
        f'<!doctype html><meta charset="utf-8"><title>Weft trace</title><style>{_STYLE}</style>'
        f"<nav>{''.join(links)}</nav><main>{''.join(sections)}</main><script>{_SCRIPT}</script>\n"
    )


def _milliseconds(passes: list[dict[str, Any]]) -> str:
    return f"{1e3 * sum(step['seconds'] for step in passes):.2f} ms"


def _section(number: int, run: dict[str, Any]) -> str:
    parts = [f"<h1>{escape(run['phase'])}: {escape(run['title'])}</h1>"]
    parts.append(f"<details><summary>given</summary><pre>{escape(run['given'])}</pre></details>")
    text: str = run["given"]
    for step in run["passes"]:
        parts.append(_pass(step, text))
        text = step["text"] or text
    return f'<section id="run{number}">{"".join(parts)}</section>'


def _pass(step: dict[str, Any], before: str) -> str:
    state = "skipped" if step["skipped"] else f"{step['seconds'] * 1e3:.2f} ms"
    if step["text"] is None:
        state += "" if step["skipped"] else ", unchanged"
    head = f"<b>{escape(step['name'])}</b> <span class='note'>{state}</span>"
    body = f"<p class='note'>{escape(step['because'])}</p>{_rules(step)}"
    if step["text"] is not None:
        body += f"<pre>{''.join(_changes(before, step['text']))}</pre>"
    is_open = " open" if step["text"] is not None else ""
    return f"<details{is_open}><summary>{head}</summary>{body}</details>"


def _rules(step: dict[str, Any]) -> str:
    rows = "".join(f"<tr><td>{escape(name)}<td>{n}" for name, n in step["rules"].items())
    return f"<table>{rows}</table>" if rows else ""


def _changes(before: str, after: str) -> Iterator[str]:
    """The text after a pass, with what came and what went marked line by line."""
    matcher = difflib.SequenceMatcher(None, old := before.splitlines(), new := after.splitlines())
    for kind, i, j, k, m in matcher.get_opcodes():
        if kind == "equal":
            yield from (f"{escape(line)}\n" for line in new[k:m])
        else:
            yield from (f"<del>{escape(line)}</del>\n" for line in old[i:j])
            yield from (f"<ins>{escape(line)}</ins>\n" for line in new[k:m])
