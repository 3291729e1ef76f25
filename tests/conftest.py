"""What every test stands on: specs checked, a cache of its own, peers found, a printed seed.

Weft reads its settings from the environment once, so the first two happen here, at the top, before
any test module is imported. Workers of pytest-xdist inherit them from the main process.
"""

import importlib.util
import os
import shutil
import tempfile
import zlib

import pytest

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


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """Return the seed of this test, and print it first so that a failure shows it.

    It follows from the test's name, so it is the same in every run; SEED=n sets another one.
    """
    value = int(os.environ.get("SEED") or zlib.crc32(request.node.nodeid.encode()))
    print(f"seed {value} (run again with SEED={value})")
    return value
