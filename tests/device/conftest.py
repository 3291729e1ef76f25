"""Tests that need a GPU: `python3 -m pytest tests/device`. Without one they say why they skip."""

import pytest

from weft.engine.devices import device
from weft.support.errors import DeviceError
from weft.support.settings import Context


def missing() -> str:
    """Why CUDA cannot be used here; nothing where it can."""
    try:
        device("CUDA")
    except DeviceError as error:
        return str(error).splitlines()[0]
    return ""


WHY_NOT = missing()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if WHY_NOT:
        for item in items:
            if "tests/device" in item.path.as_posix():
                item.add_marker(pytest.mark.skip(reason=WHY_NOT))


@pytest.fixture(autouse=True)
def on_cuda():
    with Context(DEVICE="" if WHY_NOT else "CUDA"):
        yield
