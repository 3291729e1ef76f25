"""The OpenCL devices of this machine, in one fixed order, and what they can do.

pyopencl is imported when the first device is asked for. It is typed as Any: nothing else of Weft
sees its objects.
"""

from __future__ import annotations

import importlib
from typing import Any

from weft.support.errors import DeviceError
from weft.target.opencl import opencl_target
from weft.target.target import Target

_FIX = 'pip install "weft[opencl]" brings pyopencl and a platform that runs on the CPU'
_EMPTY_PROGRAM = "__kernel void empty(__global int *p0) { p0[0] = 0; }"


def import_pyopencl() -> Any:
    """The module pyopencl."""
    try:
        return importlib.import_module("pyopencl")
    except ImportError as error:
        raise DeviceError(
            "OPENCL: pyopencl cannot be imported",
            facts=[("reason", str(error))],
            rule="the device OPENCL needs pyopencl and an OpenCL platform",
            fix=_FIX,
        ) from error


def opencl_devices() -> list[Any]:
    """The devices of all platforms, in the order of the loader: OPENCL:0, OPENCL:1, …"""
    cl = import_pyopencl()
    try:
        platforms = cl.get_platforms()
    except cl.Error:  # the loader says that there is no platform by an error
        platforms = []
    found = []
    for platform in platforms:
        try:
            found.extend(platform.get_devices())
        except cl.Error:
            continue  # a platform without a device, or with a broken one
    return [device for device in found if device.available and device.compiler_available]


def require_device(number: int) -> Any:
    """The device of this number."""
    devices = opencl_devices()
    if not devices:
        raise DeviceError(
            "OPENCL: there is no OpenCL device",
            rule="the device OPENCL needs an OpenCL platform with a device",
            fix=_FIX,
        )
    if not 0 <= number < len(devices):
        raise DeviceError(
            f"OPENCL:{number} does not exist",
            facts=[(f"OPENCL:{i}", found.name) for i, found in enumerate(devices)],
            rule="OpenCL devices are numbered from 0 in the order of their platforms",
        )
    return devices[number]


def require_compiler(context: Any, device: Any) -> None:
    """The compiler of a device takes a program: an old one may not know this machine."""
    cl = import_pyopencl()
    try:
        cl.Program(context, _EMPTY_PROGRAM).build(cache_dir=False)
    except cl.Error as error:
        raise DeviceError(
            f"OPENCL: {device.platform.name} compiles nothing for {device.name}",
            facts=[("platform", device.platform.version), ("says", str(error).strip()[:1000])],
            rule="the device OPENCL needs a platform whose compiler knows this machine",
            fix="install a newer platform for this device, or use another device, such as CPU",
        ) from error


def describe(device: Any) -> Target:
    """The target of a device."""
    cl = import_pyopencl()
    rounds = cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT
    return opencl_target(
        f"{device.platform.name} {device.name}",
        has_float64="cl_khr_fp64" in device.extensions.split(),
        rounds_float32=bool(device.single_fp_config & rounds),
        group_limit=min(int(device.max_work_group_size), *map(int, device.max_work_item_sizes)),
        local_bytes=int(device.local_mem_size),
        compute_units=int(device.max_compute_units),
        cache_bytes=(32 << 10, max(int(device.global_mem_cache_size), 1 << 20)),
    )
