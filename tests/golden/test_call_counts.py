"""How many calls of Python functions a value takes on its way. Counts do not depend on a machine.

A process of its own counts, because what a process has seen before is what the counts are about.
`sys.setprofile` reports every call of a Python function, those of the standard library too.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = """
import json, sys
import numpy as np
# A process that finds its programs on disk never imports the compiler; imports are not counted.
import weft.codegen.generate, weft.render.llvm.renderer, weft.schedule.schedule
import weft.support.cache
from weft import Tensor

# One write in some looks at all that the cache has. Which one is said by a digest of all code, so
# it would be another one after each change.
weft.support.cache.evict = lambda folder, limit: 0

def calls(run):
    count = 0
    def note(frame, event, arg):
        nonlocal count
        count += event == "call"
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return count - 1  # but for `run` itself

def inputs():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    return Tensor(x).realize(), Tensor(x + 1).realize()

PROGRAMS = {
    "add": lambda a, b: (a + b).numpy(),
    "add a number": lambda a, b: (a + 1).realize(),
    "sum": lambda a, b: a.sum().item(),
    "write": lambda a, b: a.assign(a + b).realize(),
    "randn": lambda a, b: Tensor.randn(4).realize(),
    "stack": lambda a, b: Tensor.stack(a, b, a, b, a, b, a, b).realize(),
    "product": lambda a, b: (a @ b.T).realize(),
}
counts = {}
for name, program in PROGRAMS.items():
    for time in ("first", "second", "third"):
        a, b = inputs()
        counts[f"{name}, {time}"] = calls(lambda: program(a, b)) - 1
held = [Tensor(np.ones(3, np.float32)).realize() for _ in range(200)]
lazy = [each * 2 for each in held]
for name in ("add a number", "sum"):
    a, b = inputs()
    counts[f"{name}, among others"] = calls(lambda: PROGRAMS[name](a, b)) - 1
print(json.dumps(counts))
"""


def counted(cache: Path) -> dict[str, int]:
    """The counts of a process with a cache of its own on disk, as a user starts one."""
    environment = {**os.environ, "WEFT_CACHE_DIR": str(cache), "SPEC": "0"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, int], dict[str, int]]:
    """Of a process that finds its cache on disk empty, and of the next one."""
    cache = tmp_path_factory.mktemp("cache")
    return counted(cache), counted(cache)


@pytest.fixture
def counts(both: tuple[dict[str, int], dict[str, int]]) -> dict[str, int]:
    """Of a process that finds on disk what another one compiled."""
    return both[1]


@pytest.mark.parametrize(
    ("name", "most"),
    [
        *(("add", 92), ("add a number", 95), ("sum", 140), ("write", 155)),
        *(("randn", 165), ("stack", 245), ("product", 270)),
    ],
)
def test_a_value_of_a_known_structure_takes_few_calls(counts, name, most):
    assert counts[f"{name}, second"] <= most
    assert counts[f"{name}, third"] <= most


@pytest.mark.parametrize("name", ["add a number", "sum"])
def test_what_else_a_program_holds_costs_nothing(counts, name):
    """Neither tensors in memory nor lazy ones are looked at, unless they need the value."""
    assert counts[f"{name}, among others"] == counts[f"{name}, third"]


def test_the_first_value_of_a_process_takes_few_calls(counts):
    assert counts["add, first"] <= 1000


def test_the_first_value_ever_takes_few_calls(both):
    """Nothing is on disk: the kernel is scheduled, generated and compiled; no rule set is."""
    assert both[0]["add, first"] <= 5000


def test_compiling_imports_no_search():
    """Processes that search are for those who ask for it: `multiprocessing` is slow to import."""
    program = (
        "import sys; from weft import Context, Tensor\n"
        "with Context(CACHE=0): Tensor([1.0]).realize().sin().realize()\n"
        "print('multiprocessing' in sys.modules, 'weft.codegen.generate' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "True"]
