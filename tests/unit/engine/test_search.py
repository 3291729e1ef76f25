"""The search: legal candidates in a fixed order, the right result, and nothing that harms it."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from weft import Context, Tensor, dtypes
from weft.codegen.choose.candidates import neighbors
from weft.codegen.choose.heuristic import choose_opts
from weft.codegen.generate import before_opts, generate
from weft.codegen.opts.table import Unroll, apply_opts
from weft.codegen.opts.text import from_json, to_json
from weft.engine import search_process
from weft.engine.devices import device
from weft.engine.search import Search, search
from weft.engine.search_process import Runner
from weft.engine.stored.program import pack
from weft.ir.build import param, sink, store
from weft.ir.uop import UOp
from weft.schedule.schedule import make_schedule


def matmul_kernel(rows: int, inner: int, columns: int) -> UOp:
    x = Tensor(param(1, dtypes.float32, (rows, inner)))
    y = Tensor(param(2, dtypes.float32, (inner, columns)))
    graph = sink(store(param(0, dtypes.float32, (rows, columns)), (x @ y).uop))
    (call,) = make_schedule(graph, device("CPU").target).kernels.src
    kernel: UOp = call.arg
    return kernel


def packed(kernel: UOp) -> bytes:
    on = device("CPU")
    program = generate(kernel, on.target, ())
    program = program.with_source(on.render(program))
    return pack(program.with_binary(on.compile(program)))


def test_neighbors_are_legal_and_come_in_a_fixed_order() -> None:
    target = device("CPU").target
    kernel = before_opts(matmul_kernel(32, 40, 48), target)
    default = choose_opts(kernel, target)[0]
    found = list(neighbors(kernel, default, target))
    assert len(found) > 5
    assert found == list(neighbors(kernel, default, target))
    for candidate in found:
        apply_opts(kernel, candidate)
        assert from_json(to_json(candidate)) == candidate


def test_the_result_is_right_and_not_worse_than_the_default() -> None:
    kernel = matmul_kernel(24, 32, 40)
    found = search(kernel, device("CPU"), width=1, seconds=2)
    assert found.measured >= 1
    assert found.seconds <= found.default
    x = np.random.default_rng(0).standard_normal((24, 32)).astype(np.float32)
    y = np.random.default_rng(1).standard_normal((32, 40)).astype(np.float32)
    with Context(BEAM=1, BEAM_SECONDS=1):
        got = (Tensor(x) @ Tensor(y)).numpy()
    np.testing.assert_allclose(got, x @ y, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("seconds", "wins"),
    [
        ([1.0, 0.9, 1.0, 0.9, 1.1, 0.9], True),
        ([1.0, 0.5, 1.0, 0.5, 1.0, 0.99], False),  # one round is lost
        ([None, None, 1.0, 0.5, 1.0, 0.5], False),
    ],
)
def test_a_candidate_has_to_win_every_round(seconds: list[float | None], wins: bool) -> None:
    class Scripted(Runner):
        def measure(self, program: bytes) -> float | None:
            return seconds.pop(0)

    kernel = matmul_kernel(24, 32, 40)
    running = Search(kernel, device("CPU"), 1, 0.0)
    other = (*running.default, Unroll(0))
    running.measured = {running.default: 1.0, other: 0.5}
    running.programs = {running.default: b"", other: b""}
    found = running.verdict(Scripted("CPU", kernel))
    assert (found.opts == other) is wins


def test_a_candidate_that_crashes_is_survived() -> None:
    kernel = matmul_kernel(8, 8, 8)
    with Runner("CPU", kernel) as runner:
        assert runner.measure(packed(kernel)) is not None
        assert runner.measure(b"{}\0not a program") is None
        assert runner.measure(packed(kernel)) is not None


def test_a_child_that_replaces_another_has_time_to_start(monkeypatch) -> None:
    """The first program of each child waits for its imports, too."""
    asked: list[float] = []

    class Scripted(Runner):
        def _ask(self, pipe, program: bytes, patience: float) -> float | None:
            asked.append(patience)
            if len(asked) == 2:
                self._stop()
                return None
            return 1.0

    monkeypatch.setattr("multiprocessing.context.SpawnProcess.start", lambda self: None)
    monkeypatch.setattr(Scripted, "_stop", lambda self: setattr(self, "_pipe", None))
    kernel = matmul_kernel(2, 2, 2)
    with Scripted("CPU", kernel) as runner:
        assert [runner.measure(b"program") for _ in range(3)] == [1.0, None, 1.0]
    start, run = search_process.SECONDS_TO_START, search_process.SECONDS_TO_RUN
    assert asked == [start, run, start, run]


def test_a_candidate_that_hangs_is_survived(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_process, "SECONDS_TO_RUN", 0.5)
    kernel = matmul_kernel(2, 2, 2)
    endless = Tensor(param(1, dtypes.int64, (1,))).expand(1 << 40)
    steps = (endless * Tensor.arange(1 << 40, dtype=dtypes.int64) % 7).sum()
    graph = sink(store(param(0, dtypes.int64, ()), steps.uop))
    *_, call = make_schedule(graph, device("NULL").target).kernels.src
    with Runner("CPU", kernel) as runner:
        assert runner.measure(packed(kernel)) is not None
        assert runner.measure(packed(call.arg)) is None


def test_a_candidate_with_other_results_is_refused() -> None:
    kernel = matmul_kernel(8, 8, 8)
    other = matmul_kernel(8, 8, 8).arg[0]
    x = Tensor(param(1, dtypes.float32, (8, 8)))
    y = Tensor(param(2, dtypes.float32, (8, 8)))
    graph = sink(store(param(0, dtypes.float32, (8, 8)), (x + y).uop))
    (call,) = make_schedule(graph, device("CPU").target).kernels.src
    assert other != call.arg.arg[0]
    with Runner("CPU", kernel) as runner:
        assert runner.measure(packed(kernel)) is not None
        assert runner.measure(packed(call.arg)) is None


def test_the_program_of_the_user_runs_once(tmp_path: Path) -> None:
    """The child that runs candidates is not a second run of a script without a guard."""
    script = tmp_path / "script.py"
    script.write_text("from weft import Tensor\nprint((Tensor([1.0, 2.0]) + 1).tolist())\n")
    root = Path(__file__).resolve().parents[3]
    environment = {**os.environ, "BEAM": "1", "BEAM_SECONDS": "2", "PYTHONPATH": str(root)}
    done = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr, done.returncode) == ("[2.0, 3.0]\n", "", 0)
