"""A CUDA device that needs no GPU, for the tests of this folder."""

from collections.abc import Iterator

import pytest

from tests.unit.runtime.fake_cuda import FakeDevice, FakeDriver
from weft import Context
from weft.engine import compile as engine_compile
from weft.engine import devices, work


@pytest.fixture
def api() -> FakeDriver:
    return FakeDriver()


@pytest.fixture
def device(api: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDevice]:
    """A device that tensors find as CUDA; what was loaded for it goes with it."""
    made = FakeDevice(api)
    monkeypatch.setitem(devices._OPEN, "CUDA", made)
    monkeypatch.setattr(engine_compile, "_LOADED", {})
    monkeypatch.setattr(engine_compile, "_try_stored", lambda key: None)
    monkeypatch.setattr(work, "_PREPARED", {})
    monkeypatch.setattr(work, "_WORK", {})
    with Context(DEVICE="CUDA"):
        yield made
