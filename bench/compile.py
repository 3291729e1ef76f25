"""What it costs to compile: the first training step of a model, in fresh processes.

The model is a perceptron of three layers (784-512-512-10, batch 128) with Adam. Cold means empty
caches on disk; warm is a second process that finds them. Python's own bytecode is there before, as
an installer writes it. The peer needs `clang` for its CPU.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.contest import Contest, Figures, Line, Subject, at_most, times_faster

SUBJECT = Subject("compile", peer="tinygrad")
ROOT = Path(__file__).resolve().parents[1]

WEFT = """
from time import perf_counter
begin = perf_counter()
import numpy as np
from weft import Tensor
random = np.random.default_rng(0)
def parameter(*shape):
    return Tensor((random.standard_normal(shape) / shape[0] ** 0.5).astype(np.float32)).realize()
weights = [parameter(784, 512), parameter(512, 512), parameter(512, 10)]
parameters = weights + [parameter(512), parameter(512), parameter(10)]
zeros = lambda: [Tensor(np.zeros(p.shape, np.float32)).realize() for p in parameters]
first, second = zeros(), zeros()
x = Tensor(random.standard_normal((128, 784)).astype(np.float32)).realize()
y = Tensor(random.integers(0, 10, 128).astype(np.int32)).realize()
start = perf_counter()
h = x
for i in range(3):
    h = h @ parameters[i] + parameters[i + 3]
    h = h.relu() if i < 2 else h
loss = h.sparse_categorical_crossentropy(y)
for p, g, m, v in zip(parameters, loss.gradient(*parameters), first, second):
    m.assign(m * 0.9 + g * 0.1)
    v.assign(v * 0.999 + g * g * 0.001)
    p.assign(p - 0.001 * (m / 0.1) / ((v / 0.001).sqrt() + 1e-8))
loss.realize(*parameters, *first, *second)
loss.item()
print(perf_counter() - start, perf_counter() - begin)
"""

TINYGRAD = """
from time import perf_counter
begin = perf_counter()
import numpy as np
from tinygrad import Tensor, nn
from tinygrad.helpers import Context
layers = [nn.Linear(784, 512), nn.Linear(512, 512), nn.Linear(512, 10)]
optimizer = nn.optim.Adam([p for layer in layers for p in (layer.weight, layer.bias)], lr=0.001)
for p in optimizer.params:
    p.realize()
x = Tensor(np.random.randn(128, 784).astype(np.float32)).realize()
y = Tensor(np.random.randint(0, 10, 128).astype(np.int32)).realize()
start = perf_counter()
with Context(TRAINING=1):
    h = layers[2](layers[1](layers[0](x).relu()).relu())
    loss = h.sparse_categorical_crossentropy(y)
    loss.backward()
    optimizer.step()
    loss.item()
print(perf_counter() - start, perf_counter() - begin)
"""


def run(program: str, folder: str) -> tuple[float, float]:
    """Milliseconds of the first step, and from the start of the process to its result."""
    caches = {"WEFT_CACHE_DIR": folder, "XDG_CACHE_HOME": folder, "CACHEDB": f"{folder}/peer.db"}
    caches |= {"PYTHONDONTWRITEBYTECODE": ""}  # an empty value lets it be written
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={**os.environ, **caches, "DEV": "CPU", "PYTHONPATH": str(ROOT)},
        check=True,
        capture_output=True,
        text=True,
    )
    step, whole = map(float, done.stdout.split())
    return step * 1e3, whole * 1e3


def figures(program: str) -> Figures:
    with tempfile.TemporaryDirectory() as folder:
        run(program, folder)  # writes bytecode
    with tempfile.TemporaryDirectory() as folder:
        cold, whole_cold = run(program, folder)
        warm, whole_warm = run(program, folder)
    return {
        "cold": cold,
        "cold, whole process": whole_cold,
        "warm": warm,
        "warm, whole process": whole_warm,
    }


@SUBJECT.benchmark(
    "first step",
    Line("cold", "ms", times_faster(5)),
    Line("cold, whole process", "ms"),
    Line("warm", "ms"),
    Line("warm, whole process", "ms", at_most(500, "ms")),
)
class FirstStep(Contest):
    """Train for one step in a fresh process, with empty caches and again with full ones."""

    def weft(self) -> Figures:
        return figures(WEFT)

    def peer(self) -> Figures:
        return figures(TINYGRAD)
