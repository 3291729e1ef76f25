"""Whether OpenCL runs here, for the tests that need it."""

from __future__ import annotations

import functools
import importlib.util
import os

import pytest

from weft.support.errors import DeviceError


@functools.cache
def without_opencl() -> str:
    """Why there is no OpenCL here: no pyopencl, no platform, or one that compiles nothing."""
    if importlib.util.find_spec("pyopencl") is None:
        return "pyopencl is not installed"
    from weft.render.c_family.opencl import render
    from weft.runtime.opencl.device import OpenclDevice

    # PoCL keeps its files where the tests remove them again.
    os.environ.setdefault("POCL_CACHE_DIR", os.path.join(os.environ["WEFT_CACHE_DIR"], "pocl"))
    try:
        OpenclDevice(render)
    except DeviceError as error:
        return str(error).splitlines()[0]
    return ""


def require_opencl() -> None:
    """Skip the test that runs, unless OpenCL does."""
    if without_opencl():
        pytest.skip(without_opencl())


needs_opencl = pytest.mark.needs_opencl
