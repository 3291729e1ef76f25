"""What a user sees when something goes wrong on a GPU, each in a process of its own.

The process that had the fault ends by itself, and the next one works.
"""

import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# A message is to come within seconds of the fault; starting Python and the driver takes others.
SECONDS = 2.0

START = """
import time, numpy as np
from weft import Tensor, custom_kernel, jit
from tests.device.fault_kernels import kernel
from weft.engine.devices import device
x = Tensor(np.ones(1000, np.float32)).realize()
(x + 1).realize()
device("CUDA").synchronize()
"""

SHOW = """
start = time.perf_counter()
try:
    use()
    print("NO ERROR")
except Exception as error:
    print(type(error).__name__, f"after {time.perf_counter() - start:.2f} s")
    print(error)
"""


def run(text: str, **settings: str) -> tuple[str, float]:
    """What a process prints, and its seconds."""
    start = time.perf_counter()
    environment = {"DEVICE": "CUDA", "WEFT_CACHE": "0", **settings}
    command = ["env", *(f"{k}={v}" for k, v in environment.items()), sys.executable, "-c", text]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, cwd=ROOT, check=False
    )
    return done.stdout + done.stderr, time.perf_counter() - start


def seconds_in(out: str) -> float:
    return float(out.partition("after ")[2].partition(" s")[0])


def next_process_works() -> None:
    out, _ = run("from weft import Tensor; print((Tensor([1.0, 2.0]) + 1).tolist())")
    assert "[2.0, 3.0]" in out, out


def faulty(name: str) -> str:
    return START + (
        f"def use():\n    y = custom_kernel(kernel({name!r}), x, shape=(1000,)) + 1"
        "\n    z = y.realize(); (x * 3).realize(); z.numpy()\n"
    )


def test_an_illegal_address():
    out, _ = run(faulty("stray") + SHOW)
    print(out)
    assert "DeviceError" in out and "kernel 'stray' touched memory" in out
    assert seconds_in(out) < SECONDS
    next_process_works()


def test_after_an_illegal_address():
    out, _ = run(faulty("stray") + SHOW + "def use(): Tensor([1.0]).realize()\n" + SHOW)
    print(out)
    assert "CUDA cannot be used any more: kernel 'stray'" in out


def test_an_endless_kernel():
    out, whole = run(faulty("endless") + SHOW, KERNEL_SECONDS="1")
    print(out, whole)
    assert "kernel 'endless' has not ended after 1 s" in out
    assert seconds_in(out) < SECONDS and whole < 30  # the process ends by itself
    next_process_works()


def test_a_fault_in_a_jitted_call():
    text = START + (
        "@jit\ndef step(x):\n    return custom_kernel(kernel('stray'), x + 1, shape=(1000,)) + 1\n"
        "def use(): step(x).numpy()\n"
    )
    out, _ = run(text + SHOW)
    print(out)
    assert "'stray'" in out or "stray" in out
    out, _ = run(text + SHOW, DEBUG="2")
    assert "kernel 'stray' touched memory" in out


def test_bad_ptx():
    out, _ = run(faulty("unknown") + SHOW)
    print(out)
    assert "InternalError" in out and "refuses the PTX of 'unknown'" in out
    assert "f99" in out and seconds_in(out) < SECONDS


def test_out_of_memory_names_tensors():
    text = START + (
        "kept = [Tensor.ones(1 << 28).contiguous().realize() for _ in range(3)]\n"
        "def use(): Tensor.ones(1 << 40, dtype='int8').contiguous().realize()\n"
    )
    out, _ = run(text + SHOW + "print(kept[0].sum().item())")
    print(out)
    assert "OutOfMemory" in out and "float32 (268435456,)" in out and "268435456.0" in out
    assert seconds_in(out) < SECONDS


def test_no_gpu():
    out, _ = run("from weft import Tensor; Tensor([1.0])", CUDA_VISIBLE_DEVICES="")
    print(out)
    assert "there is no GPU" in out and "CUDA_VISIBLE_DEVICES" in out


def test_weft_devices():
    out, _ = run("from weft.cli.main import main; main(['devices'])")
    print(out)
    assert "CUDA:PTX:sm_" in out and "GiB" in out


@pytest.mark.parametrize("count", [20])
def test_processes_killed_in_a_kernel_leave_nothing(count: int):
    text = faulty("endless") + "y = custom_kernel(kernel('endless'), x, shape=(1000,)).realize()\n"
    text += "print('running', flush=True); time.sleep(60)"
    command = ["env", "DEVICE=CUDA", "WEFT_CACHE=0", sys.executable, "-c", text]
    running = [
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        for _ in range(count)
    ]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        process.kill()
        process.wait()
        process.stdout.close()
    next_process_works()
