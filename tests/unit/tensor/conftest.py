"""Every test of tensors runs on the devices named here; the interpreter is the oracle."""

from collections.abc import Iterator

import pytest

from weft.support.settings import Context

DEVICES = ("CPU",)


@pytest.fixture(params=DEVICES, autouse=True)
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    """Make a device the default of new tensors."""
    with Context(DEVICE=request.param):
        yield request.param
