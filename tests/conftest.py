"""What every test stands on: specs checked, a cache of its own, peers found, a printed seed.

Weft reads its settings from the environment once, so the first two happen here, at the top, before
any test module is imported. Workers of pytest-xdist inherit them from the main process.
"""

import importlib.util
import os
import shutil
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from weft.ir.uop import UOp

os.environ.setdefault("SPEC", "1")

IS_WORKER = "PYTEST_XDIST_WORKER" in os.environ
if not IS_WORKER:
    os.environ["WEFT_CACHE_DIR"] = tempfile.mkdtemp(prefix="weft-test-cache-")
# Tests print internal errors on purpose; their reports go where they are removed again.
tempfile.tempdir = os.environ["WEFT_CACHE_DIR"]

PEERS = ("torch", "tinygrad")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "peers(*names): compares with the named peers, or with any of torch and tinygrad; "
        "skipped where they are not installed",
    )

    config.addinivalue_line(
        "markers", "needs_opencl: runs on OpenCL; skipped where there is none that compiles"
    )
    config.addinivalue_line(
        "markers", "long: a sample that takes long; left out unless it is asked for (-m long)"
    )


def pytest_unconfigure() -> None:
    if not IS_WORKER:
        shutil.rmtree(os.environ["WEFT_CACHE_DIR"], ignore_errors=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    installed = {name for name in PEERS if importlib.util.find_spec(name) is not None}
    for item in items:
        for marker in item.iter_markers("peers"):
            missing = set(marker.args) - installed
            if missing:
                item.add_marker(pytest.mark.skip(reason=f"not installed: {sorted(missing)}"))
            elif not marker.args and not installed:
                item.add_marker(pytest.mark.skip(reason=f"none is installed: {PEERS}"))


def is_impossible(node: "UOp") -> bool:
    """Whether a test made on purpose what no program can have: a bad constant, a bad arg."""
    from weft.ir.ops import Op
    from weft.ir.uop import const

    if node.op == Op.CONST:
        return const(node.dtype, node.arg) is not node
    return isinstance(node.arg, frozenset)


# The nodes that were printed after an earlier file and are still there, by number.
_printed: set[int] = set()


# Nodes of one file that are printed: all of most files.
_MOST_PRINTED = 4000
# Nodes that are looked at for that, where a file makes graphs that are each too large.
_MOST_WALKED = 400_000


def some_of(roots: Iterable["UOp"]) -> Iterator["UOp"]:
    """Graphs, small and large in the order of their making, of so many nodes together."""
    from weft.ir.walk import topological

    seen: set[UOp] = set()
    walked = 0
    for root in roots:
        below = topological(root, enter=lambda node: node not in seen)
        walked += len(below)
        if len(seen) + len(below) <= _MOST_PRINTED:
            seen.update(below)
            yield root
        elif 2 * len(seen) > _MOST_PRINTED or walked > _MOST_WALKED:
            return


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print scores: tests record (passed, of how many) as a property "score: NAME"."""
    scores: dict[str, tuple[int, int]] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, value in getattr(report, "user_properties", ()):
                if name.startswith("score: ") and report.when == "call":
                    passed, total = scores.get(name, (0, 0))
                    scores[name] = (passed + value[0], total + value[1])
    for name, (passed, total) in scores.items():
        terminalreporter.write_line(f"{name}: {passed} of {total}")


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("needs_opencl"):
        from tests.opencl import require_opencl

        require_opencl()


@pytest.fixture(autouse=True, scope="module")
def graphs_come_back_from_their_text() -> Iterator[None]:
    """After each test file, print and parse the graphs that its tests made, up to a limit."""
    global _printed
    yield
    from weft.ir import uop
    from weft.ir.dtypes import dtypes
    from weft.ir.ops import Op
    from weft.ir.text import dump, parse

    nodes = [node for node in uop._TABLE.values() if id(node) not in _printed]
    used = {source for node in nodes for source in node.src}
    roots = (node for node in nodes if node not in used and not is_impossible(node))
    sample = uop.make(Op.SINK, dtypes.void, tuple(some_of(roots)))
    assert parse(dump(sample)) is sample
    del nodes, used, roots, sample
    uop.sweep()
    _printed = {id(node) for node in uop._TABLE.values()}


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """Return the seed of this test, and print it first so that a failure shows it.

    It follows from the test's name, so it is the same in every run; SEED=n sets another one.
    """
    value = int(os.environ.get("SEED") or zlib.crc32(request.node.name.encode()))
    print(f"seed {value} (run again with SEED={value})")
    return value
