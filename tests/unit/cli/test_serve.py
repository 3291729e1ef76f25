"""`weft serve` as a process: it answers, and SIGTERM lets a running answer end."""

import http.client
import json
import signal
import socket
import subprocess
import sys
import time

import pytest

from tests.unit.llm.tiny_model import write_tiny

pytest.importorskip("starlette", reason="needs the extra `serve`")
pytest.importorskip("uvicorn", reason="needs the extra `serve`")
pytest.importorskip("tokenizers", reason="needs the extra `llm`")
pytest.importorskip("jinja2", reason="needs the extra `llm`")


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM")
def test_a_running_answer_ends_before_the_server_does(tmp_path):
    path, port = write_tiny(tmp_path / "tiny.gguf"), free_port()
    command = [sys.executable, "-m", "weft.cli.main", "serve", str(path), "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            wait_for(port, process)
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
            ends = {"256": -100, "258": -100}  # an answer that does not end by itself
            body = {"prompt": "ab", "max_tokens": 60, "stream": True, "logit_bias": ends}
            connection.request("POST", "/v1/completions", json.dumps(body))
            response = connection.getresponse()
            assert response.readline().startswith(b"data: ")
            process.send_signal(signal.SIGTERM)
            rest = response.read()
            assert rest.rstrip().endswith(b"data: [DONE]") and b'"length"' in rest
            connection.close()
            process.wait(300)
        finally:
            process.kill()


def wait_for(port: int, process: subprocess.Popen) -> None:
    while True:
        assert process.poll() is None, process.stderr.read().decode()
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            time.sleep(0.05)
