"""The whole op table on a GPU, values and gradients, in several processes at once."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.end_to_end.op_table import FAMILIES, LOOPS

WORKERS = min(12, os.cpu_count() or 1)
SECONDS = 540


@pytest.fixture(scope="module")
def results() -> list[dict[str, Any]]:
    """What every row gave; a process that ends early gives a row of its own."""
    command = [sys.executable, "-m", "tests.device.op_worker"]
    running = [
        subprocess.Popen(
            [*command, str(shard), str(WORKERS)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "DEVICE": "CUDA", "OMP_NUM_THREADS": "1", "SPEC": "0"},
        )
        for shard in range(WORKERS)
    ]
    found: list[dict[str, Any]] = []
    for shard, process in enumerate(running):
        try:
            out, err = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
        lines = [json.loads(line) for line in out.splitlines()]
        found += lines
        if process.returncode:
            last = lines[-1]["row"] if lines else "none"
            text = f"ended with {process.returncode} behind row {last}: {err[-800:]}"
            found.append({"family": "", "row": f"worker {shard}", "problems": {"it": text}})
    return found


@pytest.mark.peers("torch")
def test_every_worker_ends(results: list[dict[str, Any]]):
    assert not [line for line in results if not line["family"]]


@pytest.mark.peers("torch")
@pytest.mark.parametrize("family", [name for name in FAMILIES if name not in LOOPS])
def test_family(family: str, results: list[dict[str, Any]]):
    lines = [line for line in results if line["family"] == family]
    problems = [f"{case}: {text}" for line in lines for case, text in line["problems"].items()]
    cases = sum(line["cases"] for line in lines)
    print(f"{family}: {cases} cases")
    assert not problems, "\n" + "\n".join(problems)
    assert {line["row"] for line in lines} == {row.name for row in FAMILIES[family]}
