"""Forks: whatever other threads do at that moment, the child computes; and the order of locks."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from weft.support import fork

ROOT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")

# What other threads do while the process forks.
BESIDE = {
    "import": """
import weft.support.fork
def work():
    from weft import Tensor
    (Tensor([1.0, 2.0]) + 1).tolist()
""",
    "first use": """
import weft
def work():
    (weft.Tensor([1.0, 2.0]) + 1).tolist()
""",
    "compile": """
import numpy as np
from weft import Tensor
def work():
    for size in range(1, 1000):
        ((Tensor(np.ones(size, np.float32)) + 1) * 2).tolist()
""",
    "jit": """
from weft import Tensor, jit
@jit
def step(x):
    return (x @ x).relu().sum()
x = Tensor.rand(300, 300).realize()
step(x).item()
def work():
    while True:
        step(x)
def child():
    step(x).item()
""",
    "trace": """
import numpy as np
from weft import Tensor, jit
@jit
def step(x):
    return (x * 2).sum()
def work():
    for size in range(1, 1000):
        step(Tensor(np.ones(size, np.float32)))
def child():
    step(Tensor(np.ones(7, np.float32))).item()
""",
    "nodes": """
from weft.ir.build import range_
from weft.ir.uop import sweep
i = range_(0, 8)
def work():
    for number in range(10_000_000):
        i * number + 3
        if number % 1000 == 0:
            sweep()
""",
}
PROGRAM = """
import os, sys, threading, time, warnings
warnings.simplefilter("ignore")  # newer interpreters warn of every fork beside threads
threads = [threading.Thread(target=work, daemon=True) for _ in range(2)]
for thread in threads:
    thread.start()
for delay in (0.0, 0.03, 0.1):
    time.sleep(delay)
    pid = os.fork()
    if pid == 0:
        from weft import Tensor
        assert (Tensor([1.0, 2.0]) + 1).tolist() == [2.0, 3.0]
        if "child" in globals():
            child()
        os._exit(0)
    end = time.monotonic() + 40
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        if time.monotonic() > end:
            os.kill(pid, 9)
            print("the child hangs", flush=True)
            os._exit(1)
        time.sleep(0.01)
print("done", flush=True)
os._exit(0)
"""


def run_python(program: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(ROOT), "WEFT_CACHE": "0", "SPEC": "0"},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.parametrize("beside", BESIDE)
def test_a_child_computes_whatever_other_threads_did(beside: str):
    done = run_python(BESIDE[beside] + PROGRAM)
    assert done.stdout == "done\n", done.stderr


def test_a_fork_waits_for_an_import_of_another_thread(tmp_path, monkeypatch):
    (tmp_path / "slow_module.py").write_text("import time\ntime.sleep(0.3)\nvalue = 7\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    thread = threading.Thread(target=lambda: __import__("slow_module"))
    thread.start()
    while "slow_module" not in sys.modules:
        time.sleep(0.001)
    assert fork._others_import()
    fork._before()
    try:
        assert sys.modules["slow_module"].value == 7
    finally:
        fork._release()
    thread.join()
    assert not fork._others_import()


def test_a_thread_that_waits_for_this_one_is_not_waited_for(tmp_path, monkeypatch):
    """The module that forks is being imported, and another thread wants it."""
    source = """
import sys, threading, time
from weft.support import fork
def both():
    import wanting_module
thread = threading.Thread(target=both)
thread.start()
while not sys.modules["_frozen_importlib"]._blocking_on.get(thread.ident):
    time.sleep(0.001)
time.sleep(0.05)
result = fork._others_import()
"""
    (tmp_path / "outer_module.py").write_text(source)
    (tmp_path / "wanting_module.py").write_text("import outer_module\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import outer_module

    outer_module.thread.join()
    assert outer_module.result is False


def test_locks_are_taken_by_rank_and_left_in_order(monkeypatch):
    said = []

    class Lock:
        def __init__(self, name: str) -> None:
            self.name = name

        def acquire(self) -> None:
            said.append(f"take {self.name}")

        def release(self) -> None:
            said.append(f"leave {self.name}")

    monkeypatch.setattr(fork, "_held", [])
    nodes, compute, compiling = Lock("nodes"), Lock("compute"), Lock("compile")
    fork.hold_during_fork(nodes, fork.NODES)
    fork.hold_during_fork(compute, fork.COMPUTE)
    fork.hold_during_fork(compiling, fork.COMPILE)
    fork._before()
    fork._in_child()
    assert said == [
        *("take compute", "take compile", "take nodes"),
        *("leave nodes", "leave compile", "leave compute"),
    ]


ENDS = {
    "a thread after the main one": """
def later():
    threading.main_thread().join()
    time.sleep(0.1)
    print(work(5))
threading.Thread(target=later).start()
""",
    "a function of atexit": "atexit.register(lambda: print(work(5)))",
    "a function of atexit that was there before": "",
    "a checkpoint at the end": """
from weft.io import safe_load, safe_save
weights = Tensor.ones(5)
def save():
    with tempfile.TemporaryDirectory() as folder:
        safe_save({"w": weights * 7}, f"{folder}/w")
        print(safe_load(f"{folder}/w")["w"].to("CPU").sum().item())
atexit.register(save)
""",
    "batches after the main thread": """
from weft.nn.loader import DataLoader
def later():
    threading.main_thread().join()
    time.sleep(0.1)
    loader = DataLoader(np.ones((35, 1)), batch_size=7, num_workers=2)
    print(float(sum(batch.sum().item() for batch in loader)))
threading.Thread(target=later).start()
""",
    "a daemon that goes on": """
def forever():
    for size in range(1, 100000):
        work(size)
threading.Thread(target=forever, daemon=True).start()
time.sleep(0.3)
print(35.0)
""",
}


@pytest.mark.parametrize("name", ENDS)
def test_a_process_computes_until_its_end(name: str):
    first = "import atexit\natexit.register(lambda: print(work(5)))\n" if not ENDS[name] else ""
    program = f"""{first}
import atexit, tempfile, threading, time
import numpy as np
from weft import Tensor
def work(size):
    return ((Tensor(np.arange(size, dtype=np.float32)) * 3 + 1).sum()).item()
{ENDS[name]}
"""
    done = run_python(program)
    assert (done.returncode, done.stdout) == (0, "35.0\n"), done.stderr
