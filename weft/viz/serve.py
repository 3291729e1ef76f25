"""The page of a trace, served to this machine alone: the trace as it is, assembly when asked."""

from __future__ import annotations

import webbrowser
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from weft.viz.page import PAGE, assembly_of, read_records


class _Answers(BaseHTTPRequestHandler):
    """Answers for one trace; nothing else of the machine can be asked for."""

    def __init__(self, trace: Path, kernels: dict[int, dict[str, Any]], *arguments: Any) -> None:
        self._trace = trace
        self._kernels = kernels
        super().__init__(*arguments)

    def do_GET(self) -> None:
        path = self.path.split("?")[0]
        if path == "/":
            self._send("text/html; charset=utf-8", PAGE.read_bytes())
        elif path == "/trace.jsonl":
            self._send("application/jsonl", self._trace.read_bytes())
        elif path.startswith("/assembly/") and path[10:].isdigit():
            kernel = self._kernels.get(int(path[10:]))
            text = assembly_of(kernel) if kernel and kernel.get("source") else ""
            self._send("text/plain; charset=utf-8", text.encode())
        else:
            self.send_error(404)

    def _send(self, kind: str, data: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """A terminal that shows each request shows nothing else."""


def make_server(trace: Path, port: int = 0) -> ThreadingHTTPServer:
    """A server of one trace; port 0 is one that is free."""
    kernels = {r["id"]: r for r in read_records(trace) if r["kind"] == "kernel"}
    return ThreadingHTTPServer(("127.0.0.1", port), partial(_Answers, trace, kernels))


def serve(trace: Path, port: int, opens_browser: bool) -> None:
    """Serve until somebody stops it."""
    with make_server(trace, port) as server:
        address = f"http://127.0.0.1:{server.server_port}/"
        print(f"{address}  (Ctrl-C ends)", flush=True)
        if opens_browser:
            webbrowser.open(address)
        server.serve_forever()
